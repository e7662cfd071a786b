"""Ends of runs, as settlements in JSON, from when they happen until the daemon has answered to them."""
from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Deque, Dict, List, Set

from ._job import outcome_of, settlement
from ._log import log

MOST_SETTLED = 1000  # in one request
MOST_SETTLED_BYTES = 8 * 1024 * 1024


class Counts:
    """What has come of the runs so far."""

    def __init__(self) -> None:
        self.done = 0
        self.failed = 0  # retried or buried
        self.released = 0  # snoozed, or given back
        self.cancelled = 0
        self.lost = 0  # their leases had ended

    def __repr__(self) -> str:
        return "Counts(" + ", ".join(f"{name}={value}" for name, value in vars(self).items()) + ")"


class Ends:
    """An end is unsent, then on its way, then answered; or unsent again, when its answer is lost. `come` is set when one is unsent,
    `changed` at every answer. `counts` counts them as they are answered."""

    def __init__(self, counts: Counts, changed: asyncio.Event) -> None:
        self.come = asyncio.Event()
        self._counts, self._changed = counts, changed
        self._unsent: Deque[str] = deque()
        self._sending = 0
        self._failing: Set[int] = set()  # tokens of those that were refused

    def __len__(self) -> int:
        """Those that the daemon has not answered to."""
        return len(self._unsent) + self._sending

    def add(self, end: str) -> None:
        self._unsent.append(end)
        self.come.set()

    async def wait(self) -> None:
        """Until some are unsent."""
        self.come.clear()
        if not self._unsent:
            await self.come.wait()

    def take(self) -> List[str]:
        """As many as one request may bring; they are on their way. One that is larger goes alone: it takes long, and may be refused."""
        ends: List[str] = []
        size = 0
        while self._unsent and len(ends) < MOST_SETTLED:
            size += len(self._unsent[0])
            if ends and size > MOST_SETTLED_BYTES:
                break
            ends.append(self._unsent.popleft())
        self._sending += len(ends)
        return ends

    def keep(self, ends: List[str]) -> None:
        """They were not answered: they are to be sent again."""
        self._sending -= len(ends)
        self._unsent.extendleft(reversed(ends))
        if ends:
            self.come.set()

    def refused(self, end: str, why: str) -> None:
        """One on its way was refused: its run is to be a failed attempt instead, which the daemon may have made it already."""
        self._sending -= 1
        self._changed.set()
        token = token_of(end)
        if token in self._failing:  # then its lease runs out
            return self._failing.discard(token)
        log.warning("the end of a run is refused: %s", why)
        self._failing.add(token)
        self.add(settlement(token, "retry", error=f"its end was refused: {why}"[:1000]))

    def answered(self, ends: List[str], replies: List[Dict[str, Any]]) -> None:
        for end, reply in zip(ends, replies):
            if "error" in reply:
                self.refused(end, str(reply["error"].get("detail")))
                continue
            self._sending -= 1
            self._count(end, reply["outcome"] == "ok")
        self._changed.set()

    def _count(self, end: str, is_ok: bool) -> None:
        outcome = outcome_of(end)
        if self._failing and token_of(end) in self._failing:
            self._failing.discard(token_of(end))
            self._counts.failed += 1
        elif not is_ok:
            self._counts.lost += 1
        elif outcome == "done":
            self._counts.done += 1
        elif outcome == "release":
            self._counts.released += 1
        elif outcome == "cancel":
            self._counts.cancelled += 1
        else:
            self._counts.failed += 1


def token_of(end: str) -> int:
    return int(end[len('{"token":') : end.index(",")])
