"""HTTP/1.1 without the sockets: what a request is as bytes, how an answer is read from bytes, and when to ask again.

The blocking and the asyncio client send and receive by themselves and share everything else.
"""
from __future__ import annotations

import errno
import json
import os
import random
import ssl
import time
from typing import Any, Callable, Dict, Generic, List, NamedTuple, Optional, TypeVar
from urllib.parse import urlsplit

from ._errors import ApiError, NotFound, Unavailable, Unreachable, type_of
from ._log import log

T = TypeVar("T")
LONGEST_RETRY_FOR = 30.0  # s, unless told
# What is waited for because an answer says so; whoever says more may be mistaken, or no daemon of ours.
LONGEST_RETRY_AFTER = 60.0  # s
DEFAULT_URL = "http://127.0.0.1:7733"
MOST_HEAD_BYTES = 64 * 1024
to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def is_number(text: str) -> bool:
    """Whether it is of the digits 0 to 9 alone, which isdigit() is not content with."""
    return text.isascii() and text.isdigit()


class Response(NamedTuple):
    status: int
    headers: Dict[str, str]  # names in small letters
    body: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:  # no JSON, or nested too deeply
            raise Unreachable(f"status {self.status}, and not JSON: {self.body[:80]!r}", sent=True) from error


class Call(Generic[T]):
    """One operation of the API: its request, and how its answer is read.

    `safe`: sending it twice does no more than sending it once. `wait`: seconds that the daemon may take for itself.
    `advice`: what to do about a refusal of this type (ApiError.type), which is added to its text.
    """

    __slots__ = ("method", "target", "body", "content_type", "key", "read", "wait", "safe", "advice")

    def __init__(
        self,
        method: str,
        target: str,
        read: Callable[[Response], T],
        body: Optional[bytes] = None,
        content_type: str = "application/json",
        key: Optional[str] = None,
        wait: float = 0.0,
        safe: bool = False,
        advice: Optional[Dict[str, str]] = None,
    ) -> None:
        self.method, self.target, self.read, self.advice = method, target, read, advice or {}
        self.body, self.content_type, self.wait = body, content_type, wait
        self.key = None if key is None else str(key)  # such as a UUID
        self.safe = safe or method in ("GET", "PUT", "DELETE") or bool(self.key)

    def result(self, response: Response) -> T:
        """Errors: ApiError where the daemon refused; Unreachable for an answer that is none of the API's."""
        if response.status >= 300:
            raise problem_of(response, self.advice)
        try:
            return self.read(response)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise Unreachable(f"an answer that is none of the API's: {response.body[:80]!r}", sent=True) from error


def problem_of(response: Response, advice: Optional[Dict[str, str]] = None) -> ApiError:
    problem: Any = None
    if "json" in response.headers.get("content-type", ""):
        problem = response.json()
    if not isinstance(problem, dict):
        problem = {"title": response.body[:200].decode("utf-8", "replace").strip() or f"status {response.status}"}
    problem["status"] = response.status  # what a proxy's JSON calls so may be anything
    problem.setdefault("request_id", response.headers.get("x-request-id"))
    after = response.headers.get("retry-after", "")
    todo = (advice or {}).get(type_of(problem))
    if todo:
        problem["detail"] = f"{problem.get('detail') or problem.get('title')}; {todo}"
    return ApiError.of(problem, float(after) if is_number(after) else None)


class Endpoint:
    """Where the daemon is, and what every request to it has in its head.

    `url`: "http://host:port" or "https://…", perhaps with a path before "/v1", or "unix:PATH" of a socket; default:
    ARGIOPE_URL, or http://127.0.0.1:7733. `token`: default ARGIOPE_TOKEN; empty: none.
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None) -> None:
        self.url = (url or os.environ.get("ARGIOPE_URL") or DEFAULT_URL).rstrip("/")
        self.socket = self.url[len("unix:") :] if self.url.startswith("unix:") else None
        parts = urlsplit("http://localhost" if self.socket else self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f'{self.url!r}: a URL like "{DEFAULT_URL}"')
        self.secure = parts.scheme == "https"
        self.host = parts.hostname
        self.port = parts.port or (443 if self.secure else 80)
        self._path = parts.path
        token = os.environ.get("ARGIOPE_TOKEN", "") if token is None else token
        self._common = f" HTTP/1.1\r\nHost: {parts.netloc.rpartition('@')[2]}\r\nUser-Agent: argiope-python\r\n"
        if token:
            self._common += f"Authorization: Bearer {token}\r\n"
        if not _may_be_sent(token + parts.netloc + parts.path):
            raise ValueError("a URL or token with characters that no request may have")

    def request(self, call: Call[Any], accept: str = "", last_event_id: str = "") -> bytes:
        """Errors: ValueError for a key or an event's id with characters that no request may have."""
        for text in (call.key or "", last_event_id):
            if not _may_be_sent(text):
                raise ValueError(f"{text!r}: only printable characters of Latin-1 are sent in a request's head")
        head = f"{call.method} {self._path}{call.target}{self._common}"
        if call.key:
            head += f"Idempotency-Key: {call.key}\r\n"
        if accept:
            head += f"Accept: {accept}\r\n"
        if last_event_id:
            head += f"Last-Event-ID: {last_event_id}\r\n"
        if call.body is None:
            if call.method in ("POST", "PUT", "PATCH"):
                head += "Content-Length: 0\r\n"
            return (head + "\r\n").encode("latin-1")
        head += f"Content-Type: {call.content_type}\r\nContent-Length: {len(call.body)}\r\n\r\n"
        return head.encode("latin-1") + call.body


def _may_be_sent(text: str) -> bool:
    """In the head of a request."""
    return text.isprintable() and all(character <= "\xff" for character in text)


def not_connected(url: str, error: Exception) -> Unreachable:
    """Of a connection that could not be made. Where nobody listens, it says what to do."""
    why = f"{url}: {error or 'no connection in time'}"
    refused = f"[Errno {errno.ECONNREFUSED}]"  # asyncio may have tried several addresses, and says it in words alone
    if isinstance(error, (ConnectionRefusedError, FileNotFoundError)) or refused in str(error):
        why += "; nobody listens there: start a daemon (`argiope serve`), or give the address of yours (`url`, or ARGIOPE_URL)"
    return Unreachable(why, sent=False)


def tls_context(given: Optional[ssl.SSLContext], ca_file: Optional[str]) -> ssl.SSLContext:
    """`given` as it is; else one that trusts the authorities of that file, or, without one, the system's.

    Errors: ValueError for both at once; OSError for a file that cannot be used.
    """
    if given is not None and ca_file:
        raise ValueError("ssl_context or ca_file: one of them")
    return given or ssl.create_default_context(cafile=ca_file)


class ResponseReader:
    """One answer from the bytes of a connection. feed() what comes; take() the body as far as it is there.

    Errors: Unreachable for what is no HTTP, and for an answer that is cut off.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: Dict[str, str] = {}
        self.done = False
        self.keep_alive = False
        self._rest = b""  # what cannot be read yet: part of a head, or of the frame of a chunk
        self._body: List[bytes] = []
        self._read: Callable[[bytes], bytes] = self._read_head
        self._left = 0  # bytes of the body, or of the chunk

    def feed(self, data: bytes) -> None:
        """`data` empty: the connection has ended."""
        if not data:
            return self._end_of_connection()
        data = self._rest + data if self._rest else data
        while data and not self.done:
            before = self._read
            rest = self._read(data)
            if rest is data and self._read == before:
                break
            data = rest
        self._rest = data
        if self.done and data:
            self.keep_alive = False  # nobody asked for what follows

    def take(self) -> bytes:
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body = []
        return body

    def response(self) -> Response:
        return Response(self.status, self.headers, self.take())

    def _end_of_connection(self) -> None:
        if self.done:
            return
        if self._read != self._read_until_end:
            raise Unreachable(
                "the connection was closed in the middle"
                if self.status or self._rest
                else "the connection was closed before an answer",
                sent=True,
            )
        self.done, self.keep_alive = True, False

    def _read_head(self, data: bytes) -> bytes:
        end = data.find(b"\r\n\r\n")
        if end < 0:
            if len(data) > MOST_HEAD_BYTES:
                raise Unreachable("an answer whose head has no end", sent=True)
            return data
        lines = data[:end].decode("latin-1").split("\r\n")
        words = lines[0].split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not (is_number(words[1]) and len(words[1]) == 3):
            raise Unreachable(f"no HTTP answer: {lines[0][:80]!r}", sent=True)
        if words[1][0] == "1":
            return data[end + 4 :]
        self.status = int(words[1])
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        self.keep_alive = words[0] != "HTTP/1.0" and self.headers.get("connection", "").lower() != "close"
        self._begin_body()
        return data[end + 4 :]

    def _begin_body(self) -> None:
        length = self.headers.get("content-length")
        if self.status in (204, 304):
            self.done = True
        elif self.headers.get("transfer-encoding", "").lower() == "chunked":
            self._read = self._read_chunk_size
        elif length is None:
            self._read = self._read_until_end
        elif not is_number(length):
            raise Unreachable(f"Content-Length {length[:40]!r}", sent=True)
        else:
            self._left = int(length)
            self.done = self._left == 0
            self._read = self._read_length

    def _read_length(self, data: bytes) -> bytes:
        self._body.append(data if len(data) <= self._left else data[: self._left])
        rest = data[self._left :]
        self._left -= len(self._body[-1])
        self.done = self._left == 0
        return rest

    def _read_until_end(self, data: bytes) -> bytes:
        self._body.append(data)
        return b""

    def _read_chunk_size(self, data: bytes) -> bytes:
        end = data.find(b"\r\n")
        if end < 0:
            if len(data) > 1024:
                raise Unreachable("a chunk whose size has no end", sent=True)
            return data
        size = data[:end].split(b";")[0].strip()
        if not size or size.strip(b"0123456789abcdefABCDEF"):
            raise Unreachable(f"a chunk of size {data[:40]!r}", sent=True)
        self._left = int(size, 16)
        self._read = self._read_chunk if self._left else self._read_trailer
        return data[end + 2 :]

    def _read_chunk(self, data: bytes) -> bytes:
        if self._left:
            piece = data[: self._left]
            self._body.append(piece)
            self._left -= len(piece)
            return data[len(piece) :]
        if len(data) < 2:
            return data
        self._read = self._read_chunk_size
        return data[2:]

    def _read_trailer(self, data: bytes) -> bytes:
        end = data.find(b"\r\n")
        if end < 0 and len(data) > MOST_HEAD_BYTES:
            raise Unreachable("a trailer that has no end", sent=True)
        self.done = end == 0
        return data if end < 0 else data[end + 2 :]


class Backoff:
    """Waits between attempts, in seconds: each drawn from 0 to a limit that doubles from `first` to `longest`, so that
    clients that lost the same daemon do not come back together."""

    def __init__(self, first: float = 0.1, longest: float = 5.0) -> None:
        self._first, self._longest = first, longest
        self._next = first

    def reset(self) -> None:
        self._next = self._first

    def wait(self, at_least: Optional[float] = None) -> float:
        """`at_least`: what an answer's Retry-After says; beyond a minute it counts as a minute."""
        limit = self._next
        self._next = min(self._next * 2, self._longest)
        return min(at_least or 0.0, LONGEST_RETRY_AFTER) + random.uniform(limit / 4, limit)


class Absence:
    """Tells by logging when the daemon of a client is away, once, and when it is back. Threads: any; then perhaps more than once."""

    def __init__(self, url: str) -> None:
        self._url, self._is_told = url, False

    def is_waited_for(self, error: Exception, left: float) -> None:
        """A call is sent again for another `left` seconds."""
        if self._is_told:
            return
        self._is_told = True
        why = str(error).removeprefix(f"{self._url}: ")
        until = f", until {time.strftime('%H:%M:%S', time.localtime(time.time() + left))}" if left < 86400 else ""
        log.warning("the daemon at %s does not answer: %s. Trying again for %.0f s%s", self._url, why, left, until)

    def is_over(self) -> None:
        if self._is_told:
            self._is_told = False
            log.warning("the daemon at %s answers again", self._url)


class Tries:
    """Judges the failures of one call: whether it is sent again, and after how long."""

    def __init__(self, call: Call[Any], give_up_at: float) -> None:
        self._call, self._give_up_at = call, give_up_at
        self._backoff = Backoff()
        self._may_be_done = False  # by an attempt whose answer was lost

    def wait_after(self, error: Exception, now: float) -> float:
        """Seconds until the next attempt; raises `error` where there is none. Attempts end at `give_up_at`."""
        if isinstance(error, Unreachable):
            again = self._call.safe or not error.sent
            self._may_be_done |= error.sent
        else:
            again = self._call.safe and isinstance(error, Unavailable)
        wait = self._backoff.wait(getattr(error, "retry_after", None)) if again else 0.0
        if not again or now + wait > self._give_up_at:
            raise error
        return wait

    def was_done_before(self, error: Exception) -> bool:
        """Whether an erasure finds nothing because its first attempt, whose answer was lost, has erased it."""
        return self._may_be_done and self._call.method == "DELETE" and isinstance(error, NotFound)
