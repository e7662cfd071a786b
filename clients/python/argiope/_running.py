"""One run of a function, to an end that can be told: whatever it returns or raises."""
from __future__ import annotations

import asyncio
import inspect
import json
import logging
from typing import Any, Callable, NamedTuple, Optional

from ._job import Job, done, failed, outcome_of

log = logging.getLogger("argiope")
Function = Callable[[Job], Any]


class Runner(NamedTuple):
    function: Function
    is_async: bool


def runner_of(function: Function) -> Runner:
    """A coroutine function, or an object whose call is one, runs as a task."""
    call = getattr(function, "__call__", None)
    return Runner(function, inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call))


def run_plain(job: Job) -> str:
    """Its end."""
    try:
        return done(job, job._run(job))
    except BaseException as error:
        return failed_and_logged(job, error)


async def run_coroutine(job: Job) -> Optional[str]:
    """Its end; None: it was cancelled by the worker, and has nothing to say."""
    try:
        return done(job, await job._run(job))
    except asyncio.CancelledError as error:
        return None if job.cancelled else failed_and_logged(job, error)
    except BaseException as error:
        return failed_and_logged(job, error)


def end_of_task(job: Job, task: "asyncio.Task[Optional[str]]") -> Optional[str]:
    """What run_coroutine() gave; or of a task that was cancelled before its first step or in its last one, which that sees nothing of."""
    if not task.cancelled():
        error = task.exception()
        return task.result() if error is None else failed_and_logged(job, error)
    return None if job.cancelled else failed_and_logged(job, asyncio.CancelledError("its task was cancelled, and not by the worker"))


def failed_and_logged(job: Job, error: BaseException) -> str:
    end = failed(job, error)
    if outcome_of(end) == "release":  # snoozed: no failure
        return end
    try:
        why = json.loads(end).get("error", "")
        log.warning("job %s of %s failed (attempt %d): %s", job.id, job.queue, job.attempt, why, exc_info=error)
    except Exception:  # a handler of the program's own: the daemon is told the end nevertheless
        pass
    return end
