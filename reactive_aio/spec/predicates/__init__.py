"""The rules as predicates over traces: one function a rule, one module a chapter of the specification.

A predicate returns what it saw of a broken rule. It returns None if the rule was kept, or can't be judged by the trace.
Something that has not come counts as missing only if the trace ended at rest; see `Facts`.
"""

from . import processors as processors
from . import publishers as publishers
from . import subscribers as subscribers
from . import subscriptions as subscriptions
from .judging import NEVER_SEEN as NEVER_SEEN
from .judging import PREDICATES as PREDICATES
from .judging import Predicate as Predicate
from .judging import Violation as Violation
from .judging import violations as violations
