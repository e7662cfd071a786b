"""A job that runs: what its function knows of it and may say, and what the end of the function is told as."""
from __future__ import annotations

import asyncio
import base64
import inspect
import json
import traceback
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

from ._calls._requests import bytes_text, delay_of_end
from ._calls.jobs import new_job
from ._errors import Bury, Retry, Snooze, end_of
from ._wire import to_json

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._calls.jobs import JobOptions

MOST_ERROR_BYTES = 4000
MOST_MESSAGE = 250  # characters


class Job:
    """What a function knows of the job it runs. It ends with the run.

    Threads: of the function; `cancelled` is set by the worker's.
    """

    cancelled: bool = False  # stop: it was cancelled, its lease was lost, or the worker's time to end is over
    _why_cancelled = ""  # "cancel", "lost" or "stop"
    _started = False
    _claim: object  # of Threads
    _run: Callable[["Job"], Any]
    _task: Optional["asyncio.Task[Optional[str]]"] = None
    _told: Optional[Dict[str, Any]] = None  # progress that was not sent yet
    _follow_ups: Optional[List[str]] = None

    def __init__(self, lease: Dict[str, Any], now: float, on_progress: Callable[["Job"], None]) -> None:
        self.record: Dict[str, Any] = lease["job"]  # as the API tells it: queue, key, priority, created_at …
        self.token: int = lease["token"]  # larger than all before it: a target may refuse smaller ones than it has seen
        self.attempt: int = lease.get("attempt", 1)  # from 1
        self._taken_at = self._renewed_at = now
        self._lease: float = lease.get("lease_ms", 60_000) / 1000
        self._on_progress = on_progress

    @property
    def id(self) -> int:
        return int(self.record["id"])

    @property
    def name(self) -> str:
        return str(self.record.get("name", ""))

    @property
    def queue(self) -> str:
        return str(self.record["queue"])

    @property
    def key(self) -> str:
        return str(self.record.get("key", ""))

    @property
    def function(self) -> str:
        return str(self.record.get("function", ""))

    @property
    def payload(self) -> str:
        """The text. What was put as JSON is that JSON's text: see json()."""
        return str(self.record.get("payload") or "")

    @property
    def payload_bytes(self) -> bytes:
        exact = self.record.get("payload_base64")
        return self.payload.encode() if exact is None else base64.b64decode(exact)

    def json(self) -> Any:
        """The payload's value, where it is JSON. Errors: ValueError, which fails the run if it is not caught."""
        return json.loads(self.payload)

    def progress(self, fraction: float, message: str = "") -> None:
        """How far it is, from 0 to 1. It is told soon, at most once a second; the last one counts. Of `message`, the first 250
        characters. What is no such number is an error of the run's own, not of the request that renews all leases."""
        if not 0 <= fraction <= 1:
            raise ValueError(f"progress {fraction!r}: from 0 to 1")
        text = str(message)[:MOST_MESSAGE].encode("utf-8", "replace").decode()
        self._told = {"progress": float(fraction), "message": text}
        self._on_progress(self)

    def follow_up(self, queue: str, payload: Any = None, **options: "Unpack[JobOptions]") -> None:
        """Puts a job in the same transaction that settles this one as done; arguments as for put().

        One that cannot be put makes this run a failed attempt.
        """
        if self._follow_ups is None:
            self._follow_ups = []
        self._follow_ups.append(to_json(new_job(queue, payload, **options)))

    def _ask_to_stop(self, why: str) -> None:
        """Its run is to end: "lost" its lease, to "cancel" the job, or to "stop" the worker. Where it is a task, that is cancelled."""
        if self.cancelled:
            return
        self._why_cancelled, self.cancelled = why, True
        if self._task is not None:
            self._task.cancel()

    def _due_at(self) -> float:
        """When its lease is to be renewed: three times in its length, and once a second while it tells progress."""
        third = self._lease / 3
        return self._renewed_at + (third if self._told is None else min(third, 1.0))


def done(job: Job, result: Any) -> str:
    """The settlement, as JSON, of a function that returned. Errors: TypeError, ValueError for what JSON cannot say."""
    if result is None and job._follow_ups is None:
        return f'{{"token":{job.token},"outcome":"done"}}'
    text = f'{{"token":{job.token},"outcome":"done"'
    if inspect.isawaitable(result):
        raise _not_awaited(result)
    if isinstance(result, (bytes, bytearray, memoryview)):
        text += f',"result_base64":"{bytes_text(bytes(result))}"'
    elif result is not None:
        text += ',"result":' + to_json(result if isinstance(result, str) else to_json(result))
    if job._follow_ups is not None:
        text += ',"follow_ups":[' + ",".join(job._follow_ups) + "]"
    text.encode()  # what is no text fails this run, not the request with all its others
    return text + "}"


def _not_awaited(result: Any) -> TypeError:
    if inspect.iscoroutine(result):
        result.close()  # and not told once more by Python
    return TypeError("the function returned what has to be awaited, and is no coroutine function: make it an `async def`")


def failed(job: Job, error: BaseException) -> str:
    """The settlement of a function that raised. It raises nothing itself: an end that cannot be made is a failed attempt that
    says why."""
    return end_of(error, lambda each: _settled(job, each), lambda why: settlement(job.token, "retry", error=why[:MOST_ERROR_BYTES]))


def _settled(job: Job, error: BaseException) -> str:
    if isinstance(error, Snooze):
        return released(job.token, delay_of_end(error.delay))
    if isinstance(error, Bury):
        return settlement(job.token, "bury", error=str(error)[:MOST_ERROR_BYTES])
    if isinstance(error, Retry):
        delay = None if error.delay is None else delay_of_end(error.delay)
        return settlement(job.token, "retry", error=str(error)[:MOST_ERROR_BYTES], delay_ms=delay, priority=error.priority)
    return settlement(job.token, "retry", error=describe(error))


def stopped(job: Job) -> str:
    """The settlement of a run that was asked to stop and has nothing to say."""
    return settlement(job.token, "cancel" if job._why_cancelled == "cancel" else "release")


def released(token: int, delay_ms: int = 0) -> str:
    return settlement(token, "release", delay_ms=delay_ms or None)


def settlement(token: int, outcome: str, **members: Any) -> str:
    given = {name: value for name, value in members.items() if value is not None and value != ""}
    return to_json({"token": token, "outcome": outcome, **given}).encode("utf-8", "replace").decode()


def outcome_of(end: str) -> str:
    """Of a settlement, which begins with its token and its outcome."""
    start = end.index(',"outcome":"') + 12
    return end[start : end.index('"', start)]


def describe(error: BaseException) -> str:
    """ "ValueError: no such address (mail.py:12)": the type, the words, and the function's line that it comes from."""
    words = "".join(traceback.format_exception_only(type(error), error)).strip()
    frames = traceback.extract_tb(error.__traceback__)
    if frames:
        words += f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})"
    return words[:MOST_ERROR_BYTES]
