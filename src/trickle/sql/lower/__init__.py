"""Operator trees to SQL text of a dialect, through sqlglot expressions."""

from trickle.sql.lower.dialects import Dialect
from trickle.sql.lower.statement import lower

__all__ = ["Dialect", "lower"]
