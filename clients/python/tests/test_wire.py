"""HTTP and server-sent events from bytes, however they are cut."""
import datetime
import decimal
import random
import re
import types
import unittest
from unittest import mock

from argiope import Worker
from argiope._calls import jobs, queues, schedules
from argiope._errors import ApiError, NotFound, TooMany, Unavailable, Unreachable
from argiope._events import EventReader
from argiope._wire import Backoff, Call, Endpoint, Response, ResponseReader, Tries

LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=1\r\nhel\r\n2\r\nlo\r\n0\r\nX-Trailer: 1\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n" + LENGTH
NOTHING = b"HTTP/1.1 204 No Content\r\n\r\n"


def read(pieces):
    reader = ResponseReader()
    for piece in pieces:
        reader.feed(piece)
    return reader


class DelaysAndTimesAsPeopleWriteThem(unittest.TestCase):
    def test_delays(self):
        for delay, ms in ((1, 1000), (0.25, 250), (datetime.timedelta(minutes=1), 60_000), (decimal.Decimal("1.5"), 1500)):
            self.assertEqual(jobs.new_job("q", delay=delay)["delay_ms"], ms)
            self.assertEqual(jobs.new_job("q", lease_time=delay)["lease_time_ms"], ms)

    def test_times(self):
        zone = datetime.timezone.utc
        for when, text in (
            (datetime.datetime(2030, 1, 2, tzinfo=zone), "2030-01-02T00:00:00+00:00"),
            (datetime.datetime(2030, 1, 2, tzinfo=zone).timestamp(), "2030-01-02T00:00:00+00:00"),
            (datetime.date(2030, 1, 2), datetime.datetime(2030, 1, 2).astimezone().isoformat()),
            ("2030-01-02T00:00:00Z", "2030-01-02T00:00:00Z"),
        ):
            self.assertEqual(jobs.new_job("q", due_at=when)["due_at"], text)

    def test_numbers_and_spans_of_other_packages(self):
        class Number:  # as a scalar of a package that Python's numbers know nothing of
            dtype = types.SimpleNamespace(kind="f")

            def __init__(self, value):
                self.value = value

            def __float__(self):
                return self.value

        class OfNumpy:
            def __init__(self, kind, item):
                self.dtype, self._item = types.SimpleNamespace(kind=kind), item

            def __float__(self):  # in a unit of its own
                return 5.0

            def astype(self, unit):
                assert unit == f"{self.dtype.kind}8[us]"
                return self

            def item(self):
                return self._item

        self.assertEqual(jobs.new_job("q", delay=Number(1.5), due_at=Number(0.0)), {"queue": "q", "delay_ms": 1500, "due_at": "1970-01-01T00:00:00+00:00"})
        self.assertEqual(jobs.new_job("q", delay=OfNumpy("m", datetime.timedelta(minutes=5)))["delay_ms"], 300_000)
        self.assertEqual(jobs.new_job("q", due_at=OfNumpy("M", datetime.date(2030, 1, 2)))["due_at"], datetime.datetime(2030, 1, 2).astimezone().isoformat())
        for wrong in (OfNumpy("m", None), OfNumpy("b", True), OfNumpy("M", datetime.datetime(2030, 1, 1)), Number(float("nan")), Number("text")):
            with self.assertRaisesRegex((TypeError, ValueError), re.escape(repr(wrong))):
                jobs.new_job("q", delay=wrong)
            with self.assertRaisesRegex((TypeError, ValueError), re.escape(repr(wrong))):
                jobs.new_job("q", due_at=wrong)

    def test_zones_as_there_are(self):
        class Zone(datetime.tzinfo):
            def __init__(self, offset):
                self.offset = offset

            def utcoffset(self, when):
                if self.offset is RuntimeError:
                    raise RuntimeError("no such place")
                return self.offset

            def __repr__(self):
                return "Zone"

        def at(offset, year=2030):
            return datetime.datetime(year, 1, 2, tzinfo=Zone(offset))

        span = datetime.timedelta
        self.assertEqual(jobs.new_job("q", due_at=at(span(hours=1)))["due_at"], "2030-01-02T00:00:00+01:00")
        # As of Berlin's own time of before 1893, which has seconds that RFC 3339 has not.
        local = at(span(minutes=53, seconds=28))
        local.tzinfo.dst = lambda when: span(0)
        self.assertEqual(jobs.new_job("q", due_at=local)["due_at"], "2030-01-01T23:06:32+00:00")
        for wrong in (at(None), at(RuntimeError), datetime.datetime.max.replace(tzinfo=Zone(span(seconds=-1)))):
            with self.assertRaisesRegex(ValueError, "is no time"):
                jobs.new_job("q", due_at=wrong)

    def test_what_is_none_is_named(self):
        for name, value in (("delay", "soon"), ("delay", float("inf")), ("delay", float("nan")), ("delay", True), ("delay", None),
                            ("lease_time", datetime.date(2030, 1, 1)), ("due_at", datetime.timedelta(1)), ("due_at", 1e300),
                            ("due_at", float("nan")), ("due_at", None), ("due_at", datetime.datetime(2030, 1, 1))):
            with self.assertRaises((TypeError, ValueError)) as raised:
                jobs.new_job("q", **{name: value})
            self.assertIn(repr(value), str(raised.exception))

    def test_options_of_other_queues_are_answered_with_ours(self):
        for theirs, ours in (("eta", "due_at"), ("countdown", "delay"), ("max_retries", "max_attempts"), ("expires", "misfire_grace"),
                             ("run_date", "due_at"), ("retry_policy", "the queue's retry policy")):
            with self.assertRaisesRegex(TypeError, f"no option '{theirs}'; use {ours}"):
                jobs.new_job("q", **{theirs: 1})

    def test_options_of_other_schedulers_are_answered_with_ours(self):
        for theirs, ours in (("eta", '"type": "at"'), ("countdown", '"type": "at"'), ("run_date", '"type": "at"'), ("expires", "misfire_grace"),
                             ("max_retries", "max_attempts"), ("misfire_grace_time", "misfire_grace"), ("retry_delay", "the queue's")):
            with self.assertRaisesRegex(TypeError, f"no option '{theirs}'; use .*{ours}"):
                schedules.add("nightly", "30 3 * * *", queue="mail", **{theirs: 1})

    def test_options_of_queues_of_others_are_answered_with_ours(self):
        for change in (queues.set, queues.change):
            for theirs, ours in (("max_retries", "max_attempts"), ("rate_limit", "rate"), ("result_expires", "keep_done"), ("time_limit", "lease_time")):
                with self.assertRaisesRegex(TypeError, f"a queue has no option '{theirs}'; use {ours}"):
                    change("mail", rate=1, **{theirs: 1})

    def test_options_of_other_decorators_are_answered_with_ours(self):
        for theirs, ours in (("bind", "the job"), ("max_retries", "the queue's retry policy"), ("time_limit", "lease_time")):
            with self.assertRaisesRegex(TypeError, f"@worker.job has no option '{theirs}'; use .*{ours}"):
                Worker("http://127.0.0.1:1").job("mail", **{theirs: 1})
        with self.assertRaisesRegex(TypeError, "@worker.job has no option 'color'$"):
            Worker("http://127.0.0.1:1").job("mail", color="red")


class AnswersAreReadHoweverTheyAreCut(unittest.TestCase):
    def test_into_two_pieces_at_every_byte(self):
        for text, body in ((LENGTH, b"hello"), (CHUNKS, b"hello"), (CONTINUE, b"hello"), (NOTHING, b"")):
            for at in range(1, len(text)):
                reader = read([text[:at], text[at:]])
                self.assertTrue(reader.done and reader.keep_alive, (text, at))
                self.assertEqual(reader.take(), body)

    def test_into_single_bytes(self):
        for text in (LENGTH, CHUNKS, CONTINUE):
            self.assertEqual(read([bytes([byte]) for byte in text]).take(), b"hello")

    def test_a_body_without_length_ends_with_the_connection(self):
        reader = read([b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo"])
        self.assertFalse(reader.done)
        reader.feed(b"")
        self.assertTrue(reader.done)
        self.assertFalse(reader.keep_alive)
        self.assertEqual(reader.take(), b"hello")

    def test_a_stream_gives_what_has_come(self):
        reader = read([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n"])
        self.assertEqual((reader.take(), reader.take(), reader.done), (b"hel", b"", False))

    def test_connection_close_is_heeded(self):
        self.assertFalse(read([b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"]).keep_alive)
        self.assertFalse(read([b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"]).keep_alive)

    def test_bytes_that_nobody_asked_for_end_the_connection(self):
        self.assertFalse(read([LENGTH + b"more"]).keep_alive)

    def test_what_is_cut_off_is_unreachable_and_may_have_been_done(self):
        for text in (b"", LENGTH[:10], LENGTH[:-1], CHUNKS[:-1], CHUNKS[:60]):
            with self.assertRaises(Unreachable) as raised:
                read([text] if text else []).feed(b"")
            self.assertTrue(raised.exception.sent)

    def test_what_is_no_http_is_refused(self):
        for text in (
            b"SSH-2.0\r\n\r\n",
            b"HTTP/1.1 abc\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            b"x" * 70_000,
        ):
            with self.assertRaises(Unreachable):
                read([text])

    def test_random_bytes_never_do_anything_else(self):
        dice = random.Random(7)
        for _ in range(2000):
            text = bytearray(dice.choice((LENGTH, CHUNKS, CONTINUE)))
            for _ in range(dice.randrange(4)):
                text[dice.randrange(len(text))] = dice.randrange(256)
            try:
                reader = read([bytes(text[:20]), bytes(text[20:])])
                reader.feed(b"")
                reader.response()
            except Unreachable:
                pass


class Requests(unittest.TestCase):
    def test_a_request_is_what_the_api_wants(self):
        call = jobs.put("mail", "hello", idempotency_key="k", priority=5, delay=1.5)
        text = Endpoint("http://h:1/base/", "secret").request(call)
        self.assertTrue(text.endswith(b'\r\n\r\n{"queue":"mail","payload":"hello","priority":5,"delay_ms":1500}'))
        self.assertIn(b"POST /base/v1/jobs HTTP/1.1\r\nHost: h:1\r\n", text)
        self.assertIn(b"\r\nAuthorization: Bearer secret\r\n", text)
        self.assertIn(b"\r\nIdempotency-Key: k\r\n", text)

    def test_names_are_escaped_in_paths(self):
        self.assertEqual(jobs.get("a/b c%").target, "/v1/jobs/a%2Fb%20c%25")

    def test_what_would_split_a_request_is_refused(self):
        with self.assertRaises(ValueError):
            Endpoint("http://h", "a\r\nX: 1")
        for url in ("h:7733", "ftp://h", "http://", "http://h/?x=1"):
            with self.assertRaises(ValueError, msg=url):
                Endpoint(url)

    def test_the_environment_says_where(self):
        with mock.patch.dict("os.environ", {"ARGIOPE_URL": "http://there:1", "ARGIOPE_TOKEN": "t"}):
            endpoint = Endpoint()
        self.assertEqual((endpoint.host, endpoint.port), ("there", 1))
        self.assertIn(b"Bearer t", endpoint.request(jobs.get(1)))

    def test_new_jobs(self):
        self.assertEqual(jobs.new_job("q", b"\xff"), {"queue": "q", "payload_base64": "/w=="})
        self.assertEqual(jobs.new_job("q", {"a": 1}), {"queue": "q", "payload": {"a": 1}})
        self.assertEqual(jobs.new_job("q"), {"queue": "q"})
        with self.assertRaises(TypeError):
            jobs.new_job("q", prioriy=1)
        with self.assertRaises(ValueError):
            jobs.new_job("q", due_at=datetime.datetime(2026, 1, 1))
        due = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
        self.assertEqual(jobs.new_job("q", due_at=due)["due_at"], "2026-01-01T00:00:00+00:00")

    def test_a_key_or_an_events_id_cannot_put_fields_into_a_request(self):
        with self.assertRaises(ValueError):
            Endpoint("http://h").request(jobs.put("q", idempotency_key="a\r\nX: 1"))
        with self.assertRaises(ValueError):
            Endpoint("http://h").request(jobs.get(1), last_event_id="7\n")
        with self.assertRaisesRegex(ValueError, "order-\u0436"):
            Endpoint("http://h").request(jobs.put("q", idempotency_key="order-\u0436"))
        with self.assertRaisesRegex(ValueError, "characters"):
            Endpoint("http://h", token="\u0436")


class Problems(unittest.TestCase):
    def of(self, status, body=b"", **headers):
        with self.assertRaises(ApiError) as raised:
            Call("GET", "/", lambda r: r).result(Response(status, headers, body))
        return raised.exception

    def test_a_problem_has_the_class_of_its_type(self):
        body = (
            b'{"type":"urn:argiope:problem:queue_full","status":429,"detail":"full","errors":[{"pointer":"/a","detail":"b"}]}'
        )
        error = self.of(429, body, **{"content-type": "application/problem+json", "retry-after": "3", "x-request-id": "r"})
        self.assertIsInstance(error, TooMany)
        self.assertEqual(
            (error.type, error.status, str(error), error.retry_after, error.request_id), ("queue_full", 429, "full", 3.0, "r")
        )
        self.assertEqual(error.errors[0]["pointer"], "/a")

    def test_an_answer_of_a_proxy_is_one_too(self):
        self.assertIsInstance(self.of(502, b"<html>", **{"content-type": "text/html"}), Unavailable)
        self.assertEqual(self.of(418, b"teapot").detail, "teapot")

    def test_the_status_is_that_of_http_whatever_a_proxys_json_calls_so(self):
        for status in (b'"error"', b"null", b"200", b"1e400", b"[1]", b"{}"):
            error = self.of(503, b'{"status":' + status + b',"message":"no upstream"}', **{"content-type": "application/json"})
            self.assertIsInstance(error, Unavailable)
            self.assertEqual(error.status, 503)


class WhatIsSentAgain(unittest.TestCase):
    def wait(self, call, error):
        return Tries(call, 1e9).wait_after(error, 0.0)

    def test_what_does_nothing_twice(self):
        lost, busy = Unreachable("lost", sent=True), ApiError.of({"type": "urn:argiope:problem:busy", "status": 503}, 7.0)
        for call in (jobs.get(1), jobs.erase(1), jobs.put("q"), jobs.cancel(1)):
            self.assertGreater(self.wait(call, lost), 0)
            self.assertGreater(self.wait(call, busy), 7)
        for call in (jobs.set_due(1, delay=1), jobs.put("q", idempotency_key="")):
            for error in (lost, busy):
                with self.assertRaises(type(error)):
                    self.wait(call, error)
            self.assertGreater(self.wait(call, Unreachable("refused", sent=False)), 0)

    def test_not_for_ever(self):
        with self.assertRaises(Unreachable):
            Tries(jobs.get(1), 5.0).wait_after(Unreachable("x", sent=False), 5.0)

    def test_an_erasure_that_was_done_before_is_no_error(self):
        tries = Tries(jobs.erase(1), 1e9)
        missing = NotFound("x")
        self.assertFalse(tries.was_done_before(missing))
        tries.wait_after(Unreachable("lost", sent=True), 0)
        self.assertTrue(tries.was_done_before(missing))

    def test_waits_grow_to_their_limit(self):
        backoff = Backoff(0.1, 5.0)
        waits = [backoff.wait() for _ in range(12)]
        self.assertLessEqual(waits[0], 0.1)
        self.assertTrue(all(1.25 <= wait <= 5.0 for wait in waits[6:]), waits)


class Events(unittest.TestCase):
    TEXT = (
        b': hello\nretry: 1500\n\nid: 7\nevent: job\ndata: {"id":1}\n\nid: 8\r\nevent: counters\r\n'
        b"data: {\r\ndata: }\r\n\r\n"
    )

    def test_are_read_however_they_are_cut(self):
        for at in range(len(self.TEXT) + 1):
            reader = EventReader()
            events = [*reader.feed(self.TEXT[:at]), *reader.feed(self.TEXT[at:])]
            self.assertEqual(events, [("job", {"id": 1}, "7"), ("counters", {}, "8")], at)
            self.assertEqual((reader.retry, reader.last_event_id), (1.5, "8"))

    def test_what_was_broken_off_is_forgotten(self):
        reader = EventReader("3")
        self.assertEqual(list(reader.feed(b"event: job\ndata: {}")), [])
        reader.broken_off()
        self.assertEqual(list(reader.feed(b"event: queue\ndata: 1\n\n")), [("queue", 1, "3")])


if __name__ == "__main__":
    unittest.main()
