"""The internal columns: a change's weight, and where a row lies in its table."""

from __future__ import annotations

WEIGHT = "__trickle_weight"
"""Signed multiplicity of a change row: +1 inserted, -1 deleted."""

FILE = "__trickle_file"
"""Path of the data file that holds a row, as the log of its table spells it."""

ROW = "__trickle_row"
"""Position of a row in its data file."""

HIDDEN = "__trickle_hidden"
"""Whether a change row and its counterpart differ in internal columns only: applied like any other, counted as none."""
