"""How requests are made and answers read, for all operations."""
from __future__ import annotations

import base64
import math
import uuid
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from numbers import Real
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Union
from urllib.parse import quote, urlencode

from .._wire import Call, Response, to_json

JobRecord = Dict[str, Any]  # a job as the API tells it
JobRef = Union[int, str]  # its id, or its name
When = Union[datetime, date, float, str]  # a number: seconds since 1970, as of time.time()
Delay = Union[float, timedelta]  # a number: seconds


class Page(NamedTuple):
    items: List[Dict[str, Any]]
    next: Union[int, str, None]  # what to give as `after`; None: this was the last


def new_key() -> str:
    return str(uuid.uuid4())


def call(method: str, target: str, read: Callable[[Response], Any], body: Any = None, **more: Any) -> Call[Any]:
    return Call(method, target, read, None if body is None else to_json(body).encode(), **more)


def path(resource: str, name: Union[int, str], *rest: str) -> str:
    """A name that a path has another use for stands behind "="."""
    text = str(name)
    mark = "=" if text in (".", "..", "change", "try") or text.startswith("=") else ""
    return "/".join(["/v1", resource, mark + quote(text, safe=""), *rest])


def query(**members: Any) -> str:
    texts = {name: _text(value) for name, value in members.items() if value is not None}
    return "?" + urlencode(texts) if texts else ""


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (str, int)) else ",".join(value)


def given(**members: Any) -> Dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


LONGEST_DELAY_MS = 100 * 365 * 24 * 3600 * 1000  # that the daemon takes


def seconds(span: Delay) -> float:
    """May be endless. Errors: TypeError, ValueError, which name what is no span."""
    if isinstance(span, timedelta):
        return span.total_seconds()
    if isinstance(span, bool) or not isinstance(span, (Real, Decimal)):
        raise TypeError(f"{span!r} is no delay: give a number of seconds, or a timedelta")
    try:
        number = float(span)
    except (OverflowError, ValueError):  # too large, or a NaN that refuses to be converted
        number = math.nan
    if math.isnan(number):
        raise ValueError(f"{span!r} is no delay: give a number of seconds")
    return number


def milliseconds(delay: Delay) -> int:
    """Errors: as seconds(), and ValueError for what has no end."""
    number = seconds(delay)
    if not math.isfinite(number):
        raise ValueError(f"{delay!r} is no delay: give a finite number of seconds")
    return round(number * 1000)


def delay_of_end(delay: Delay, longest_ms: int = LONGEST_DELAY_MS) -> int:
    """Of what ends a run: a time that is past is now, and one that is too far is the farthest, since no end may be lost for it.

    Errors: as milliseconds().
    """
    return min(max(0, milliseconds(delay)), longest_ms)


def time_text(when: When) -> str:
    """A date is its beginning in the zone of this machine.

    Errors: ValueError for a datetime that knows no zone, and a number that is no time; TypeError for anything else.
    """
    if isinstance(when, str):
        return when
    if isinstance(when, datetime):
        if when.tzinfo is None:
            raise ValueError(f"{when!r} says no zone; use datetime.now(timezone.utc) and its like")
        return when.isoformat()
    if isinstance(when, date):
        return datetime(when.year, when.month, when.day).astimezone().isoformat()
    if isinstance(when, bool) or not isinstance(when, (Real, Decimal)):
        raise TypeError(f"{when!r} is no time: give a datetime, a date, seconds since 1970, or text as of RFC 3339")
    try:
        return datetime.fromtimestamp(float(when), timezone.utc).isoformat()
    except (OverflowError, OSError, ValueError):
        raise ValueError(f"{when!r} is no time: seconds since 1970 are expected") from None


def bytes_text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def as_api(value: Any, name: str = "") -> Any:
    """A configuration or a schedule whose times and spans may be Python's: a datetime becomes RFC 3339, a timedelta "1500ms", or,
    where its member's name ends in "_ms", a number. Payloads stay as they are. Errors: as time_text()."""
    if isinstance(value, timedelta):
        return milliseconds(value) if name.endswith("_ms") else f"{milliseconds(value)}ms"
    if isinstance(value, date):
        return time_text(value)
    if isinstance(value, dict):
        return {key: inner if key == "payload" else as_api(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_api(inner, name) for inner in value]
    return value


def due(due_at: Optional[When], delay: Optional[Delay]) -> Dict[str, Any]:
    return given(due_at=None if due_at is None else time_text(due_at), delay_ms=None if delay is None else milliseconds(delay))


def nothing(_: Response) -> None:
    return None


def json_of(response: Response) -> Any:
    return response.json()


def body_of(response: Response) -> bytes:
    return response.body


def member(name: str) -> Callable[[Response], Any]:
    return lambda response: response.json()[name]


def page_of(name: str) -> Callable[[Response], Page]:
    def read(response: Response) -> Page:
        answer = response.json()
        return Page(answer[name], answer.get("next"))

    return read
