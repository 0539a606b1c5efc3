"""Second on the data path: what changed in a source between two positions."""
