"""Client and worker against the real daemon: that it understands what they say, and they what it answers.

Runs where ARGIOPE is the path of a command that can serve.
"""
import asyncio
import threading
import unittest

from argiope import (
    AsyncClient,
    Bury,
    Client,
    Conflict,
    IdempotencyMismatch,
    InvalidInput,
    NotFound,
    Retry,
    Snooze,
    TooMany,
    Worker,
    WrongState,
    new_job,
)

from .running_daemon import PATIENCE, DaemonTest, real_command

KEPT = {"keep_done_ms": 3_600_000, "keep_cancelled_ms": 3_600_000}


@unittest.skipUnless(real_command(), "ARGIOPE is no command that serves")
class RealDaemonTest(DaemonTest):
    def setUp(self):
        super().setUp()
        self.client = Client(self.url)
        self.addCleanup(self.client.close)
        self.client.queues.set("q", **KEPT)

    def work(self, run, **options):
        worker = Worker(self.url, until_empty=True, queues=["q"], **{"linger": 0, **options})
        worker.job("q")(run)
        worker.run()
        return worker.counts

    def state(self, job):
        return self.client.jobs.get(job)["state"]


class Operations(RealDaemonTest):
    def test_jobs(self):
        client, jobs = self.client, self.client.jobs
        first = client.put("q", {"to": "\u00e4nn"}, id="first/%", key="k", priority=3, function="f", max_attempts=2)
        self.assertEqual((client.put("q", id="first/%").outcome, first.outcome), ("kept", "added"))
        job = jobs.get("first/%")
        self.assertEqual((job["id"], job["payload"], job["key"], job["priority"]), (first.id, '{"to":"\u00e4nn"}', "k", 3))
        self.assertEqual(jobs.set_priority(first.id, -5).outcome, "changed")
        self.assertEqual(jobs.set_due(first.id, delay=60).outcome, "changed")
        self.assertEqual((self.state(first.id), jobs.get(first.id)["priority"]), ("delayed", -5))
        self.assertIn("reason", jobs.explain(first.id))
        self.assertEqual(jobs.kick(first.id).outcome, "changed")
        self.assertEqual(jobs.cancel(first.id, "no more").outcome, "changed")
        with self.assertRaises(WrongState):
            jobs.kick(first.id)
        self.assertEqual(jobs.history(first.id), [])
        self.assertIsNone(jobs.erase(first.id))
        for ask in (jobs.get, jobs.explain, jobs.history, jobs.output, jobs.erase, jobs.cancel):
            with self.assertRaises(NotFound):
                ask(first.id)

    def test_a_set_resets_what_it_does_not_name_and_a_change_leaves_it(self):
        self.client.put("made by a put")
        kept = lambda: self.client.queues.get("made by a put")["config"]["keep_done_ms"]
        day = kept()
        self.client.queues.change("made by a put", max_attempts=7)
        self.assertEqual((day, kept()), (86_400_000, day))
        self.assertEqual(self.client.queues.set("made by a put", rate=10)["config"]["keep_done_ms"], 0)
        self.assertNotEqual(self.client.queues.get("made by a put")["config"]["max_attempts"], 7)

    def test_a_list_is_of_a_word_in_either_order_and_has_payloads(self):
        ids = [reply.id for reply in self.client.put_many([new_job("q", {"to": name}) for name in ("ann", "bob", "Anna")]).replies]
        found = list(self.client.jobs.list(queue="q", word="ANN", order="newest", limit=1, own=False))
        self.assertEqual([(job["id"], job["payload"]) for job in found], [(ids[2], '{"to":"Anna"}'), (ids[0], '{"to":"ann"}')])
        self.assertEqual(self.client.jobs.page(queue="q", beginnings=True).items[1]["payload"], '{"to":"bob"}')

    def test_a_name_may_be_anything(self):
        for name in (".", "..", "change", "=x", "a/b?c#d"):
            put = self.client.put("q", name, id=name)
            self.assertEqual(self.client.jobs.get(name)["id"], put.id)
            self.assertEqual(self.client.jobs.cancel(name).outcome, "changed")
        self.assertEqual(self.client.queues.set("..", weight=2)["name"], "..")

    def test_a_worker_hears_at_once_that_a_job_is_cancelled(self):
        self.client.queues.change("q", lease_time_ms=3_600_000)  # so that no renewal tells it
        started, stopped = threading.Event(), threading.Event()
        worker = Worker(self.url, queues=["q"], concurrency=2)

        @worker.job("q")
        async def run(job):
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

        thread = threading.Thread(target=worker.run, daemon=True)
        thread.start()
        job = self.client.put("q").id
        self.assertTrue(started.wait(PATIENCE))
        self.client.jobs.cancel(job)
        self.assertTrue(stopped.wait(PATIENCE))
        worker.stop()
        thread.join(PATIENCE)

    def test_many_jobs(self):
        answer = self.client.put_many([new_job("q", b"\xff"), {"queue": "q", "nonsense": 1}, new_job("q")])
        self.assertEqual([reply.outcome for reply in answer.replies], ["added", "", "added"])
        self.assertEqual(answer.replies[1].error.errors[0]["pointer"], "/jobs/1/nonsense")
        with self.assertRaises(InvalidInput):
            self.client.put_many([new_job("q"), {"queue": "q", "nonsense": 1}], atomic=True)
        batch = self.client.put_many([new_job("q")], completion=new_job("q", "end"))
        self.assertEqual((batch.completion.outcome, self.state(batch.completion.id)), ("added", "delayed"))
        lines = self.client.put_lines('{"queue":"q"}\n{"queue":"q"}\n')
        listed = [job["id"] for job in self.client.jobs.list(queue="q", limit=2)]
        self.assertEqual((len(listed), listed[-1]), (6, lines.replies[-1].id))
        changed = self.client.jobs.change("cancel", [listed[0], 999_999], why="all")
        self.assertEqual(changed[0].outcome, "changed")
        self.assertIsInstance(changed[1].error, NotFound)
        self.assertEqual(next(self.client.jobs.list(queue="q", payloads=True))["payload_base64"], "/w==")

    def test_a_put_is_done_once(self):
        first = self.client.put("q", "once", idempotency_key="order 7")
        self.assertEqual(self.client.put("q", "once", idempotency_key="order 7"), first)
        with self.assertRaises(IdempotencyMismatch):
            self.client.put("q", "other", idempotency_key="order 7")

    def test_a_put_is_done_once_over_a_restart(self):
        first = self.client.put("q", "once", idempotency_key="order 7")
        self.server.kill()
        self.server.open()
        self.assertEqual(self.client.put("q", "once", idempotency_key="order 7"), first)

    def test_a_lease_time_of_the_jobs_own(self):
        self.client.put("q", lease_time=5)
        self.assertEqual(self.client.leases.take(["q"]).leases[0]["lease_ms"], 5000)

    def test_a_queue_is_deleted(self):
        queues = self.client.queues
        job = self.client.put("small").id
        with self.assertRaises(WrongState):
            queues.delete("small")
        self.client.jobs.erase(job)
        self.assertIsNone(queues.delete("small"))
        with self.assertRaises(NotFound):
            queues.get("small")

    def test_metrics(self):
        self.assertIn("argiope", self.client.metrics())

    def test_queues(self):
        queues = self.client.queues
        self.assertEqual(queues.set("small", capacity=1)["config"]["capacity"], 1)
        self.client.put("small")
        with self.assertRaises(TooMany) as raised:
            self.client.put("small")
        self.assertEqual(raised.exception.type, "queue_full")
        self.assertGreater(raised.exception.retry_after, 0)
        self.assertEqual(queues.change("small", capacity="unlimited", rate=5)["config"]["rate"], 5)
        self.assertTrue(queues.pause("small")["config"]["paused"])
        self.assertFalse(queues.resume("small")["config"]["paused"])
        self.assertEqual(queues.kick("small"), 0)
        self.assertEqual(queues.get("small")["counts"]["ready"], 1)
        self.assertIn("small", [queue["name"] for queue in queues.list()])
        self.assertEqual(queues.stats("small")["counts"]["ready"], 1)
        with self.assertRaises(NotFound):
            queues.get("other")

    def test_leases(self):
        self.client.queues.change("q", lease_time_ms=5000)
        self.client.put_many([new_job("q", str(number)) for number in range(3)])
        leases = self.client.leases
        first = leases.take(["q"], 2, worker="w").leases
        tokens = [lease["token"] for lease in first]
        self.assertEqual([(lease["job"]["payload"], lease["lease_ms"]) for lease in first], [("0", 5000), ("1", 5000)])
        renewed = leases.renew([tokens[0], {"token": tokens[1], "progress": 0.5, "message": "half"}, 99], worker="w")
        self.assertEqual([lease.get("lease_lost", False) for lease in renewed], [False, False, True])
        self.assertEqual(self.client.jobs.explain(first[1]["job"]["id"])["progress"], 0.5)
        self.assertEqual([worker["leases"] for worker in self.client.workers() if worker["name"] == "w"], [2])
        second = leases.take(["q"], 5, settle=[{"token": tokens[0], "outcome": "done", "result": "r"}])
        self.assertEqual((len(second.leases), second.settled[0]["outcome"]), (1, "ok"))
        self.assertEqual(self.client.jobs.output(first[0]["job"]["id"]), b"r")
        self.assertEqual(self.client.end_worker("w"), 1)
        self.assertEqual(leases.settle([{"token": tokens[1], "outcome": "done"}])[0]["outcome"], "lease_lost")

    def test_schedules(self):
        schedules = self.client.schedules
        backup = {"name": "backup", "trigger": "30 2 * * *", "job": {"queue": "q"}}
        self.assertEqual(schedules.add(backup)["outcome"], "added")
        with self.assertRaises(Conflict):
            schedules.add(backup)
        self.assertEqual(schedules.set("rent", {"trigger": "@every 1h", "job": {"queue": "q"}})["outcome"], "added")
        self.assertEqual([schedule["name"] for schedule in schedules.list()], ["backup", "rent"])
        self.assertTrue(schedules.pause("backup", by="ann")["paused"])
        self.assertFalse(schedules.resume("backup")["paused"])
        self.assertEqual(self.state(schedules.run("backup")), "ready")
        self.assertEqual(schedules.change("backup", coalesce="all")["schedule"]["coalesce"], "all")
        self.assertEqual((len(schedules.next("backup", 3)), len(schedules.next_times("@every 1h", 2))), (3, 2))
        self.assertEqual(schedules.explain("rent")["reason"], "not_due")
        self.assertEqual(schedules.history("rent", limit=5), [])
        self.assertIsNone(schedules.delete("rent"))
        with self.assertRaises(NotFound):
            schedules.get("rent")

    def test_a_program_that_declares_what_it_needs_may_start_again(self):
        outcomes = []
        for _ in range(2):
            self.client.queues.set("declared", max_attempts=5)
            outcomes.append(self.client.put("declared", unique="only").outcome)
            outcomes.append(self.client.schedules.add("declared", "@daily", conflict="replace", queue="declared")["outcome"])
        self.assertEqual(outcomes, ["added", "added", "kept", outcomes[3]])
        self.assertEqual(self.client.queues.get("declared")["counts"]["ready"], 1)
        self.assertEqual(len(list(self.client.schedules.list())), 1)
        with self.assertRaisesRegex(Conflict, 'schedule "declared": .*; conflict="replace" ') as refused:
            self.client.schedules.add("declared", "@daily", queue="declared")
        self.assertEqual(refused.exception.type, "conflict")

    def test_the_daemon(self):
        self.assertEqual((self.client.version()["api"], self.client.health()["status"]), (1, "ok"))
        self.assertEqual(self.client.ready()["status"], "ok")
        # Counters are taken once a second; the last may be from before there was a queue.
        self.wait_until(lambda: "q" in self.client.counters()["queues"], "counters never knew the queue")
        self.assertEqual([entry["path"] for entry in self.client.audit_page()["entries"]], ["/v1/queues/q"])
        self.assertIn("queues", self.client.config())

    def test_events_go_on_over_a_restart(self):
        events = self.client.events(["job"], "q", last_event_id="")
        heard, came = [], threading.Semaphore(0)

        def listen():
            for event in events:
                heard.append((event.kind, event.data))
                came.release()

        threading.Thread(target=listen, daemon=True).start()
        self.wait_until(lambda: self.client.put("q") and came.acquire(timeout=0.1), "no event came")
        self.server.close()
        self.server.open()
        self.wait_until(lambda: "reset" in [kind for kind, _ in heard], "the restart was not told")
        before = len(heard)
        self.client.put("q")
        self.wait_until(lambda: len(heard) > before, "no event came after the restart")
        self.client.close()

    def test_many_calls_at_once(self):
        async def put():
            async with AsyncClient(self.url) as client:
                return await asyncio.gather(*(client.put("q", str(number)) for number in range(200)))

        self.assertEqual(len({reply.id for reply in asyncio.run(put())}), 200)


class Runs(RealDaemonTest):
    def one(self, run, **options):
        """What the client tells of a job that `run` was run for."""
        job = self.client.put("q", "payload", **options).id
        self.work(run)
        return self.client.jobs.get(job)

    def test_results(self):
        for value, result in ((None, ""), ("text", "text"), ({"a": [1]}, '{"a":[1]}')):
            job = self.one(lambda _: value)
            self.assertEqual((job["state"], job["result"]), ("done", result))
        self.assertEqual(self.client.jobs.output(self.one(lambda _: b"\xff\x00")["id"]), b"\xff\x00")

    def test_failures(self):
        def raises(error):
            def run(job):
                raise error

            return run

        job = self.one(raises(Retry(60, "later", priority=7)))
        self.assertEqual((job["state"], job["priority"], job["attempts"]), ("delayed", 7, 1))
        self.assertEqual(self.client.jobs.history(job["id"])[0]["error"], "later")
        job = self.one(raises(Bury("hopeless")))
        self.assertEqual((job["state"], job["error"]), ("buried", "hopeless"))
        job = self.one(raises(Snooze(60)))
        self.assertEqual((job["state"], job["attempts"]), ("delayed", 0))
        job = self.one(raises(ValueError("wrong")), max_attempts=1)
        self.assertEqual(job["state"], "buried")
        self.assertRegex(job["error"], r"^ValueError: wrong \(test_real_daemon.py:\d+\)$")

    def test_until_empty_it_waits_for_rates_and_short_retries_but_not_for_later_times(self):
        self.client.queues.set("q", rate=20, **KEPT)
        jobs = [self.client.put("q", str(number)).id for number in range(5)]
        later = self.client.put("q", delay=3600).id

        def run(job):
            if job.payload == "2" and job.attempt == 1:
                raise Retry(1)

        counts = self.work(run, linger=60)
        self.assertEqual(([self.state(job) for job in jobs], counts.failed), (["done"] * 5, 1))
        self.assertEqual(self.state(later), "delayed")

    def test_follow_ups(self):
        self.client.queues.set("next", **KEPT)
        self.one(lambda job: job.follow_up("next", {"from": job.id}, key="k", delay=60))
        follow_up = next(self.client.jobs.list(queue="next", payloads=True))
        self.assertEqual((follow_up["state"], follow_up["key"]), ("delayed", "k"))

    def test_an_end_that_is_refused_fails_its_run_and_no_other(self):
        jobs = [reply.id for reply in self.client.put_many([new_job("q", str(n), max_attempts=1) for n in range(4)]).replies]

        def run(job):
            if job.payload == "2":
                job.follow_up("next", priority="high")

        with self.assertLogs("argiope", "WARNING"):
            counts = self.work(run)
        self.assertEqual([self.state(job) for job in jobs], ["done", "done", "buried", "done"])
        self.assertEqual((counts.done, counts.failed), (3, 1))

    def test_a_job_that_is_cancelled_stops(self):
        self.client.queues.change("q", lease_time_ms=15_000)
        job = self.client.put("q").id
        began = threading.Event()

        async def run(job):
            began.set()
            await asyncio.Event().wait()

        thread = threading.Thread(target=lambda: self.work(run, concurrency=1), daemon=True)  # a renewal tells it
        thread.start()
        self.assertTrue(began.wait(PATIENCE))
        self.assertEqual(self.client.jobs.cancel(job, "no more").outcome, "asked")
        thread.join(PATIENCE)
        self.assertEqual(self.state(job), "cancelled")

    def test_a_lease_is_renewed(self):
        self.client.queues.change("q", lease_time_ms=15_000)
        job = self.client.put("q").id
        lease = lambda: self.client.jobs.explain(job)["lease_until"]  # noqa: E731

        def run(_):
            first = lease()
            self.wait_until(lambda: lease() != first, "it was not renewed")

        self.assertEqual((self.work(run).lost, self.state(job)), (0, "done"))

    def test_an_idle_worker_is_woken_by_a_put_and_stops_at_once(self):
        came = threading.Event()
        worker = Worker(self.url, queues=["q"])
        worker.job("q")(lambda job: came.set())
        thread = threading.Thread(target=worker.run)
        thread.start()
        self.wait_until(lambda: any(one["waiting"] for one in self.client.workers()), "the worker does not wait")
        self.client.put("q")
        self.assertTrue(came.wait(PATIENCE))
        worker.stop()
        thread.join(PATIENCE)
        self.assertFalse(thread.is_alive())

    def test_thousands(self):
        jobs = [new_job("q", str(number)) for number in range(5000)]
        self.client.put_many(jobs)
        self.assertEqual(self.work(lambda job: None).done, 5000)
        self.assertEqual(self.client.queues.get("q")["counts"]["done"], 5000)


if __name__ == "__main__":
    unittest.main()
