"""Flows as responses of a web service: streamed bodies, lines of JSON and Server-Sent Events, as ASGI applications.

No framework is imported. What is here is an ASGI application, which any server runs, and which Starlette takes as the response of
an endpoint. Every response closes its flow itself, before it returns: at the end, at a failure and when the client disconnects.
"""

from ._events import Event as Event
from ._events import EventStream as EventStream
from ._responses import FlowResponse as FlowResponse
from ._responses import JSONLinesResponse as JSONLinesResponse
from ._resumable import Resumable as Resumable
