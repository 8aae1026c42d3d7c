"""The fusion engine: stages, the one function they are fused into, and the plan of a flow."""

from .fuse import Pace as Pace
from .origin import Origin as Origin
from .origin import calling_line as calling_line
from .plan import FlowLike as FlowLike
from .plan import Placed as Placed
from .plan import Plan as Plan
from .plan import PublishOn as PublishOn
from .plan import Region as Region
from .plan import Step as Step
from .plan import SubscribeOn as SubscribeOn
from .run import RegionRun as RegionRun
from .sized import SIZED as SIZED
from .source import Elsewhere as Elsewhere
from .source import Inlet as Inlet
from .source import Pulled as Pulled
from .source import Pushed as Pushed
from .source import Receiver as Receiver
from .source import Source as Source
from .stage import Stage as Stage
from .stage import Template as Template
from .stage import Transform as Transform
from .stage import label as label
