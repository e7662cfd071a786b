"""Tests of hours that take milliseconds: a loop whose clock jumps to the next timer when nothing else is to be done."""
import asyncio
import selectors
import unittest

from argiope import AsyncClient
from argiope._errors import Unreachable
from argiope._wire import Response

from .fake_daemon import FakeDaemon


class _Jumping(selectors.DefaultSelector):
    loop = None

    def select(self, timeout=None):
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("every task waits, and nothing will happen")
        if not ready and timeout > 0:
            self.loop.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        self.now = 1000.0
        selector = _Jumping()
        selector.loop = self
        super().__init__(selector)

    def time(self):
        return self.now


class InProcessClient(AsyncClient):
    """Calls a FakeDaemon on the same loop; every request takes `delay` seconds each way."""

    def __init__(self, daemon, delay=0.001):
        super().__init__("http://fake", token="", retry_for=0.0)
        self.daemon, self.delay, self.is_down = daemon, delay, False
        self.pending = set()

    def go_down(self):
        """Requests under way lose their answers, and later ones find nobody, until `is_down` is false again."""
        self.is_down = True
        for answering in self.pending:
            answering.cancel()

    async def _exchange(self, request, timeout):
        head, _, body = request.partition(b"\r\n\r\n")
        first, *rest = head.decode().split("\r\n")
        method, target, _ = first.split(" ")
        headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in rest}
        await asyncio.sleep(self.delay)
        if self.is_down:
            raise Unreachable("down", sent=False)
        answering = asyncio.ensure_future(self.daemon.answer(method, target, headers, body))
        self.pending.add(answering)
        try:
            answer = await answering
        except (ConnectionError, asyncio.CancelledError) as error:
            if not self.is_down and not isinstance(error, ConnectionError):
                raise
            raise Unreachable("lost", sent=True) from error
        finally:
            self.pending.discard(answering)
        await asyncio.sleep(self.delay)
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return Response(answer.status, {"content-type": answer.kind, **headers}, answer.body)


class VirtualTimeTest(unittest.TestCase):
    """Each test that is a coroutine runs in virtual time, with `self.daemon` and `self.client`."""

    def virtual(self, test):
        loop = VirtualLoop()
        asyncio.set_event_loop(loop)
        try:
            return loop.run_until_complete(test)
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            asyncio.set_event_loop(None)
            loop.close()

    def __init_subclass__(cls):
        for name, test in list(vars(cls).items()):
            if name.startswith("test") and asyncio.iscoroutinefunction(test):
                setattr(cls, name, _in_virtual_time(test))


def _in_virtual_time(test):
    def run(self):
        async def begin():
            self.daemon = FakeDaemon(clock=asyncio.get_running_loop().time)
            self.client = InProcessClient(self.daemon)
            await test(self)

        self.virtual(begin())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run
