"""Argiope's client: puts jobs, looks at them, and works on them, over the HTTP API of `argiope serve`.

    from argiope import Worker
    worker = Worker("http://127.0.0.1:7733")
    @worker.job("mail")
    def send(job): print("sending", job.payload)
    worker.run()
"""
from ._aio import AsyncClient
from ._calls._requests import Page
from ._calls.jobs import ChangeReply, PutReplies, PutReply, new_job
from ._calls.leases import Leases
from ._client import Client
from ._errors import (
    ApiError,
    ArgiopeError,
    Bury,
    Conflict,
    IdempotencyMismatch,
    InvalidInput,
    NotFound,
    Refused,
    Retry,
    Snooze,
    TooLarge,
    TooMany,
    Unavailable,
    Unreachable,
    WrongState,
)
from ._events import Event
from ._job import Job
from ._ends import Counts
from ._worker import Worker

__version__ = "0.1.0"
__all__ = [
    "ApiError",
    "ArgiopeError",
    "AsyncClient",
    "Bury",
    "ChangeReply",
    "Client",
    "Conflict",
    "Counts",
    "Event",
    "IdempotencyMismatch",
    "InvalidInput",
    "Job",
    "Leases",
    "NotFound",
    "Page",
    "PutReplies",
    "PutReply",
    "Refused",
    "Retry",
    "Snooze",
    "TooLarge",
    "TooMany",
    "Unavailable",
    "Unreachable",
    "WrongState",
    "Worker",
    "new_job",
]
