"""The asyncio client."""
from __future__ import annotations

import asyncio
import os
import select
import ssl
from typing import Any, AsyncIterator, Awaitable, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar

from ._calls import daemon, jobs, leases, projects, queues, schedules
from ._calls._requests import Delay, JobRecord, Page, limit, seconds
from ._client import IDLE_LIMIT, SILENCE_LIMIT
from ._errors import Unavailable, Unreachable
from ._events import Event, EventReader
from ._methods import awaits
from ._wire import LONGEST_RETRY_FOR, Absence, Backoff, Call, Endpoint, Response, ResponseReader, Tries, not_connected, tls_context

T = TypeVar("T")


async def within(timeout: float, work: Awaitable[T]) -> T:
    """What `work` gives. Errors: asyncio.TimeoutError after so many seconds; its own.

    Cancel: is heard in any case. Before Python 3.12 asyncio.wait_for() forgets a cancellation that comes as the work ends.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=timeout)
        if not task.done():
            raise asyncio.TimeoutError
        return task.result()
    finally:
        task.cancel()


class _Connection(asyncio.Protocol):
    """One request after the other on one transport. After an error it is closed."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.used_at = 0.0
        self.closed = False
        self._loop = loop
        self._transport: Any = None
        self._reader: Optional[ResponseReader] = None
        self._came: Optional["asyncio.Future[None]"] = None  # the answer, or a piece of a streamed one
        self._streams = False

    async def exchange(self, request: bytes, timeout: float) -> ResponseReader:
        """The whole answer. `timeout`: seconds for all of it. Cancel: the connection is closed."""
        reader = self.begin(request, streams=False)
        timer = self._loop.call_later(timeout, self._fail, f"no answer within {timeout:g} s")
        try:
            await self._wait()
        finally:
            timer.cancel()
            if not reader.done:
                self.close()
        self._reader = None
        return reader

    def begin(self, request: bytes, streams: bool) -> ResponseReader:
        if self.closed:
            raise Unreachable("the connection was lost", sent=False)
        self._reader, self._streams = ResponseReader(), streams
        self._expect()
        self._transport.write(request)
        return self._reader

    async def more(self, timeout: float) -> None:
        """More of an answer that is streamed. `timeout`: the longest silence, in seconds."""
        if self.closed:
            raise Unreachable("the connection was lost", sent=True)
        timer = self._loop.call_later(timeout, self._fail, f"silent for {timeout:g} s")
        try:
            await self._wait()
        finally:
            timer.cancel()
        self._expect()

    def _expect(self) -> None:
        self._came = self._loop.create_future()
        self._came.add_done_callback(lambda came: came.cancelled() or came.exception())  # it may come when nobody listens

    async def _wait(self) -> None:
        assert self._came is not None
        await self._came

    def is_usable(self) -> bool:
        """Whether the daemon has not closed it, also if the loop has not heard of that, and has sent nothing unasked."""
        if self.closed or self._loop.time() - self.used_at > IDLE_LIMIT:
            return False
        return not _is_readable(self._transport.get_extra_info("socket"))

    def close(self) -> None:
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._reader is None:  # nobody asked
            return self.close()
        try:
            self._reader.feed(data)
        except Unreachable as error:
            return self._fail(str(error))
        if (self._reader.done or self._streams) and self._came is not None and not self._came.done():
            self._came.set_result(None)

    def connection_lost(self, error: Optional[Exception]) -> None:
        self.closed = True
        if self._reader is None or self._came is None or self._came.done():
            return
        try:
            self._reader.feed(b"")
            self._came.set_result(None)
        except Unreachable as cut_off:
            self._fail(str(error or cut_off))

    def _fail(self, why: str) -> None:
        if self._came is not None and not self._came.done():
            self._came.set_exception(Unreachable(why, sent=True))
        self.close()


def _is_readable(stream: Any) -> bool:
    if not hasattr(select, "poll"):
        return bool(select.select([stream], [], [], 0)[0])
    poll = select.poll()
    poll.register(stream.fileno(), select.POLLIN)
    return bool(poll.poll(0))


class _Group:
    def __init__(self, run: Callable[[Call[Any]], Any]) -> None:
        self._run = run


async def _all(
    run: Callable[[Call[Page]], Any], page: Callable[..., Call[Page]], members: Dict[str, Any]
) -> AsyncIterator[Any]:
    after: Any = None
    while True:
        items, after = await run(page(after=after, **members))
        for item in items:
            yield item
        if after is None:
            return


class AsyncJobs(_Group):
    """What may be asked of jobs that are there."""

    get = awaits(jobs.get)
    page = awaits(jobs.page)
    cancel = awaits(jobs.cancel)
    kick = awaits(jobs.kick)
    erase = awaits(jobs.erase)
    set_priority = awaits(jobs.set_priority)
    set_due = awaits(jobs.set_due)
    change = awaits(jobs.change)
    explain = awaits(jobs.explain)
    history = awaits(jobs.history)
    output = awaits(jobs.output)

    def list(self, **members: Any) -> AsyncIterator[JobRecord]:
        """All jobs of a `queue`, `state` and `key`, read page by page as they are iterated; members as for page(), but that payloads and
        results are whole, unless `beginnings` is true or `payloads` false.

        Jobs that are put or change meanwhile may be in it or not; none is there twice.
        """
        return _all(self._run, jobs.page, jobs.with_payloads(members))


class AsyncQueues(_Group):
    list = awaits(queues.list_all)
    get = awaits(queues.get)
    set = awaits(queues.set)
    change = awaits(queues.change)
    delete = awaits(queues.delete)
    pause = awaits(queues.pause)
    resume = awaits(queues.resume)
    kick = awaits(queues.kick)
    stats = awaits(queues.stats)


class AsyncLeases(_Group):
    """For programs that are no Worker."""

    take = awaits(leases.take)
    renew = awaits(leases.renew)
    settle = awaits(leases.settle)


class AsyncSchedules(_Group):
    page = awaits(schedules.page)
    add = awaits(schedules.add)
    get = awaits(schedules.get)
    set = awaits(schedules.set)
    change = awaits(schedules.change)
    delete = awaits(schedules.delete)
    pause = awaits(schedules.pause)
    resume = awaits(schedules.resume)
    run = awaits(schedules.run)
    history = awaits(schedules.history)
    explain = awaits(schedules.explain)
    output = awaits(schedules.output)
    next = awaits(schedules.next)
    next_times = awaits(schedules.next_times)

    def list(self) -> AsyncIterator[Dict[str, Any]]:
        """All schedules, read page by page as they are iterated."""
        return _all(self._run, schedules.page, {})


class AsyncProjects(_Group):
    list = awaits(projects.list_all)
    get = awaits(projects.get)
    set = awaits(projects.set)
    change = awaits(projects.change)
    delete = awaits(projects.delete)
    restore = awaits(projects.restore)
    start = awaits(projects.start)
    resume = awaits(projects.resume)
    versions = awaits(projects.versions)
    version = awaits(projects.version)
    roll_back = awaits(projects.roll_back)
    pages = awaits(projects.pages)
    page = awaits(projects.page)
    ask = awaits(projects.ask)
    send_message = awaits(projects.send_message)
    try_page = awaits(projects.try_page)
    explain = awaits(projects.explain)
    recent = awaits(projects.recent)
    results = awaits(projects.results)
    export = awaits(projects.export)
    feed = awaits(projects.feed)


class AsyncClient:
    """Client for asyncio: the same calls, awaited. Options as Client's.

    Cancel: a cancelled call closes its connection. The daemon may have done what was asked, or not; a put is made certain by
            putting again with the same idempotency_key. A cancelled lease gives back what it would have got.
    Loop:   opens connections of its own for each loop and each process in which it is used, one after the other: asyncio.run()
            may be called again, also in a child of fork().
    """

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        token: Optional[str] = None,
        timeout: Delay = 30.0,
        retry_for: Optional[Delay] = None,
        ssl_context: Optional[ssl.SSLContext] = None,
        ca_file: Optional[str] = None,
    ) -> None:
        self._endpoint = Endpoint(url, token)
        self._timeout = limit(timeout, "timeout")
        self._retry_for = min(self._timeout, LONGEST_RETRY_FOR) if retry_for is None else seconds(retry_for, "retry_for")
        self._absence = Absence(self._endpoint.url)
        self._context = tls_context(ssl_context, ca_file) if self._endpoint.secure else None
        self._idle: List[_Connection] = []
        self._of: Optional[Tuple[int, asyncio.AbstractEventLoop]] = None  # the process and loop whose connections they are
        self._closed = False
        self.jobs, self.queues, self.leases = AsyncJobs(self._run), AsyncQueues(self._run), AsyncLeases(self._run)
        self.schedules = AsyncSchedules(self._run)
        self.projects = AsyncProjects(self._run)

    put = awaits(jobs.put)
    put_many = awaits(jobs.put_many)
    put_lines = awaits(jobs.put_lines)
    counters = awaits(daemon.counters)
    workers = awaits(daemon.workers)
    workers_page = awaits(daemon.workers_page)
    end_worker = awaits(daemon.end_worker)
    hosts = awaits(daemon.hosts)
    explain_host = awaits(daemon.explain_host)
    config = awaits(daemon.config)
    audit_page = awaits(daemon.audit_page)
    simulate = awaits(daemon.simulate)
    notify = awaits(daemon.notify)
    test_notify = awaits(daemon.test_notify)
    history = awaits(daemon.history)
    version = awaits(daemon.version)
    metrics = awaits(daemon.metrics)
    health = awaits(daemon.health)
    ready = awaits(daemon.ready)

    async def events(
        self, kinds: Optional[Sequence[str]] = None, queue: Optional[str] = None, *, last_event_id: str = ""
    ) -> AsyncIterator[Event]:
        """What happens, as it happens, until the iteration is left; of all `kinds` and queues unless told.

        A stream that breaks is taken up where it broke, for as long as it takes; an event of kind "reset" says that some
        were missed. `last_event_id`: goes on after that event.
        Errors: Refused, TooMany and other refusals; an unreachable daemon is waited for.
        """
        reader, backoff = EventReader(last_event_id), Backoff()
        while not self._closed:
            pause: Optional[float] = None
            try:
                async for data in self._stream(daemon.events(kinds, queue), reader):
                    for event in reader.feed(data):
                        backoff.reset()
                        yield event
            except (Unreachable, Unavailable) as error:
                pause = getattr(error, "retry_after", None)
            reader.broken_off()
            await asyncio.sleep(backoff.wait(pause or reader.retry))

    async def close(self) -> None:
        """Closes the connections that are idle; those of calls under way close with their calls."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def _run(self, call: Call[T]) -> T:
        request = self._endpoint.request(call)
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self._retry_for
        tries = Tries(call, give_up_at)
        while True:
            try:
                result = call.result(await self._exchange(request, self._timeout + call.wait))
                self._absence.is_over()
                return result
            except (Unreachable, Unavailable) as error:
                now = loop.time()
                wait = tries.wait_after(error, now)
                self._absence.is_waited_for(error, give_up_at - now)
                await asyncio.sleep(wait)
            except Exception as error:
                self._absence.is_over()
                if not tries.was_done_before(error):
                    raise
                return None  # type: ignore[return-value]

    async def _exchange(self, request: bytes, timeout: float) -> Response:
        loop = asyncio.get_running_loop()
        connection = await self._connection(loop)
        reader = await connection.exchange(request, timeout)
        if reader.keep_alive and not self._closed and not connection.closed and self._of == (os.getpid(), loop):
            connection.used_at = loop.time()
            self._idle.append(connection)
        else:
            connection.close()
        return reader.response()

    async def _connection(self, loop: asyncio.AbstractEventLoop) -> _Connection:
        if self._of != (os.getpid(), loop):
            self._of, self._idle = (os.getpid(), loop), []
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable():
                return connection
            connection.close()
        return await self._connect(loop)

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> _Connection:
        to = self._endpoint
        if to.socket is None:
            connecting: Any = loop.create_connection(lambda: _Connection(loop), to.host, to.port, ssl=self._context)
        else:
            connecting = loop.create_unix_connection(lambda: _Connection(loop), to.socket)
        connected = asyncio.ensure_future(connecting)
        try:
            return (await within(self._timeout, connected))[1]  # type: ignore[no-any-return]
        except (OSError, asyncio.TimeoutError) as error:
            raise not_connected(to.url, error) from error
        except asyncio.CancelledError:
            if connected.done() and not connected.cancelled() and connected.exception() is None:
                connected.result()[1].close()
            raise

    async def _stream(self, call: Call[Any], events: EventReader) -> AsyncIterator[bytes]:
        connection = await self._connect(asyncio.get_running_loop())
        try:
            reader = connection.begin(self._endpoint.request(call, "text/event-stream", events.last_event_id), streams=True)
            while not reader.done:
                await connection.more(SILENCE_LIMIT)
                if reader.status == 200:
                    yield reader.take()
            call.result(reader.response())
        finally:
            connection.close()
