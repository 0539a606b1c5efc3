"""Decides when stream tables are refreshed, in which order, and by whom."""
