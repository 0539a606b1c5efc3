"""The tables and queries of TPC-H: made by ``tpchgen-cli`` as Parquet, kept between runs, loaded into lake tables."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from trickle import Trickle

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
# The same texts that the tests keep and compare with recomputation.
QUERIES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted(Path(__file__).resolve().parent.parent.joinpath("tests", "tpch", "queries").glob("q*.sql"))
}
_INTEGERS = ("nationkey", "regionkey")
"""Keys of 25 and of 5 rows, which the generator writes as 64-bit integers."""


@dataclass(frozen=True)
class Data:
    """The eight tables of one scale, a Parquet file each."""

    folder: Path
    scale: float

    def file(self, table: str) -> Path:
        return self.folder / f"{table}.parquet"

    def rows(self, table: str) -> int:
        """How many rows a table has, as its file says."""
        return int(pq.read_metadata(self.file(table)).num_rows)

    def frame(self, t: Trickle, table: str) -> DataFrame:
        """The rows of a table with the types that its lake table has."""
        raw = t.warehouse.engine.spark.read.parquet(str(self.file(table)))
        columns = [F.col(c).cast("int").alias(c) if c.endswith(_INTEGERS) else F.col(c) for c in raw.columns]
        return raw.select(*columns)


def generated(scale: float, cache: Path) -> Data:
    """The tables of a scale, generated unless an earlier run left them."""
    folder = cache / f"sf{scale:g}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        # Under another name first: a run that was interrupted must not leave half of the tables.
        unfinished = Path(tempfile.mkdtemp(dir=cache))
        wanted = [_generator(), "parquet", "--scale-factor", f"{scale:g}", "--quiet", "--output-dir", str(unfinished)]
        subprocess.run(wanted, check=True)
        unfinished.rename(folder)
    return Data(folder, scale)


def _generator() -> str:
    """The program that generates the tables, beside this Python or on the path."""
    beside = Path(sys.executable).parent / "tpchgen-cli"
    found = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if found is None:
        raise SystemExit("no tpchgen-cli; run: pip install tpchgen-cli")
    return found


def load(t: Trickle, data: Data) -> int:
    """Make the lake tables and fill them; how many rows they have together."""
    for table in TABLES:
        frame = data.frame(t, table)
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema.fields)
        t.sql(f"CREATE TABLE {table} ({columns})")
        t.write(table, frame)
    return sum(data.rows(table) for table in TABLES)
