"""Runs of handlers without a daemon. A run goes through the code of the worker (_running.py, _job.py), which makes its end as the
settlement that the daemon would be sent; here that is only read."""
from __future__ import annotations

import asyncio
import base64
import functools
import json
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

from .._calls.jobs import new_job
from .._job import Job, stopped
from .._running import Function, end_of_task, run_coroutine, run_plain, runner_of
from .._wire import to_json

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._calls.jobs import JobOptions

# The daemon's words for how a run ends, and those for what has become of the run.
_OUTCOMES = {"done": "done", "retry": "retry", "bury": "buried", "release": "snoozed", "cancel": "cancelled"}


class Run(NamedTuple):
    """How the run of a handler would end.

    `outcome`: "done"; "retry", a failed attempt, after which the queue's `max_attempts` says whether there is another; "buried",
    failed for good; "snoozed", runs again and counts as no attempt; "cancelled". `result`: as it would be kept: text, or the bytes
    that were returned; None: none. `follow_ups`: new jobs as of new_job(). `delay`: seconds until the next attempt; None: as the
    queue's policy says. `priority`: the job's new one. `error`: the words that the daemon would keep. `exception`: what the handler
    raised. `progress`: each that it told, and its message.
    """

    outcome: str
    result: Union[str, bytes, None] = None
    follow_ups: List[Dict[str, Any]] = []
    delay: Optional[float] = None
    priority: Optional[int] = None
    error: str = ""
    exception: Optional[BaseException] = None
    progress: List[Tuple[float, str]] = []

    def json(self) -> Any:
        """The value of a result that is JSON. Errors: ValueError; TypeError where there is none."""
        return json.loads(self.result)  # type: ignore[arg-type]


class _HandMade(Job):
    """A job that no daemon knows, with the progress that was told in its run."""

    def __init__(self, record: Dict[str, Any], attempt: int) -> None:
        super().__init__({"job": record, "token": 1, "attempt": attempt}, 0.0, _HandMade._hear)
        self._progress: List[Tuple[float, str]] = []

    @staticmethod
    def _hear(job: Job) -> None:
        assert isinstance(job, _HandMade) and job._told is not None
        job._progress.append((job._told["progress"], job._told["message"]))


def make_job(
    queue: str, payload: Any = None, *, attempt: int = 1, record: Optional[Mapping[str, Any]] = None, **options: "Unpack[JobOptions]"
) -> Job:
    """A job as a worker would give it to a handler, for one run. `payload` and `options` as for put(). `attempt`: of this run, from 1.
    `record`: members of docs/http-api.md that `job.record` has besides.

    Errors: as new_job(); ValueError for a payload that JSON cannot say.
    """
    given = json.loads(to_json(new_job(queue, payload, **options)))
    told: Dict[str, Any] = {"id": 1, "queue": queue, "state": "running", "key": "", "priority": 0, "attempts": attempt}
    told.update({name: value for name, value in given.items() if not name.startswith("payload")})
    if isinstance(told["id"], str):
        told.update(id=1, name=told["id"])
    return _HandMade({**told, **_payload_of(given), **(record or {})}, attempt)


def _payload_of(given: Dict[str, Any]) -> Dict[str, Any]:
    """Its text, as the daemon tells it, and the exact bytes where they are no text."""
    if "payload_base64" not in given:
        payload = given.get("payload", "")
        return {"payload": payload if isinstance(payload, str) else to_json(payload)}
    exact = base64.b64decode(given["payload_base64"])
    text = exact.decode("utf-8", "replace")
    return {"payload": text, **({} if text.encode() == exact else {"payload_base64": given["payload_base64"]})}


def cancel_job(job: Job) -> None:
    """As if the job were cancelled while it runs: `job.cancelled` becomes true, and an async handler gets CancelledError."""
    job._ask_to_stop("cancel")


def run_handler(handler: Function, job: Job) -> Run:
    """Runs a handler, plain or async, and says how the run would end. It raises nothing that the handler does, but for
    KeyboardInterrupt; a failed attempt is logged with its traceback, as by a worker.

    Errors: RuntimeError for an async handler where a loop runs: await run_handler_async() there.
    """
    if not runner_of(handler).is_async:
        raised = _prepare(job, handler)
        return _read(job, run_plain(job), raised)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run_handler_async(handler, job))
    raise RuntimeError("a loop runs here: await run_handler_async(handler, job)")


async def run_handler_async(handler: Function, job: Job) -> Run:
    """run_handler() where a loop runs. Cancel: the handler is cancelled, too."""
    if not runner_of(handler).is_async:
        return run_handler(handler, job)
    raised = _prepare(job, handler)
    task = job._task = asyncio.ensure_future(run_coroutine(job))
    try:
        await asyncio.wait({task})
    finally:
        task.cancel()
    return _read(job, end_of_task(job, task), raised)


def _prepare(job: Job, handler: Function) -> List[BaseException]:
    """Makes the job's run the handler's; what that will have raised is in the list."""
    raised: List[BaseException] = []

    @functools.wraps(handler)
    def run(job: Job) -> Any:
        try:
            return handler(job)
        except BaseException as error:
            raised.append(error)
            raise

    @functools.wraps(handler)
    async def run_async(job: Job) -> Any:
        try:
            return await handler(job)
        except BaseException as error:
            raised.append(error)
            raise

    job._run, job._started = run_async if runner_of(handler).is_async else run, True
    return raised


def _read(job: Job, end: Optional[str], raised: List[BaseException]) -> Run:
    """`end`: as the worker has it; None: the run was asked to stop."""
    exception = raised[0] if raised else None
    if isinstance(exception, KeyboardInterrupt):  # of the person who runs the tests
        raise exception
    told = json.loads(stopped(job) if end is None else end)
    outcome, delay_ms = told["outcome"], told.get("delay_ms")
    if outcome == "release" and delay_ms is None:
        delay_ms = 0
    return Run(
        _OUTCOMES[outcome],
        base64.b64decode(told["result_base64"]) if "result_base64" in told else told.get("result"),
        told.get("follow_ups", []),
        None if delay_ms is None else delay_ms / 1000,
        told.get("priority"),
        told.get("error", ""),
        exception,
        job._progress if isinstance(job, _HandMade) else [],
    )
