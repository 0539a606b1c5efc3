from __future__ import annotations

from tests.cli.runner import Cli


def test_a_stream_table_is_explained_as_in_python(shop: Cli) -> None:
    told = shop.document("explain", "mode", "grand")
    assert (told["action"], [source["name"] for source in told["sources"]]) == ("NO_DATA", ["per_customer"])
    assert shop("explain", "mode", "grand").out.startswith("grand: NO_DATA: no source has changed\n")
    lines = shop.document("explain", "delta", "grand", "--format", "sql")
    assert "\n".join(lines) + "\n" == shop("explain", "delta", "grand", "--format", "sql").out
    assert shop.document("explain", "query", "SELECT COUNT(*) AS n FROM orders")[0]["kept"] == "DIFFERENTIAL"


def test_what_is_explained_must_be_said(cli: Cli) -> None:
    ran = cli("explain", "st")
    assert (ran.code, ran.err.splitlines()[-1]) == (2, "hint: trickle explain st NAME")
    assert cli("explain", "nonsense", "x").code == 2
