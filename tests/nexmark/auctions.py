"""An auction house in the manner of Nexmark: people, auctions and bids, and what happens to them batch after batch."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from trickle import Trickle

START = datetime(2026, 1, 1, tzinfo=UTC)
STATES = ("OR", "ID", "CA", "WA")

SCHEMA = """
CREATE TABLE person (id BIGINT, name STRING, state STRING, at TIMESTAMP);
CREATE TABLE auction (id BIGINT, item STRING, seller BIGINT, category INT, at TIMESTAMP, expires TIMESTAMP);
CREATE TABLE bid (auction BIGINT, bidder BIGINT, price BIGINT, at TIMESTAMP);
"""

QUERIES = {
    "q0": "SELECT auction, bidder, price, at FROM bid",
    "q1": "SELECT auction, bidder, CAST(price * 0.908 AS DECIMAL(20, 3)) AS euros, at FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 5 = 0",
    "q3": """SELECT p.name, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
             WHERE a.category = 1 AND p.state IN ('OR', 'ID', 'CA')""",
    "q4": """SELECT category, avg(final) AS mean FROM (
               SELECT a.id, a.category, max(b.price) AS final FROM auction a
               JOIN bid b ON a.id = b.auction AND b.at BETWEEN a.at AND a.expires
               GROUP BY a.id, a.category) GROUP BY category""",
    "q5": """WITH counted AS (SELECT auction, date_trunc('HOUR', at) AS hour, count(*) AS bids FROM bid GROUP BY ALL)
             SELECT hour, auction, bids FROM counted c
             WHERE bids >= ALL (SELECT bids FROM counted o WHERE o.hour = c.hour)""",
    "q6": """WITH won AS (
               SELECT a.id, a.seller, a.expires, b.price FROM auction a
               JOIN bid b ON a.id = b.auction AND b.at BETWEEN a.at AND a.expires
               QUALIFY row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.at) = 1)
             SELECT seller, id, avg(price) OVER (PARTITION BY seller ORDER BY expires, id
                                                 ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS mean FROM won""",
    "q7": """SELECT b.auction, b.price, b.bidder, b.at FROM bid b
             JOIN (SELECT date_trunc('HOUR', at) AS hour, max(price) AS best FROM bid GROUP BY 1) m
             ON date_trunc('HOUR', b.at) = m.hour AND b.price = m.best""",
    "q8": """SELECT DISTINCT p.id, p.name, date_trunc('DAY', p.at) AS day FROM person p
             JOIN auction a ON p.id = a.seller AND date_trunc('DAY', p.at) = date_trunc('DAY', a.at)""",
}


class House:
    """What the auction house knows, so that new rows fit to old ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._people = self._auctions = 0
        self._now = START

    def open(self, t: Trickle) -> None:
        """The first people, auctions and bids."""
        t.sql(SCHEMA)
        for name, rows in self.events(60):
            t.write(name, rows)

    def batch(self, t: Trickle) -> None:
        """Mostly new rows; some auctions are prolonged or withdrawn, some bids taken back, some people move."""
        for name, rows in self.events(20):
            t.write(name, rows)
        which = self._random.randrange(7)
        t.sql(f"UPDATE auction SET expires = expires + INTERVAL 2 HOURS WHERE id % 7 = {which}")
        t.sql(f"DELETE FROM bid WHERE (auction + bidder) % 13 = {which} AND price < 300")
        if which % 2:
            t.sql(f"UPDATE person SET state = '{self._random.choice(STATES)}' WHERE id % 5 = {which % 5}")
        else:
            t.sql(f"DELETE FROM auction WHERE id % 17 = {which}")

    def events(self, number: int) -> Iterator[tuple[str, pa.Table]]:
        """New rows of all three tables."""
        choose, stamp = self._random, pa.timestamp("us", "UTC")
        people, auctions, bids = [], [], []
        for _ in range(number):
            self._now += timedelta(minutes=choose.randrange(1, 20))
            kind = choose.randrange(10)
            if kind == 0 or not self._people:
                people.append((self._people, f"name {self._people}", choose.choice(STATES), self._now))
                self._people += 1
            elif kind < 3 or not self._auctions:
                ends = self._now + timedelta(hours=choose.randrange(1, 12))
                seller = choose.randrange(self._people)
                auctions.append(
                    (self._auctions, f"item {self._auctions}", seller, choose.randrange(3), self._now, ends)
                )
                self._auctions += 1
            else:
                late = max(0, self._auctions - 6)
                what = choose.randrange(late, self._auctions)
                bids.append((what, choose.randrange(self._people), choose.randrange(100, 1000), self._now))
        yield "person", _table(people, ("id", "name", "state", "at"), {"at": stamp})
        yield (
            "auction",
            _table(auctions, ("id", "item", "seller", "category", "at", "expires"), {"at": stamp, "expires": stamp}),
        )
        yield "bid", _table(bids, ("auction", "bidder", "price", "at"), {"at": stamp})


def _table(rows: Sequence[tuple[object, ...]], names: tuple[str, ...], types: dict[str, pa.DataType]) -> pa.Table:
    columns = [[row[place] for row in rows] for place in range(len(names))]
    kinds = {"name": pa.string(), "state": pa.string(), "item": pa.string(), "category": pa.int32(), **types}
    return pa.table(
        [pa.array(column, kinds.get(name, pa.int64())) for name, column in zip(names, columns, strict=True)],
        names=list(names),
    )
