"""Records the traces of random programs, or compares them with the record.

python -m tests.traces record [--programs N] [--jobs N]
python -m tests.traces replay [--programs N] [--first SEED] [--jobs N]
python -m tests.traces show SEED [SEED ...]
"""

from __future__ import annotations

import argparse
import sys

from tests.traces.programs import program
from tests.traces.record import FILE, WAYS, differing, expected, recorded, summary
from tests.traces.recording import record, studio

SHOWN = 40
"""How many differences are listed with their programs; of the others only the seeds."""


def say(text: str) -> None:
    """Print it."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def write(programs: int, jobs: int) -> int:
    """Record."""
    made = bytearray()
    for seeds, part in recorded(range(programs), jobs):
        made += part
        if seeds[-1] % 10_000 > 9_700:
            say(f"{len(made) // 2} programs")
    FILE.write_bytes(made)
    say(f"{FILE.name}: {programs} programs, {len(made)} traces")
    return 0


def replay(first: int, programs: int | None, jobs: int) -> int:
    """Compare, and list what differs."""
    known = expected()
    last = len(known) // 2 if programs is None else min(first + programs, len(known) // 2)
    seeds, wrong = range(first, last), list[tuple[int, bool]]()
    for block, part in recorded(seeds, jobs):
        wrong += differing(block, part, known)
    for seed, bounded in wrong[:SHOWN]:
        say(f"differs {'with boundaries' if bounded else 'as it is'}: {program(seed)}")
    if wrong[SHOWN:]:
        say(f"and {' '.join(f'{seed}{chr(98) * bounded}' for seed, bounded in wrong[SHOWN:])}")
    for line in summary(seeds, wrong) if wrong else []:
        say(line)
    say(f"{len(wrong)} of {2 * len(seeds)} traces differ")
    return bool(wrong)


def show(seeds: list[int]) -> int:
    """Show programs with their traces."""
    with studio():
        for seed in seeds:
            made = program(seed)
            say(f"{made}\n")
            for bounded in WAYS:
                say(f"-- {'with boundaries' if bounded else 'as it is'}")
                say("\n".join(record(made, bounded=bounded)) + "\n")
    return 0


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.traces", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("record", "replay"):
        each = commands.add_parser(name)
        each.add_argument("--programs", type=int, default=100_000 if name == "record" else None)
        each.add_argument("--jobs", type=int, default=2)
    commands.choices["replay"].add_argument("--first", type=int, default=0)
    commands.add_parser("show").add_argument("seeds", type=int, nargs="+")
    given = parser.parse_args()
    if given.command == "record":
        return write(given.programs, given.jobs)
    if given.command == "replay":
        return replay(given.first, given.programs, given.jobs)
    return show(given.seeds)


if __name__ == "__main__":
    sys.exit(main())
