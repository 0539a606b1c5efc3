"""What Trickle would do and why, told without doing it: no Spark job is started, and nothing is written.

Spark is asked for names, types and plans only.
"""

from trickle.refresh.explain.change import FORMATS, explain_delta
from trickle.refresh.explain.columns import AuxiliaryColumn, list_auxiliary_columns
from trickle.refresh.explain.forecast import Forecast, SourceChange, explain_refresh_mode
from trickle.refresh.explain.rewriting import explain_query_rewrite
from trickle.refresh.explain.stream import Fact, explain_st
from trickle.refresh.explain.verdict import Finding, validate_query

__all__ = [
    "FORMATS",
    "AuxiliaryColumn",
    "Fact",
    "Finding",
    "Forecast",
    "SourceChange",
    "explain_delta",
    "explain_query_rewrite",
    "explain_refresh_mode",
    "explain_st",
    "list_auxiliary_columns",
    "validate_query",
]
