"""Stream tables are kept in PostgreSQL too, and sources are looked at from time to time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

IDENTITY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "publications",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("uid", sa.Text(), nullable=False),
        sa.Column("relation_id", IDENTITY, nullable=False),
        sa.Column("dsn", sa.Text(), nullable=False),
        sa.Column("schema_name", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=True),
        sa.Column("shown_uid", sa.Text(), nullable=True),
        sa.Column("published_at", MOMENT, nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("last_error_at", MOMENT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["relation_id"], ["relations.id"], name=op.f("fk_publications_relation_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_publications")),
        sa.UniqueConstraint("uid", name=op.f("uq_publications_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_publications_relation_id"), "publications", ["relation_id"])
    op.create_table(
        "polled",
        sa.Column("relation_id", IDENTITY, autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("schedule", sa.Text(), nullable=False),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.Column("polled_at", MOMENT, nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("last_error_at", MOMENT, nullable=True),
        sa.CheckConstraint("kind IN ('files', 'function')", name=op.f("ck_polled_kind")),
        sa.CheckConstraint("status IN ('LOADING', 'ACTIVE', 'BROKEN')", name=op.f("ck_polled_status")),
        sa.ForeignKeyConstraint(
            ["relation_id"], ["relations.id"], name=op.f("fk_polled_relation_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("relation_id", name=op.f("pk_polled")),
    )
