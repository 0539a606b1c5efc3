"""Alembic's environment. A new revision goes to ``versions/`` and into ``trickle.catalog.migrate.REVISIONS``."""
