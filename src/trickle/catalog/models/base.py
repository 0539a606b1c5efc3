"""What all models share: the metadata with its naming rules, and helpers for constraints."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from sqlalchemy import CheckConstraint, MetaData
from sqlalchemy.orm import DeclarativeBase

NAMING = {
    "pk": "pk_%(table_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
}


class Base(DeclarativeBase):
    """Base of all models. Tables have no schema here; on PostgreSQL they are mapped into one."""

    metadata = MetaData(naming_convention=NAMING)


# Identifiers that were given out stay spent, also when the newest row is deleted.
NEVER_REUSE: dict[str, Any] = {"sqlite_autoincrement": True}


def check_in(column: str, values: type[StrEnum] | Iterable[str]) -> CheckConstraint:
    """The column holds one of these values."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)
