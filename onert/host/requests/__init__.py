"""Requests: which of them may run, wait, or are refused, how they are run, and how they are answered."""

from .dispatcher import Dispatcher
from .request import Callback, PromisedRequest, Request, WaitingRequest

__all__ = ["Callback", "Dispatcher", "PromisedRequest", "Request", "WaitingRequest"]
