"""Would the random tests notice? For a fault in each module of the engine a short random run must fail.

    python scripts/mutate.py                    all faults
    python scripts/mutate.py left_join prune    some modules

Each fault replaces one expression in a temporary copy of the package. A fault that no run notices makes this fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "trickle"
DELTA = PACKAGE / "delta"
CANDIDATES = 3000
TRIES = 80
BATCHES = 6
CAUGHT = 3


@dataclass(frozen=True)
class Fault:
    """The first occurrence of ``right`` in a module becomes ``wrong``; ``needs`` is a construct that leads there."""

    module: str
    right: str
    wrong: str
    what: str
    needs: str = ""


_STATE = "__import__('trickle.delta.weighted', fromlist=['weighted']).weighted(tree, 1)"

NONE = Fault("differentiate", "", "", "no fault, which must pass")
FAULTS = (
    Fault("rules/scan", "replace(tree, face=Face.CHANGE)", _STATE, "the state for the change"),
    Fault(
        "rules/filter",
        "replace(tree, input=differentiate(tree.input))",
        "differentiate(tree.input)",
        "no filter",
        "WHERE",
    ),
    Fault("rules/project", "col(WEIGHT)", "__import__('sqlglot').exp.Literal.number(1)", "every weight is +1"),
    Fault(
        "rules/generate",
        "arranged(replace(tree, input=differentiate(tree.input)), tree.columns)",
        _STATE,
        "the state for the change",
        "LATERAL VIEW",
    ),
    Fault("rules/union_all", "in tree.parts)", "in tree.parts[:1])", "a part forgotten", "UNION ALL"),
    Fault(
        "rules/values",
        "(*tree.names, WEIGHT), ())",
        "(*tree.names, WEIGHT), tuple((*row, __import__('sqlglot').exp.Literal.number(1)) for row in tree.rows))",
        "constant rows come again",
        "VALUES",
    ),
    Fault("rules/inner_join", "at_face(tree.right, Face.OLD)", "at_face(tree.right, Face.NEW)", "new for old", "JOIN"),
    Fault("rules/left_join", "(Face.OLD, -1))", "(Face.NEW, -1))", "padding is never taken back", "LEFT JOIN"),
    Fault(
        "rules/semi_join", 'right=old, small="left"), -1)', 'right=old, small="left"), 1)', "a sign", "LEFT SEMI JOIN"
    ),
    Fault("rules/join", "return left_join(tree)", "return inner_join(tree)", "left taken for inner", "LEFT JOIN"),
    Fault("rules/aggregate", "(Face.OLD, -1))", "(Face.NEW, -1))", "new for old", "GROUP BY"),
    Fault("rules/window", "(Face.OLD, -1))", "(Face.NEW, -1))", "new for old", "window"),
    Fault("rules/top_k", "(Face.OLD, -1))", "(Face.OLD, 1))", "a sign", "ORDER BY LIMIT"),
    Fault("rules/recursion", "(Face.OLD, -1))", "(Face.NEW, -1))", "new for old", "WITH RECURSIVE, UNION"),
    Fault(
        "weighted",
        "null_safe(pairs), small",
        "exp.and_(*(exp.EQ(this=col(a), expression=col(b)) for a, b in pairs)), small",
        "NULL keys are not found",
        "GROUP BY",
    ),
    Fault(
        "groups", "Output(WEIGHT, exp.null())", "Output(WEIGHT, literal(1))", "stored groups taken for new", "GROUP BY"
    ),
    Fault(
        "groups",
        "_alive(self) -> Expr:",
        "_alive(self) -> Expr:\n        return exp.true()",
        "empty groups stay",
        "GROUP BY",
    ),
    Fault("parts", "contribution=signed(added)", "contribution=added", "what goes is added", "SUM"),
    Fault(
        "parts",
        "exp.Not(this=exp.paren(better(this=col(came)",
        "(exp.paren(better(this=col(came)",
        "no second look",
        "MIN/MAX",
    ),
    Fault(
        "first_rows",
        "exp.GTE(this=col(_HELD)",
        "exp.GT(this=col(_HELD)",
        "rows that move up are lost",
        "ORDER BY LIMIT",
    ),
    Fault("stages", "limit=tree.limit + tree.offset", "limit=tree.limit", "offset forgotten", "OFFSET"),
    Fault(
        "optimize/prune",
        "return node.left\n",
        "return nothing(node)\n",
        "anti join with nothing",
        "NOT EXISTS in WHERE",
    ),
)


def main(wanted: list[str]) -> int:
    chosen = [fault for fault in FAULTS if not wanted or fault.module.rpartition("/")[2] in wanted]
    missed = 0
    for module in [] if wanted else uncovered():
        missed += 1
        print(f"MISSED  {module:18} has no fault here")
    for fault in (NONE, *chosen):
        began = time.monotonic()
        caught, seen = _try(fault)
        right = caught is (fault is not NONE)
        missed += not right
        verdict = "caught" if caught else "passed" if right else "MISSED"
        print(f"{verdict}  {fault.module:18} {fault.what:32} {time.monotonic() - began:4.0f}s  {seen}", flush=True)
    print("as it should be" if not missed else f"{missed} did not end as they should")
    return 1 if missed else 0


def uncovered() -> list[str]:
    """Modules of rules that have no fault."""
    rules = {f"rules/{path.stem}" for path in (DELTA / "rules").glob("*.py") if path.stem != "__init__"}
    return sorted(rules - {fault.module for fault in FAULTS})


def _try(fault: Fault) -> tuple[bool, str]:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "trickle"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        module = copy / "delta" / f"{fault.module}.py"
        text = module.read_text(encoding="utf-8")
        if fault.right not in text:
            return False, "the text to replace is not there"
        module.write_text(text.replace(fault.right, fault.wrong, 1), encoding="utf-8")
        program = [sys.executable, str(Path(__file__)), "--play", fault.needs]
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
        lines = (done.stdout.strip() or done.stderr.strip() or "nothing was noticed").splitlines()
        return done.returncode == CAUGHT, lines[-1][:90]


def play(needs: str) -> int:
    """Random cases with a construct until one fails."""
    import trickle  # noqa: PLC0415 - the copy with the fault
    from trickle.testing.keeping import Bench, Disagreement  # noqa: PLC0415
    from trickle.testing.random.cases import case, played  # noqa: PLC0415
    from trickle.testing.random.choices import Choices  # noqa: PLC0415

    assert PACKAGE not in Path(trickle.__file__).parents
    bench = Bench()
    tries = 0
    for seed in range(CANDIDATES):
        given = case(Choices.seeded(seed), BATCHES)
        if needs and needs not in given.noted:
            continue
        try:
            played(bench, given)
        except Exception as error:  # noqa: BLE001 - whatever it is, it was noticed
            kind = "" if isinstance(error, Disagreement) else f"{type(error).__name__}: "
            print(f"after {tries} queries: {kind}{str(error).splitlines()[0]}")
            return CAUGHT
        tries += 1
        if tries == TRIES:
            break
    return 0


if __name__ == "__main__":
    sys.exit(play(sys.argv[2]) if sys.argv[1:2] == ["--play"] else main(sys.argv[1:]))
