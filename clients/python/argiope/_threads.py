"""Functions on threads: as many as are needed, each replaced when it is ended from outside."""
from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from ._job import Job, failed
from ._log import log


class Threads:
    """Runs jobs on up to `most` threads, and hands their ends to `loop`.

    `run`: gives the end of a job; on a thread. `hear`: is told of a job and its end, None where it was cancelled before it began; on
    the loop, as everything else. `fail`: is told that there is no thread at all.
    """

    def __init__(
        self,
        most: int,
        loop: asyncio.AbstractEventLoop,
        run: Callable[[Job], str],
        hear: Callable[[Job, Optional[str]], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._most, self._loop = most, loop
        self._run, self._hear, self._fail = run, hear, fail
        self._ready: "queue.SimpleQueue[Optional[Job]]" = queue.SimpleQueue()  # a job may be there twice; its first taker runs it
        self._threads: List[threading.Thread] = []
        self._jobs: Dict[int, Job] = {}  # that were put and have not ended, by token
        self._is_short = False  # of threads, and has said so
        self._ended: Deque[Tuple[Job, Optional[str]]] = deque()  # from threads to the loop
        self._is_told = False  # that something is in it

    def put(self, job: Job) -> None:
        self._jobs[job.token] = job
        self._ready.put(job)

    def start(self) -> None:
        """As many threads as the jobs that were put need."""
        while len(self._threads) < min(self._most, len(self._jobs)) and self._start_thread(f"argiope-{len(self._threads)}"):
            pass

    def waiting(self) -> int:
        """Jobs that have not begun."""
        return self._ready.qsize()

    def take_back(self) -> List[Job]:
        """Those jobs; they will not begin."""
        jobs: List[Job] = []
        while True:
            try:
                job = self._ready.get_nowait()
            except queue.Empty:
                return jobs
            if job is not None and _claim(job, object()):
                del self._jobs[job.token]
                jobs.append(job)

    def end(self) -> None:
        """Each thread ends after what it runs."""
        for _ in self._threads:
            self._ready.put(None)

    def call_on_loop(self, step: Callable[..., None], *arguments: Any) -> None:
        """From any thread; nothing, where the loop has ended without it."""
        try:
            self._loop.call_soon_threadsafe(step, *arguments)
        except RuntimeError:
            pass

    def _start_thread(self, name: str) -> bool:
        """False where the system gives no more: those that there are go on; where there is none, it `fail`s."""
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            if not self._is_short:
                log.error("%d threads run jobs, and the system gives no more: %s", len(self._threads), error)
            self._is_short = True
            if not self._threads:
                self._fail(error)
            return False
        self._threads.append(thread)
        self._is_short = False
        return True

    def _work(self) -> None:
        job: Optional[Job] = None
        claim = object()
        try:
            while True:
                claim = object()
                job = self._ready.get()
                if job is None:
                    return
                if _claim(job, claim):
                    job._started = True
                    self._hand_over(job, None if job.cancelled else self._run(job))
                job = None
        except BaseException as error:  # raised into this thread from outside, as programs do that limit times
            try:
                if job is not None and _claim(job, claim):  # an end that was handed over before counts
                    self._hand_over(job, failed(job, error))
            finally:
                self.call_on_loop(self._replace, threading.current_thread(), error)

    def _hand_over(self, job: Job, end: Optional[str]) -> None:
        self._ended.append((job, end))
        if not self._is_told:
            self._is_told = True
            self.call_on_loop(self._hear_ends)

    def _hear_ends(self) -> None:
        self._is_told = False
        ended = self._ended
        while ended:
            job, end = ended.popleft()
            if self._jobs.pop(job.token, None) is not None:
                self._hear(job, end)

    def _replace(self, thread: threading.Thread, error: BaseException) -> None:
        log.error("thread %s was ended by %s; another takes its place", thread.name, type(error).__name__, exc_info=error)
        self._threads.remove(thread)
        self._hear_ends()  # it may have been ended between adding an end and telling of it
        self._put_again()
        self._start_thread(thread.name)

    def _put_again(self) -> None:
        """A thread that is ended just as it takes a job loses that job: it is neither in the queue nor has it begun."""
        for job in self._jobs.values():
            if "_claim" not in vars(job):
                self._ready.put(job)


def _claim(job: Job, claim: object) -> bool:
    """Whether this is the claim by which it is run, or taken back: the first one. Threads: any."""
    return vars(job).setdefault("_claim", claim) is claim
