"""Replicas: tables of attached PostgreSQL databases in the lake. Attached, loaded, kept by ingest, let go."""
