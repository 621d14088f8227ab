"""Requests, and which of them may run, wait, or are refused."""

from .admission import Admission
from .request import Callback, PromisedRequest, Request, WaitingRequest

__all__ = ["Admission", "Callback", "PromisedRequest", "Request", "WaitingRequest"]
