"""The verification suite: learn which rules of Reactive Streams a publisher, subscriber or processor breaks.

Subclass one of the verifications in a test module and give it the factories it asks for. Pytest does the rest.
"""

from .blackbox import SubscriberBlackboxVerification as SubscriberBlackboxVerification
from .environment import Environment as Environment
from .environment import NeverAtRestError as NeverAtRestError
from .outcome import About as About
from .outcome import DoesNotHoldError as DoesNotHoldError
from .outcome import NotVerifiedError as NotVerifiedError
from .outcome import Result as Result
from .outcome import RuleBrokenError as RuleBrokenError
from .outcome import contents_of as contents_of
from .processor import IdentityProcessorVerification as IdentityProcessorVerification
from .publisher import PublisherVerification as PublisherVerification
from .verification import Verification as Verification
from .verification import verify as verify
from .whitebox import Puppet as Puppet
from .whitebox import SubscriberWhiteboxVerification as SubscriberWhiteboxVerification
from .whitebox import WhiteboxProbe as WhiteboxProbe
