"""Worker: leases jobs, runs their functions, renews their leases, settles them.

One asyncio loop does all that is sent: a task that leases, one that settles, one that renews. Functions run beside it, plain
ones on threads, coroutines as tasks of the loop. Their ends wait in `_ends`; the task that leases takes them along, and the
one that settles sends what would wait otherwise.
"""
from __future__ import annotations

import asyncio
import functools
import logging
import os
import socket
import uuid
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, TypeVar, Union

from ._aio import AsyncClient, within
from ._backlog import look_for_backlog
from ._calls._requests import Delay, seconds
from ._calls._theirs import OF_A_FUNCTION, refusal
from ._calls.leases import Leases, as_list, settle_texts, take_texts
from ._ends import Counts, Ends
from ._errors import ApiError, InvalidInput, NotFound, TooLarge, TooMany, Unavailable, Unreachable
from ._job import Job, released, settlement, stopped
from ._prefetch import Prefetch
from ._running import Function, Runner, end_of_task, run_coroutine, run_plain, runner_of
from ._signals import heard
from ._threads import Threads
from ._wire import Backoff, Call

log = logging.getLogger("argiope")
F = TypeVar("F", bound=Function)
T = TypeVar("T")

MOST_LEASED = 256  # in one request
MOST_PREFETCHED = 2 * MOST_LEASED
LONGEST_POLL = 30.0  # s
# What is leased and waits for longer than this is given back, for another worker to run.
LONGEST_WAIT = 1.0  # s
# How long an end waits for a request that leases to take it along, while more jobs are at hand.
LINGER = 0.02  # s
LONGEST_BACKOFF = 5.0  # s
# Of one that works until_empty, between two looks whether anything is left.
LOOK_INTERVAL = 0.5  # s
# What is waited for, and what says that the request itself is wrong.
AWAY = (Unreachable, Unavailable, TooMany)
MALFORMED = (InvalidInput, TooLarge, NotFound)


class Worker:
    """Runs the functions that jobs name, or, where they name none, those of their queues' names.

    `concurrency`: functions that run at once, plain ones (on threads) and coroutines (as tasks) counted apart. `queues`:
    which to lease from; default: those that have a function of their name. `name`: default "host:pid:…"; no two workers
    may share one. `drain_limit`: what stop() gives to what runs: seconds, or a timedelta. `prefetch`: jobs leased beyond those that
    run; default: as many as take 50 ms. What has waited for a second is given back. `until_empty`: end when none of the queues'
    jobs is ready or running, here or at another worker, and none that has failed is due again within `linger` (60 s). It waits for
    rates and limits, but not for jobs that were put with a later time, nor for queues that are paused or have a rate of 0.
    `url`, `token`, `ca_file`: as Client's.

    Ends:    a function that returns is done, and what it returns is the result: str and bytes as they are, anything else as
             JSON, None: no result. One that raises has failed, and the queue's policy says when it is tried again; Retry,
             Bury and Snooze say more. A job that no function fits is a failed attempt, and so is an end that cannot be told.
    Log:     by `logging`, logger "argiope": that it has begun (info), each failed attempt with its traceback (warning), threads
             that are ended from outside and replaced (error).
    Leases:  are renewed three times in their length while the function runs, or the job waits for its turn. A function that
             holds the interpreter lock for as long as a lease, and a coroutine that does not await, stop that.
    Cancel:  a job that is cancelled, or whose lease is lost: a coroutine gets CancelledError; for a function on a thread
             `job.cancelled` becomes true. The daemon is asked each time a lease is renewed.
    Daemon:  one that cannot be reached or restarts is waited for. Functions run on, and their ends are kept and sent until
             the daemon has answered; an end that comes twice, or too late, does nothing.
    Fork:    one that was made before a fork() may be run in each child, under a name of its own unless it was given one.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        token: Optional[str] = None,
        queues: Union[str, Sequence[str], None] = None,
        concurrency: int = 16,
        name: Optional[str] = None,
        prefetch: Optional[int] = None,
        drain_limit: Delay = 10.0,
        until_empty: bool = False,
        linger: Delay = 60.0,
        ca_file: Optional[str] = None,
        client: Optional[AsyncClient] = None,
    ) -> None:
        if concurrency < 1:
            raise ValueError("concurrency: at least 1")
        self.name = name or _own_name()
        self._named_in = os.getpid()
        self.counts = Counts()
        self._owns_name = name is None
        self._given_client = client
        self._make_client: Callable[[], AsyncClient] = lambda: AsyncClient(url, token=token, retry_for=0.0, ca_file=ca_file)
        self._queues = None if queues is None else as_list(queues)
        self._concurrency, self._prefetch_asked = concurrency, prefetch
        self._drain_limit, self._until_empty, self._linger = seconds(drain_limit), until_empty, seconds(linger)
        self._runners: Dict[str, Runner] = {}
        self._default: Optional[Runner] = None
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._stop_asked: Optional[bool] = None  # before it runs: at once or not

    def job(self, function: str, **options: Any) -> Callable[[F], F]:
        """Decorates what runs jobs that name `function`, or, naming none, are in the queue of that name.

        Errors: TypeError for @worker.job without a name, and for `options`, of which there are none: it names ours.
        """
        if not isinstance(function, str):
            raise TypeError(f'@worker.job("name"): the name is missing, and {function!r} is none')
        for option in options:
            raise refusal("@worker.job", option, OF_A_FUNCTION)

        def add(run: F) -> F:
            self._runners[function] = runner_of(run)
            return run

        return add

    def default(self, run: F) -> F:
        """Decorates what runs jobs that name nothing known. `queues` has to be given then."""
        self._default = runner_of(run)
        return run

    def run(self) -> None:
        """Works until SIGTERM, SIGINT or stop(); a second signal stops at once. See run_async().

        It tells by `logging` (logger "argiope") that it has begun, and of each failed attempt; on standard error where the
        program has not set up logging.
        """
        if not log.hasHandlers():
            logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
            log.setLevel(logging.INFO)
        asyncio.run(self._run_until_signal())

    async def run_async(self) -> None:
        """Works until stop(), or, with until_empty, until there is nothing left. May be called again when it has ended.

        Errors: Refused and other refusals to lease, after what runs has ended; ValueError without queues.
        Cancel: as stop(at_once=True), and then CancelledError.
        """
        queues = list(self._runners) if self._queues is None else self._queues
        if not queues:
            raise ValueError("a worker needs a function of a queue's name, or queues=[…]")
        if self._loop is not None:
            raise RuntimeError("it runs already")
        self._begin(queues)
        where = self._client._endpoint.url
        log.info("worker %s runs jobs of %s from %s, %d at a time", self.name, ", ".join(queues), where, self._concurrency)
        try:
            await self._work()
        finally:
            self._loop = None
            self._threads.end()

    def stop(self, at_once: bool = False) -> None:
        """Takes no more jobs, gives back those that have not begun, and lets the others end within the drain limit; those
        that do not, or all with `at_once`, are cancelled and given back. A function on a thread runs on to its end, and is
        not heard. Before run(), it makes that end at once.

        Threads: any.
        """
        loop = self._loop
        if loop is None:
            self._stop_asked = at_once
        else:
            loop.call_soon_threadsafe(self._begin_stop, at_once)

    # What lives while it runs.

    def _begin(self, queues: List[str]) -> None:
        if self._owns_name and self._named_in != os.getpid():
            self.name, self._named_in = _own_name(), os.getpid()
        self._client = self._given_client or self._make_client()
        self._loop = asyncio.get_running_loop()
        self._leased_from = queues
        self._held: Dict[int, Job] = {}  # every lease that it has, in the order of leasing
        self._threads = Threads(self._concurrency, self._loop, run_plain, self._end, self._fail)
        self._ready_tasks: Deque[Job] = deque()
        self._running_tasks = 0
        self._has_room, self._has_leases = asyncio.Event(), asyncio.Event()
        self._changed = asyncio.Event()  # something ended, was settled or is to stop: for who waits for the end
        self._ends = Ends(self.counts, self._changed)
        self._stopping, self._gave_up = False, asyncio.Event()
        self._failure: Optional[BaseException] = None
        self._poll: Optional["asyncio.Task[Any]"] = None
        self._polls_alone, self._poll_was_cut = False, False
        self._longest_poll = 0.0 if self._until_empty else LONGEST_POLL
        self._lost_poll: Optional[Call[Leases]] = None  # whose answer was lost: it is sent again under its key
        self._prefetch = Prefetch(self._prefetch_asked, MOST_PREFETCHED, self._loop.time())
        self._unreachable = False

    async def _work(self) -> None:
        tasks = [asyncio.ensure_future(step()) for step in (self._lease_on, self._settle_on, self._renew_on)]
        for task in tasks[1:]:
            task.add_done_callback(self._step_ended)
        if self._stop_asked is not None:
            self._begin_stop(self._stop_asked)
            self._stop_asked = None
        try:
            await asyncio.wait(tasks[:1])  # so that a cancellation is this task's own, whatever the other makes of it
            tasks[0].result()
            await self._drain()
        except asyncio.CancelledError:
            self._begin_stop(True)
            self._drain_limit_passed()
            await self._settle_last()
            raise
        finally:
            for task in tasks:
                task.remove_done_callback(self._step_ended)
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._leave()
        if self._failure is not None:
            raise self._failure

    def _step_ended(self, task: "asyncio.Task[None]") -> None:
        """One that settles or renews goes on until this worker cancels it. Without it no end would be told, or leases would run out:
        so where it ends by a mistake, or because a program cancels all tasks of its loop, the worker ends, too."""
        error = None if task.cancelled() else task.exception()
        self._fail(error or RuntimeError("a task of the worker's own was cancelled from outside"))

    # Leasing.

    async def _lease_on(self) -> None:
        assert self._loop is not None
        backoff = Backoff(longest=LONGEST_BACKOFF)
        while not self._stopping:
            most = self._room()
            if most == 0:
                self._has_room.clear()
                await self._has_room.wait()
                continue
            ends = [] if self._lost_poll else self._ends.take()
            was_idle = self._is_idle()
            answer = await self._ask(most, ends, backoff)
            if answer is None:
                continue
            self._prefetch.measure(self._loop.time())
            self._accept(answer.leases)
            for token in answer.cancel:
                if token in self._held:
                    self._cancel(self._held[token], "cancel")
            if self._until_empty and not answer.leases and not ends:
                if was_idle and not await self._is_more_left(backoff):  # before it asked, so that nothing has followed since
                    return
                await self._until(lambda: self._is_idle() or self._stopping, LOOK_INTERVAL)
                self._longest_poll = LOOK_INTERVAL if was_idle or not self._is_idle() else 0.0

    async def _ask(self, most: int, ends: List[str], backoff: Backoff) -> Optional[Leases]:
        """Leases; None: it did not. It waits for jobs only when it brings no ends, so that each end is answered promptly."""
        assert self._loop is not None
        wait = 0.0 if ends else self._longest_poll
        call = self._lost_poll or take_texts(self._leased_from, most, wait, self.name, ends)
        self._polls_alone = not ends
        self._poll = self._loop.create_task(self._client._run(call))
        try:
            answer: Leases = await self._poll
        except asyncio.CancelledError:
            self._ends.keep(ends)
            if not self._poll_was_cut:
                raise
            return None
        except Exception as error:
            self._lost_poll = call if isinstance(error, AWAY) and not ends else None
            await self._not_leased(error, ends, backoff)
            return None
        finally:
            self._poll = None
        self._lost_poll = None
        self._is_reached(backoff)
        self._ends.answered(ends, answer.settled)
        return answer

    async def _is_more_left(self, backoff: Backoff) -> bool:
        """Whether one that works until_empty and was given nothing asks again. Where the daemon is away, it does."""
        look = asyncio.ensure_future(look_for_backlog(self._client._run, self._leased_from, self._linger))
        look.add_done_callback(lambda _: self._changed.set())
        try:
            await self._until(lambda: look.done() or self._stopping, None)
            left = look.result()
        except asyncio.InvalidStateError:
            return False
        except AWAY as error:
            await self._rest(backoff, error)
            return True
        except Exception as error:
            self._fail(error)
            return False
        finally:
            look.cancel()
        if left.due_later:
            log.info("nothing is left for now; %d jobs are due later, the first at %s", left.due_later, left.next_due)
        return left.is_left

    async def _not_leased(self, error: Exception, ends: List[str], backoff: Backoff) -> None:
        if isinstance(error, MALFORMED) and ends:
            return await self._settle(ends, backoff)
        self._ends.keep(ends)
        if isinstance(error, AWAY):
            await self._rest(backoff, error)
        else:
            self._fail(error)

    def _room(self) -> int:
        """How many jobs to ask for now; 0: wait until more have ended."""
        room = self._concurrency + self._prefetch.jobs - len(self._held)
        if len(self._held) >= self._concurrency and room < max(1, self._prefetch.jobs // 2):
            return 0
        return min(room, MOST_LEASED)

    def _accept(self, leases: List[Dict[str, Any]]) -> None:
        assert self._loop is not None
        now = self._loop.time()
        held = self._held
        wakes = bool(leases) and not held
        for lease in leases:
            job = Job(lease, now, self._hear_progress)
            held[job.token] = job
            wakes = wakes or job._lease < 3 * LONGEST_WAIT
            self._make_ready(job)
        if wakes:
            self._has_leases.set()
        self._start_tasks()
        self._threads.start()
        if self._stopping:
            self._give_back_waiting()

    def _make_ready(self, job: Job) -> None:
        runner = self._runners.get(job.record.get("function") or job.record["queue"], self._default)
        if runner is None:
            log.warning("job %s of %s failed: there is no function for it", job.id, job.queue)
            return self._end(job, settlement(job.token, "retry", error=f"worker {self.name} has no function for it"))
        job._run = runner.function
        if runner.is_async:
            self._ready_tasks.append(job)
        else:
            self._threads.put(job)

    def _is_idle(self) -> bool:
        """Whether everything that was leased has ended, and the daemon has answered to that."""
        return not self._held and not self._ends

    # Running.

    def _start_tasks(self) -> None:
        assert self._loop is not None
        while self._ready_tasks and self._running_tasks < self._concurrency:
            job = self._ready_tasks.popleft()
            job._started = True
            self._running_tasks += 1
            job._task = self._loop.create_task(run_coroutine(job))
            # A task that is cancelled before its first step runs nothing of its function, not even a `finally`.
            job._task.add_done_callback(functools.partial(self._task_ended, job))

    def _task_ended(self, job: Job, task: "asyncio.Task[Optional[str]]") -> None:
        self._running_tasks -= 1
        self._end(job, end_of_task(job, task))
        self._start_tasks()

    def _end(self, job: Job, end: Optional[str]) -> None:
        """The run of a job has ended; `end` None: it was cancelled and has nothing to say."""
        self._changed.set()
        if self._held.pop(job.token, None) is None:  # given back before
            return
        if job._started:
            self._prefetch.has_run()
        if job._why_cancelled == "lost":
            self.counts.lost += 1
        elif end is None:
            self._ends.add(stopped(job))
        else:
            self._ends.add(end)
        if not self._has_room.is_set() and self._room():
            self._has_room.set()

    # Settling.

    async def _settle_on(self) -> None:
        backoff = Backoff(longest=LONGEST_BACKOFF)
        while True:
            await self._ends.wait()
            if self._waiting() and not self._stopping:
                await asyncio.sleep(LINGER)
            elif self._poll is None and not self._stopping:
                await asyncio.sleep(0)  # for the one that leases, which takes them along
            ends = self._ends.take()
            if ends:
                await self._settle(ends, backoff)

    def _waiting(self) -> int:
        return self._threads.waiting() + len(self._ready_tasks)

    async def _settle(self, ends: List[str], backoff: Backoff) -> None:
        try:
            self._ends.answered(ends, await self._client._run(settle_texts(ends)))
            self._is_reached(backoff)
        except MALFORMED as error:
            await self._settle_halves(ends, error, backoff)
        except asyncio.CancelledError:
            self._ends.keep(ends)
            raise
        except Exception as error:
            self._ends.keep(ends)
            if not isinstance(error, AWAY):
                self._fail(error)
            await self._rest(backoff, error)

    async def _settle_halves(self, ends: List[str], error: Exception, backoff: Backoff) -> None:
        """One end of many is refused with all of them: finds it, and makes it a failed attempt, so that no other suffers."""
        if len(ends) > 1:
            middle = len(ends) // 2
            await self._settle(ends[:middle], backoff)
            return await self._settle(ends[middle:], backoff)
        self._ends.refused(ends[0], str(error))

    # Heartbeats.

    async def _renew_on(self) -> None:
        backoff = Backoff(longest=LONGEST_BACKOFF)
        assert self._loop is not None
        while True:
            await self._sleep_until_due()
            now = self._loop.time()
            self._give_back_old(now)
            if not any(job._due_at() <= now for job in self._held.values()):
                continue
            # Those that are nearly due go along.
            due = [job for job in self._held.values() if job._due_at() <= now + 0.1 * job._lease]
            try:
                await self._renew(due, now)
                self._is_reached(backoff)
            except (Unreachable, ApiError) as error:
                await self._rest(backoff, error)

    async def _sleep_until_due(self) -> None:
        """Until a lease is to be renewed, or a second has passed: looking that often, none is renewed late whose length is
        three seconds or more. Shorter ones, and progress, wake it."""
        assert self._loop is not None
        self._has_leases.clear()
        if not self._held:
            await self._has_leases.wait()
            self._has_leases.clear()
        next_due = min((job._due_at() for job in self._held.values()), default=0.0)
        timeout = max(0.0, min(next_due - self._loop.time(), LONGEST_WAIT))
        try:
            await within(timeout, self._has_leases.wait())
        except asyncio.TimeoutError:
            pass

    async def _renew(self, jobs: List[Job], now: float) -> None:
        entries: List[Dict[str, Any]] = []
        for job in jobs:
            entry: Dict[str, Any] = {"token": job.token}
            told, job._told = job._told, None
            if told is not None:
                entry.update(told)
            entries.append(entry)
        for reply in await self._renew_all(entries):
            held = self._held.get(reply["token"])
            if held is None:
                continue
            if reply.get("lease_lost"):
                self._cancel(held, "lost")
            else:
                held._renewed_at = now
                held._lease = reply.get("lease_ms", held._lease * 1000) / 1000
                if reply.get("cancel"):
                    self._cancel(held, "cancel")

    async def _renew_all(self, entries: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
        """What is refused for the progress that one of them tells is renewed without any, so that no other lease is harmed."""
        try:
            return await self._client.leases.renew(entries, worker=self.name)
        except (*MALFORMED, TypeError, ValueError) as error:
            log.warning("progress is refused: %s", error)
            return await self._client.leases.renew([{"token": entry["token"]} for entry in entries], worker=self.name)

    def _hear_progress(self, job: Job) -> None:
        self._threads.call_on_loop(self._has_leases.set)

    def _cancel(self, job: Job, why: str) -> None:
        """Asks a run to end, for a reason of Job's; one that has not begun ends at once."""
        job._ask_to_stop(why)
        if job._task is None and not job._started and job in self._ready_tasks:
            self._ready_tasks.remove(job)
            self._end(job, None)

    # The end.

    def _give_back_old(self, now: float) -> None:
        if not self._waiting():
            return
        oldest = next((job for job in self._held.values() if not job._started), None)
        if oldest is not None and now - oldest._taken_at >= LONGEST_WAIT:
            self._give_back_waiting()
            self._prefetch.stop()

    def _give_back_waiting(self) -> None:
        waiting = [*self._ready_tasks, *self._threads.take_back()]
        self._ready_tasks.clear()
        for job in waiting:
            self._end(job, released(job.token))

    def _begin_stop(self, at_once: bool) -> None:
        if at_once:
            self._gave_up.set()
        if self._stopping:
            return
        self._stopping = True
        self._give_back_waiting()
        self._has_room.set()
        self._changed.set()
        if self._poll is not None and self._polls_alone:
            self._poll_was_cut = True
            self._poll.cancel()

    def _fail(self, error: BaseException) -> None:
        """It cannot go on: what runs ends, and run() raises this."""
        self._failure = self._failure or error
        self._begin_stop(False)

    async def _drain(self) -> None:
        await self._until(lambda: not self._held, self._drain_limit)
        self._drain_limit_passed()
        await self._settle_last()

    def _drain_limit_passed(self) -> None:
        """Cancels what still runs and gives it back."""
        for job in list(self._held.values()):
            self._cancel(job, "stop")
            if job._task is None:
                self._end(job, released(job.token))

    async def _settle_last(self) -> None:
        """Until the daemon has answered to every end; one that cannot be reached is not waited for as long as while working."""
        settling = asyncio.ensure_future(self._settle_on())  # the task that did so may have been cancelled with all others of the loop
        await self._until(self._is_idle, 1.0 if self._gave_up.is_set() else 10.0, heeds_haste=False)
        settling.cancel()
        if self._ends:
            log.warning("the daemon was not told of %d ends; those jobs run again when their leases end", len(self._ends))

    async def _until(self, holds: Callable[[], bool], limit: Optional[float], heeds_haste: bool = True) -> None:
        """Waits until `holds()`, for `limit` seconds at most, and, where it `heeds_haste`, until it is to stop at once."""
        assert self._loop is not None
        give_up_at = None if limit is None else self._loop.time() + limit
        while not holds() and not (heeds_haste and self._gave_up.is_set()):
            self._changed.clear()
            waits = [asyncio.ensure_future(event.wait()) for event in (self._changed, self._gave_up)[: 1 + heeds_haste]]
            left = None if give_up_at is None else max(0.0, give_up_at - self._loop.time())
            done_now, pending = await asyncio.wait(waits, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            for wait in pending:
                wait.cancel()
            if not done_now:
                return

    async def _leave(self) -> None:
        """A poll that was cut off may have been given leases that never arrived: they end now."""
        try:
            if (self._poll_was_cut or self._lost_poll) and self._owns_name and self._failure is None:
                await self._client.end_worker(self.name)
        except (Unreachable, ApiError):
            pass
        finally:
            if self._given_client is None:
                await self._client.close()

    async def _rest(self, backoff: Backoff, error: Exception) -> None:
        if not self._unreachable:
            self._unreachable = True
            log.warning("waiting for the daemon: %s", error)
        if self._gave_up.is_set():
            return await asyncio.sleep(0.1)
        pause = asyncio.ensure_future(asyncio.sleep(backoff.wait(getattr(error, "retry_after", None))))
        stop = asyncio.ensure_future(self._gave_up.wait())
        try:
            await asyncio.wait({pause, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
            stop.cancel()

    def _is_reached(self, backoff: Backoff) -> None:
        backoff.reset()
        if self._unreachable:
            self._unreachable = False
            log.warning("the daemon answers again")

    async def _run_until_signal(self) -> None:
        with heard(self.stop):
            await self.run_async()


def _own_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:6]}"
