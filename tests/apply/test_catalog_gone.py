"""The catalog goes away at every step of a refresh, and comes back: a real PostgreSQL that refuses us for a while."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import trickle
from tests.apply import shop
from tests.postgres import Postgres
from trickle.apply.steps import Step, observe
from trickle.errors import CatalogUnreachable
from trickle.testing import check


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, postgres: Postgres) -> tuple[Path, str]:
    """A warehouse whose catalog is a database, with work to do for every stream table."""
    folder = tmp_path_factory.mktemp("gone") / "wh"
    postgres.execute("CREATE DATABASE shop_template")
    with trickle.connect(folder, catalog=postgres.url("shop_template"), spark=spark) as t:
        shop.build(t)
    return folder, "shop_template"


@pytest.fixture
def copy(template: tuple[Path, str], tmp_path: Path, postgres: Postgres) -> Iterator[tuple[Path, str, str]]:
    folder, database = template
    shutil.copytree(folder, tmp_path / "wh")
    with postgres.database(database) as url:
        yield tmp_path / "wh", url, url.rsplit("@/", 1)[1].split("?", 1)[0]


@pytest.mark.parametrize("point", shop.points(shop.UNIT[:2]), ids=lambda point: f"{point[0].value} {point[1]}")
def test_a_catalog_that_goes_away_leaves_old_or_new(
    point: tuple[Step, int], copy: tuple[Path, str, str], spark: SparkSession, postgres: Postgres
) -> None:
    folder, url, database = copy
    names = ("per_customer", "per_day")

    def leave(step: Step, member: int) -> None:
        if (step, member) == point:
            postgres.refuse(database)

    t = trickle.connect(folder, catalog=url, spark=spark)
    before = shop.contents(t, names)
    observe(leave)
    try:
        if point[0] is Step.FINALISED:
            shop.refresh_unit(t, names)
        else:
            with pytest.raises(CatalogUnreachable) as caught:
                shop.refresh_unit(t, names)
            assert "postgres" in str(caught.value)
    finally:
        observe(None)
        postgres.admit(database)
    # The same process goes on: the next refresh of these tables finishes or closes what was left.
    assert shop.contents(t, names) == before or point[0] is Step.FINALISED
    shop.refresh_unit(t, names)
    after = shop.contents(t, names)
    assert all(after[name] != before[name] for name in names)
    check(t, *names)
    assert shop.leftovers(t) == []
    outcomes = [row.status for row in t.refresh_history("per_customer")]
    assert outcomes.count("COMPLETED") == len(outcomes) - (point[0] in shop.OLD_SIDE)
    t.close()
