"""Base tables, views and attached tables: SQL statements over them, and reading."""
