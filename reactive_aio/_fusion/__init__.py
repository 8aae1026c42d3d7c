"""Fusion: stages, the one function they are fused into, and the passes in which it runs."""

from typing import TYPE_CHECKING

from .fuse import Call as Call
from .fuse import Pace as Pace
from .origin import Origin as Origin
from .origin import Placed as Placed
from .origin import calling_line as calling_line
from .parts import Combine as Combine
from .parts import InTurn as InTurn
from .parts import Partial as Partial
from .parts import Parts as Parts
from .parts import Placing as Placing
from .parts import divided as divided
from .passes import FINISHING as FINISHING
from .passes import OVER as OVER
from .passes import READING as READING
from .passes import STARTING as STARTING
from .passes import InputBroken as InputBroken
from .passes import Phase as Phase
from .requirement import AWAIT as AWAIT
from .requirement import ELEMENT as ELEMENT
from .requirement import KEYED as KEYED
from .requirement import OFFSET as OFFSET
from .requirement import PART as PART
from .requirement import SORT as SORT
from .requirement import WHOLE as WHOLE
from .requirement import Requirement as Requirement
from .run import RegionRun as RegionRun
from .sized import sized as sized
from .stage import InSteps as InSteps
from .stage import Stage as Stage
from .stage import Transform as Transform
from .stage import label as label
from .template import Template as Template
from .writing import BARE as BARE
from .writing import NOTHING as NOTHING

if TYPE_CHECKING:
    from .applied import run_stages as run_stages
    from .chunk import ChunkRun as ChunkRun
    from .chunk import ChunkWork as ChunkWork
else:
    from .._core.later import later

    __getattr__, __dir__ = later(
        __name__,
        {
            "run_stages": ".applied",
            "ChunkRun": ".chunk",
            "ChunkWork": ".chunk",
        },
    )
