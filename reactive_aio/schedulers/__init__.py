"""Where regions run: this event loop, another one, a thread with a loop of its own, a pool of threads or processes."""

if __name__ != "reactive_aio.schedulers":
    raise ImportError(f"import reactive_aio.schedulers, not {__name__}: this is a view")

from .base import Attachment as Attachment
from .base import Scheduler as Scheduler
from .base import Workers as Workers
from .current import current as current
from .loop import loop as loop
from .processes import processes as processes
from .spark import spark as spark
from .thread import thread as thread
from .threads import threads as threads
from .virtual import virtual_time as virtual_time
