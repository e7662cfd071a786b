"""Both clients against a daemon in memory, over sockets."""
import asyncio
import datetime
import inspect
import os
import re
import socket
import tempfile
import threading
import unittest
import uuid
from unittest import mock

import argiope
from argiope import AsyncClient, Client, Conflict, InvalidInput, NotFound, Refused, TooLarge, TooMany, Unreachable, WrongState, new_job
from argiope._wire import Backoff

from .fake_daemon import Answer, FakeDaemon, FakeServer

BUSY = Answer(503, {"type": "urn:argiope:problem:busy", "status": 503}, "application/problem+json")


class Blocking:
    """AsyncClient, as if it were the other: every test runs with both."""

    def __init__(self, *args, **kwargs):
        self._loop = asyncio.new_event_loop()
        self._client = AsyncClient(*args, **kwargs)

    def close(self):
        self._loop.run_until_complete(self._client.close())
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def __getattr__(self, name):
        return _Blocking(self._loop, getattr(self._client, name))


class _Blocking:
    def __init__(self, loop, it):
        self._loop, self._it = loop, it

    def __getattr__(self, name):
        return _Blocking(self._loop, getattr(self._it, name))

    def __call__(self, *args, **kwargs):
        result = self._it(*args, **kwargs)
        return self._iterate(result) if inspect.isasyncgen(result) else self._loop.run_until_complete(result)

    def _iterate(self, items):
        try:
            while True:
                try:
                    yield self._loop.run_until_complete(items.__anext__())
                except StopAsyncIteration:
                    return
        finally:
            self._loop.run_until_complete(items.aclose())


def client_url(listening):
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


class ServerTest(unittest.TestCase):
    make = Client

    def setUp(self):
        self.server = FakeServer()
        self.addCleanup(self.server.close)
        self.daemon = self.server.daemon
        self.client = self.connect()

    def connect(self, **options):
        client = self.make(options.pop("url", self.server.url), **options)
        self.addCleanup(client.close)
        return client

    def posts(self, path="/v1/jobs"):
        return [body for method, at, body in self.daemon.requests if (method, at) == ("POST", path)]


class Operations(ServerTest):
    def test_a_job_is_put_and_looked_at(self):
        reply = self.client.put("mail", "hello", key="ann", priority=3, id="first")
        self.assertEqual(reply, (1, "added", None))
        self.assertEqual(self.client.put("mail", "again", id="first").outcome, "kept")
        job = self.client.jobs.get("first")
        self.assertEqual((job["payload"], job["key"], job["priority"], job["name"]), ("hello", "ann", 3, "first"))
        self.assertEqual(self.client.jobs.explain(1)["reason"], "none")
        self.assertEqual(self.client.jobs.history(1), [])
        with self.assertRaises(NotFound):
            self.client.jobs.output(1)
        with self.assertRaises(NotFound):
            self.client.jobs.get("a name/with %XX")

    def test_many_are_put_and_each_is_answered(self):
        answer = self.client.put_many([new_job("a", 1), {"queue": "a", "nonsense": 1}], completion=new_job("b"))
        self.assertEqual([reply.outcome for reply in answer.replies], ["added", ""])
        self.assertIsInstance(answer.replies[1].error, InvalidInput)
        self.assertEqual(answer.completion.outcome, "added")

    def test_many_as_people_write_them(self):
        in_a_minute = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=1)
        jobs = ({"queue": "a", **job} for job in (
            {"payload": b"\xff"}, {"delay": datetime.timedelta(minutes=1)}, {"due_at": in_a_minute}, {"lease_time_ms": datetime.timedelta(1)}, {"key": "k"}))
        answer = self.client.put_many(jobs, completion={"queue": "b", "payload": b"\xfe", "delay": 0})
        self.assertEqual([reply.error for reply in answer.replies], [None] * 5)
        self.assertEqual([self.client.jobs.get(number)["state"] for number in (1, 2, 5)], ["ready", "delayed", "ready"])
        self.assertIn(in_a_minute.isoformat().encode(), self.posts()[0])
        self.assertEqual(self.client.jobs.get(1)["payload_base64"], "/w==")

    def test_one_of_many_that_makes_no_request_is_named_and_none_is_put(self):
        circle = []
        circle.append(circle)
        for bad in ({"queue": "a", "payload": float("nan")}, {"queue": "a", "payload": {1}}, {"queue": "a", "payload": circle}, "text", None,
                    {"queue": "a", "payload": "\ud800"}, {"queue": "a", "delay": "5m"}, {"queue": "a", "due_at": datetime.datetime(2030, 1, 1)}):
            with self.assertRaisesRegex((TypeError, ValueError), r"^jobs\[1\]: "):
                self.client.put_many([new_job("a"), bad, new_job("a")])
        self.assertEqual(self.daemon.jobs, {})

    def test_all_or_none(self):
        with self.assertRaises(InvalidInput) as raised:
            self.client.put_many([new_job("a"), {"queue": "a", "nonsense": 1}], atomic=True)
        self.assertEqual(raised.exception.errors[0]["pointer"], "/jobs/1/nonsense")
        self.assertEqual(self.daemon.jobs, {})

    def test_lines_are_put(self):
        answer = self.client.put_lines('{"queue":"a","payload":"x"}\n{"queue":"a"}\n')
        self.assertEqual([reply.id for reply in answer.replies], [1, 2])
        with tempfile.TemporaryFile("w+") as file:
            file.write('{"queue":"a"}\r\n{"queue":"a"}\n')
            file.seek(0)
            self.assertEqual([reply.id for reply in self.client.put_lines(file).replies], [3, 4])
        self.assertEqual([reply.id for reply in self.client.put_lines(line for line in (b'{"queue":"a"}', '{"queue":"a"}')).replies], [5, 6])
        self.assertIsNone(answer.completion)

    def test_a_list_is_read_page_by_page(self):
        self.client.put_many([new_job("a" if number % 2 else "b") for number in range(10)])
        self.assertEqual([job["id"] for job in self.client.jobs.list(queue="a", limit=2)], [2, 4, 6, 8, 10])
        page = self.client.jobs.page(limit=3)
        self.assertEqual((len(page.items), page.next), (3, "3"))
        self.assertEqual(self.client.jobs.page(after=page.next, limit=100).next, None)

    def test_a_list_has_whole_payloads_unless_told(self):
        self.client.put("a", "x" * 1000)
        lengths = [[len(job["payload"]) for job in self.client.jobs.list(**told)] for told in ({}, {"beginnings": True}, {"payloads": False})]
        self.assertEqual(lengths, [[1000], [200], [0]])
        pages = [self.client.jobs.page(**told).items[0]["payload"] for told in ({}, {"payloads": True})]
        self.assertEqual([len(payload) for payload in pages], [0, 1000])

    def test_a_list_is_of_a_word_and_in_either_order(self):
        self.client.put_many([new_job("argiope.push" if number == 3 else "a", {"to": name}) for number, name in enumerate(("ann", "bob", "Anna", "joanne"))])
        self.assertEqual([job["id"] for job in self.client.jobs.list(word="ANN", order="newest", limit=1)], [4, 3, 1])
        self.assertEqual([job["id"] for job in self.client.jobs.list(word="ann", own=False)], [1, 3])
        self.assertEqual([job["id"] for job in self.client.jobs.page(order="newest", limit=2).items], [4, 3])

    def test_jobs_are_changed(self):
        self.client.put_many([new_job("a")] * 5)
        self.assertEqual(self.client.jobs.set_priority(1, 9), (1, "changed", None))
        self.assertEqual(self.client.jobs.set_due(2, delay=60).outcome, "changed")
        self.assertEqual(self.client.jobs.get(2)["state"], "delayed")
        self.assertEqual(self.client.jobs.kick(2).outcome, "changed")
        self.assertEqual(self.client.jobs.cancel(3, "no more").outcome, "changed")
        self.assertIsNone(self.client.jobs.erase(4))
        with self.assertRaises(WrongState):
            self.client.jobs.kick(3)
        replies = self.client.jobs.change("cancel", [1, 3], why="all")
        self.assertEqual(replies[0], (1, "changed", None))
        self.assertIsInstance(replies[1].error, WrongState)

    def test_queues(self):
        queues = self.client.queues
        self.assertEqual(queues.set("mail", max_attempts=5)["config"]["max_attempts"], 5)
        self.assertEqual(queues.change("mail", lease_time_ms=7)["config"], {**queues.get("mail")["config"], "max_attempts": 5})
        self.assertTrue(queues.pause("mail")["config"]["paused"])
        self.assertFalse(queues.resume("mail")["config"]["paused"])
        self.assertEqual(queues.kick("mail"), 0)
        self.assertEqual(queues.stats("mail")["ready"], 0)
        self.assertEqual([queue["name"] for queue in queues.list()], ["mail"])
        self.assertIsNone(queues.delete("mail"))
        with self.assertRaises(NotFound):
            queues.get("mail")
        queues.set("small", capacity=1)
        self.client.put("small")
        with self.assertRaises(TooMany) as raised:
            self.client.put("small")
        self.assertEqual((raised.exception.type, raised.exception.retry_after), ("queue_full", 1.0))

    def test_leases(self):
        self.client.put_many([new_job("mail", str(number)) for number in range(3)])
        first = self.client.leases.take(["mail"], 2, worker="w")
        self.assertEqual([lease["job"]["payload"] for lease in first.leases], ["0", "1"])
        tokens = [lease["token"] for lease in first.leases]
        renewed = self.client.leases.renew([tokens[0], {"token": tokens[1], "progress": 0.5}, 99], worker="w")
        self.assertEqual([lease.get("lease_lost", False) for lease in renewed], [False, False, True])
        self.assertEqual(self.client.workers()[0]["leases"], 2)
        second = self.client.leases.take(["mail"], 5, settle=[{"token": tokens[0], "outcome": "done", "result": "r"}])
        self.assertEqual((len(second.leases), second.settled[0]["outcome"]), (1, "ok"))
        self.assertEqual(self.client.jobs.output(1), b"r")
        self.assertEqual(self.client.end_worker("w"), 1)
        settled = self.client.leases.settle([{"token": tokens[1], "outcome": "done"}])
        self.assertEqual(settled[0]["outcome"], "lease_lost")

    def test_schedules(self):
        schedules = self.client.schedules
        backup = {"name": "backup", "trigger": "30 2 * * *", "job": {"queue": "night"}}
        self.assertEqual(schedules.add(backup)["outcome"], "added")
        with self.assertRaises(Conflict):
            schedules.add(backup)
        self.assertEqual(schedules.set("rent", {"trigger": "@every 1h"})["outcome"], "added")
        for words in (("nightly",), ("nightly", "30 3 * * *"), ({"name": "nightly"}, "30 3 * * *")):
            with self.assertRaises(TypeError):
                schedules.add(*words)
        schedules.add("nightly", "30 3 * * *", queue="mail", payload={"a": 1}, function="send", misfire_grace=datetime.timedelta(minutes=5))
        added = schedules.get("nightly")["schedule"]
        self.assertEqual(added["job"], {"queue": "mail", "payload": {"a": 1}, "function": "send"})
        self.assertEqual((added["trigger"], added["misfire_grace"]), ("30 3 * * *", "300000ms"))
        for theirs, ours in (("misfire_grace_time", "misfire_grace"), ("replace_existing", "conflict"), ("timezone", "trigger"), ("hour", "trigger"),
                             ("name", "the name"), ("executor", "queue"), ("max_running_jobs", "max_instances"), ("conflict_policy", "conflict=")):
            for asked in (lambda: schedules.add("nightly", "30 3 * * *", queue="mail", **{theirs: 1}), lambda: schedules.change("backup", **{theirs: 1})):
                with self.assertRaisesRegex(TypeError, f"no option '{theirs}'; use .*{ours}"):
                    asked()
        for theirs in (True, False):
            with self.assertRaisesRegex(TypeError, f'coalesce is .*"{"latest" if theirs else "all"}" .*{theirs}'):
                schedules.add("nightly", "30 3 * * *", queue="mail", coalesce=theirs)
        for asked in (lambda: schedules.add(print, "cron", hour=3), lambda: self.client.put(print, "hello"), lambda: new_job(print)):
            with self.assertRaisesRegex(TypeError, "print> is a function: write the name of "):
                asked()
        schedules.delete("nightly")
        self.assertEqual([schedule["name"] for schedule in schedules.list()], ["backup", "rent"])
        self.assertTrue(schedules.pause("backup", by="ann")["paused"])
        self.assertFalse(schedules.resume("backup")["paused"])
        self.assertEqual(schedules.run("backup"), 1)
        self.assertEqual(schedules.change("backup", coalesce="all")["schedule"]["coalesce"], "all")
        self.assertEqual(len(schedules.next("backup", 3)), 3)
        self.assertEqual(len(schedules.next_times("@every 1h", 2)), 2)
        self.assertEqual(schedules.history("backup", limit=5), [])
        self.assertEqual(schedules.explain("backup")["reason"], "not_due")
        self.assertEqual(schedules.output("backup"), b"left")
        self.assertEqual(schedules.get("backup")["name"], "backup")
        self.assertIsNone(schedules.delete("backup"))

    def test_a_schedule_whose_trigger_names_no_zone_is_told_to_count_in_utc(self):
        cron = {"type": "cron", "expression": "30 3 * * *"}
        silent = ("@every 1h", "TZ=Asia/Tokyo 30 3 * * *", "CRON_TZ=UTC 30 3 * * *", {**cron, "zone": "UTC"}, {**cron, "expression": "TZ=UTC 30 3 * * *"},
                  {"type": "interval", "every": "1h"}, {"type": "or", "triggers": [{**cron, "zone": "UTC"}]}, {"type": "or", "zone": "UTC", "triggers": [cron]},
                  {"type": "cron", "dialect": "systemd", "expression": "daily Europe/Berlin"}, {"type": "date", "time": "2030-01-01T00:00:00Z"})
        told = ("30 3 * * *", "@daily", cron, {"type": "calendar", "days": 1, "hour": 9}, {"type": "and", "triggers": [cron, {**cron, "zone": "UTC"}]},
                {"type": "cron", "fields": {"hour": 3}})
        for trigger in silent + told:
            with mock.patch("argiope._calls._zones.log.warning") as warned:
                self.client.schedules.add("nightly", trigger, queue="q", conflict="replace")
                self.client.schedules.set("nightly", {"trigger": trigger, "job": {"queue": "q"}})
            self.assertEqual(warned.call_count, 2 if trigger in told else 0, trigger)
        with self.assertLogs("argiope", "WARNING") as logged:
            self.client.schedules.add({"name": "x", "trigger": "@daily", "job": {"queue": "q"}})
        self.assertRegex(logged.records[0].getMessage(), "^schedule 'x' counts in UTC, since its trigger names no zone; .*Europe/Berlin")

    def test_the_daemon(self):
        self.assertEqual(self.client.version()["api"], 1)
        self.assertEqual(self.client.health(), {"status": "ok"})
        self.assertEqual(self.client.ready(), {"status": "ok"})
        self.assertIn("argiope_jobs", self.client.metrics())
        self.assertEqual(self.client.counters()["queues"], {})
        self.assertEqual(self.client.config()["locked"], [])
        self.assertEqual(self.client.audit_page()["entries"], [])


class WhenThingsGoWrong(ServerTest):
    def test_a_put_whose_answer_is_lost_is_put_once(self):
        self.daemon.faults.extend(["drop", "refuse", BUSY])
        self.assertEqual(self.client.put("mail", "once").id, 1)
        self.assertEqual((len(self.daemon.jobs), len(self.posts())), (1, 2))

    def test_limits_that_no_socket_takes_are_waited_for(self):
        for timeout in (1e10, 1e300, float("inf"), datetime.timedelta.max):
            self.assertEqual(self.connect(timeout=timeout).put("mail", "x").outcome, "added")

    def test_a_put_of_the_same_key_is_put_once(self):
        for _ in range(2):
            self.assertEqual(self.client.put("mail", "once", idempotency_key="order 7").id, 1)
        with self.assertRaises(argiope.IdempotencyMismatch):
            self.client.put("mail", "other", idempotency_key="order 7")

    def test_a_key_may_be_a_uuid(self):
        key = uuid.uuid4()
        self.assertEqual([self.client.put("q", idempotency_key=each).id for each in (key, key, str(key))], [1, 1, 1])

    def test_a_refusal_that_comes_before_a_request_is_sent_whole_is_heard(self):
        listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listening.close)

        def refuse():
            connection, _ = listening.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")

        threading.Thread(target=refuse, daemon=True).start()
        with self.assertRaises(TooLarge):
            self.connect(url=client_url(listening), retry_for=0.0).put("q", "x" * 10_000_000)

    def test_an_erasure_whose_answer_is_lost_succeeds(self):
        self.client.put("mail")
        self.daemon.faults.append("drop")
        self.assertIsNone(self.client.jobs.erase(1))

    def test_what_may_be_done_twice_is_not_sent_again(self):
        self.client.put("mail")
        self.daemon.faults.append("drop")
        with self.assertRaises(Unreachable) as raised:
            self.client.jobs.set_due(1, delay=1)
        self.assertTrue(raised.exception.sent)

    def test_leases_whose_answer_is_lost_are_given_again(self):
        self.client.put("mail")
        self.daemon.faults.append("drop")
        leases = self.client.leases.take(["mail"]).leases
        self.assertEqual([lease["token"] for lease in leases], [1])
        self.assertEqual(self.client.leases.take(["mail"]).leases, [])

    def test_a_connection_that_the_daemon_closed_is_replaced(self):
        self.client.put("mail")
        self.server.close()
        self.server.open()
        self.assertEqual(len(self.client.leases.take(["mail"]).leases), 1)  # not safe to send twice

    def test_a_restart_is_waited_for(self):
        self.server.close()
        wait = Backoff.wait

        def open_and_wait(backoff, *arguments):  # it is back once it was missed
            if not self.server.thread.is_alive():
                self.server.open()
            return wait(backoff, *arguments)

        with mock.patch.object(Backoff, "wait", open_and_wait), self.assertLogs("argiope", "WARNING") as logged:
            self.assertEqual(self.client.put("mail").id, 1)
        told = [record.getMessage() for record in logged.records]
        self.assertEqual(len(told), 2)
        where = re.escape(self.server.url)
        self.assertRegex(told[0], rf"^the daemon at {where} does not answer: .*Connect.*`argiope serve`.*`url`.* Trying again for 30 s, until \d\d:\d\d:\d\d$")
        self.assertEqual(told[1], f"the daemon at {self.server.url} answers again")

    def test_it_is_told_once_for_all_attempts(self):
        self.daemon.faults.extend([BUSY] * 3)
        with mock.patch.object(Backoff, "wait", lambda *_: 0.0), self.assertLogs("argiope", "WARNING") as logged:
            self.client.put("mail")
        self.assertEqual(len(logged.records), 2)

    def test_what_is_not_sent_again_is_not_told(self):
        self.daemon.faults.append("drop")
        with mock.patch("argiope._wire.log.warning") as warned, self.assertRaises(Unreachable):
            self.connect(retry_for=0.0).version()
        warned.assert_not_called()

    def test_a_retry_after_is_heeded_up_to_a_minute(self):
        waits = [Backoff().wait(told) for told in (None, 0.0, 7.0, 60.0, 61.0, 1e9, float("inf"))]
        self.assertEqual([int(wait) for wait in waits], [0, 0, 7, 60, 60, 60, 60])
        self.daemon.faults.append(Answer(503, {"type": "urn:argiope:problem:busy", "status": 503}, "application/problem+json", {"Retry-After": "86400"}))
        with self.assertRaises(argiope.Unavailable) as raised:
            self.client.put("mail")
        self.assertEqual(raised.exception.retry_after, 86400.0)

    def test_calls_are_sent_again_no_longer_than_an_answer_is_waited_for_unless_told(self):
        for options, limit in (({}, 30.0), ({"timeout": 2}, 2.0), ({"timeout": 300}, 30.0), ({"timeout": 2, "retry_for": 9}, 9.0)):
            client = self.connect(**options)
            self.assertEqual(getattr(client, "_client", client)._retry_for, limit)

    def test_not_for_longer_than_it_was_told(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            client = self.connect(url=f"http://127.0.0.1:{probe.getsockname()[1]}", retry_for=0.0)
            with self.assertRaises(Unreachable) as raised:
                client.put("mail")
            self.assertFalse(raised.exception.sent)
            for words in (client_url(probe), "`argiope serve`", "`url`", "ARGIOPE_URL"):
                self.assertIn(words, str(raised.exception))

    def test_a_daemon_that_says_nothing_is_left(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            client = self.connect(url=f"http://127.0.0.1:{silent.getsockname()[1]}", retry_for=0.0, timeout=0.05)
            with self.assertRaises(Unreachable):
                client.version()

    def test_a_socket_of_this_machine(self):
        with tempfile.TemporaryDirectory() as folder:
            server = FakeServer(host=f"unix:{folder}/argiope.sock")
            client = self.connect(url=server.host, retry_for=0.0)
            self.assertEqual([client.put("mail").id for _ in range(2)], [1, 2])
            server.close()
            with self.assertRaises(Unreachable):
                client.put("mail")

    def test_a_token_is_shown(self):
        self.daemon.token = "secret"
        with self.assertRaises(Refused):
            self.client.put("mail")
        self.assertEqual(self.connect(token="secret").put("mail").id, 1)


class Events(ServerTest):
    def tell(self, *events):
        self.server.call(lambda: [self.daemon.tell(*event) for event in events])

    def test_a_stream_goes_on_where_it_broke(self):
        events = self.client.events(["job"], last_event_id="0")
        self.tell(("job", {"n": 1}), ("queue", {"n": 2}), ("job", {"n": 3}), ("break", {}))
        self.assertEqual([next(events) for _ in range(2)], [("job", {"n": 1}, "1"), ("job", {"n": 3}, "3")])
        self.tell(("job", {"n": 5}))
        self.assertEqual(next(events), ("job", {"n": 5}, "5"))
        self.server.close()
        self.server.open()
        self.tell(("job", {"n": 6}))
        self.assertEqual(next(events), ("job", {"n": 6}, "6"))
        events.close()

    def test_what_was_missed_is_told(self):
        self.tell(*[("job", {"n": number}) for number in range(9)])
        self.daemon.first_event = 5
        events = self.client.events(last_event_id="1")
        self.assertEqual(next(events).kind, "reset")
        self.assertEqual(next(events).id, "5")
        events.close()

    def test_a_refusal_ends_it(self):
        self.daemon.token = "secret"
        with self.assertRaises(Refused):
            next(self.client.events())


class AsyncOperations(Operations):
    make = Blocking


class AsyncWhenThingsGoWrong(WhenThingsGoWrong):
    make = Blocking

    def test_a_cancelled_call_closes_its_connection(self):
        async def run():
            async with AsyncClient(self.server.url) as client:
                waiting = asyncio.ensure_future(client.leases.take(["mail"], wait=30))
                while not self.daemon.workers:
                    await asyncio.sleep(0.001)
                waiting.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await waiting
                await client.put("mail")
                return await client.leases.take(["mail"])

        self.assertEqual(len(asyncio.run(run()).leases), 1)


class AsyncEvents(Events):
    make = Blocking
    tell = Events.tell

    # The iteration of one stream ends with the loop that reads it.
    def tearDown(self):
        self.client._loop.run_until_complete(asyncio.sleep(0))


class BothClients(unittest.TestCase):
    def test_have_the_same_operations_with_the_same_words(self):
        one, other = Client("http://x"), AsyncClient("http://x")
        for path in ("", "jobs", "queues", "leases", "schedules", "projects"):
            sync, other_sync = (getattr(client, path) if path else client for client in (one, other))
            names = {name for name in dir(sync) if name[0] != "_"}
            self.assertEqual(names, {name for name in dir(other_sync) if name[0] != "_"})
            for name in names - {"close", "events", "jobs", "queues", "leases", "schedules", "projects"}:
                a, b = getattr(sync, name), getattr(other_sync, name)
                self.assertEqual(a.__doc__, b.__doc__, name)
                self.assertEqual(list(inspect.signature(a).parameters), list(inspect.signature(b).parameters), name)

    def test_survive_forks(self):
        """Children that ask at once, while the parent goes on, have their own answers; also a stream that is read on."""
        server = FakeServer(FakeDaemon())
        self.addCleanup(server.close)
        blocking, awaited = Client(server.url), AsyncClient(server.url)
        events = blocking.events(["schedule"], last_event_id="0")
        server.call(lambda: server.daemon.tell("schedule", {"n": 1}))
        self.assertEqual(next(events).data, {"n": 1})
        blocking.put("q", id="parent")
        asyncio.run(awaited.put("q", id="awaited"))
        server.call(lambda: server.daemon.tell("schedule", {"n": 2}))

        def ask(number):
            names = [f"{number}-{at}" for at in range(5)]
            right = all(blocking.put("q", id=name).outcome == "added" for name in names)
            right = right and asyncio.run(awaited.jobs.get("parent"))["name"] == "parent"
            return right and all(blocking.jobs.get(name)["name"] == name for name in names) and next(events).data == {"n": 2}

        children = []
        for number in range(4):
            child = os.fork()
            if child == 0:
                try:
                    os._exit(0 if ask(number) else 1)
                finally:
                    os._exit(2)
            children.append(child)
        self.assertEqual([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children], [0] * 4)
        self.assertEqual((blocking.jobs.get("parent")["name"], next(events).data), ("parent", {"n": 2}))
        self.assertEqual(asyncio.run(awaited.jobs.get("awaited"))["name"], "awaited")
        events.close()
        blocking.close()

    def test_spans_may_be_timedeltas(self):
        server = FakeServer(FakeDaemon())
        self.addCleanup(server.close)
        second = datetime.timedelta(seconds=1)
        with Client(server.url, timeout=30 * second, retry_for=second) as client:
            self.assertEqual(client.leases.take("q", wait=second / 100).leases, [])
            client.put("q", delay=60 * second)
            self.assertEqual(client.jobs.set_due(1, delay=0 * second).outcome, "changed")
        for make in (Client, AsyncClient):
            for wrong in ("soon", None, True):
                for name in ("timeout", "retry_for")[: 1 + (wrong is not None)]:
                    with self.assertRaisesRegex(TypeError, f"^{name}: {wrong!r} is no delay"):
                        make(server.url, **{name: wrong})
            for wrong in (0, -1, -second):
                with self.assertRaisesRegex(ValueError, "^timeout: .* leaves no time"):
                    make(server.url, timeout=wrong)

    def test_a_client_is_shared_by_threads(self):
        server = FakeServer(FakeDaemon())
        self.addCleanup(server.close)
        with Client(server.url) as client:
            threads = [threading.Thread(target=lambda: [client.put("a") for _ in range(50)]) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(sorted(server.daemon.jobs), list(range(1, 401)))


if __name__ == "__main__":
    unittest.main()
