"""First on the data path: where each source stands."""
