"""Server-sent events from bytes."""
from __future__ import annotations

import json
from typing import Any, Iterator, List, NamedTuple, Optional

from ._wire import is_number

MOST_LINE_BYTES = 16 * 1024 * 1024


class Event(NamedTuple):
    """`kind`: "job", "schedule", "queue", "worker", "counters"; "reset": events were missed, so look anew."""

    kind: str
    data: Any  # its JSON
    id: str  # what to give as `last_event_id` to go on after it


class EventReader:
    def __init__(self, last_event_id: str = "") -> None:
        self.last_event_id = last_event_id
        self.retry: Optional[float] = None  # seconds, as the daemon wishes
        self._rest = b""
        self._kind = ""
        self._data: List[str] = []

    def broken_off(self) -> None:
        """What began and did not end is forgotten: the stream that follows brings it whole."""
        self._rest, self._kind, self._data = b"", "", []

    def feed(self, data: bytes) -> Iterator[Event]:
        """Errors: ValueError for a line longer than MOST_LINE_BYTES."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > MOST_LINE_BYTES:
            raise ValueError("an event without an end")
        for line in lines:
            event = self._line(line.rstrip(b"\r").decode("utf-8", "replace"))
            if event is not None:
                yield event

    def _line(self, line: str) -> Optional[Event]:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "event":
            self._kind = value
        elif name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self.last_event_id = value
        elif name == "retry" and is_number(value):
            self.retry = int(value) / 1000
        return None

    def _dispatch(self) -> Optional[Event]:
        kind, text = self._kind, "\n".join(self._data)
        self._kind, self._data = "", []
        if not kind and not text:
            return None
        try:
            data = json.loads(text)
        except ValueError:
            data = text
        return Event(kind or "message", data, self.last_event_id)
