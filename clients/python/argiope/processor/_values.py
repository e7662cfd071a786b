"""Whatever a script returns, as JSON can say it."""
from __future__ import annotations

import base64
import datetime
import json
import math
from typing import Any, Mapping

MOST_DEPTH = 60  # the protocol's 64, less what a message puts around it


def plain(value: Any, depth: int = 0) -> Any:
    """Lists, dicts with texts as keys, texts, numbers, booleans, None: what JSON has, and nothing that a reader could refuse.

    Bytes are text where they are UTF-8, else base64 between marks, as pyspider writes them; times are RFC 3339 or ISO 8601; other
    objects are their str(). Errors: ValueError for what is nested too deep, which what contains itself is.
    """
    if value is None or value is True or value is False:
        return value
    kind = type(value)
    if kind is str or isinstance(value, str):
        text = str(value)
        return text if text.isascii() else text.encode("utf-8", "replace").decode()
    if isinstance(value, int):
        number = int(value)
        return number if -(2**63) <= number < 2**63 else str(number)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if depth >= MOST_DEPTH:
        raise ValueError(f"nested deeper than {MOST_DEPTH} levels, or contains itself")
    if isinstance(value, Mapping):
        return {_key(key): plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(inner, depth + 1) for inner in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return "[BASE64-DATA]" + base64.b64encode(data).decode() + "[/BASE64-DATA]"
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    return plain(str(value), depth)


def _key(key: Any) -> str:
    if key is None or key is True or key is False:
        return json.dumps(key)
    return str(plain(key if isinstance(key, (str, bytes, int, float)) else str(key)))


def to_json(value: Any) -> bytes:
    """Of what plain() has made, in one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
