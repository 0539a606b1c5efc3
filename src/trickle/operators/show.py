"""Trees as text, for people and for golden files."""

from __future__ import annotations

from sqlglot import exp

from trickle.operators.expressions import Expr, Output
from trickle.operators.joining import Apply, Join
from trickle.operators.keyed import Aggregate, TopK, Window, WindowOrder
from trickle.operators.node import Operator
from trickle.operators.recursion import Recursion, RecursiveRef
from trickle.operators.rowwise import Filter, Generate, Project, UnionAll
from trickle.operators.scan import Scan, Step, Values


def show(tree: Operator) -> str:
    """One line for each operator, its inputs indented below it."""
    lines: list[str] = []

    def visit(node: Operator, depth: int) -> None:
        lines.append("  " * depth + describe(node))
        for child in node.inputs:
            visit(child, depth + 1)

    visit(tree, 0)
    return "\n".join(lines)


def describe(node: Operator) -> str:  # noqa: C901, PLR0912 - one case for each operator
    """One operator in one line."""
    match node:
        case Scan():
            return f"scan {node.table} {node.face.value}{' located' if node.located else ''}: {_fields(node.fields)}"
        case Step():
            return f"step {node.name}: {_fields(node.fields)}"
        case Values():
            rows = ", ".join("(" + ", ".join(map(text, row)) + ")" for row in node.rows)
            return f"values {', '.join(node.names)}: {rows}"
        case Filter():
            return f"filter {text(node.condition)}"
        case Project():
            return f"project {_outputs(node.outputs)}"
        case Generate():
            return f"generate{' outer' if node.outer else ''} {text(node.generator)} as {', '.join(node.names)}"
        case UnionAll():
            return "union all"
        case Join():
            small = f" small {node.small}" if node.small else ""
            return f"{node.kind} join{small}" + (f" on {text(node.condition)}" if node.condition is not None else "")
        case Apply():
            on = f" on {text(node.condition)}" if node.condition is not None else ""
            return f"apply {node.kind}{on}" + (f" as {node.output}" if node.output else "")
        case Aggregate():
            keys = f" by {', '.join(node.keys)}" if node.keys else ""
            return f"aggregate{keys}" + (f": {_outputs(node.calls)}" if node.calls else "")
        case Window():
            keys = f" by {', '.join(node.partition)}" if node.partition else ""
            return f"window{keys}: {_outputs(node.calls)}"
        case TopK():
            limit = "all" if node.limit is None else str(node.limit)
            offset = f" after {node.offset}" if node.offset else ""
            return f"top {limit}{offset} by {', '.join(map(_term, node.order))}"
        case Recursion():
            return f"recursion {node.name}({', '.join(node.names)}){' distinct' if node.distinct else ''}"
        case RecursiveRef():
            return f"previous {node.name}({', '.join(node.names)})"
        case _:
            raise TypeError(type(node))


def text(expression: Expr) -> str:
    """An expression as Spark SQL, without quotes that are not needed."""
    bare = expression.copy()
    for identifier in bare.find_all(exp.Identifier):
        if identifier.name.isidentifier():
            identifier.set("quoted", False)
    return bare.sql("spark")


def _fields(fields: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(name if name == column else f"{column} as {name}" for column, name in fields)


def _outputs(outputs: tuple[Output, ...]) -> str:
    spelled = []
    for output in outputs:
        value = text(output.value)
        spelled.append(value if value == output.name else f"{value} as {output.name}")
    return ", ".join(spelled)


def _term(term: WindowOrder) -> str:
    nulls = "" if term.nulls_first != term.descending else " nulls first" if term.nulls_first else " nulls last"
    return term.name + (" desc" if term.descending else "") + nulls
