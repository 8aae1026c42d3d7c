"""The operators: one family a folder, one operator a file."""

if __name__ != "reactive_aio.operators":
    raise ImportError(f"import reactive_aio.operators, not {__name__}: this is a view")

from .awaiting import Awaiting as Awaiting
from .combining import Combining as Combining
from .filtering import Filtering as Filtering
from .flattening import Flattening as Flattening
from .observing import Observing as Observing
from .overflow import Overflowing as Overflowing
from .recovering import Recovering as Recovering
from .scheduling import Scheduling as Scheduling
from .sharing import Sharing as Sharing
from .sourcing import Sourcing as Sourcing
from .timing import Timing as Timing
from .transforming import Transforming as Transforming
from .windowing import Windowing as Windowing
