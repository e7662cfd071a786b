"""The processor: answers what Argiope sends by what the script's callbacks do (docs/processors.md)."""
from __future__ import annotations

import asyncio
import inspect
import logging
import os
import signal
import sys
import threading
from typing import Any, Dict, Iterator, List, Optional

from .._calls._requests import delay_of_end
from .._errors import Bury, Retry, end_of
from ._channel import Channel, LogStream
from ._handler import NOTSET, BaseHandler, Visit, as_delays, call_with
from ._pages import KEYWORDS, encode_data, page_members, task_of_call
from ._response import Response, response_of_call
from ._script import LONGEST_ERROR, Script, error_of
from ._values import plain, to_json

PROTOCOL = 1
MOST_IN_A_PART = 1000  # entries of one line
MOST_BYTES_IN_A_PART = 4 * 1024 * 1024
MOST_BYTES_OF_AN_ENTRY = 2 * 1024 * 1024  # what is longer would not be kept, or would be a line too long
MOST_BYTES_OF_SAVE = 1024 * 1024
LONGEST_DELAY_MS = 2**53  # what every reader of JSON takes for a whole number
MARGIN_MS = 50  # a time-out is raised that much before Argiope counts it
AGAIN_S = 0.2  # and again while the script catches it
MESSAGE_PAGE = "data:,on_message#"  # before what the sender of a message calls it
# A callback that waits for events that no page of its own brings.
EVENTS = (("start", "on_start"), ("message", "on_message"), ("finished", "on_finished"))
OF_A_RULE = frozenset(KEYWORDS - {"params", "files", "taskid", "exetime", "force_update", "cancel", "save", "callback"})


class TimeoutError(Exception):  # named as pyspider's
    """The callback has taken longer than it may."""


class LogHandler(logging.Handler):
    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
        except Exception as error:  # of arguments that do not fit
            text = f"{record.msg!r} (cannot be written: {error})"
        names = {"CRITICAL": "error", "ERROR": "error", "WARNING": "warning", "INFO": "info"}
        self._channel.log(names.get(record.levelname, "debug"), text)


class Processor:
    """Threads: run() is the main thread's."""

    def __init__(self, path: str, channel: Channel) -> None:
        self._path, self._channel = path, channel
        self._folder = os.path.dirname(os.path.abspath(path))
        self._out = LogStream(channel)
        self._script: Optional[Script] = None
        self._queries = 0
        self._most_bytes = 64 * 1024 * 1024  # of an answer

    def run(self) -> None:
        """Until Argiope closes the pipe. Errors: ProtocolError."""
        while True:
            message = self._channel.receive()
            if message is None:
                return
            kind = message.get("type")
            if kind == "describe":
                self._channel.send({"type": "described", "protocol": PROTOCOL, **self._describe(message)})
            elif kind == "page":
                self._visit(message)
            # What is unknown, or an answer that nobody waits for any more, is no concern of this version.

    # describe

    def _describe(self, message: Dict[str, Any]) -> Dict[str, Any]:
        limits = message.get("limits") or {}
        self._channel.log_room = limits.get("log_bytes", self._channel.log_room)
        self._most_bytes = limits.get("answer_bytes", self._most_bytes)
        self._channel.begin(0)
        self._channel.visit = None
        logger = _logger_of(str(message.get("project") or "script"), self._channel)
        # As pyspider has it: "debug" in status DEBUG, "debugger" where one page is tried.
        environment = {"debug": bool(message.get("debug")), "debugger": bool(message.get("try"))}
        sys.stdout = self._out  # type: ignore[assignment]
        try:
            self._script = Script(self._path, str(message.get("project") or "script"), environment, logger)
            told = describe(self._script.handler, logger)
        except BaseException as error:
            self._script = None
            return {"error": error_of(error, self._folder)}
        finally:
            self._out.flush_line()
            self._channel.end()
        return told

    # page

    def _visit(self, call: Dict[str, Any]) -> None:
        number = call.get("id")
        if self._script is None:
            self._channel.send({"type": "done", "id": number, "error": {"text": "the script could not be loaded"}})
            return
        self._channel.begin(number)  # type: ignore[arg-type]
        sys.stdout = self._out  # type: ignore[assignment]  # a script may have put something else there
        self._queries = 0
        handler, visit = self._script.handler, Visit()
        answer: Dict[str, Any] = {"type": "done", "id": number}
        limit = _Limit(self._channel, call.get("time_limit_ms"))
        try:
            try:
                limit.start()
                self._run_callback(handler, visit, call)
            finally:
                limit.stop()
        except BaseException as error:
            limit.stop()  # once more: the time may have run out in the other
            answer["error"] = self._failure(error)
        if os.getpid() != self._channel.owner:
            os._exit(0)  # the script has forked, and its child has come back here
        answer.update(self._kept(handler, call, answer))
        handler.task = handler.response = handler.save = handler._visit = None
        self._out.flush_line()
        lines = self._lines_of(visit, answer)
        self._channel.end()
        for line in lines:
            self._channel.send_line(line)
        self._channel.visit = None

    def _run_callback(self, handler: BaseHandler, visit: Visit, call: Dict[str, Any]) -> None:
        if call.get("event") == "message":
            _name_message(call)
        handler._visit = visit
        handler.task = task = task_of_call(call)
        handler.response = response = response_of_call(call, self._select)
        handler.save = dict(call["save"]) if isinstance(call.get("save"), dict) else call.get("save") or {}
        handler._part = ""
        result = self._call_rule(handler, call, response, task)
        if inspect.iscoroutine(result):
            result = asyncio.run(result)
        if inspect.isgenerator(result):
            for number, value in enumerate(result, 1):
                handler._part = str(number)
                call_with(handler.on_result, (value, response, task))
        else:
            call_with(handler.on_result, (result, response, task))

    def _call_rule(self, handler: BaseHandler, call: Dict[str, Any], response: Response, task: Dict[str, Any]) -> Any:
        rule = call.get("rule") or "__call__"
        if call.get("event") == "message":
            sent = response.save or {}
            return handler.on_message(str(sent.get("project", "")), sent.get("message"))
        function = getattr(handler, rule, None)
        if not callable(function):
            raise NotImplementedError(f"self.{rule}() not implemented!")
        if not getattr(function, "_catch_status_code_error", False):
            if response.status_code == 304:
                return None
            response.raise_for_status()
        return call_with(function, (response, task))

    def _failure(self, error: BaseException) -> Dict[str, Any]:
        """The protocol's `error`. It raises nothing, whatever the script has raised."""
        told = error_of(error, self._folder)
        return end_of(error, lambda each: {**told, **_when_again(each)}, lambda why: {**told, "text": why[:LONGEST_ERROR]})

    def _kept(self, handler: BaseHandler, call: Dict[str, Any], answer: Dict[str, Any]) -> Dict[str, Any]:
        """`save`, where it is another than it was."""
        try:
            save = plain(handler.save)
        except BaseException as error:  # of a str() that the script has written, too
            answer.setdefault("error", self._failure(error))
            return {}
        if len(to_json(save)) > MOST_BYTES_OF_SAVE:
            self._channel.log("error", f"save: longer than {MOST_BYTES_OF_SAVE} bytes as JSON, and not kept")
            return {}
        return {} if save == (call.get("save") or {}) else {"save": save}

    def _lines_of(self, visit: Visit, answer: Dict[str, Any]) -> List[bytes]:
        """One, or several where the answer is long."""
        parts: List[List[bytes]] = []  # each member's
        for name, entries in (("pages", visit.pages), ("results", visit.results or []), ("messages", visit.messages)):
            parts.append([b'"%s":[%s]' % (name.encode(), lines) for lines in self._in_parts(name, entries)])
        if visit.results == []:
            answer["results"] = []
        size = sum(len(part) for each in parts for part in each)
        if size > self._most_bytes - MOST_BYTES_OF_SAVE:
            text = f"its answer has {size} bytes: more than {self._most_bytes - MOST_BYTES_OF_SAVE}"
            return [to_json({"type": "done", "id": answer["id"], "error": {"kind": "ValueError", "text": text}})]
        if all(len(each) <= 1 for each in parts):
            return [to_json(answer)[:-1] + b"".join(b"," + each[0] for each in parts if each) + b"}"]
        lines = [b'{"type":"more","id":%d,%s}' % (answer["id"], part) for each in parts for part in each]
        return lines + [to_json(answer)]

    def _in_parts(self, name: str, entries: List[Dict[str, Any]]) -> Iterator[bytes]:
        """As JSON with commas between, so much at a time as a line may bring."""
        lines: List[bytes] = []
        size = 0
        for number, entry in enumerate(entries):
            line = to_json(entry)
            if len(line) > MOST_BYTES_OF_AN_ENTRY:
                self._channel.log(
                    "error", f"{name}/{number}: {len(line)} bytes as JSON, more than {MOST_BYTES_OF_AN_ENTRY}, and left out"
                )
                continue
            if lines and (len(lines) >= MOST_IN_A_PART or size + len(line) > MOST_BYTES_IN_A_PART):
                yield b",".join(lines)
                lines, size = [], 0
            lines.append(line)
            size += len(line) + 1
        if lines:
            yield b",".join(lines)

    # select

    def _select(self, **what: Any) -> List[Dict[str, Any]]:
        """Argiope's matches. Errors: ValueError for a selector that it refuses; RuntimeError outside of the callback."""
        if self._channel.visit is None or threading.current_thread() is not threading.main_thread():
            raise RuntimeError("response.doc may be used in a callback, and in its own thread, only")
        self._queries += 1
        self._channel.send({"type": "select", "id": self._channel.visit, "query": self._queries, **what})
        while True:
            message = self._channel.receive()
            if message is None:
                os._exit(0)  # Argiope is gone
            if message.get("type") == "selected" and message.get("query") == self._queries:
                break
        error = message.get("error")
        if error:
            raise ValueError(error.get("text") or error.get("kind"))
        return message.get("matches") or []


def _when_again(error: BaseException) -> Dict[str, Any]:
    if isinstance(error, Bury):
        return {"final": True}
    if isinstance(error, Retry) and error.delay is not None:
        return {"delay_ms": delay_of_end(error.delay, LONGEST_DELAY_MS)}
    return {}


def describe(handler: BaseHandler, logger: logging.Logger) -> Dict[str, Any]:
    """What the handler tells of itself. Errors: TypeError, ValueError for what has the wrong type."""
    rules: Dict[str, Any] = {}
    ticks: List[Dict[str, Any]] = []
    for name in dir(type(handler)):
        function = inspect.getattr_static(type(handler), name)
        if isinstance(function, (staticmethod, classmethod)):
            function = function.__func__
        if not inspect.isfunction(function) or (hasattr(BaseHandler, name) and name != "__call__"):
            continue
        if getattr(function, "is_cronjob", False):
            ticks.append({"rule": name, "every_ms": round(function.tick * 1000)})  # type: ignore[attr-defined]
        if not name.startswith("_") or name == "__call__":
            rules[name] = _rule(function)
    told: Dict[str, Any] = {"rules": rules, "ticks": ticks}
    told["on"] = {event: name for event, name in EVENTS if _overrides(handler, name)}
    config = dict(handler.crawl_config or {})
    strange = sorted(set(map(str, config)) - KEYWORDS)
    if strange:
        logger.warning("crawl_config: %s: not known, and ignored", ", ".join(strange))
    defaults = _members(config)
    if defaults:
        told["defaults"] = defaults
    delays = as_delays(handler.retry_delay)
    if delays:
        told["retry_delay_ms"] = {str(key): None if value < 0 else round(value * 1000) for key, value in delays.items()}
    return told


def _rule(function: Any) -> Dict[str, Any]:
    rule = _members(getattr(function, "_config", {}))
    if getattr(function, "_catch_status_code_error", False):
        rule["errors"] = True
    return rule


def _members(config: Dict[str, Any]) -> Dict[str, Any]:
    given = {} if config.get("files") else {key: value for key, value in config.items() if key in OF_A_RULE}
    return page_members(encode_data(given))


def _name_message(call: Dict[str, Any]) -> None:
    """The page of a message is called as its sender calls it."""
    page = call.get("page") or {}
    if page.get("url", "").startswith(MESSAGE_PAGE):
        name = page["url"][len(MESSAGE_PAGE) :]
        call["page"] = {**page, "url": name, "name": name}
        call["response"] = {**(call.get("response") or {}), "url": name}


def _overrides(handler: BaseHandler, name: str) -> bool:
    own, base = getattr(type(handler), name, NOTSET), getattr(BaseHandler, name, NOTSET)
    return own is not NOTSET and own is not base


def _logger_of(name: str, channel: Channel) -> logging.Logger:
    """The script's logger, and the root's for what it imports."""
    handler = LogHandler(channel)
    handler.setFormatter(logging.Formatter("%(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logger = logging.Logger(name)
    logger.addHandler(handler)
    return logger


class _Limit:
    """Raises TimeoutError in the main thread when the time is over, again and again while the script catches it.

    What is in the middle of C code gets it at its end, if Argiope has not killed the process by then.
    """

    def __init__(self, channel: Channel, limit_ms: Optional[int]) -> None:
        self._channel, self._limit_ms = channel, limit_ms

    def start(self) -> None:
        if self._limit_ms:
            signal.signal(signal.SIGALRM, self._on_alarm)
            signal.setitimer(signal.ITIMER_REAL, max(10, self._limit_ms - MARGIN_MS) / 1000, AGAIN_S)

    def stop(self) -> None:
        if self._limit_ms:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def _on_alarm(self, *_: Any) -> None:
        if not self._channel.is_busy and os.getpid() == self._channel.owner:
            raise TimeoutError(f"process timeout: longer than {(self._limit_ms or 0) / 1000:g} s")
