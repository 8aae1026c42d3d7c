"""What the operators that read several flows at a time, or wait for time, are made of."""

from .gathering import Gathering as Gathering
from .in_order import InOrder as InOrder
from .inner import Inner as Inner
from .inner import Owner as Owner
from .merging import Merging as Merging
