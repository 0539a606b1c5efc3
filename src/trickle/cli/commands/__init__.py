"""The commands, a few to a module."""
