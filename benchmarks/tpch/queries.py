"""Queries of TPC-H as sums by key: a function for each row of a table, a join with another, and sums.

Functions are made inside functions, so that they travel to Spark's workers by value.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any, Final

from attrs import frozen

Tuple = tuple[Any, ...]


@frozen
class Query:
    """One query, in the parts that the ways of doing it share."""

    name: str
    sql: str
    """The query by Spark alone."""
    columns: str
    """The columns of `lineitem` that the rows have."""
    keep: Callable[[Tuple], Tuple | None]
    """Returns the needed part of a row, or None if its condition is not true."""
    schema: str
    """The columns that `keep` makes; the first one is the key of the join, if there is one."""
    after: str
    """The query of Spark on the rows that `keep` made: a view named `kept`, beside a view named `small`."""
    parts: Callable[[Any], tuple[Tuple, Tuple]]
    """Returns the key and the numbers to add up, of a kept row or of a pair of it and its partner."""
    small: str = ""
    """The table to join with, in SQL."""
    where: str = ""
    """The condition of `keep` in SQL, where Spark can have it."""


def q1() -> Query:
    last = date(1998, 9, 2)

    def keep(row: Tuple) -> Tuple | None:
        flag, status, quantity, price, discount, tax, shipped = row
        if shipped > last:
            return None
        reduced = price * (100 - discount)
        return flag, status, quantity, price, reduced, reduced * (100 + tax), discount, 1

    def parts(row: Tuple) -> tuple[Tuple, Tuple]:
        return row[:2], row[2:]

    return Query(
        "Q1, the pricing summary",
        """SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
                  sum(l_extendedprice * (100 - l_discount)),
                  sum(l_extendedprice * (100 - l_discount) * (100 + l_tax)), sum(l_discount), count(*)
           FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY 1, 2""",
        "l_returnflag, l_linestatus, l_quantity, l_extendedprice, l_discount, l_tax, l_shipdate",
        keep,
        "a string, b string, c long, d long, e long, f long, g long, h long",
        "SELECT a, b, sum(c), sum(d), sum(e), sum(f), sum(g), sum(h) FROM kept GROUP BY a, b",
        parts,
    )


def q3() -> Query:
    day = date(1995, 3, 15)

    def keep(row: Tuple) -> Tuple | None:
        order, price, discount, shipped = row
        return (order, price * (100 - discount)) if shipped > day else None

    def parts(pair: Any) -> tuple[Tuple, Tuple]:
        (order, revenue), (_, ordered) = pair
        return (order, ordered), (revenue,)

    small = """SELECT o_orderkey, o_orderdate FROM orders JOIN customer ON c_custkey = o_custkey
               WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15'"""
    return Query(
        "Q3, the shipping priority",
        f"""SELECT o_orderkey, o_orderdate, sum(l_extendedprice * (100 - l_discount))
            FROM lineitem JOIN ({small}) ON l_orderkey = o_orderkey
            WHERE l_shipdate > DATE '1995-03-15' GROUP BY 1, 2""",
        "l_orderkey, l_extendedprice, l_discount, l_shipdate",
        keep,
        "a long, b long",
        "SELECT o_orderkey, o_orderdate, sum(b) FROM kept JOIN small ON a = o_orderkey GROUP BY 1, 2",
        parts,
        small,
    )


def q6() -> Query:
    first, end = date(1994, 1, 1), date(1995, 1, 1)

    def keep(row: Tuple) -> Tuple | None:
        price, discount, quantity, shipped = row
        return (price * discount,) if first <= shipped < end and 5 <= discount <= 7 and quantity < 2400 else None

    def parts(row: Tuple) -> tuple[Tuple, Tuple]:
        return (), row

    return Query(
        "Q6, the change of revenue",
        """SELECT sum(l_extendedprice * l_discount) FROM lineitem WHERE l_shipdate >= DATE '1994-01-01'
           AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 5 AND 7 AND l_quantity < 2400""",
        "l_extendedprice, l_discount, l_quantity, l_shipdate",
        keep,
        "a long",
        "SELECT sum(a) FROM kept",
        parts,
    )


def q12() -> Query:
    first, end = date(1994, 1, 1), date(1995, 1, 1)

    def keep(row: Tuple) -> Tuple | None:
        order, mode, shipped, committed, received = row
        fits = mode in ("MAIL", "SHIP") and shipped < committed < received and first <= received < end
        return (order, mode) if fits else None

    def parts(pair: Any) -> tuple[Tuple, Tuple]:
        (_, mode), (_, priority) = pair
        high = int(priority in ("1-URGENT", "2-HIGH"))
        return (mode,), (high, 1 - high)

    high = "sum(CAST(o_orderpriority IN ('1-URGENT', '2-HIGH') AS int))"
    sums = f"{high}, count(*) - {high}"
    return Query(
        "Q12, the shipping modes",
        f"""SELECT l_shipmode, {sums} FROM lineitem JOIN orders ON l_orderkey = o_orderkey
            WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
            AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01' GROUP BY 1""",
        "l_orderkey, l_shipmode, l_shipdate, l_commitdate, l_receiptdate",
        keep,
        "a long, b string",
        f"SELECT b, {sums} FROM kept JOIN small ON a = o_orderkey GROUP BY 1",
        parts,
        "SELECT o_orderkey, o_orderpriority FROM orders",
    )


def q14() -> Query:
    first, end = date(1995, 9, 1), date(1995, 10, 1)

    def keep(row: Tuple) -> Tuple | None:
        part, price, discount, shipped = row
        return (part, price * (100 - discount)) if first <= shipped < end else None

    def parts(pair: Any) -> tuple[Tuple, Tuple]:
        (_, revenue), (_, kind) = pair
        return (), (revenue if kind.startswith("PROMO") else 0, revenue)

    revenue = "l_extendedprice * (100 - l_discount)"
    return Query(
        "Q14, the effect of promotion",
        f"""SELECT sum(CASE WHEN p_type LIKE 'PROMO%' THEN {revenue} ELSE 0 END), sum({revenue})
            FROM lineitem JOIN part ON l_partkey = p_partkey
            WHERE l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'""",
        "l_partkey, l_extendedprice, l_discount, l_shipdate",
        keep,
        "a long, b long",
        """SELECT sum(CASE WHEN p_type LIKE 'PROMO%' THEN b ELSE 0 END), sum(b)
           FROM kept JOIN small ON a = p_partkey""",
        parts,
        "SELECT p_partkey, p_type FROM part",
        "l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'",
    )


QUERIES: Final = (q1(), q3(), q6(), q12(), q14())
