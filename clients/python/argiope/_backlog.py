"""What is left of a worker's queues, for one that ends when nothing is. The rule is that of `argiope job work --until-empty`
(docs/jobs-command.md)."""
from __future__ import annotations

import time
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Awaitable, Callable, List, NamedTuple, Optional, Sequence, Tuple

from ._calls._requests import call, path, query
from ._errors import NotFound
from ._wire import Response

MOST_DELAYED_LOOKED_AT = 10_000
PAGE = 1000
Run = Callable[[Any], Awaitable[Any]]  # sends a Call and gives its result


class Backlog(NamedTuple):
    is_left: bool = False  # jobs that run, are ready, or are to be tried again before long
    due_later: int = 0  # where none is: those that wait for a time of their own
    next_due: Optional[str] = None  # the first of these times


class _Queue(NamedTuple):
    is_left: bool
    has_delayed: bool
    now: float  # by the daemon's clock, where its answer says so


class _Delayed(NamedTuple):
    due_at: str
    due: float
    is_retry: bool


async def look_for_backlog(run: Run, queues: Sequence[str], linger: float) -> Backlog:
    """Retries that are due within `linger` seconds count as left. Queues that are paused have nothing but what runs.

    Errors: those of `run`.
    """
    later: List[str] = []
    for name in queues:
        try:
            queue = await run(call("GET", path("queues", name), _queue_of))
        except NotFound:  # nothing has been put into it yet
            continue
        delayed = await _delayed_in(run, name) if queue.has_delayed and not queue.is_left else []
        horizon = queue.now + linger
        if queue.is_left or any(job.due <= queue.now or (job.is_retry and job.due <= horizon) for job in delayed):
            return Backlog(True)
        later += [job.due_at for job in delayed]
    return Backlog(False, len(later), min(later, default=None))


async def _delayed_in(run: Run, queue: str) -> List[_Delayed]:
    """The delayed jobs of a queue that wait for their time, some thousands at most."""
    found: List[_Delayed] = []
    after: Any = None
    for _ in range(MOST_DELAYED_LOOKED_AT // PAGE):
        filters = query(queue=queue, state="delayed", after=after, limit=PAGE)
        delayed, after = await run(call("GET", "/v1/jobs" + filters, _delayed_of))
        found += delayed
        if after is None:
            break
    return found


def _queue_of(response: Response) -> _Queue:
    there, date = response.json(), response.headers.get("date")
    counts, config = there["counts"], there["config"]
    is_paused = bool(config["paused"]) or config["rate"] == 0
    is_left = counts["running"] > 0 or (counts["ready"] > 0 and not is_paused)
    return _Queue(is_left, counts["delayed"] > 0 and not is_paused, parsedate_to_datetime(date).timestamp() if date else time.time())


def _delayed_of(response: Response) -> Tuple[List[_Delayed], Any]:
    answer = response.json()
    jobs = [job for job in answer["jobs"] if job["pending"] == 0]
    return [_Delayed(job["due_at"], _seconds(job["due_at"]), job["attempts"] > 0) for job in jobs], answer["next"]


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
