"""A kit for tests of streams: a loop on virtual time, an adversarial one, probes and publishers driven by hand."""

from .._clocks.virtual import DeadlockError as DeadlockError
from .._clocks.virtual import VirtualTimeLoop as VirtualTimeLoop
from .adversarial import AdversarialLoop as AdversarialLoop
from .adversarial import adversarial as adversarial
from .leaks import LeakCheck as LeakCheck
from .leaks import LeakError as LeakError
from .leaks import no_leaks as no_leaks
from .marbles import MarbleError as MarbleError
from .marbles import from_marbles as from_marbles
from .marbles import record as record
from .probing import ProbeError as ProbeError
from .probing import StreamProbe as StreamProbe
from .probing import probe as probe
from .publishing import Breach as Breach
from .publishing import TestPublisher as TestPublisher
from .running import run_virtual as run_virtual
from .settling import settle as settle
