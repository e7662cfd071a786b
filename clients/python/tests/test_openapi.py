"""Both clients have a method for each operation of the daemon's own description of its API, and no others; and only calls
that do nothing twice are sent again."""
import inspect
import json
import pathlib
import re
import unittest
from urllib.parse import parse_qs, urlsplit

from argiope import AsyncClient, Client
from argiope._calls import daemon, jobs

DESCRIPTION = pathlib.Path(__file__).resolve().parents[3] / "src" / "serve" / "api" / "openapi.json"
GROUPS = ("", "jobs", "queues", "leases", "schedules", "projects")
# What a program gives where its name says no more than that it is a text.
SAMPLES = {
    "queues": ["q"],
    "kinds": ["job"],
    "jobs": [],
    "ids": [1],
    "lines": "{}",
    "completion": {"queue": "q"},
    "settlements": [],
    "settle": [],
    "leases": [1],
    "trigger": "@every 1h",
    "most": 1,
    "wait": 0,
    "limit": 5,
    "count": 3,
    "payloads": True,
    "beginnings": True,
    "own": False,
    "priority": 1,
    "delay": 1.0,
    "due_at": None,
    "span": 3600.0,
    "since": "2026-11-22T08:00:00Z",
    "until": "2026-11-22T09:00:00Z",
    "step": 10,
    "schedules": [{"name": "s", "trigger": "@every 1h"}],
    "without_schedules": ["t"],
    "waiting": True,
    "seed": 1,
    "zone": "UTC",
    "number": 1,
}
# They give an iterator over what others ask for, or send nothing.
HELPERS = {"list", "events", "close"}
FOR_TOOLS = {("GET", "/v1/openapi.json")} | {(method, "/v1/session") for method in ("GET", "POST", "DELETE")}
# What a daemon that was killed does not remember, and what is counted from what is there: twice is not once. Of a lease that
# was not received only the settlements would be repeated.
NOT_SENT_AGAIN = {
    ("POST", "/v1/notify/{notify}/test"),
    ("POST", "/v1/projects/{project}/messages"),
    ("POST", "/v1/queues/{queue}/kick"),
    ("POST", "/v1/schedules/{schedule}/run"),
    ("PATCH", "/v1/jobs/{job}"),
    ("PATCH", "/v1/projects/{project}"),
    ("PATCH", "/v1/queues/{queue}"),
    ("PATCH", "/v1/schedules/{schedule}"),
}


def calls(client_class):
    """What each method of a client would send: its name, and the Call."""

    class Silent(client_class):
        def _run(self, call):
            return call

    client = Silent("http://127.0.0.1:9")
    for group in GROUPS:
        owner = getattr(client, group) if group else client
        for name, method in inspect.getmembers(owner, inspect.ismethod):
            if name.startswith("_") or (name in HELPERS and group not in ("queues", "projects")):
                continue
            parameters = [p for p in inspect.signature(method).parameters.values() if p.kind != p.VAR_KEYWORD]
            arguments = {p.name: SAMPLES.get(p.name, "x") for p in parameters}
            if (group, name) == ("schedules", "add"):
                arguments.update(schedule="x", trigger="@daily", queue="q")
            if (group, name) == ("schedules", "set"):
                arguments["schedule"] = {}
            yield f"{group}.{name}", method(**{name: value for name, value in arguments.items() if value is not None})
    yield "events", daemon.events(["job"], "q")


@unittest.skipUnless(DESCRIPTION.exists(), "there is no description")
class OpenApi(unittest.TestCase):
    def setUp(self):
        self.paths = json.loads(DESCRIPTION.read_text())["paths"]
        self.operations = {
            (method.upper(), path) for path, methods in self.paths.items() for method in methods if method != "parameters"
        }

    def operation_of(self, call):
        """What is written goes before what is in braces."""
        path = urlsplit(call.target).path
        if (call.method, path) in self.operations:
            return call.method, path
        return next(((m, p) for m, p in self.operations if m == call.method and fits(p, path)), None)

    def test_every_operation_has_a_method_and_every_method_is_an_operation(self):
        for client in (Client, AsyncClient):
            found = {name: self.operation_of(call) for name, call in calls(client)}
            self.assertEqual([name for name, operation in found.items() if operation is None], [])
            self.assertEqual(self.operations - set(found.values()), FOR_TOOLS, client)

    def test_methods_take_no_parameter_that_is_not_described(self):
        for name, call in calls(Client):
            method, path = self.operation_of(call)
            described = self.paths[path][method.lower()].get("parameters", []) + self.paths[path].get("parameters", [])
            given = set(parse_qs(urlsplit(call.target).query))
            self.assertLessEqual(given, {parameter.get("name") for parameter in described}, name)

    def test_only_what_does_nothing_twice_is_sent_again(self):
        unsafe = {self.operation_of(call) for _, call in calls(Client) if not call.safe}
        self.assertEqual(unsafe, NOT_SENT_AGAIN)
        self.assertEqual((jobs.put("q").safe, jobs.put("q", idempotency_key="").safe), (True, False))


def fits(template, path):
    return re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) is not None


if __name__ == "__main__":
    unittest.main()
