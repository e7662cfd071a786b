"""How requests are made and answers read, for all operations."""
from __future__ import annotations

import base64
import uuid
from datetime import datetime
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Union
from urllib.parse import quote, urlencode

from .._wire import Call, Response, to_json

JobRecord = Dict[str, Any]  # a job as the API tells it
JobRef = Union[int, str]  # its id, or its name
When = Union[datetime, str]


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


def milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def time_text(when: When) -> str:
    """Errors: ValueError for a datetime that knows no zone."""
    if isinstance(when, str):
        return when
    if when.tzinfo is None:
        raise ValueError(f"{when!r} says no zone; use datetime.now(timezone.utc) and its like")
    return when.isoformat()


def bytes_text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def due(due_at: Optional[When], delay: Optional[float]) -> Dict[str, Any]:
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
