"""SIGTERM and SIGINT as a loop hears them."""
from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import Callable, Iterator


@contextlib.contextmanager
def heard(hear: Callable[[bool], None]) -> Iterator[None]:
    """`hear` is called at each, with True from the second one on; afterwards the program's own handlers are back. Where signals are not to
    be had (outside the main thread, on Windows) nothing is heard. On the loop that runs."""
    loop = asyncio.get_running_loop()
    came = False

    def come() -> None:
        nonlocal came
        again, came = came, True
        hear(again)

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    numbers = [number for number in before if _listen(loop, number, come)]
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
            if before[number] is not None:  # one that Python knows
                signal.signal(number, before[number])


def _listen(loop: asyncio.AbstractEventLoop, number: int, come: Callable[[], None]) -> bool:
    try:
        loop.add_signal_handler(number, come)
        return True
    except (NotImplementedError, RuntimeError, ValueError):
        return False
