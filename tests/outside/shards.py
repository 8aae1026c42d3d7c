"""An engine of somebody else's: lists that lie in shards, each of them worked on by a thread of its own."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from attrs import evolve, field, frozen

from reactive_aio import Flow
from reactive_aio.extend import Capabilities, Placed, Pulled, Requirement, flow_of, run_stages


def check(stage: object, sent: object) -> None:
    """Refuse what could not be sent to where the shards lie."""
    try:
        pickle.dumps(sent)
    except Exception as error:
        raise TypeError(f"{stage}, can't be sent to the shards: {error}") from error


CAPABILITIES: Final = Capabilities(
    "the shards",
    runs=frozenset({Requirement.ELEMENT, Requirement.PART}),
    check=check,
    behind={Requirement.PART: frozenset()},  # what comes of a shard as a whole is combined before anything else
)


@frozen
class Shard:
    """A list, and what is done with it where it lies."""

    items: tuple[Any, ...]
    stages: tuple[Placed[Any], ...] = ()

    def results(self) -> list[Any]:
        return list(run_stages(self.stages, self.items, "a shard"))


@frozen
class FromShards(Pulled[Any]):
    shards: tuple[Shard, ...] = field(repr=False)
    capabilities: Capabilities = field(default=CAPABILITIES, repr=False)

    def lower(self, stage: Placed[Any]) -> FromShards:
        """Have each thread run one stage more."""
        shards = tuple(evolve(shard, stages=(*shard.stages, stage)) for shard in self.shards)
        return FromShards(shards, self.capabilities.after(stage.operator.requirement))

    def join(self, others: tuple[Any, ...], method: str) -> FromShards | None:
        """Read the shards of several flows as those of one."""
        sources = [self, *(other for other in others if isinstance(other, FromShards))]
        alike = len(sources) == len(others) + 1 and all(each.capabilities == CAPABILITIES for each in sources)
        return FromShards(tuple(shard for each in sources for shard in each.shards)) if alike else None

    def iterate(self) -> Iterator[Any]:
        """Work on all shards at once, and give what comes of them in their order."""
        with ThreadPoolExecutor(max(1, len(self.shards))) as threads:
            for results in threads.map(Shard.results, self.shards):
                yield from results


def from_shards(*shards: Iterable[Any]) -> Flow[Any]:
    return flow_of(FromShards(tuple(Shard(tuple(items)) for items in shards)))
