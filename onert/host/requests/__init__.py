"""Requests: admission, queueing, execution and answers."""

from .dispatcher import Dispatcher
from .request import Callback, PromisedRequest, Request, WaitingRequest

__all__ = ["Callback", "Dispatcher", "PromisedRequest", "Request", "WaitingRequest"]
