"""Delta tables: Spark reads and writes their files, their log is read here, and delta-rs commits to it."""
