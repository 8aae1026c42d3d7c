"""Stages that make one value of a whole stream: the last step of a region whose end is an ``await``."""

from .fold import Count as Count
from .fold import ForEach as ForEach
from .fold import Last as Last
from .fold import Reduce as Reduce
from .fold import ToList as ToList
