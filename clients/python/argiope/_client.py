"""The blocking client."""
from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterator, Optional, Sequence, TypeVar

from ._calls import daemon, jobs, leases, projects, queues, schedules
from ._calls._requests import Delay, JobRecord, Page, limit, seconds
from ._errors import Unavailable, Unreachable
from ._events import Event, EventReader
from ._methods import sends
from ._wire import LONGEST_RETRY_FOR, Absence, Backoff, Call, Endpoint, Response, ResponseReader, Tries, not_connected, tls_context

T = TypeVar("T")
# Shorter than the daemon keeps a silent connection.
IDLE_LIMIT = 30.0
RECEIVE_BYTES = 256 * 1024
# How long an answer may take whose request could not be sent whole.
EARLY_LIMIT = 1.0
# The daemon says something on an event stream every 15 s.
SILENCE_LIMIT = 45.0


class _Connection:
    """One request after the other on one socket. After an error it is closed."""

    def __init__(self, endpoint: Endpoint, context: Optional[ssl.SSLContext], timeout: float) -> None:
        self.used_at = 0.0
        try:
            self._socket = _connect(endpoint, timeout)
            if context is not None:
                self._socket = context.wrap_socket(self._socket, server_hostname=endpoint.host)
        except OSError as error:
            raise not_connected(endpoint.url, error) from error

    def exchange(self, request: bytes, timeout: float) -> ResponseReader:
        """The whole answer. `timeout`: the longest silence, in seconds."""
        reader = self.begin(request, timeout)
        while not reader.done:
            self.read_on(reader)
        return reader

    def begin(self, request: bytes, timeout: float) -> ResponseReader:
        try:
            self._socket.settimeout(timeout)
            self._socket.sendall(request)
        except OSError as error:
            refusal = self._early_answer(timeout) if not isinstance(error, socket.timeout) else None
            self.close()
            if refusal is None:
                raise Unreachable(f"the connection was lost: {error}", sent=True) from error
            return refusal
        return ResponseReader()

    def _early_answer(self, timeout: float) -> Optional[ResponseReader]:
        """What came before a request was sent whole: a daemon that takes no more says why, and closes. None: nothing did."""
        reader = ResponseReader()
        try:
            self._socket.settimeout(min(timeout, EARLY_LIMIT))
            while not reader.done:
                reader.feed(self._socket.recv(RECEIVE_BYTES))
        except (OSError, Unreachable):
            return None
        reader.keep_alive = False
        return reader

    def read_on(self, reader: ResponseReader) -> None:
        try:
            reader.feed(self._socket.recv(RECEIVE_BYTES))
        except OSError as error:
            self.close()
            raise Unreachable(f"the connection was lost: {error}", sent=True) from error
        except BaseException:
            self.close()
            raise

    def is_usable(self) -> bool:
        """Whether the daemon has not closed it, and has sent nothing that nobody asked for."""
        if time.monotonic() - self.used_at > IDLE_LIMIT:
            return False
        try:
            self._socket.settimeout(0)
            self._socket.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            pass
        return False

    def close(self) -> None:
        self._socket.close()


def _connect(endpoint: Endpoint, timeout: float) -> socket.socket:
    if endpoint.socket is None:
        connected = socket.create_connection((endpoint.host, endpoint.port), timeout)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connected
    local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        local.settimeout(timeout)
        local.connect(endpoint.socket)
    except BaseException:
        local.close()
        raise
    return local


class _Group:
    def __init__(self, run: Callable[[Call[Any]], Any]) -> None:
        self._run = run


def _all(run: Callable[[Call[Page]], Page], page: Callable[..., Call[Page]], members: Dict[str, Any]) -> Iterator[Any]:
    after: Any = None
    while True:
        items, after = run(page(after=after, **members))
        yield from items
        if after is None:
            return


class Jobs(_Group):
    """What may be asked of jobs that are there."""

    get = sends(jobs.get)
    page = sends(jobs.page)
    cancel = sends(jobs.cancel)
    kick = sends(jobs.kick)
    erase = sends(jobs.erase)
    set_priority = sends(jobs.set_priority)
    set_due = sends(jobs.set_due)
    change = sends(jobs.change)
    explain = sends(jobs.explain)
    history = sends(jobs.history)
    output = sends(jobs.output)

    def list(self, **members: Any) -> Iterator[JobRecord]:
        """All jobs of a `queue`, `state` and `key`, read page by page as they are iterated; members as for page(), but that payloads and
        results are whole, unless `beginnings` is true or `payloads` false.

        Jobs that are put or change meanwhile may be in it or not; none is there twice.
        """
        return _all(self._run, jobs.page, jobs.with_payloads(members))


class Queues(_Group):
    list = sends(queues.list_all)
    get = sends(queues.get)
    set = sends(queues.set)
    change = sends(queues.change)
    delete = sends(queues.delete)
    pause = sends(queues.pause)
    resume = sends(queues.resume)
    kick = sends(queues.kick)
    stats = sends(queues.stats)


class Leases(_Group):
    """For programs that are no Worker."""

    take = sends(leases.take)
    renew = sends(leases.renew)
    settle = sends(leases.settle)


class Schedules(_Group):
    page = sends(schedules.page)
    add = sends(schedules.add)
    get = sends(schedules.get)
    set = sends(schedules.set)
    change = sends(schedules.change)
    delete = sends(schedules.delete)
    pause = sends(schedules.pause)
    resume = sends(schedules.resume)
    run = sends(schedules.run)
    history = sends(schedules.history)
    explain = sends(schedules.explain)
    output = sends(schedules.output)
    next = sends(schedules.next)
    next_times = sends(schedules.next_times)

    def list(self) -> Iterator[Dict[str, Any]]:
        """All schedules, read page by page as they are iterated."""
        return _all(self._run, schedules.page, {})


class Projects(_Group):
    list = sends(projects.list_all)
    get = sends(projects.get)
    set = sends(projects.set)
    change = sends(projects.change)
    delete = sends(projects.delete)
    restore = sends(projects.restore)
    start = sends(projects.start)
    resume = sends(projects.resume)
    versions = sends(projects.versions)
    version = sends(projects.version)
    roll_back = sends(projects.roll_back)
    pages = sends(projects.pages)
    page = sends(projects.page)
    ask = sends(projects.ask)
    send_message = sends(projects.send_message)
    try_page = sends(projects.try_page)
    explain = sends(projects.explain)
    recent = sends(projects.recent)
    results = sends(projects.results)
    export = sends(projects.export)
    feed = sends(projects.feed)


class Client:
    """Asks a daemon; each call returns when its answer is there.

    `url`: default ARGIOPE_URL, or http://127.0.0.1:7733. `token`: default ARGIOPE_TOKEN. `timeout`: the longest silence of
    the daemon in a call, in seconds, besides what it was asked to wait. `retry_for`: for how many seconds a call is sent
    again when the daemon cannot be reached or answers 503, which is logged once (logger "argiope", warning); default: as `timeout`, 30
    at most. A Retry-After of the daemon is heeded, up to a minute. Sent again are calls that did not reach it, and those that do
    nothing twice: reads, PUT, DELETE, and whatever has an idempotency key, as puts and changes of jobs, queues and
    schedules by POST have, but for queues.kick and schedules.run. Both spans may be a timedelta.

    For https: `ca_file`, in PEM, has the authorities to trust in the place of the system's; `ssl_context` says all of it.

    Threads: may be shared; each call under way has a connection of its own, kept for later ones.
    Processes: may be used on both sides of a fork(); a child opens connections of its own.
    Lifetime: close() it, or use it in a `with`; open connections are closed with it in any case.
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
        # A socket takes no longer one, and what is waited for beside it comes on top.
        self._timeout = min(limit(timeout, "timeout"), threading.TIMEOUT_MAX / 2)
        self._retry_for = min(self._timeout, LONGEST_RETRY_FOR) if retry_for is None else seconds(retry_for, "retry_for")
        self._absence = Absence(self._endpoint.url)
        self._context = tls_context(ssl_context, ca_file) if self._endpoint.secure else None
        self._idle: Deque[_Connection] = deque()
        self._process = os.getpid()  # whose connections they are
        self._closed = threading.Event()
        self.jobs, self.queues, self.leases = Jobs(self._run), Queues(self._run), Leases(self._run)
        self.schedules = Schedules(self._run)
        self.projects = Projects(self._run)

    put = sends(jobs.put)
    put_many = sends(jobs.put_many)
    put_lines = sends(jobs.put_lines)
    counters = sends(daemon.counters)
    workers = sends(daemon.workers)
    workers_page = sends(daemon.workers_page)
    end_worker = sends(daemon.end_worker)
    hosts = sends(daemon.hosts)
    explain_host = sends(daemon.explain_host)
    config = sends(daemon.config)
    audit_page = sends(daemon.audit_page)
    simulate = sends(daemon.simulate)
    notify = sends(daemon.notify)
    test_notify = sends(daemon.test_notify)
    history = sends(daemon.history)
    version = sends(daemon.version)
    metrics = sends(daemon.metrics)
    health = sends(daemon.health)
    ready = sends(daemon.ready)

    def events(
        self, kinds: Optional[Sequence[str]] = None, queue: Optional[str] = None, *, last_event_id: str = ""
    ) -> Iterator[Event]:
        """What happens, as it happens, until the iteration is left; of all `kinds` and queues unless told.

        A stream that breaks is taken up where it broke, for as long as it takes; an event of kind "reset" says that some
        were missed. `last_event_id`: goes on after that event.
        Errors: Refused, TooMany and other refusals; an unreachable daemon is waited for.
        """
        reader, backoff = EventReader(last_event_id), Backoff()
        while True:
            try:
                for data in self._stream(daemon.events(kinds, queue), reader):
                    for event in reader.feed(data):
                        backoff.reset()
                        yield event
            except (Unreachable, Unavailable) as error:
                pause = getattr(error, "retry_after", None)
            else:
                pause = None
            reader.broken_off()
            if self._closed.wait(backoff.wait(pause or reader.retry)):
                return

    def close(self) -> None:
        """Closes the connections that are idle; those of calls under way close with their calls. event iterations end."""
        self._closed.set()
        while self._idle:
            self._idle.pop().close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _run(self, call: Call[T]) -> T:
        request = self._endpoint.request(call)
        give_up_at = time.monotonic() + self._retry_for
        tries = Tries(call, give_up_at)
        while True:
            try:
                result = call.result(self._exchange(request, self._timeout + call.wait))
                self._absence.is_over()
                return result
            except (Unreachable, Unavailable) as error:
                now = time.monotonic()
                wait = tries.wait_after(error, now)
                self._absence.is_waited_for(error, give_up_at - now)
                time.sleep(wait)
            except Exception as error:
                self._absence.is_over()
                if not tries.was_done_before(error):
                    raise
                return None  # type: ignore[return-value]

    def _exchange(self, request: bytes, timeout: float) -> Response:
        connection = self._connection()
        reader = connection.exchange(request, timeout)
        if reader.keep_alive and not self._closed.is_set():
            connection.used_at = time.monotonic()
            self._idle.append(connection)
        else:
            connection.close()
        return reader.response()

    def _connection(self) -> _Connection:
        if self._process != os.getpid():  # in a child of fork(): what is idle is the parent's, who goes on with it
            self._process, self._idle = os.getpid(), deque()
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread took the last
                break
            if connection.is_usable():
                return connection
            connection.close()
        return _Connection(self._endpoint, self._context, self._timeout)

    def _stream(self, call: Call[Any], events: EventReader) -> Iterator[bytes]:
        connection, process = _Connection(self._endpoint, self._context, self._timeout), os.getpid()
        try:
            request = self._endpoint.request(call, "text/event-stream", events.last_event_id)
            reader = connection.begin(request, SILENCE_LIMIT)
            while not reader.done:
                if process != os.getpid():  # in a child of fork(): the parent reads on
                    raise Unreachable("the stream is another process's", sent=True)
                connection.read_on(reader)
                if reader.status == 200:
                    yield reader.take()
            call.result(reader.response())
        finally:
            connection.close()
