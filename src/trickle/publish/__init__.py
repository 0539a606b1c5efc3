"""Stream tables as ordinary tables of PostgreSQL databases, changed by exactly what a refresh changed."""
