"""Empty containers, with types, for the fields of small objects. A service makes thousands of these.

``field(factory=deque[Any])`` makes the same deque, through an object of typing. That takes three times as long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

new_list: Final[Callable[[], list[Any]]] = list
new_dict: Final[Callable[[], dict[Any, Any]]] = dict
new_set: Final[Callable[[], set[Any]]] = set
new_deque: Final[Callable[[], deque[Any]]] = deque
