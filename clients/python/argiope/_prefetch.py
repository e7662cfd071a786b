"""How many jobs a worker leases beyond those that run: as many as would be done in a short time, at the speed of late. It keeps
functions busy while requests are under way."""
from __future__ import annotations

from typing import Optional

PREFETCH_TIME = 0.05  # s


class Prefetch:
    """`asked`: that many instead, whatever the speed; `most`: never more than that. Times: seconds of one clock."""

    def __init__(self, asked: Optional[int], most: int, now: float) -> None:
        self.jobs = asked or 0
        self._asked, self._most = asked, most
        self._runs, self._runs_counted, self._counted_at, self._rate = 0, 0, now, 0.0

    def has_run(self) -> None:
        """A run has ended."""
        self._runs += 1
        if self._asked is not None:
            self.jobs = self._asked

    def measure(self, now: float) -> None:
        elapsed = now - self._counted_at
        if self._asked is not None or elapsed < 0.01:
            return
        self._rate = (self._rate + (self._runs - self._runs_counted) / elapsed) / 2
        self._runs_counted, self._counted_at = self._runs, now
        self.jobs = min(int(self._rate * PREFETCH_TIME), self._most)

    def stop(self) -> None:
        """None, until another run has ended."""
        self.jobs, self._rate = 0, 0.0
