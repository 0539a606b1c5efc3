"""The time of a refresh inside trees: a column that no operator makes.

A tree at its new state reads ``NOW``, the time of the refresh; at its old state it reads ``NOW_OLD``, the time of the
refresh before. Which moments these are is said when the tree is run.
"""

from __future__ import annotations

NOW = "__trickle_now"
NOW_OLD = "__trickle_now_old"
