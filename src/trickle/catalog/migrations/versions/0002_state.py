"""Stream tables remember how they are stored, where their inner tables stand, and their query made definite."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("stream_tables") as table:
        table.add_column(sa.Column("state", sa.JSON(), nullable=True))
        table.add_column(sa.Column("canonical", sa.Text(), nullable=True))
