"""What a worker does, in virtual time, against a daemon in memory."""
import asyncio
import copy
import functools
import json
import logging
import pickle
import queue
import re
import sys
import threading
import types
import unittest
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from unittest import mock

from argiope import ApiError, Bury, Refused, Retry, Snooze, Unreachable, Worker, new_job
from argiope._aio import within
from argiope._job import Job, failed
from argiope._running import run_plain
from argiope._threads import Threads

from .fake_daemon import Answer, FakeServer
from .virtual_time import VirtualTimeTest

BUSY = Answer(503, {"type": "urn:argiope:problem:busy", "status": 503}, "application/problem+json", {"Retry-After": "1"})


class WorkerTest(VirtualTimeTest):
    def worker(self, **options):
        return Worker(client=self.client, **{"queues": ["q"], "until_empty": True, **options})

    async def put(self, *payloads, **options):
        await self.client.put_many([new_job("q", payload, **options) for payload in payloads or ("",)])

    def state(self, number=1):
        return self.daemon.jobs[number]["state"]

    def requests(self, method, path):
        return [json.loads(body) for m, at, body in self.daemon.requests if (m, at) == (method, path)]


class Ends(WorkerTest):
    async def run_one(self, run, **options):
        await self.put("payload", **options)
        worker = self.worker(linger=0)
        worker.job("q")(run)
        await worker.run_async()
        return self.daemon.jobs[1], worker.counts

    async def test_what_it_returns_is_the_result(self):
        for value, result in ((None, ""), ("text", "text"), ({"a": [1]}, '{"a":[1]}'), (0, "0")):
            self.daemon.jobs.clear()
            self.daemon.last_id = 0

            async def function(job, value=value):
                return value

            job, _ = await self.run_one(function)
            self.assertEqual((job["state"], job["result"]), ("done", result))

    async def test_bytes_are_kept_exactly(self):
        async def function(job):
            return b"\xff\x00"

        await self.run_one(function)
        self.assertEqual(await self.client.jobs.output(1), b"\xff\x00")

    async def test_an_exception_is_a_failed_attempt_that_says_where(self):
        async def function(job):
            raise ValueError("no such address")

        job, counts = await self.run_one(function, max_attempts=1)
        self.assertEqual((job["state"], counts.failed), ("buried", 1))
        self.assertRegex(job["error"], r"^ValueError: no such address \(test_worker.py:\d+\)$")

    async def test_retry_says_when(self):
        async def function(job):
            if job.attempt == 1:
                raise Retry(30, "later", priority=7)

        worker_started = asyncio.get_running_loop().time()
        job, _ = await self.run_one(function)
        self.assertEqual((job["error"], job["priority"], self.daemon.log[0][0]), ("later", 7, "retry"))
        self.assertGreaterEqual(job["_due"], worker_started + 30)

    async def test_bury_and_snooze(self):
        async def bury(job):
            raise Bury("hopeless")

        async def snooze(job):
            raise Snooze(60)

        job, _ = await self.run_one(bury)
        self.assertEqual((job["state"], job["error"]), ("buried", "hopeless"))
        self.daemon.jobs.clear()
        self.daemon.last_id = 0
        job, counts = await self.run_one(snooze)
        self.assertEqual((self.daemon.log[-1][0], job["attempts"], counts.released), ("release", 0, 1))

    async def test_a_result_that_is_no_json_fails_the_run_alone(self):
        async def function(job):
            return {"x": object()} if job.payload == "bad" else "\ud800" if job.payload == "surrogate" else "fine"

        await self.put("bad", "fine", "surrogate")
        worker = self.worker(linger=0)
        worker.job("q")(function)
        await worker.run_async()
        self.assertEqual([job["state"] for job in self.daemon.jobs.values()], ["delayed", "done", "delayed"])
        self.assertIn("object", self.daemon.jobs[1]["error"])

    async def test_a_job_that_no_function_fits_is_a_failed_attempt(self):
        job, _ = await self.run_one(None, function="unknown")
        self.assertIn("has no function", job["error"])

    async def test_the_default_gets_what_no_function_fits(self):
        await self.put("a", function="unknown")
        worker, got = self.worker(), []

        @worker.default
        async def any_job(job):
            got.append((job.function, job.queue, job.payload, job.attempt, job.id, job.token))

        await worker.run_async()
        self.assertEqual(got, [("unknown", "q", "a", 1, 1, 1)])

    async def test_follow_ups_are_put_with_the_end(self):
        async def function(job):
            job.follow_up("next", {"from": job.id}, delay=5, key="k")

        await self.run_one(function)
        follow_up = self.daemon.jobs[2]
        self.assertEqual((follow_up["queue"], follow_up["payload"], follow_up["key"]), ("next", '{"from":1}', "k"))

    async def test_no_follow_up_of_a_run_that_failed(self):
        async def function(job):
            job.follow_up("next")
            raise ValueError

        await self.run_one(function, max_attempts=1)
        self.assertEqual(list(self.daemon.jobs), [1])

    async def test_an_end_that_is_refused_fails_its_run_and_no_other(self):
        async def function(job):
            if job.payload == "3":
                job.follow_up("next", priority="high")

        await self.put(*map(str, range(8)), max_attempts=1)
        worker = self.worker()
        worker.job("q")(function)
        await worker.run_async()
        self.assertEqual([job["state"] for job in self.daemon.jobs.values()], ["done"] * 3 + ["buried"] + ["done"] * 4)
        self.assertIn("its end was refused", self.daemon.jobs[4]["error"])

    async def test_an_end_that_is_refused_by_itself_fails_its_run(self):
        await self.put(*range(4), max_attempts=1)
        self.daemon.refuses_parts = True

        async def function(job):
            if job.payload == "2":
                job.follow_up("next", priority="high")

        worker = self.worker()
        worker.job("q")(function)
        with self.assertLogs("argiope", "WARNING"):
            await worker.run_async()
        self.assertEqual([job["state"] for job in self.daemon.jobs.values()], ["done", "done", "buried", "done"])
        self.assertEqual((worker.counts.done, worker.counts.failed, worker.counts.lost), (3, 1, 0))

    async def test_progress_that_is_none_fails_the_run_alone(self):
        await self.put(max_attempts=1)

        async def function(job):
            job.progress(1.5)

        worker = self.worker()
        worker.job("q")(function)
        await worker.run_async()
        self.assertIn("from 0 to 1", self.daemon.jobs[1]["error"])

    async def test_payloads_of_any_bytes(self):
        got = []

        async def function(job):
            got.append((job.payload_bytes, job.payload))

        await self.put(b"\xff", "\u00e4")
        worker = self.worker()
        worker.job("q")(function)
        await worker.run_async()
        self.assertEqual(sorted(got), [(b"\xc3\xa4", "\u00e4"), (b"\xff", "\ufffd")])


class Leases(WorkerTest):
    async def test_a_lease_is_renewed_three_times_in_its_length(self):
        await self.put("", lease_time=60)

        async def function(job):
            await asyncio.sleep(119)

        worker = self.worker()
        worker.job("q")(function)
        await worker.run_async()
        self.assertEqual(self.state(), "done")
        self.assertEqual(len(self.requests("PATCH", "/v1/leases")), 5)

    async def test_short_leases_are_renewed_in_time(self):
        await self.put("a", lease_time=60)
        await self.put("b", lease_time=0.3)

        async def function(job):
            await asyncio.sleep(3)

        worker = self.worker()
        worker.job("q")(function)
        await worker.run_async()
        self.assertEqual((self.state(1), self.state(2), worker.counts.lost), ("done", "done", 0))

    async def test_a_job_that_is_cancelled_is_told_so(self):
        await self.put()
        seen = []

        async def function(job):
            try:
                await asyncio.sleep(1000)
            finally:
                seen.append(job.cancelled)

        worker = self.worker()
        worker.job("q")(function)
        working = asyncio.ensure_future(worker.run_async())
        await asyncio.sleep(1)
        self.assertEqual((await self.client.jobs.cancel(1)).outcome, "asked")
        await working
        self.assertEqual((seen, self.state(), worker.counts.cancelled), ([True], "cancelled", 1))

    async def test_a_job_whose_lease_is_lost_is_stopped_and_not_settled(self):
        await self.put()

        async def function(job):
            await asyncio.sleep(1000)

        worker = self.worker()
        worker.job("q")(function)
        working = asyncio.ensure_future(worker.run_async())
        await asyncio.sleep(1)
        self.daemon.running.clear()
        self.daemon.jobs.clear()
        await working
        self.assertEqual((worker.counts.lost, self.daemon.log), (1, []))

    async def test_progress_is_told_at_most_once_a_second(self):
        await self.put()

        async def function(job):
            for step in range(40):
                job.progress(step / 40, f"step {step}")
                await asyncio.sleep(0.1)

        worker = self.worker()
        worker.job("q")(function)
        await worker.run_async()
        told = self.requests("PATCH", "/v1/leases")
        self.assertIn(len(told), (3, 4))
        self.assertIn("step", told[-1]["leases"][0]["message"])


    async def test_progress_that_is_refused_harms_no_other_lease(self):
        await self.put("a", "b", "c", lease_time=9)
        running = []

        async def function(job):
            running.append(job.id)
            await asyncio.sleep(1)
            if job.id == 2:
                job.progress(0.5, "bad")
                self.daemon.faults.append(("/v1/leases", Answer(400, {"type": "urn:argiope:problem:invalid_input", "status": 400, "detail": "bad"})))
            await asyncio.sleep(30)

        worker = self.worker()
        worker.job("q")(function)
        with self.assertLogs("argiope", "WARNING") as told:
            await worker.run_async()
        self.assertEqual((running, worker.counts.done, worker.counts.lost), ([1, 2, 3], 3, 0))
        self.assertIn("progress is refused: bad", told.output[0])
        self.assertEqual(set(self.requests("PATCH", "/v1/leases")[0]["leases"][0]), {"token"})


class Speed(WorkerTest):
    async def test_no_more_run_at_once_than_it_is_told(self):
        await self.put(*range(100))
        running, most = [], []

        async def function(job):
            running.append(job)
            most.append(len(running))
            await asyncio.sleep(0.01)
            running.remove(job)

        worker = self.worker(concurrency=7)
        worker.job("q")(function)
        await worker.run_async()
        self.assertEqual((max(most), worker.counts.done), (7, 100))

    async def test_quick_jobs_are_leased_and_settled_in_batches(self):
        await self.put(*range(9000))

        async def function(job):
            pass

        worker = self.worker()
        worker.job("q")(function)
        await worker.run_async()
        self.assertEqual(worker.counts.done, 9000)
        leases, settles = len(self.requests("POST", "/v1/leases")), len(self.requests("POST", "/v1/leases/settle"))
        self.assertLess(leases, 100)
        self.assertLess(settles, 100)

    async def test_long_jobs_are_not_taken_from_other_workers(self):
        await self.put(*range(100))
        most = []

        async def function(job):
            most.append(len(self.daemon.running))
            await asyncio.sleep(10)

        worker = self.worker(concurrency=5)
        worker.job("q")(function)
        await worker.run_async()
        self.assertLessEqual(max(most), 6)

    async def test_what_waits_for_a_second_is_given_back(self):
        await self.put(*range(20))

        async def function(job):
            await asyncio.sleep(100)

        worker = self.worker(concurrency=2, prefetch=10, until_empty=False)
        worker.job("q")(function)
        working = asyncio.ensure_future(worker.run_async())
        await asyncio.sleep(0.5)
        self.assertEqual(len(self.daemon.running), 12)
        await asyncio.sleep(3)
        self.assertEqual(len(self.daemon.running), 2)
        worker.stop(at_once=True)
        await working

    async def test_an_end_is_told_at_once_while_it_waits_for_jobs(self):
        await self.put()

        async def function(job):
            await asyncio.sleep(5)

        worker = self.worker(until_empty=False)
        worker.job("q")(function)
        working = asyncio.ensure_future(worker.run_async())
        await asyncio.sleep(5.02)
        self.assertEqual(self.state(), "done")
        worker.stop()
        await working


class UntilEmpty(WorkerTest):
    """It ends when `argiope job work --until-empty` does."""

    async def work(self, run=lambda job: None, **options):
        """How long it took, in seconds."""

        async def function(job):
            return run(job)

        worker, began = self.worker(**options), asyncio.get_running_loop().time()
        worker.job("q")(function)
        await worker.run_async()
        return asyncio.get_running_loop().time() - began

    def fail_once(self, delay):
        def run(job):
            if job.attempt == 1:
                raise Retry(delay)

        return run

    async def test_it_ends_at_once_where_nothing_is_left(self):
        await self.put("a", "b")
        self.assertLess(await self.work(), 0.1)
        self.assertLess(await self.work(queues=["of", "no", "jobs"]), 0.1)

    async def test_retries_that_are_due_before_long_are_waited_for(self):
        await self.put("a", "b")
        self.assertAlmostEqual(await self.work(self.fail_once(40)), 40, delta=1)
        self.assertEqual([job["state"] for job in self.daemon.jobs.values()], ["done", "done"])

    async def test_retries_that_are_due_later_are_not_but_told(self):
        await self.put()
        with self.assertLogs("argiope", "INFO") as told:
            self.assertLess(await self.work(self.fail_once(61)), 0.2)
        self.assertIn("1 jobs are due later, the first at 1970-01-01T00:17:41Z", told.output[-1])
        self.assertAlmostEqual(await self.work(linger=timedelta(minutes=2)), 61, delta=1)

    async def test_jobs_that_were_put_with_a_later_time_are_not(self):
        await self.put(delay=30)
        self.assertLess(await self.work(), 0.2)
        self.assertEqual(self.state(), "delayed")

    async def test_what_a_rate_holds_back_is_waited_for(self):
        await self.put(*range(20))
        lease, leased_at = self.daemon.lease, []

        def lease_one_a_second(queues, most, worker):
            now = asyncio.get_running_loop().time()
            if leased_at and now < leased_at[-1] + 1:
                return []
            leases = lease(queues, 1, worker)
            leased_at.extend([now] * len(leases))
            return leases

        self.daemon.lease = lease_one_a_second
        self.assertLess(await self.work(), 40)
        self.assertEqual({job["state"] for job in self.daemon.jobs.values()}, {"done"})
        self.assertLess(len(self.requests("POST", "/v1/leases")), 120)

    async def test_nor_do_others_wait_for_one_that_runs_long(self):
        await self.put("long", "short")

        async def function(job):
            if job.payload == "long":
                return await asyncio.sleep(1000)
            if job.attempt == 1:
                raise Retry(5)

        worker = self.worker()
        worker.job("q")(function)
        working = asyncio.ensure_future(worker.run_async())
        await asyncio.sleep(10)
        self.assertEqual(self.state(2), "done")
        await working

    async def test_what_runs_elsewhere_is_waited_for(self):
        await self.put()
        taken = (await self.client.leases.take("q", worker="other")).leases
        working = asyncio.ensure_future(self.work())
        await asyncio.sleep(20)
        await self.client.leases.settle([{"token": taken[0]["token"], "outcome": "retry"}])
        await working
        self.assertEqual(self.state(), "done")

    async def test_queues_that_give_nothing_have_nothing(self):
        await self.put("a")
        await self.client.queues.set("q", paused=True)
        self.assertLess(await self.work(), 0.2)
        await self.client.queues.set("q", rate=0)
        self.daemon.lease = lambda *_: []
        self.assertLess(await self.work(), 0.2)

    async def test_a_daemon_that_is_away_when_it_looks_is_waited_for(self):
        await self.put("a")
        self.daemon.faults.extend([("/v1/queues/q", "drop"), ("/v1/queues/q", Answer(200, b"{}"))])
        with self.assertLogs("argiope", "WARNING"):
            await self.work(self.fail_once(2))
        self.assertEqual(self.state(), "done")

    async def test_it_stops_while_it_looks(self):
        worker = self.worker()
        worker.job("q")(lambda job: None)
        self.client.delay = 10
        working = asyncio.ensure_future(worker.run_async())
        await asyncio.sleep(25)  # the leases are there, and the look is under way
        worker.stop()
        began = asyncio.get_running_loop().time()
        await working
        self.assertLess(asyncio.get_running_loop().time() - began, 1)


class Stopping(WorkerTest):
    async def begin(self, seconds, jobs=3, until_empty_too=False, **options):
        await self.put(*range(jobs))

        async def function(job):
            await asyncio.sleep(seconds)

        worker = self.worker(until_empty=until_empty_too, **options)
        worker.job("q")(function)
        working = asyncio.ensure_future(worker.run_async())
        await asyncio.sleep(0.1)
        return worker, working

    async def seconds(self, awaitable):
        began = asyncio.get_running_loop().time()
        await awaitable
        return asyncio.get_running_loop().time() - began

    async def test_what_runs_ends_and_the_rest_is_given_back(self):
        worker, working = await self.begin(5, jobs=5, concurrency=2, prefetch=3)
        worker.stop()
        self.assertAlmostEqual(await self.seconds(working), 4.9, 1)
        self.assertEqual([job["state"] for job in self.daemon.jobs.values()], ["done"] * 2 + ["ready"] * 3)
        self.assertEqual([job["attempts"] for job in self.daemon.jobs.values()], [1, 1, 0, 0, 0])

    async def test_what_does_not_end_in_time_is_cancelled_and_given_back(self):
        worker, working = await self.begin(1000, drain_limit=10)
        worker.stop()
        self.assertAlmostEqual(await self.seconds(working), 10, 0)
        self.assertEqual({job["state"] for job in self.daemon.jobs.values()}, {"ready"})
        self.assertEqual(worker.counts.released, 3)

    async def test_at_once(self):
        worker, working = await self.begin(1000)
        worker.stop()
        await asyncio.sleep(1)
        worker.stop(at_once=True)
        self.assertLess(await self.seconds(working), 0.1)
        self.assertEqual({job["state"] for job in self.daemon.jobs.values()}, {"ready"})

    async def test_a_cancelled_run_gives_back_what_it_holds(self):
        worker, working = await self.begin(1000)
        working.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await working
        self.assertEqual({job["state"] for job in self.daemon.jobs.values()}, {"ready"})

    async def test_an_idle_worker_ends_at_once_and_leaves_no_lease_behind(self):
        worker, working = await self.begin(0, jobs=0)
        worker.stop()
        self.assertLess(await self.seconds(working), 0.1)
        self.assertIn(
            ("DELETE", f"/v1/workers/{worker.name.replace(':', '%3A')}"),
            [(method, path) for method, path, _ in self.daemon.requests],
        )

    async def test_also_while_it_works_until_empty(self):
        worker, working = await self.begin(1000, until_empty_too=True, drain_limit=10)
        worker.stop()
        self.assertAlmostEqual(await self.seconds(working), 10, 0)

    async def test_before_it_runs(self):
        worker = self.worker(until_empty=False)
        worker.job("q")(None)
        worker.stop()
        await worker.run_async()

    async def test_it_may_run_again(self):
        worker, working = await self.begin(1)
        worker.stop(at_once=True)
        await working
        working = asyncio.ensure_future(worker.run_async())
        await asyncio.sleep(2)
        worker.stop()
        await working
        self.assertEqual(worker.counts.done, 3)

    async def test_a_daemon_that_is_gone_does_not_hold_it_up(self):
        worker, working = await self.begin(1)
        self.client.go_down()
        worker.stop()
        with self.assertLogs("argiope", "WARNING"):
            self.assertLess(await self.seconds(working), 30)


class WhenTheDaemonIsAway(WorkerTest):
    async def test_runs_go_on_and_their_ends_are_sent_when_it_is_back(self):
        await self.put(*range(3))

        async def function(job):
            await asyncio.sleep(5)

        worker = self.worker(until_empty=False)
        worker.job("q")(function)
        with self.assertLogs("argiope", "WARNING") as logged:
            working = asyncio.ensure_future(worker.run_async())
            await asyncio.sleep(1)
            self.client.go_down()
            await asyncio.sleep(39)
            self.assertEqual({job["state"] for job in self.daemon.jobs.values()}, {"running"})
            self.client.is_down = False
            await asyncio.sleep(10)
        self.assertEqual({job["state"] for job in self.daemon.jobs.values()}, {"done"})
        self.assertEqual(len(logged.output), 2)
        worker.stop()
        await working

    async def test_an_end_whose_answer_is_lost_is_sent_again_and_counts_once(self):
        await self.put(*range(40))
        self.daemon.faults.extend([("/v1/leases/settle", "drop")] * 3)

        async def function(job):
            await asyncio.sleep(0.001 * job.id)

        worker = self.worker()
        worker.job("q")(function)
        with self.assertLogs("argiope", "WARNING"):
            await worker.run_async()
        self.assertEqual(len(self.daemon.log), 40)
        self.assertEqual({job["state"] for job in self.daemon.jobs.values()}, {"done"})

    async def test_leases_whose_answer_is_lost_are_not_waited_for(self):
        await self.put(*range(4))
        self.daemon.faults.append(("/v1/leases", "drop"))

        async def function(job):
            pass

        worker = self.worker()
        worker.job("q")(function)
        began = asyncio.get_running_loop().time()
        with self.assertLogs("argiope", "WARNING"):
            await worker.run_async()
        self.assertEqual({job["state"] for job in self.daemon.jobs.values()}, {"done"})
        self.assertEqual({job["attempts"] for job in self.daemon.jobs.values()}, {1})
        self.assertLess(asyncio.get_running_loop().time() - began, 30)

    async def test_a_busy_daemon_is_asked_again_when_it_says(self):
        await self.put()
        self.daemon.faults.extend([BUSY] * 3)

        async def function(job):
            pass

        worker = self.worker()
        worker.job("q")(function)
        began = asyncio.get_running_loop().time()
        with self.assertLogs("argiope", "WARNING"):
            await worker.run_async()
        self.assertGreater(asyncio.get_running_loop().time() - began, 3)
        self.assertEqual(self.state(), "done")

    async def test_a_refusal_ends_the_worker_and_is_raised(self):
        self.daemon.token = "secret"
        worker = self.worker(until_empty=False)
        worker.job("q")(None)
        with self.assertRaises(Refused):
            await worker.run_async()

    async def test_an_answer_that_is_none_of_the_api_ends_the_worker_and_is_raised(self):
        await self.put(lease_time=3)
        self.daemon.patch_leases = lambda *_: {"leases": [{}]}

        async def function(job):
            await asyncio.sleep(5)

        worker = self.worker()
        worker.job("q")(function)
        with self.assertRaises(KeyError):
            await worker.run_async()

    async def test_faults_at_every_request_neither_lose_nor_repeat_an_end(self):
        for at in range(12):
            for fault in ("drop", "refuse", BUSY):
                self.daemon.__init__(clock=self.daemon.clock)
                await self.put(*range(30))
                self.daemon.faults.extend([None] * at + [fault])

                async def function(job):
                    await asyncio.sleep(0.001 * job.id)

                worker = self.worker(concurrency=4)
                worker.job("q")(function)
                await worker.run_async()
                lost = [job for job in self.daemon.jobs.values() if job["state"] != "done"]
                # Leases whose answer was lost end by themselves.
                self.assertLessEqual(len(lost), 30 if fault == "drop" else 0, (at, fault))
                self.assertEqual({job["state"] for job in lost} - {"running"}, set())


class OnThreads(unittest.TestCase):
    def setUp(self):
        self.server = FakeServer()
        self.addCleanup(self.server.close)
        self.daemon = self.server.daemon

    def put(self, count, **options):
        self.server.call(lambda: [self.daemon.put({"queue": "q", **options}) for _ in range(count)])

    def test_functions_run_beside_each_other(self):
        self.put(4)
        together = threading.Barrier(4)
        worker = Worker(self.server.url, until_empty=True, concurrency=4)
        worker.job("q")(lambda job: together.wait(60) and None)
        worker.run()
        self.assertEqual(worker.counts.done, 4)

    def test_jobs_that_come_one_by_one_run_beside_each_other(self):
        worker = Worker(self.server.url, concurrency=3)
        together, begun = threading.Barrier(3), threading.Semaphore(0)

        @worker.job("q")
        def meet(job):
            begun.release()
            together.wait(60)

        thread = threading.Thread(target=worker.run)
        thread.start()
        for _ in range(3):
            self.put(1)
            begun.acquire()
        worker.stop()
        thread.join(60)
        self.assertEqual(worker.counts.done, 3)

    def test_thousands(self):
        self.put(3000)
        worker = Worker(self.server.url, until_empty=True)
        worker.job("q")(lambda job: None)
        worker.run()
        ends = [outcome for outcome, _ in self.daemon.log if outcome != "release"]  # as what waits for a second on a slow machine
        self.assertEqual((worker.counts.done, ends), (3000, ["done"] * 3000))

    def test_a_worker_of_both_kinds(self):
        self.put(20)
        self.put(20, function="other")
        worker, kinds = Worker(self.server.url, until_empty=True), []

        @worker.job("q")
        def plain(job):
            kinds.append("plain")

        @worker.job("other")
        async def other(job):
            kinds.append("other")

        worker.run()
        self.assertEqual((kinds.count("plain"), kinds.count("other")), (20, 20))

    def test_even_a_thread_that_raises_exit_is_a_failed_attempt(self):
        self.put(1, max_attempts=1)
        worker = Worker(self.server.url, until_empty=True)

        @worker.job("q")
        def leave(job):
            raise SystemExit(3)

        worker.run()
        self.assertEqual(self.daemon.jobs[1]["state"], "buried")

    def test_a_thread_hears_that_its_job_is_cancelled(self):
        self.put(1, lease_time_ms=300)
        worker = Worker(self.server.url, until_empty=True)
        started = threading.Event()

        @worker.job("q")
        def wait(job):
            started.set()
            while not job.cancelled:
                threading.Event().wait(0.005)
            raise RuntimeError("stopped")

        thread = threading.Thread(target=worker.run)
        thread.start()
        started.wait()
        self.server.call(lambda: self.daemon.do_cancel(self.daemon.jobs[1], {}))
        thread.join(60)
        self.assertEqual(self.daemon.jobs[1]["state"], "cancelled")

    def test_a_thread_that_does_not_end_is_given_back(self):
        self.put(1)
        worker = Worker(self.server.url, drain_limit=0.05)
        started, end = threading.Event(), threading.Event()
        self.addCleanup(end.set)

        @worker.job("q")
        def hang(job):
            started.set()
            end.wait()

        thread = threading.Thread(target=worker.run)
        thread.start()
        started.wait()
        worker.stop()
        thread.join(60)
        self.assertEqual(self.daemon.jobs[1]["state"], "ready")


class OfTheProgram(Retry):
    def __init__(self):
        super().__init__(60, "too many at once", 3)


class OddEnds(WorkerTest):
    """An end that cannot be made is a failed attempt that says why, and the worker goes on."""

    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    class Halt(BaseException):
        pass

    class Bare(Retry):
        def __init__(self):
            pass  # sets nothing that Retry has

    class Nameless(type):
        @property
        def __name__(cls):
            raise RuntimeError("no name")

    class OfNoKind(Exception, metaclass=Nameless):
        pass

    class Untraced(Exception):
        @property
        def __traceback__(self):
            raise SystemExit(2)

    class Sealed(Exception):
        def __getattribute__(self, name):
            raise KeyboardInterrupt

    def chained(links):
        error = ValueError(0)
        for number in range(links):
            error, error.__context__ = ValueError(number), error
        return error

    def in_a_circle():
        error = ValueError("round")
        error.__cause__, error.__cause__.__cause__ = KeyError(1), error
        return error

    ERRORS = {
        "an error of no kind": lambda: OddEnds.OfNoKind(),
        "an error of no kind that says no end": lambda: type("Odd", (OddEnds.OfNoKind, Bury), {"__str__": lambda self: None})(),
        "a traceback that throws": lambda: OddEnds.Untraced("x"),
        "members that throw": lambda: OddEnds.Sealed("x"),
        "a long chain": lambda: OddEnds.chained(2000),
        "a circle of causes": lambda: OddEnds.in_a_circle(),
        "half a character": lambda: ValueError("\ud800"),
        "half a character to bury": lambda: Bury("\ud800"),
        "a priority beyond all": lambda: Retry(1, priority="high"),
        "a reason that is bytes": lambda: Retry(1, why=b"later"),
        "a long text": lambda: ValueError("x" * 1_000_000),
        "a class": lambda: Retry,
        "a delay of text": lambda: Retry("soon"),
        "an endless delay": lambda: Retry(float("inf")),
        "no number": lambda: Snooze(float("nan")),
        "a delay of nothing": lambda: Snooze(None),
        "a truth": lambda: Snooze(True),
        "an error without words": lambda: OddEnds.Mute(),
        "a reason without words": lambda: Bury(OddEnds.Mute()),
        "no exception of a program": lambda: OddEnds.Halt(),
        "a priority that is an object": lambda: Retry(1, priority=object()),
        "a retry that has no delay": lambda: OddEnds.Bare(),
        "the end of the program": lambda: SystemExit(3),
        "an interruption": lambda: KeyboardInterrupt(),
        "the end of a generator": lambda: StopIteration(1),
        "a cancellation of its own": lambda: asyncio.CancelledError(),
    }

    def test_a_delay_that_is_past_is_now_and_one_that_is_too_far_the_farthest(self):
        century = 100 * 365 * 24 * 3600 * 1000
        for error, outcome, ms in (
            (Retry(-5), "retry", 0),
            (Snooze(timedelta(seconds=-1)), "release", None),
            (Retry(1e300), "retry", century),
            (Snooze(timedelta.max), "release", century),
            (Retry(0.5), "retry", 500),
        ):
            with self.subTest(repr(error.delay)):
                end = json.loads(failed(types.SimpleNamespace(token=7), error))
                self.assertEqual((end["outcome"], end.get("delay_ms")), (outcome, ms))

    async def ends(self, make_function):
        await self.put(*self.ERRORS, "fine", "fine", max_attempts=1)
        worker = self.worker(concurrency=2)
        worker.job("q")(make_function(lambda payload: self.ERRORS[payload]()))
        with self.assertLogs("argiope", "WARNING"):
            await worker.run_async()
        for (name, number) in zip(self.ERRORS, range(1, len(self.ERRORS) + 1)):
            self.assertEqual((name, self.state(number)), (name, "buried"))
            self.assertTrue(self.daemon.jobs[number]["error"], name)
        last = len(self.ERRORS)
        self.assertEqual([self.state(last + 1), self.state(last + 2)], ["done", "done"])

    async def test_of_coroutines(self):
        def make(error_of):
            async def function(job):
                await asyncio.sleep(0)
                if job.payload != "fine":
                    raise error_of(job.payload)

            return function

        await self.ends(make)

    async def test_of_plain_functions(self):
        def make(error_of):
            def function(job):
                if job.payload != "fine":
                    raise error_of(job.payload)

            return function

        await self.ends(make)

    def test_what_an_error_says(self):
        def raised(error):
            try:
                raise error
            except BaseException as same:
                return json.loads(failed(types.SimpleNamespace(token=7), same))["error"]

        self.assertRegex(raised(ValueError("x" * 9000)), r"^ValueError: x+ \(test_worker.py:\d+\)$")  # and says where
        self.assertRegex(raised(OddEnds.Mute()), r"Mute: <its text throws> \(test_worker.py:\d+\)$")
        self.assertRegex(raised(queue.Empty()), r"^_queue.Empty \(test_worker.py:\d+\)$")
        if sys.version_info >= (3, 11):
            noted = ValueError("no such address")
            noted.add_note("of ann")
            self.assertRegex(raised(noted), r"^ValueError: no such address\nof ann \(")
            group = BaseExceptionGroup("all", [ValueError(number) for number in range(9)])
            self.assertRegex(raised(group), r"^ExceptionGroup: all \(9 sub-exceptions\): ValueError: 0; ValueError: 1; ValueError: 2 \(")

    async def test_a_log_of_the_program_that_throws_harms_no_run(self):
        class Throwing(logging.Handler):
            def __init__(self, error):
                super().__init__()
                self.error = error

            def emit(self, record):
                raise self.error

        logger = logging.getLogger("argiope")
        for error in (ValueError(), SystemExit()):
            self.daemon.jobs.clear()
            self.daemon.last_id = 0
            await self.put("plain", "task", max_attempts=1)
            worker, handler = self.worker(), Throwing(error)

            async def task(job):
                raise ValueError

            worker.default(lambda job: 1 / 0)
            worker.job("task")(task)
            for job in self.daemon.jobs.values():
                job["function"] = job["payload"]
            with mock.patch.multiple(logger, handlers=[handler], propagate=False):
                await worker.run_async()
            self.assertEqual({job["state"] for job in self.daemon.jobs.values()}, {"buried"})

    async def test_a_function_that_changes_its_job_changes_its_own_view_alone(self):
        await self.put("token", "record", "cancelled", "fine", max_attempts=1)
        worker = self.worker(concurrency=1)

        @worker.job("q")
        def function(job):
            if job.payload == "record":
                job.record.clear()
                raise ValueError("forgotten")
            if job.payload != "fine":
                setattr(job, job.payload, 1)

        with self.assertLogs("argiope", "WARNING") as told:
            await worker.run_async()
        self.assertEqual([job["state"] for job in self.daemon.jobs.values()], ["buried"] * 3 + ["done"])
        self.assertIn("forgotten", "\n".join(told.output))

    def test_a_job_may_be_copied_and_the_copy_tells_nothing(self):
        job = Job({"job": {"id": 3, "queue": "q", "payload": "[1]"}, "token": 7, "attempt": 2}, 0.0, lambda job: None)
        job._task = threading.Lock()  # what no copy can take along
        for same in (copy.copy(job), copy.deepcopy(job), pickle.loads(pickle.dumps(job))):
            self.assertEqual((same.id, same.queue, same.json(), same.token, same.attempt, same.cancelled), (3, "q", [1], 7, 2, False))
            for tell in (lambda: same.progress(0.5), lambda: same.follow_up("next")):
                with self.assertRaisesRegex(RuntimeError, "a copy of a job"):
                    tell()

    async def test_a_coroutine_that_heeds_no_cancellation_is_given_back(self):
        await self.put("")
        worker, is_over = self.worker(drain_limit=1), asyncio.Event()

        @worker.job("q")
        async def function(job):
            while not is_over.is_set():
                try:
                    await is_over.wait()
                except asyncio.CancelledError:
                    pass

        working = asyncio.ensure_future(worker.run_async())
        await asyncio.sleep(1)
        worker.stop()
        await working
        self.assertEqual(self.state(), "ready")
        is_over.set()

    async def test_answers_that_are_too_few_are_none_and_the_ends_are_sent_again(self):
        await self.put(*range(5))
        settle, cut = self.daemon.settle_all, []

        def answer(settlements, pointer):
            replies = settle(settlements, pointer)
            if replies and len(cut) < 2:
                cut.append(replies.pop())
            return replies

        self.daemon.settle_all = answer
        worker = self.worker()

        @worker.job("q")
        async def function(job):
            await asyncio.sleep(job.id)

        await worker.run_async()
        self.assertEqual((len(cut), self.state(5), worker.counts.done + worker.counts.lost), (2, "done", 5))

    async def test_it_may_run_again_where_its_loop_was_ended_under_it(self):
        worker = Worker(client=self.client, queues=["q"])
        loop = asyncio.new_event_loop()

        def run():
            task = loop.create_task(worker.run_async())
            loop.call_soon(loop.stop)
            loop.run_forever()
            task._log_destroy_pending = False
            loop.close()

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        worker.stop()  # heard by nobody
        working = asyncio.ensure_future(worker.run_async())
        await asyncio.sleep(1)
        worker.stop()
        await working

    async def test_where_a_loop_runs_it_says_what_to_await(self):
        with self.assertRaisesRegex(RuntimeError, "await worker.run_async"):
            self.worker().run()

    def test_numbers_that_are_none_are_named(self):
        for name, value in (("concurrency", 2.5), ("concurrency", "16"), ("concurrency", float("nan")), ("concurrency", 0), ("prefetch", -1),
                            ("prefetch", 0.5), ("drain_limit", "soon"), ("linger", float("nan")), ("client", object())):
            with self.assertRaisesRegex((TypeError, ValueError), f"^{name}: .*{re.escape(repr(value))}"):
                Worker(**{name: value})

    async def test_a_large_end_goes_alone(self):
        await self.put(*range(3))
        worker = self.worker()

        @worker.job("q")
        async def function(job):
            return "x" * (9 << 20 if job.payload == "1" else 9)

        await worker.run_async()
        brought = [request.get("settle") or request.get("settlements") for method, path, body in self.daemon.requests
                   if method == "POST" and path.startswith("/v1/leases") for request in [json.loads(body)]]
        self.assertEqual([[end["token"] for end in ends] for ends in brought if ends], [[1], [2], [3]])

    async def test_odd_results(self):
        def generator(job):
            yield 1

        async def asynchronous_generator(job):
            yield 1

        async def coroutine(job):
            return "awaited"

        circle = []
        circle.append(circle)
        deep = []
        for _ in range(100_000):
            deep = [deep]
        for result in (generator, asynchronous_generator, coroutine):
            await self.put(result.__name__, max_attempts=1)
        results = {"circle": circle, "deep": deep, "nan": [float("nan")], "key": {(1, 2): 3}, "set": {1}, "object": object(), "half": "\ud800"}
        await self.put(*results, max_attempts=1)
        functions = {each.__name__: each for each in (generator, asynchronous_generator, coroutine)}
        worker = self.worker()
        worker.job("q")(lambda job: functions[job.payload](job) if job.payload in functions else results[job.payload])
        with self.assertLogs("argiope", "WARNING"):
            await worker.run_async()
        self.assertEqual({job["payload"]: job["state"] for job in self.daemon.jobs.values() if job["state"] != "buried"}, {})
        self.assertIn("async def", self.daemon.jobs[3]["error"])

    async def test_what_has_to_be_awaited_runs_as_a_task_however_it_is_written(self):
        class Sender:
            async def __call__(self, job):
                return "sent"

        async def send(word, job):
            return word

        for function in (Sender(), functools.partial(send, "sent")):
            self.daemon.jobs.clear()
            self.daemon.last_id = 0
            await self.put()
            worker = self.worker()
            worker.job("q")(function)
            await worker.run_async()
            self.assertEqual((self.state(), self.daemon.jobs[1]["result"]), ("done", "sent"))

    async def test_a_task_that_the_program_cancels_has_failed(self):
        await self.put("itself", "before it begins", "while it waits", max_attempts=1)
        worker = self.worker(concurrency=3)

        @worker.job("q")
        async def function(job):
            if job.payload == "while it waits":
                await asyncio.sleep(10)
            asyncio.current_task().cancel()  # which its last step has no await for

        accept = worker._accept

        def accept_and_cancel(leases):
            accept(leases)
            for job in worker._held.values():
                if job.payload == "before it begins":
                    job._task.cancel()
                if job.payload == "while it waits":
                    asyncio.get_running_loop().call_later(1, job._task.cancel)

        worker._accept = accept_and_cancel
        with self.assertLogs("argiope", "WARNING"):
            await worker.run_async()
        self.assertEqual([self.state(number) for number in (1, 2, 3)], ["buried"] * 3)
        self.assertEqual(worker.counts.failed, 3)

    async def test_a_program_that_cancels_all_tasks_ends_the_worker(self):
        await self.put("", lease_time=3)
        worker = self.worker(until_empty=False)

        @worker.job("q")
        async def function(job):
            await asyncio.sleep(1000)

        working = asyncio.ensure_future(worker.run_async())
        await asyncio.sleep(1)
        for task in asyncio.all_tasks():
            if "_renew_on" in repr(task):
                task.cancel()
        with self.assertRaisesRegex(RuntimeError, "cancelled from outside"):
            await working
        self.assertEqual(self.state(), "ready")

    async def test_a_program_that_cancels_all_tasks_of_its_loop_is_heard_to_the_end(self):
        await self.put("ends", "runs")
        worker = self.worker(until_empty=False)

        @worker.job("q")
        async def function(job):
            await asyncio.sleep(1 if job.payload == "ends" else 1000)
            return "result"

        self.daemon.faults.append(("/v1/leases/settle", "refuse"))  # so that an end waits when all is cancelled
        working = asyncio.ensure_future(worker.run_async())
        while not self.requests("POST", "/v1/leases"):
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await working
        self.assertEqual([(job["state"], job.get("result")) for job in self.daemon.jobs.values()][0], ("done", "result"))
        self.assertIn(self.state(2), ("ready", "delayed"))  # given back, or failed where its own task was cancelled before the worker's

    async def test_a_cancellation_that_comes_as_the_work_ends_is_heard(self):
        came = asyncio.Event()
        task = asyncio.ensure_future(within(60, came.wait()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        came.set()
        await asyncio.sleep(0)  # the wait has ended, and what waits for it has not gone on
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task

    async def test_a_thread_that_is_ended_while_it_hands_over_leaves_no_end_behind(self):
        await self.put("first", "second")
        worker = self.worker(concurrency=1)
        worker.job("q")(lambda job: job.payload)
        real, interrupted = Threads.call_on_loop, []

        def call_on_loop(threads, step, *arguments):
            if step == threads._hear_ends and not interrupted:
                interrupted.append(step)
                raise SystemExit
            real(threads, step, *arguments)

        with self.assertLogs("argiope", "ERROR"), mock.patch.object(Threads, "call_on_loop", call_on_loop):
            await worker.run_async()
        self.assertEqual([job["result"] for job in self.daemon.jobs.values()], ["first", "second"])
        self.assertEqual(worker.counts.done, 2)

    async def test_a_thread_that_is_ended_while_it_takes_a_job_leaves_the_job_to_another(self):
        class Losing(queue.SimpleQueue):
            lost = False

            def get(self):
                job = super().get()
                if job is not None and not Losing.lost:
                    Losing.lost = True
                    raise SystemExit
                return job

        await self.put("first", "second")
        worker = self.worker(concurrency=1)
        worker.job("q")(lambda job: job.payload)
        with self.assertLogs("argiope", "ERROR"), mock.patch("argiope._threads.queue.SimpleQueue", Losing):
            await worker.run_async()
        self.assertEqual([job["result"] for job in self.daemon.jobs.values()], ["first", "second"])
        self.assertEqual((worker.counts.done, worker.counts.failed), (2, 0))

    async def test_a_job_that_is_put_again_is_run_once_or_given_back_once(self):
        ran, ended = [], []
        threads = Threads(1, asyncio.get_running_loop(), lambda job: ran.append(job.token) or "end", lambda job, end: ended.append(job.token), None)
        jobs = [Job({"job": {"id": token, "queue": "q"}, "token": token}, 0.0, lambda job: None) for token in (1, 2)]
        for job in jobs:
            threads.put(job)
        threads._put_again()
        threads.start()
        while len(ended) < 2:
            await asyncio.sleep(0.01)
        threads.end()
        self.assertEqual((ran, ended, threads.take_back()), ([1, 2], [1, 2], []))
        again = Threads(1, asyncio.get_running_loop(), None, None, None)
        job = Job({"job": {"id": 3, "queue": "q"}, "token": 3}, 0.0, lambda job: None)
        again.put(job)
        again._put_again()
        self.assertEqual(again.take_back(), [job])

    async def test_a_system_that_gives_no_more_threads(self):
        for given in (1, 0):
            self.daemon.jobs.clear()
            self.daemon.last_id = 0
            await self.put(*range(5))
            worker, left = self.worker(concurrency=4), [given]
            worker.job("q")(lambda job: None)
            start = threading.Thread.start

            def start_or_not(thread):
                if thread.name.startswith("argiope-"):
                    if not left[0]:
                        raise RuntimeError("can't start new thread")
                    left[0] -= 1
                start(thread)

            with self.assertLogs("argiope", "ERROR"), mock.patch.object(threading.Thread, "start", start_or_not):
                if given:
                    await worker.run_async()
                    self.assertEqual(worker.counts.done, 5)
                else:
                    with self.assertRaisesRegex(RuntimeError, "new thread"):
                        await worker.run_async()
                    self.assertEqual({job["state"] for job in self.daemon.jobs.values()}, {"ready"})

    async def test_what_fails_without_a_function_or_by_its_delay_is_logged_too(self):
        await self.put("late")
        await self.put("nobody", function="unknown")
        worker = self.worker()

        @worker.job("q")
        async def function(job):
            if job.attempt == 1:
                raise Snooze("soon")

        with self.assertLogs("argiope", "WARNING") as told:
            await worker.run_async()
        text = "\n".join(told.output)
        self.assertIn("'soon' is no delay", text)
        self.assertIn("no function", text)

    async def test_delays_are_taken_as_people_write_them(self):
        for delay in (timedelta(seconds=30), 30, 30.0, Decimal(30), Fraction(30)):
            self.daemon.jobs.clear()
            self.daemon.last_id = 0
            await self.put()
            worker = self.worker()

            @worker.job("q")
            async def function(job):
                if job.attempt == 1:
                    raise Retry(delay)

            began = asyncio.get_running_loop().time()
            await worker.run_async()
            self.assertGreaterEqual(self.daemon.jobs[1]["_due"], began + 30)

    async def test_a_task_that_is_cancelled_before_its_first_step_frees_its_place(self):
        await self.put("cancelled", "next")
        worker, ran = self.worker(concurrency=1), []
        accept = worker._accept

        def accept_and_cancel(leases):
            accept(leases)
            for job in list(worker._held.values()):
                if job.payload == "cancelled" and job._task is not None:
                    worker._cancel(job, "cancel")

        worker._accept = accept_and_cancel

        @worker.job("q")
        async def function(job):
            ran.append(job.payload)

        await worker.run_async()
        self.assertEqual((ran, self.state(1), self.state(2)), (["next"], "cancelled", "done"))

    async def test_a_thread_that_is_ended_from_outside_is_told_and_replaced(self):
        await self.put("ended", "next", max_attempts=1)
        worker = self.worker(concurrency=1)

        def run(job):
            if job.payload == "ended":  # as PyThreadState_SetAsyncExc does it, where it comes between two statements of ours
                raise SystemExit
            return run_plain(job)

        worker.job("q")(lambda job: None)
        with self.assertLogs("argiope", "ERROR") as told, mock.patch("argiope._worker.run_plain", run):
            await worker.run_async()
        self.assertEqual((self.state(1), self.state(2)), ("buried", "done"))
        self.assertIn("another takes its place", told.output[0])

    async def test_a_failed_attempt_is_logged_with_its_traceback(self):
        await self.put()
        worker = self.worker()

        @worker.job("q")
        async def function(job):
            raise ValueError("no such address")

        with self.assertLogs("argiope", "INFO") as told:
            await worker.run_async()
        self.assertRegex(told.output[0], r"worker .* runs jobs of q from .*, 16 at a time")
        self.assertIn("ValueError: no such address", told.output[1])
        self.assertIn("Traceback", told.output[1])

    async def test_options_as_people_write_them(self):
        await self.put("a")
        worker = Worker(client=self.client, queues="q", until_empty=True, drain_limit=timedelta(seconds=2))
        for name in (lambda job: None, None):
            with self.assertRaisesRegex(TypeError, "the name is missing"):
                worker.job(name)

        @worker.job("q")
        async def function(job):
            await asyncio.sleep(1000)

        working = asyncio.ensure_future(worker.run_async())
        await asyncio.sleep(1)
        worker.stop()
        began = asyncio.get_running_loop().time()
        await working
        self.assertAlmostEqual(asyncio.get_running_loop().time() - began, 2, 0)
        self.assertEqual(self.requests("POST", "/v1/leases")[0]["queues"], ["q"])

    async def test_an_address_that_is_none_is_said_each_time(self):
        worker = Worker("ftp://nowhere")
        worker.job("q")(lambda job: None)
        for _ in range(2):
            with self.assertRaisesRegex(ValueError, "a URL like"):
                await worker.run_async()

    async def test_a_worker_has_another_name_in_each_process(self):
        for given, name in ((None, None), ("mine", "mine")):
            worker = self.worker(name=given)
            worker.job("q")(None)
            before = worker.name
            with mock.patch("os.getpid", lambda: 1):  # as in a child of fork()
                await worker.run_async()
            self.assertEqual(worker.name == before, name is not None)

    def test_errors_survive_pickling(self):
        for error in (Retry(timedelta(seconds=2), "later", 7), Snooze(3.5), Bury("hopeless"), Unreachable("no answer", sent=True),
                      ApiError.of({"type": "urn:argiope:problem:queue_full", "status": 429, "detail": "full"}, 2.0), OfTheProgram()):
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(again), str(again), vars(again)), (type(error), str(error), vars(error)))


if __name__ == "__main__":
    unittest.main()
