"""The first catalog."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

IDENTITY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    _create_system()
    _create_relations()
    _create_refreshes()
    _create_gates()
    _create_scheduling()


def _create_system() -> None:
    op.create_table(
        "meta",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("warehouse_id", sa.Text(), nullable=False),
        sa.Column("format_version", sa.Integer(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("migrated_by", sa.Text(), nullable=False),
        sa.Column("migrated_at", MOMENT, nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_meta_single")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_meta")),
    )
    op.create_table(
        "settings",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_settings")),
    )


def _create_relations() -> None:
    op.create_table(
        "relations",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("schema_name", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("schema_key", sa.Text(), nullable=False),
        sa.Column("table_key", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("uid", sa.Text(), nullable=False),
        sa.Column("location", sa.Text(), nullable=True),
        sa.Column("storage_options", sa.JSON(), nullable=False),
        sa.Column("query", sa.Text(), nullable=True),
        sa.Column("key_columns", sa.JSON(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.CheckConstraint(
            "kind <> 'ATTACHED' OR location IS NOT NULL", name=op.f("ck_relations_attached_has_location")
        ),
        sa.CheckConstraint("kind <> 'VIEW' OR query IS NOT NULL", name=op.f("ck_relations_view_has_query")),
        sa.CheckConstraint("kind IN ('TABLE', 'VIEW', 'STREAM_TABLE', 'ATTACHED')", name=op.f("ck_relations_kind")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_relations")),
        sa.UniqueConstraint("schema_key", "table_key", name=op.f("uq_relations_schema_key_table_key")),
        sa.UniqueConstraint("uid", name=op.f("uq_relations_uid")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "stream_tables",
        sa.Column("relation_id", IDENTITY, autoincrement=False, nullable=False),
        sa.Column("schedule", sa.Text(), nullable=False),
        sa.Column("refresh_mode", sa.String(32), nullable=False),
        sa.Column("effective_mode", sa.Text(), nullable=True),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("populated", sa.Boolean(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=True),
        sa.Column("refresh_number", sa.BigInteger(), nullable=False),
        sa.Column("data_timestamp", MOMENT, nullable=True),
        sa.Column("last_refresh_at", MOMENT, nullable=True),
        sa.Column("consecutive_errors", sa.Integer(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("last_error_at", MOMENT, nullable=True),
        sa.Column("needs_reinitialize", sa.Boolean(), nullable=False),
        sa.Column("always_refresh", sa.Boolean(), nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.CheckConstraint(
            "refresh_mode IN ('FULL', 'DIFFERENTIAL', 'AUTO', 'IMMEDIATE')", name=op.f("ck_stream_tables_refresh_mode")
        ),
        sa.CheckConstraint(
            "status IN ('INITIALIZING', 'ACTIVE', 'SUSPENDED', 'ERROR')", name=op.f("ck_stream_tables_status")
        ),
        sa.CheckConstraint("consecutive_errors >= 0", name=op.f("ck_stream_tables_consecutive_errors")),
        sa.CheckConstraint("refresh_number >= 0", name=op.f("ck_stream_tables_refresh_number")),
        sa.ForeignKeyConstraint(
            ["relation_id"], ["relations.id"], name=op.f("fk_stream_tables_relation_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("relation_id", name=op.f("pk_stream_tables")),
    )
    op.create_index(op.f("ix_stream_tables_status"), "stream_tables", ["status"], unique=False)
    op.create_table(
        "dependencies",
        sa.Column("relation_id", IDENTITY, autoincrement=False, nullable=False),
        sa.Column("source_id", IDENTITY, autoincrement=False, nullable=False),
        sa.Column("columns", sa.JSON(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.Column("direct", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["relation_id"], ["relations.id"], name=op.f("fk_dependencies_relation_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["source_id"], ["relations.id"], name=op.f("fk_dependencies_source_id")),
        sa.PrimaryKeyConstraint("relation_id", "source_id", name=op.f("pk_dependencies")),
    )
    op.create_index(op.f("ix_dependencies_source_id"), "dependencies", ["source_id"], unique=False)
    op.create_table(
        "frontiers",
        sa.Column("relation_id", IDENTITY, autoincrement=False, nullable=False),
        sa.Column("source_id", IDENTITY, autoincrement=False, nullable=False),
        sa.Column("position", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["relation_id"], ["stream_tables.relation_id"], name=op.f("fk_frontiers_relation_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["source_id"], ["relations.id"], name=op.f("fk_frontiers_source_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("relation_id", "source_id", name=op.f("pk_frontiers")),
    )
    op.create_index(op.f("ix_frontiers_source_id"), "frontiers", ["source_id"], unique=False)


def _create_refreshes() -> None:
    op.create_table(
        "refresh_history",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("relation_id", IDENTITY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("initiated_by", sa.String(32), nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.Column("rows_inserted", sa.BigInteger(), nullable=False),
        sa.Column("rows_deleted", sa.BigInteger(), nullable=False),
        sa.Column("version_before", sa.BigInteger(), nullable=True),
        sa.Column("version_after", sa.BigInteger(), nullable=True),
        sa.Column("duration_ms", sa.Float(precision=53), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("frontier", sa.JSON(), nullable=True),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.CheckConstraint(
            "(status = 'RUNNING') = (ended_at IS NULL)", name=op.f("ck_refresh_history_running_until_ended")
        ),
        sa.CheckConstraint(
            "action IN ('NO_DATA', 'FULL', 'DIFFERENTIAL', 'REINITIALIZE', 'SKIP')",
            name=op.f("ck_refresh_history_action"),
        ),
        sa.CheckConstraint(
            "initiated_by IN ('INITIAL', 'MANUAL', 'SCHEDULER', 'SELF_MONITOR')",
            name=op.f("ck_refresh_history_initiated_by"),
        ),
        sa.CheckConstraint(
            "status IN ('RUNNING', 'COMPLETED', 'FAILED', 'SKIPPED')", name=op.f("ck_refresh_history_status")
        ),
        sa.ForeignKeyConstraint(
            ["relation_id"], ["relations.id"], name=op.f("fk_refresh_history_relation_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_refresh_history")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_refresh_history_relation_id_id"), "refresh_history", ["relation_id", "id"], unique=False)
    op.create_index(
        "ix_refresh_history_running",
        "refresh_history",
        ["relation_id"],
        unique=False,
        sqlite_where=sa.text("status = 'RUNNING'"),
        postgresql_where=sa.text("status = 'RUNNING'"),
    )
    op.create_index(op.f("ix_refresh_history_started_at"), "refresh_history", ["started_at"], unique=False)
    op.create_table(
        "intents",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_intents")),
    )
    op.create_table(
        "intent_members",
        sa.Column("intent_id", sa.Text(), nullable=False),
        sa.Column("relation_id", IDENTITY, autoincrement=False, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("commit", sa.Text(), nullable=True),
        sa.Column("refresh_number", sa.BigInteger(), nullable=False),
        sa.Column("refresh_id", IDENTITY, nullable=True),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["intent_id"], ["intents.id"], name=op.f("fk_intent_members_intent_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["refresh_id"], ["refresh_history.id"], name=op.f("fk_intent_members_refresh_id")),
        sa.ForeignKeyConstraint(["relation_id"], ["relations.id"], name=op.f("fk_intent_members_relation_id")),
        sa.PrimaryKeyConstraint("intent_id", "relation_id", name=op.f("pk_intent_members")),
        sa.UniqueConstraint("intent_id", "position", name=op.f("uq_intent_members_intent_id_position")),
        sa.UniqueConstraint("relation_id", name=op.f("uq_intent_members_relation_id")),
    )
    op.create_table(
        "alerts",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("relation_id", IDENTITY, nullable=True),
        sa.Column("severity", sa.String(32), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.CheckConstraint("severity IN ('INFO', 'WARNING', 'ERROR', 'CRITICAL')", name=op.f("ck_alerts_severity")),
        sa.ForeignKeyConstraint(
            ["relation_id"], ["relations.id"], name=op.f("fk_alerts_relation_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alerts")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_alerts_created_at"), "alerts", ["created_at"], unique=False)
    op.create_index(op.f("ix_alerts_relation_id_id"), "alerts", ["relation_id", "id"], unique=False)


def _create_gates() -> None:
    op.create_table(
        "fuses",
        sa.Column("relation_id", IDENTITY, autoincrement=False, nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("ceiling", sa.BigInteger(), nullable=True),
        sa.Column("max_ratio", sa.Float(precision=53), nullable=True),
        sa.Column("sensitivity", sa.Float(precision=53), nullable=True),
        sa.Column("window_size", sa.Integer(), nullable=True),
        sa.Column("baselines", sa.JSON(), nullable=False),
        sa.Column("blown_at", MOMENT, nullable=True),
        sa.Column("blow_reason", sa.Text(), nullable=True),
        sa.Column("blow_details", sa.JSON(), nullable=True),
        sa.Column("last_reset_at", MOMENT, nullable=True),
        sa.Column("last_reset_by", sa.Text(), nullable=True),
        sa.Column("last_reset_action", sa.Text(), nullable=True),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.CheckConstraint("(state = 'BLOWN') = (blown_at IS NOT NULL)", name=op.f("ck_fuses_blown_since")),
        sa.CheckConstraint(
            "last_reset_action IN ('APPLY', 'REINITIALIZE', 'SKIP_CHANGES')", name=op.f("ck_fuses_last_reset_action")
        ),
        sa.CheckConstraint("mode IN ('NONE', 'FIXED', 'ADAPTIVE')", name=op.f("ck_fuses_mode")),
        sa.CheckConstraint("state IN ('ARMED', 'BLOWN')", name=op.f("ck_fuses_state")),
        sa.CheckConstraint("ceiling > 0", name=op.f("ck_fuses_ceiling")),
        sa.CheckConstraint("max_ratio > 0", name=op.f("ck_fuses_max_ratio")),
        sa.CheckConstraint("sensitivity > 0", name=op.f("ck_fuses_sensitivity")),
        sa.CheckConstraint("window_size > 1", name=op.f("ck_fuses_window_size")),
        sa.ForeignKeyConstraint(
            ["relation_id"], ["relations.id"], name=op.f("fk_fuses_relation_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("relation_id", name=op.f("pk_fuses")),
    )
    op.create_index(op.f("ix_fuses_state"), "fuses", ["state"], unique=False)
    op.create_table(
        "source_gates",
        sa.Column("source_id", IDENTITY, autoincrement=False, nullable=False),
        sa.Column("gated", sa.Boolean(), nullable=False),
        sa.Column("gated_at", MOMENT, nullable=True),
        sa.Column("ungated_at", MOMENT, nullable=True),
        sa.Column("gated_by", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["source_id"], ["relations.id"], name=op.f("fk_source_gates_source_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("source_id", name=op.f("pk_source_gates")),
    )
    op.create_table(
        "watermarks",
        sa.Column("source_id", IDENTITY, autoincrement=False, nullable=False),
        sa.Column("watermark", MOMENT, nullable=False),
        sa.Column("position", sa.Text(), nullable=True),
        sa.Column("advanced_by", sa.Text(), nullable=True),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"], ["relations.id"], name=op.f("fk_watermarks_source_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("source_id", name=op.f("pk_watermarks")),
    )
    op.create_table(
        "watermark_groups",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("tolerance_seconds", sa.Float(precision=53), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.CheckConstraint("tolerance_seconds >= 0", name=op.f("ck_watermark_groups_tolerance_seconds")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_watermark_groups")),
        sa.UniqueConstraint("name_key", name=op.f("uq_watermark_groups_name_key")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "watermark_group_members",
        sa.Column("group_id", IDENTITY, autoincrement=False, nullable=False),
        sa.Column("source_id", IDENTITY, autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["watermark_groups.id"], name=op.f("fk_watermark_group_members_group_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["source_id"], ["relations.id"], name=op.f("fk_watermark_group_members_source_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("group_id", "source_id", name=op.f("pk_watermark_group_members")),
    )
    op.create_index(
        op.f("ix_watermark_group_members_source_id"), "watermark_group_members", ["source_id"], unique=False
    )


def _create_scheduling() -> None:
    op.create_table(
        "refresh_groups",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("isolation", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.CheckConstraint(
            "isolation IN ('READ_COMMITTED', 'REPEATABLE_READ')", name=op.f("ck_refresh_groups_isolation")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_refresh_groups")),
        sa.UniqueConstraint("name_key", name=op.f("uq_refresh_groups_name_key")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "refresh_group_members",
        sa.Column("group_id", IDENTITY, autoincrement=False, nullable=False),
        sa.Column("relation_id", IDENTITY, autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["refresh_groups.id"], name=op.f("fk_refresh_group_members_group_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["relation_id"],
            ["stream_tables.relation_id"],
            name=op.f("fk_refresh_group_members_relation_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("group_id", "relation_id", name=op.f("pk_refresh_group_members")),
        sa.UniqueConstraint("relation_id", name=op.f("uq_refresh_group_members_relation_id")),
    )
    op.create_table(
        "jobs",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("unit_key", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("members", sa.JSON(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("lease_token", sa.BigInteger(), nullable=True),
        sa.Column("enqueued_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT, nullable=True),
        sa.Column("finished_at", MOMENT, nullable=True),
        sa.Column("detail", sa.JSON(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "kind IN ('SINGLETON', 'ATOMIC_GROUP', 'REFRESH_GROUP', 'IMMEDIATE_CLOSURE', 'CYCLE')",
            name=op.f("ck_jobs_kind"),
        ),
        sa.CheckConstraint(
            "status IN ('QUEUED', 'RUNNING', 'SUCCEEDED', 'RETRYABLE_FAILED', 'PERMANENT_FAILED', 'CANCELLED')",
            name=op.f("ck_jobs_status"),
        ),
        sa.CheckConstraint("attempt > 0", name=op.f("ck_jobs_attempt")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_jobs_status_enqueued_at"), "jobs", ["status", "enqueued_at"], unique=False)
    op.create_index(
        "uq_jobs_open_unit_key",
        "jobs",
        ["unit_key"],
        unique=True,
        sqlite_where=sa.text("status IN ('QUEUED', 'RUNNING')"),
        postgresql_where=sa.text("status IN ('QUEUED', 'RUNNING')"),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("acquired_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.CheckConstraint("token > 0", name=op.f("ck_leases_token")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
