"""Flows in web services: the bodies of requests, responses, Server-Sent Events and WebSockets, under demand.

No framework is imported. A response is an ASGI application, which any server runs, and which Starlette and Litestar
take as the response of an endpoint. Every response closes its flow before it returns: at the end, at a failure and when
the client disconnects.
"""

from .._bytes import TooLargeError as TooLargeError
from .._bytes import decompress as decompress
from .._bytes import json_lines as json_lines
from .._bytes import split_lines as split_lines
from ._bodies import response_body as response_body
from ._clients import connect as connect
from ._connection import Connection as Connection
from ._connection import RemoteError as RemoteError
from ._connection import StreamError as StreamError
from ._delivery import ClientDisconnectedError as ClientDisconnectedError
from ._delivery import DisconnectedError as DisconnectedError
from ._events import Event as Event
from ._events import EventStream as EventStream
from ._following import UnexpectedResponseError as UnexpectedResponseError
from ._following import follow_events as follow_events
from ._forms import Part as Part
from ._forms import form_parts as form_parts
from ._reading_events import split_events as split_events
from ._requests import request_body as request_body
from ._responses import FlowResponse as FlowResponse
from ._responses import JSONLinesResponse as JSONLinesResponse
from ._resumable import Resumable as Resumable
from ._sockets import StreamSocket as StreamSocket
