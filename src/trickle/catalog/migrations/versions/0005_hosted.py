"""Stream tables can live in an attached PostgreSQL database."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

IDENTITY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "hosted",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("uid", sa.Text(), nullable=False),
        sa.Column("relation_id", IDENTITY, nullable=True),
        sa.Column("database_id", IDENTITY, nullable=False),
        sa.Column("schema_name", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("columns", sa.JSON(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["relation_id"], ["relations.id"], name=op.f("fk_hosted_relation_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(["database_id"], ["databases.id"], name=op.f("fk_hosted_database_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hosted")),
        sa.UniqueConstraint("uid", name=op.f("uq_hosted_uid")),
        sa.UniqueConstraint("relation_id", name=op.f("uq_hosted_relation_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_hosted_database_id"), "hosted", ["database_id"])
