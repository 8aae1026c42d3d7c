"""The tables, made once by `tpchgen-cli` and kept in a folder.

Money and quantities become whole hundredths, so that sums are exact in every way and results can be equal.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

OUT: Final = Path(__file__).parents[2] / "out" / "tpch"
TABLES: Final = ("lineitem", "orders", "customer", "part")


class GeneratorMissingError(RuntimeError):
    """The command that makes the tables is not installed."""


def generator() -> Path:
    """Find the command beside this Python."""
    command = Path(sys.executable).with_name("tpchgen-cli")
    if not command.exists():
        raise GeneratorMissingError(f"{command} is not there: pip install 'tpchgen-cli>=4'")
    return command


def made(scale: float, out: Path = OUT) -> Path:
    """Return the folder of the tables at a scale; make them if they are not there."""
    folder = out / f"scale-{scale:g}"
    if not (folder / "ready").exists():
        raw = folder / "raw"
        options = ("parquet", "-s", f"{scale:g}", f"--tables={','.join(TABLES)}", f"--output-dir={raw}", "--overwrite")
        subprocess.run([generator(), *options], check=True, stdout=subprocess.DEVNULL)
        for table in TABLES:
            _in_cents(raw / f"{table}.parquet", folder / f"{table}.parquet")
        _clicks(folder)
        (folder / "ready").touch()
    return folder


def _in_cents(source: Path, target: Path) -> None:
    import pyarrow as pa
    from pyarrow import compute, parquet

    arrow: Any = pa  # whose stubs know types by halves
    functions: Any = compute
    files: Any = parquet
    table: Any = files.read_table(source)
    columns: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if arrow.types.is_decimal(column.type):
            columns[name] = functions.cast(functions.multiply(column, arrow.scalar(100)), arrow.int64())
        elif arrow.types.is_date(column.type):
            columns[name] = column
        else:
            whole = arrow.types.is_integer(column.type)
            columns[name] = column.cast(arrow.int64() if whole else arrow.string())
    files.write_table(arrow.table(columns), target)


def _clicks(folder: Path) -> None:
    """Write a click stream: of each line of an order a user and a second, the same each time."""
    import pyarrow as pa
    from pyarrow import parquet

    files: Any = parquet
    lines: Any = files.read_table(folder / "lineitem.parquet", columns=["l_orderkey", "l_linenumber", "l_partkey"])
    arrow: Any = pa
    order, line, part = (column.to_numpy() for column in lines.columns)
    users = max(len(order) // 60, 1)
    at = (order * 7_919 + line * 104_729 + part * 31) % 86_400
    files.write_table(arrow.table({"user": part * 17 % users, "at": at}), folder / "clicks.parquet")
