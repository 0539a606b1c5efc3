"""What talks to a PostgreSQL server of the user's: connections, tables, types, rows as Arrow. No Spark, no catalog."""
