"""Argiope's part of docs/processors.md, over real pipes: what starts a processor, sends it pages and holds it to the protocol."""
import datetime
import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
from urllib.parse import unquote, urljoin

from .small_dom import Document, Element, select

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
PATIENCE = 60  # seconds
LINE_BYTES, ANSWER_BYTES, LOG_BYTES = 16 * 1024 * 1024, 64 * 1024 * 1024, 64 * 1024
IS_TEXT, IS_COUNT = (lambda value: isinstance(value, str)), (lambda value: type(value) is int and value >= 0)
IS_FLAG, IS_TEXTS = (lambda value: type(value) is bool), (lambda value: set(map(type, value.values())) <= {str})
IS_TIME = lambda value: datetime.datetime.fromisoformat(value.replace("Z", "+00:00")).tzinfo is not None  # noqa: E731
REQUEST = {
    "method": IS_TEXT, "headers": IS_TEXTS, "cookies": IS_TEXTS, "body": IS_TEXT, "body_base64": IS_TEXT, "timeout_ms": IS_COUNT,
    "connect_timeout_ms": IS_COUNT, "redirects": IS_COUNT, "verify_certificate": IS_FLAG, "robots": IS_FLAG,
    "proxy": lambda value: value is False or re.match(r"\w+://[^/]+:\d+", value), "etag": lambda value: IS_FLAG(value) or IS_TEXT(value),
    "last_modified": lambda value: IS_FLAG(value) or IS_TEXT(value), "render": lambda value: isinstance(value, dict),
}  # fmt: skip
OF_A_RULE = {
    "priority": lambda value: type(value) is int, "age_ms": lambda value: value is None or IS_COUNT(value), "retries": IS_COUNT,
    "tag": lambda value: value is None or IS_TEXT(value), "recrawl": IS_FLAG, "time_limit_ms": IS_COUNT,
    "request": lambda value: all(REQUEST[name](inner) for name, inner in value.items()),
}  # fmt: skip
OF_A_PAGE = {
    "url": IS_TEXT, "name": lambda value: 0 < len(value.encode()) <= 1000, "rule": IS_TEXT, "context": lambda value: True,
    "due_at": IS_TIME, "delay_ms": IS_COUNT, "force": IS_FLAG, "cancel": IS_FLAG, **OF_A_RULE,
}  # fmt: skip


class Broken(Exception):
    """The processor has broken the protocol, or died."""


def joined(*layers):
    """Members of a page, its rule and the defaults: the first that says something counts, in `request` name by name."""
    both = {}
    for layer in layers:
        for name, value in layer.items():
            if isinstance(value, dict) and isinstance(both.get(name), dict) and name in ("request", "headers", "cookies"):
                both[name] = joined(both[name], value)
            else:
                both.setdefault(name, value)
    return both


class Processor:
    def __init__(self, command, environment=None, cwd=None):
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=cwd
        )
        self.stderr, self.project_log, self.last_id, self.told = b"", [], 0, None
        self._lines = queue.Queue()
        threading.Thread(target=self._read_lines, daemon=True).start()
        self._stderr_reader = threading.Thread(target=self._read_stderr, daemon=True)
        self._stderr_reader.start()

    def close(self):
        """As Argiope ends one: closes its input and waits. Gives its status."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self._stderr_reader.join(PATIENCE)
        self.process.stdout.close()
        self.process.stderr.close()
        return status

    def _read_lines(self):
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _read_stderr(self):
        while part := os.read(self.process.stderr.fileno(), 65536):
            self.stderr += part

    def send(self, message, content=b""):
        line = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" + content

        def write():
            try:
                self.process.stdin.write(line)
                self.process.stdin.flush()
            except (BrokenPipeError, ValueError):
                pass

        writer = threading.Thread(target=write)  # reading goes on meanwhile
        writer.start()
        return writer

    def receive(self, seconds=PATIENCE):
        """The next message. Errors: Broken."""
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            self.process.kill()
            raise Broken("killed: it took too long") from None
        if line is None:
            raise Broken(f"it ended: {self.process.wait(PATIENCE)}")
        if len(line) > LINE_BYTES or not line.endswith(b"\n"):
            self.process.kill()
            raise Broken("a line too long")
        try:
            message = json.loads(line.decode())
        except ValueError as error:
            self.process.kill()
            raise Broken(f"no message: {line[:200]!r} ({error})") from None
        if not isinstance(message, dict) or "type" not in message:
            self.process.kill()
            raise Broken(f"no message: {line[:200]!r}")
        message["bytes"] = len(line)
        return message

    def describe(self, project="shop", debug=False, tried=False):
        self.send({
            "type": "describe", "protocol": 1, "project": project, "argiope": "0.1.0", "debug": debug, "try": tried, "some": "new member",
            "limits": {"line_bytes": LINE_BYTES, "answer_bytes": ANSWER_BYTES, "log_bytes": LOG_BYTES, "time_ms": 30000},
        }).join()  # fmt: skip
        self.project = project
        while (told := self.receive(PATIENCE))["type"] == "log":
            self.project_log.append(told)
        if told["type"] != "described" or told["protocol"] != 1:
            raise Broken(f"{told}")
        for rule in [told.get("defaults", {}), *told.get("rules", {}).values()]:
            self.check({name: value for name, value in rule.items() if name not in ("errors", "fields")}, OF_A_RULE, rule)
        for tick in told.get("ticks", []):
            assert 1000 <= tick["every_ms"] <= 366 * 86_400_000, tick
        self.told = told
        return told

    @staticmethod
    def check(given, members, whole):
        for name, value in given.items():
            if name not in members or not members[name](value):
                raise Broken(f"{name} of {whole}")

    def effective(self, page):
        """A page with what its rule and the defaults add."""
        rule = {k: v for k, v in self.told.get("rules", {}).get(page.get("rule"), {}).items() if k not in ("errors", "fields")}
        return joined(page, rule, self.told.get("defaults", {}))

    def visit(self, url="https://shop.example/", rule="page", content=b"", *, event="fetch", page=None, response=None, save=None,
              time_limit_ms=PATIENCE * 1000, fields=None, grace=PATIENCE):  # fmt: skip
        """One page; the answer, its parts joined, with `log` (pairs of level and text). `grace`: seconds that a message may come
        after the time limit."""
        self.last_id += 1
        if url.startswith("data:"):
            content = content or unquote(url.partition(",")[2]).encode()
        call = {
            "type": "page", "id": self.last_id, "body": len(content), "event": event, "rule": rule, "project": self.project,
            "time_limit_ms": time_limit_ms, "page": {"name": url, "url": url, "rule": rule, "attempt": 1, **(page or {})},
            "response": {
                "url": url, "status": 200, "headers": [["Content-Type", "text/html"]], "cookies": {}, "encoding": None, "time_ms": 1,
                **(response or {}),
            },
            "save": save, "a_new": ["member"],
        }  # fmt: skip
        if fields is not None:
            call["fields"] = fields
        writer = self.send(call, content)
        answer = {"pages": [], "messages": [], "log": []}
        nodes, size = [], 0
        while True:
            message = self.receive(time_limit_ms / 1000 + grace)
            kind = message.pop("type")
            if kind == "log":
                assert isinstance(message["text"], str) and message["level"] in ("debug", "info", "warning", "error", "print")
                (answer["log"] if message.get("id") == self.last_id else self.project_log).append(message)
                continue
            if message.get("id") != self.last_id:
                raise Broken(f"an answer for another page: {message}")
            if kind == "select":
                self.send(self._select(call, content, message, nodes))
                continue
            size += message["bytes"]
            if kind not in ("more", "done") or size > ANSWER_BYTES:
                raise Broken(f"{kind}, {size} bytes")
            self._join(answer, message)
            if kind == "done":
                writer.join(PATIENCE)
                answer["log"] = [(each["level"], each["text"]) for each in answer["log"]]
                return answer

    def _join(self, answer, message):
        for each in message.get("pages", []):
            self.check(each, OF_A_PAGE, each)
            answer["pages"].append(each)
        for each in message.get("results", []):
            self.check(each, {"part": IS_TEXT, "value": lambda value: True}, each)
        if "results" in message:
            answer.setdefault("results", []).extend(message["results"])
        for each in message.get("messages", []):
            self.check(each, {"project": IS_TEXT, "url": IS_TEXT, "message": lambda value: True}, each)
            answer["messages"].append(each)
        for each in message.get("logs", []):
            answer["log"].append(each)
        answer.update({name: message[name] for name in ("save", "error") if name in message})
        if "error" in answer:
            texts = {name: IS_TEXT for name in ("text", "kind", "where", "trace")}
            self.check(answer["error"], {**texts, "delay_ms": IS_COUNT, "final": IS_FLAG}, answer["error"])

    def _select(self, call, content, query, nodes):
        """`nodes` are the elements that have been told, a node's number being its place."""
        url, told = call["response"]["url"], {"type": "selected", "id": query["id"], "query": query["query"]}
        text = query.get("html") or content.decode("utf-8", "replace")
        if "html" in query or not nodes:
            nodes.append(Document(text, url))
        document = next(each for each in reversed(nodes) if isinstance(each, Document))
        try:
            within = [nodes[number] for number in query.get("within", [])]
            found = select(document, within, query.get("css"), query.get("xpath"))[: query.get("most", 10_000)]
        except ValueError as error:
            return {**told, "error": {"kind": "invalid_input", "text": str(error)}}
        return {**told, "matches": [self._match(each, query.get("give", ["text"]), nodes) for each in found]}

    @staticmethod
    def _match(found, give, nodes):
        if not isinstance(found, Element):
            return {"text": " ".join(found.split()), **({"raw": found} if "raw" in give else {})}
        if not any(each is found for each in nodes):
            nodes.append(found)
        told = {name: getattr(found, name) for name in give}
        told = {name: value if isinstance(value, (str, dict)) else value() for name, value in told.items()}
        return {"node": next(i for i, each in enumerate(nodes) if each is found), **told}

    def kill(self):
        self.process.send_signal(signal.SIGKILL)


class ProcessorTest(unittest.TestCase):
    """Tests of scripts: self.script(text) starts one, and it has described itself."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.last = None

    def start(self, command, **options):
        self.last = processor = Processor([str(word) for word in command], cwd=self.folder, **options)
        self.addCleanup(processor.close)
        return processor

    def load(self, text, name="shop.py", **options):
        """Not described yet."""
        path = self.folder / name
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return self.start([sys.executable, "-m", "argiope.processor", path], **options)

    def script(self, text, described={}, **options):
        processor = self.load("from argiope.processor import *\n" + textwrap.dedent(text), **options)
        told = processor.describe(**described)
        self.assertNotIn("error", told, told.get("error"))
        return processor

    def values(self, answer):
        self.assertNotIn("error", answer, answer.get("error"))
        return [each["value"] for each in answer.get("results", [])]


def resolved(page, base):
    return urljoin(base, page["url"])
