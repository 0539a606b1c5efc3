"""Which functions are aggregates, and which make rows."""

from __future__ import annotations

from sqlglot import exp

from trickle.operators import Expr

AGGREGATES = frozenset(
    (
        "any",
        "any_value",
        "approx_count_distinct",
        "approx_percentile",
        "approx_top_k",
        "approx_top_k_accumulate",
        "approx_top_k_combine",
        "array_agg",
        "avg",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bitmap_and_agg",
        "bitmap_construct_agg",
        "bitmap_or_agg",
        "bool_and",
        "bool_or",
        "collect_list",
        "collect_set",
        "corr",
        "count",
        "count_if",
        "count_min_sketch",
        "covar_pop",
        "covar_samp",
        "every",
        "first",
        "first_value",
        "histogram_numeric",
        "hll_sketch_agg",
        "hll_union_agg",
        "kll_merge_agg_bigint",
        "kll_merge_agg_double",
        "kll_merge_agg_float",
        "kll_sketch_agg_bigint",
        "kll_sketch_agg_double",
        "kll_sketch_agg_float",
        "kurtosis",
        "last",
        "last_value",
        "listagg",
        "max",
        "max_by",
        "mean",
        "measure",
        "median",
        "min",
        "min_by",
        "mode",
        "percentile",
        "percentile_approx",
        "percentile_cont",
        "percentile_disc",
        "regr_avgx",
        "regr_avgy",
        "regr_count",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
        "schema_of_variant_agg",
        "skewness",
        "some",
        "std",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "string_agg",
        "sum",
        "theta_intersection_agg",
        "theta_sketch_agg",
        "theta_union_agg",
        "try_avg",
        "try_sum",
        "tuple_sketch_agg_double",
        "tuple_sketch_agg_integer",
        "var_pop",
        "var_samp",
        "variance",
        "vector_avg",
        "vector_sum",
    )
)
GENERATORS = frozenset(
    (
        "explode",
        "explode_outer",
        "inline",
        "inline_outer",
        "json_tuple",
        "posexplode",
        "posexplode_outer",
        "stack",
        "variant_explode",
        "variant_explode_outer",
    )
)
GROUPING = frozenset(("grouping", "grouping_id"))
_WRAPPERS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


def function_name(node: Expr) -> str:
    """The name of a function, in lower case; empty for anything else."""
    return node.name.lower() if isinstance(node, exp.Anonymous) else ""


def unwrapped(node: Expr) -> Expr:
    """The function inside FILTER, WITHIN GROUP and IGNORE NULLS."""
    while isinstance(node, _WRAPPERS):
        node = node.this
    return node


def is_aggregate(node: Expr, more: frozenset[str] = frozenset()) -> bool:
    """Whether a node is a whole call of an aggregate function; ``more`` are names of the user's own."""
    inner = unwrapped(node)
    name = function_name(inner)
    return name in AGGREGATES or name in more or isinstance(inner, exp.AggFunc | exp.LogicalOr | exp.LogicalAnd)


def function_hint(node: Expr) -> str:
    """What to call the result of a call: the function's name."""
    inner = unwrapped(node)
    return function_name(inner) or inner.key


def window_functions(node: exp.Window) -> list[Expr]:
    """The function of OVER with its wrappers: none of these nodes aggregates a group."""
    found = [node.this]
    while isinstance(found[-1], _WRAPPERS):
        found.append(found[-1].this)
    return found


def call(name: str, *arguments: Expr) -> exp.Anonymous:
    """A call of a Spark function."""
    return exp.Anonymous(this=name, expressions=list(arguments))
