"""The two pipes to Argiope, kept where a script does not meet them.

Descriptors 0 and 1 of the process become the null device and standard error, so that neither print(), nor os.write(1, …), nor a program
that a script starts can write into the protocol.
"""
from __future__ import annotations

import io
import json
import os
import threading
from typing import Any, BinaryIO, Dict, Optional

from ._values import to_json

MOST_LOG_TEXT = 16 * 1024  # of one message


class ProtocolError(Exception):
    """Argiope has sent what is no message."""


class Channel:
    """Threads: any may send; one receives."""

    def __init__(self, receive: BinaryIO, send: int) -> None:
        self.owner = os.getpid()
        self._receive, self._send = receive, send
        self._lock = threading.RLock()
        self.is_busy = False  # with a message, half of which would be an error: no time-out may interrupt it
        self.visit: Optional[int] = None  # the page under way, to which what is logged belongs
        self.log_room = 64 * 1024
        self._log_left = self.log_room
        self._log_lost = 0

    @staticmethod
    def of_standard_streams() -> "Channel":
        receive, send = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        return Channel(io.open(receive, "rb", buffering=1 << 17), send)

    def receive(self) -> Optional[Dict[str, Any]]:
        """The next message, its body as bytes in `content`; None at the end. Errors: ProtocolError."""
        self.is_busy = True
        try:
            return self._receive_one()
        finally:
            self.is_busy = False

    def _receive_one(self) -> Optional[Dict[str, Any]]:
        while True:
            line = self._receive.readline()
            if not line.endswith(b"\n"):
                return None
            if line.strip():
                break
        try:
            message = json.loads(line)
        except ValueError as error:
            raise ProtocolError(f"a line that is no JSON: {error}") from None
        if not isinstance(message, dict):
            raise ProtocolError("a line that is no object")
        size = message.get("body") or 0
        content = self._receive.read(size) if size else b""
        if len(content) < size:
            return None
        message["content"] = content
        return message

    def send(self, message: Dict[str, Any]) -> None:
        self.send_line(to_json(message))

    def send_line(self, line: bytes) -> None:
        """One message. Where Argiope is gone, the process ends: nobody would read what it does."""
        if os.getpid() != self.owner:
            return  # a child that the script has forked
        rest = memoryview(line + b"\n")
        try:
            with self._lock:
                was_busy, self.is_busy = self.is_busy, True
                try:
                    while rest:
                        rest = rest[os.write(self._send, rest) :]
                finally:
                    self.is_busy = was_busy
        except (BrokenPipeError, ConnectionResetError):
            os._exit(0)

    def log(self, level: str, text: str) -> None:
        text = text.encode("utf-8", "replace").decode()
        if os.getpid() != self.owner:
            os.write(2, (text + "\n").encode())
            return
        with self._lock:
            if len(text) > self._log_left:
                kept = text[: self._log_left]
                self._log_lost += len(text) - len(kept)
                text = kept
            self._log_left -= len(text)
            visit = self.visit
        for start in range(0, len(text), MOST_LOG_TEXT):
            message: Dict[str, Any] = {"type": "log", "level": level, "text": text[start : start + MOST_LOG_TEXT]}
            if visit is not None:
                message["id"] = visit
            self.send(message)

    def begin(self, visit: int) -> None:
        self.visit = visit
        self._log_left, self._log_lost = self.log_room, 0

    def end(self) -> None:
        """Says how much of the log was too much."""
        if self._log_lost:
            self._log_left = 200
            lost, self._log_lost = self._log_lost, 0
            self.log("warning", f"{lost} more characters of this log were not kept")
            self._log_left = 0


class LogStream(io.TextIOBase):
    """A file for print(): whole lines are sent as they come, what has no end of line yet with flush_line()."""

    encoding = "utf-8"

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._line = ""

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return 1

    def write(self, text: Any) -> int:
        if not isinstance(text, str):
            text = text.decode("utf-8", "replace") if isinstance(text, (bytes, bytearray)) else str(text)
        whole, end, rest = (self._line + text).rpartition("\n")
        if end:
            self._channel.log("print", whole)
        self._line = rest
        if len(rest) > MOST_LOG_TEXT:
            self.flush_line()
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush_line(self) -> None:
        if self._line:
            line, self._line = self._line, ""
            self._channel.log("print", line)
