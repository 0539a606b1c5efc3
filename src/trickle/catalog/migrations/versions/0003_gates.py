"""Watermarks hold back, users have gates, the scheduler is told things, alerts reach sinks, definitions are counted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

IDENTITY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)

# Tables that hold definitions, with the columns whose change is one; none named: all of them.
# Where a stream table, a fuse or a watermark stands is read at every tick, and is not counted.
DEFINITIONS: dict[str, tuple[str, ...]] = {
    "dependencies": (),
    "fuses": ("mode", "ceiling", "max_ratio", "sensitivity", "window_size", "baselines"),
    "refresh_group_members": (),
    "refresh_groups": (),
    "relations": (),
    "settings": (),
    "source_gates": (),
    "stream_tables": ("schedule", "refresh_mode", "options", "always_refresh", "canonical"),
    "user_gates": (),
    "watermark_group_members": (),
    "watermark_groups": (),
}


def upgrade() -> None:
    _watermarks()
    _user_gates()
    _scheduler_state()
    _alert_cursors()
    # Last: SQLite forgets the triggers of a table that is rebuilt.
    _count_definitions()


def _watermarks() -> None:
    op.add_column("watermark_groups", sa.Column("mode", sa.Text(), nullable=True))
    op.execute("UPDATE watermark_groups SET mode = 'gate'")
    checks = (
        sa.CheckConstraint("tolerance_seconds >= 0", name=op.f("ck_watermark_groups_tolerance_seconds")),
        sa.CheckConstraint("mode IN ('gate', 'hold_back')", name=op.f("ck_watermark_groups_mode")),
    )
    on_sqlite = op.get_bind().dialect.name == "sqlite"
    # SQLite rebuilds the table, and does not tell which checks it had.
    with op.batch_alter_table(
        "watermark_groups",
        table_args=checks if on_sqlite else (),
        table_kwargs={"sqlite_autoincrement": True},
    ) as table:
        table.alter_column("mode", existing_type=sa.Text(), nullable=False)
        if not on_sqlite:
            table.create_check_constraint(op.f("ck_watermark_groups_mode"), "mode IN ('gate', 'hold_back')")
    op.create_table(
        "watermark_history",
        sa.Column("source_id", IDENTITY, autoincrement=False, nullable=False),
        sa.Column("watermark", MOMENT, nullable=False),
        sa.Column("position", sa.Text(), nullable=True),
        sa.Column("advanced_at", MOMENT, nullable=False),
        sa.Column("advanced_by", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["source_id"], ["relations.id"], name=op.f("fk_watermark_history_source_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("source_id", "watermark", name=op.f("pk_watermark_history")),
    )
    op.execute(
        "INSERT INTO watermark_history (source_id, watermark, position, advanced_at, advanced_by)"
        " SELECT source_id, watermark, position, updated_at, advanced_by FROM watermarks"
    )


def _user_gates() -> None:
    op.create_table(
        "user_gates",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("tables", sa.JSON(), nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("created_by", sa.Text(), nullable=True),
        sa.CheckConstraint("kind IN ('sql', 'python')", name=op.f("ck_user_gates_kind")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user_gates")),
        sa.UniqueConstraint("name_key", name=op.f("uq_user_gates_name_key")),
        sqlite_autoincrement=True,
    )


def _scheduler_state() -> None:
    op.create_table(
        "scheduler_state",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("ddl_number", sa.BigInteger(), nullable=False),
        sa.Column("paused_at", MOMENT, nullable=True),
        sa.Column("paused_by", sa.Text(), nullable=True),
        sa.Column("pause_reason", sa.Text(), nullable=True),
        sa.Column("draining_since", MOMENT, nullable=True),
        sa.Column("draining_by", sa.Text(), nullable=True),
        sa.CheckConstraint("id = 1", name=op.f("ck_scheduler_state_single")),
        sa.CheckConstraint(
            "(paused_at IS NULL) = (paused_by IS NULL)", name=op.f("ck_scheduler_state_paused_by_someone")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scheduler_state")),
    )
    op.execute("INSERT INTO scheduler_state (id, ddl_number) VALUES (1, 0)")


def _alert_cursors() -> None:
    op.create_table(
        "alert_cursors",
        sa.Column("sink", sa.Text(), nullable=False),
        sa.Column("alert_id", IDENTITY, nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.CheckConstraint("failures >= 0", name=op.f("ck_alert_cursors_failures")),
        sa.PrimaryKeyConstraint("sink", name=op.f("pk_alert_cursors")),
    )


def _count_definitions() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for table, columns in DEFINITIONS.items():
            of = f" OF {', '.join(columns)}" if columns else ""
            for event in ("INSERT", f"UPDATE{of}", "DELETE"):
                op.execute(
                    f"CREATE TRIGGER count_{table}_{event.split()[0].lower()} AFTER {event} ON {table}"
                    " BEGIN UPDATE scheduler_state SET ddl_number = ddl_number + 1; END"
                )
        return
    op.execute(
        "CREATE FUNCTION trickle.count_definition() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN UPDATE trickle.scheduler_state SET ddl_number = ddl_number + 1; RETURN NULL; END'"
    )
    for table, columns in DEFINITIONS.items():
        of = f" OF {', '.join(columns)}" if columns else ""
        # At the end of the transaction: the one row that all of them lock is locked last, so that no two wait in turn.
        op.execute(
            f"CREATE CONSTRAINT TRIGGER count_{table} AFTER INSERT OR UPDATE{of} OR DELETE ON trickle.{table}"
            " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION trickle.count_definition()"
        )
