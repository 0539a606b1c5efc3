"""Tables of PostgreSQL databases are kept as replicas, and lake tables can have a version that readers see."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

IDENTITY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)

KIND = "kind IN ('TABLE', 'VIEW', 'STREAM_TABLE', 'ATTACHED', 'REPLICA')"


def upgrade() -> None:
    _kinds()
    op.create_table(
        "pins",
        sa.Column("relation_id", IDENTITY, autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=True),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Text(), nullable=True),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.CheckConstraint("number >= 0", name=op.f("ck_pins_number")),
        sa.ForeignKeyConstraint(
            ["relation_id"], ["relations.id"], name=op.f("fk_pins_relation_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("relation_id", name=op.f("pk_pins")),
    )
    op.create_table(
        "databases",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("dsn", sa.Text(), nullable=False),
        sa.Column("cdc_mode", sa.Text(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("ingested_at", MOMENT, nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("last_error_at", MOMENT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_databases")),
        sa.UniqueConstraint("name_key", name=op.f("uq_databases_name_key")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "replicas",
        sa.Column("relation_id", IDENTITY, autoincrement=False, nullable=False),
        sa.Column("database_id", IDENTITY, nullable=False),
        sa.Column("oid", sa.BigInteger(), nullable=False),
        sa.Column("schema_name", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("shape", sa.JSON(), nullable=False),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.Column("loaded_at", MOMENT, nullable=True),
        sa.CheckConstraint("status IN ('LOADING', 'ACTIVE', 'BROKEN')", name=op.f("ck_replicas_status")),
        sa.ForeignKeyConstraint(
            ["relation_id"], ["relations.id"], name=op.f("fk_replicas_relation_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["database_id"], ["databases.id"], name=op.f("fk_replicas_database_id")),
        sa.PrimaryKeyConstraint("relation_id", name=op.f("pk_replicas")),
        sa.UniqueConstraint("database_id", "oid", name=op.f("uq_replicas_database_id_oid")),
    )
    op.create_index(op.f("ix_replicas_database_id"), "replicas", ["database_id"])


def _kinds() -> None:
    """One kind more. SQLite rebuilds the table for it, and does not keep its triggers."""
    if op.get_bind().dialect.name != "sqlite":
        op.drop_constraint(op.f("ck_relations_kind"), "relations", type_="check")
        op.create_check_constraint(op.f("ck_relations_kind"), "relations", KIND)
        return
    triggers = sa.text("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'relations' ORDER BY name")
    made = list(op.get_bind().execute(triggers).scalars())
    spent = op.get_bind().execute(sa.text("SELECT seq FROM sqlite_sequence WHERE name = 'relations'")).scalar()
    with op.batch_alter_table("relations", recreate="always", table_kwargs={"sqlite_autoincrement": True}) as table:
        table.drop_constraint(op.f("ck_relations_kind"), type_="check")
        table.create_check_constraint(op.f("ck_relations_kind"), KIND)
    if spent is not None:
        op.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = 'relations'"))
        op.execute(sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES ('relations', :s)").bindparams(s=spent))
    for trigger in made:
        op.execute(trigger)
