"""IMMEDIATE stream tables: their result changes in the transaction that changes their sources."""
