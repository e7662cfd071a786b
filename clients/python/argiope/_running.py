"""One run of a function, to an end that can be told: whatever it returns or raises."""
from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import traceback
from typing import Any, Callable, NamedTuple, Optional, Tuple

from ._job import Job, done, failed, outcome_of
from ._log import log

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
    process = os.getpid()
    try:
        result = job._run(job)
        _leave_child(process)
        return done(job, result)
    except BaseException as error:
        _leave_child(process, error)
        return failed_and_logged(job, error)


async def run_coroutine(job: Job) -> Optional[str]:
    """Its end; None: it was cancelled by the worker, and has nothing to say."""
    process = os.getpid()
    try:
        result = await job._run(job)
        _leave_child(process)
        return done(job, result)
    except BaseException as error:
        _leave_child(process, error)
        return None if job.cancelled and isinstance(error, asyncio.CancelledError) else failed_and_logged(job, error)


def _leave_child(process: int, error: Optional[BaseException] = None) -> None:
    """A function may fork, and return in the child, too. The run is the parent's, and so is its end: the child ends here, as a program
    that comes to its end, or by that error, and cleans up nothing of the parent's."""
    if os.getpid() == process:
        return
    status = 0
    try:
        if isinstance(error, SystemExit):
            status = error.code if isinstance(error.code, int) else int(error.code is not None)
        elif error is not None:
            status = 1
            traceback.print_exception(type(error), error, error.__traceback__)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        os._exit(status & 0xFF)


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
        log.warning("job %s of %s failed (attempt %d): %s", *_named(job), job.attempt, why, exc_info=error)
    except BaseException:  # a handler of the program's own: the daemon is told the end nevertheless
        pass
    return end


def _named(job: Job) -> Tuple[Any, Any]:
    """A function may have changed the record."""
    try:
        return job.id, job.queue
    except Exception:
        return f"with token {job.token}", "a queue that its function has forgotten"
