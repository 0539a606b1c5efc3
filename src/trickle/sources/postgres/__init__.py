"""PostgreSQL tables as sources: what happened to them, by triggers, by WAL, or by comparing."""
