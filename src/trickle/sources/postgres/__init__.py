"""Capture of changes in a PostgreSQL database: triggers, WAL, polling. Knows psycopg and Arrow, not Spark."""
