"""The record: a byte for each trace of each program, so that the seed of a trace that differs is known."""

from __future__ import annotations

import gc
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from tests.traces.programs import program
from tests.traces.recording import record, studio

FILE: Final = Path(__file__).with_name("record.bin")
AT_A_TIME: Final = 250
"""How many programs a process runs before it collects garbage, and gives their digests."""
WAYS: Final = (False, True)
"""As it is, and with a boundary behind each operator."""

_studio: Final = ExitStack()


def digest(seed: int) -> bytes:
    """Return the bytes of a program; in a studio."""
    made = program(seed)
    return b"".join(
        hashlib.blake2b("\n".join(record(made, bounded=bounded)).encode(), digest_size=1).digest() for bounded in WAYS
    )


def digests(seeds: Iterable[int]) -> bytes:
    """Return the bytes of some programs; in a studio."""
    made = b"".join(map(digest, seeds))
    gc.collect()
    return made


def recorded(seeds: range, jobs: int) -> Iterator[tuple[range, bytes]]:
    """Run programs in processes of their own, and give their bytes, block by block."""
    blocks = [seeds[at : at + AT_A_TIME] for at in range(0, len(seeds), AT_A_TIME)]
    # Spawned, so that they have nothing of this process.
    with ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_enter) as pool:
        yield from zip(blocks, pool.map(digests, blocks), strict=True)


def _enter() -> None:
    _studio.enter_context(studio())


def expected() -> bytes:
    """Return the record."""
    return FILE.read_bytes()


def differing(seeds: Iterable[int], bytes_of: bytes, record_: bytes) -> list[tuple[int, bool]]:
    """Return the traces that differ: their seeds, and whether it is the way with boundaries."""
    return [
        (seed, bounded)
        for at, seed in enumerate(seeds)
        for bounded in WAYS
        if bytes_of[2 * at + bounded] != record_[2 * seed + bounded]
    ]


def summary(seeds: Iterable[int], differences: list[tuple[int, bool]]) -> list[str]:
    """Return what the programs that differ have in common: what is in them more often than in the others."""
    wrong = {seed for seed, _ in differences}
    every, differ = Counter[str](), Counter[str]()
    for seed in seeds:
        names = program(seed).names
        every.update(names)
        differ.update(names if seed in wrong else ())
    shares = sorted(((count / every[name], name) for name, count in differ.items()), reverse=True)
    return [f"{share:6.1%} of those with {name} ({differ[name]})" for share, name in shares[:12]]
