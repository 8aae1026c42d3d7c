"""A sample of random programs does what the record says; `python -m tests.traces replay` compares them all."""

from __future__ import annotations

from itertools import chain
from typing import Final

import pytest

from tests.traces.ends import READS
from tests.traces.programs import (
    BARE,
    CALLING,
    ENDS,
    GATHERING,
    RETRIES,
    SOURCES,
    Chain,
    End,
    Program,
    Source,
    Step,
    program,
)
from tests.traces.record import FILE, WAYS, differing, digests, expected
from tests.traces.recording import record, studio
from tests.traces.sources import KINDS
from tests.traces.steps import STEPS

SAMPLE: Final = range(0, len(FILE.read_bytes()) // 2, 50)
"""From everywhere in the record; some ten seconds' worth."""


@pytest.mark.costly
def test_a_sample_of_programs_does_what_the_record_says() -> None:
    with studio():
        found = digests(SAMPLE)

    known = expected()
    of_the_sample = b"".join(known[2 * seed : 2 * seed + 2] for seed in SAMPLE)
    differences = [SAMPLE[at] for at, _ in differing(range(len(SAMPLE)), found, of_the_sample)]
    assert [] == differences, "look at one by `python -m tests.traces show SEED` here and at the commit before"


def test_a_program_has_the_same_trace_whatever_ran_before_it() -> None:
    seeds = range(300, 340)
    with studio():
        forwards = [record(program(seed), bounded=bounded) for seed in seeds for bounded in WAYS]
        backwards = [record(program(seed), bounded=bounded) for seed in reversed(seeds) for bounded in reversed(WAYS)]

    assert forwards == backwards[::-1]


def test_every_name_in_a_program_has_a_meaning_and_every_meaning_a_name() -> None:
    assert set(SOURCES) == set(KINDS)
    assert set(chain(BARE, CALLING, RETRIES, GATHERING)) == set(STEPS)
    assert set(ENDS) == set(READS)


def test_a_trace_tells_the_turn_the_task_the_contexts_and_the_demand() -> None:
    published = Source("s", "publisher", (5, 6, 7))
    steps = (Step("0", "do_finally", 0), Step("1", "take", 2))
    reads = End("subscribe", first=1, then=1, later=False, leaves_after=None, fails_at=None)
    made = Program(0, Chain(published, steps), reads, "BoomError", cancel_at=None, hook_fails=False)

    with studio():
        trace = record(made, bounded=False)

    assert [
        "2 t0 end/- end on_subscribe",
        "2 t0 end/- end request(1)",
        "2 t0 end/- end has requested",
        "3 - end/- s is subscribed to",
        "3 - end/- s request(1)",
        "3 - end/s s begins 0",
        "3 - end/s s gives 5",
    ] == trace[:7]
    assert "s cancel()" in [line.split(" ", 3)[3] for line in trace]
