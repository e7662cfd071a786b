"""argiope.testing: how the run of a handler would end, and a daemon that lives as long as a test."""
import asyncio
import os
import pathlib
import stat
import sys
import tempfile
import textwrap
import types
import unittest
from unittest import mock

from argiope import Bury, Client, Retry, Snooze, Worker
from argiope.testing import Daemon, DaemonTestCase, ProgramNotFound, cancel_job, make_job, run_handler, run_handler_async

from .running_daemon import real_command
from .test_worker import WorkerTest


def quietly(test):
    """What fails on purpose is not logged."""
    return mock.patch("argiope._running.log.warning")(lambda self, _: test(self))


class Jobs(unittest.TestCase):
    def test_has_what_a_worker_would_give(self):
        job = make_job("mail", {"to": "ännie"}, attempt=3, key="ann", function="send", priority=5, id="welcome/ann")
        self.assertEqual((job.queue, job.key, job.function, job.attempt, job.name, job.id), ("mail", "ann", "send", 3, "welcome/ann", 1))
        self.assertEqual((job.payload, job.json(), job.record["priority"]), ('{"to":"ännie"}', {"to": "ännie"}, 5))
        self.assertFalse(job.cancelled)

    def test_payloads_are_as_the_daemon_tells_them(self):
        for payload, text, exact in (("text", "text", b"text"), (b"text", "text", b"text"), (b"\xff", "\ufffd", b"\xff"), (None, "", b""), (0, "0", b"0")):
            job = make_job("q", payload)
            self.assertEqual((job.payload, job.payload_bytes), (text, exact))

    def test_options_that_there_are_not_are_refused(self):
        with self.assertRaisesRegex(TypeError, "no option 'countdown'; use delay"):
            make_job("q", countdown=1)

    def test_members_of_its_record_may_be_given(self):
        self.assertEqual(make_job("q", record={"created_at": "2030-01-01T00:00:00Z"}).record["created_at"], "2030-01-01T00:00:00Z")


class Runs(unittest.TestCase):
    def both(self, handler, make=lambda: make_job("q", "payload")):
        """Of the handler, and of the same as a coroutine function."""

        async def awaited(job):
            return handler(job)

        run, other = run_handler(handler, make()), run_handler(awaited, make())
        self.assertEqual(run._replace(error="", exception=None), other._replace(error="", exception=None))
        self.assertEqual(run.error, other.error)
        return run

    def test_what_it_returns_is_the_result(self):
        for value, result in ((None, None), ("text", "text"), ({"a": [1]}, '{"a":[1]}'), (b"\xff", b"\xff")):
            run = self.both(lambda job, value=value: value)
            self.assertEqual((run.outcome, run.result, run.error), ("done", result, ""))
        self.assertEqual(self.both(lambda job: {"a": 1}).json(), {"a": 1})

    @quietly
    def test_what_it_raises_is_a_failed_attempt(self):
        def handler(job):
            raise KeyError("to")

        run = self.both(handler)
        self.assertEqual((run.outcome, run.delay, run.result), ("retry", None, None))
        self.assertRegex(run.error, r"^KeyError: 'to' \(test_testing.py:\d+\)$")
        self.assertIsInstance(run.exception, KeyError)

    @quietly
    def test_retry_bury_and_snooze_say_more(self):
        def raises(error):
            def handler(job):
                raise error

            return self.both(handler)

        run = raises(Retry(30, "busy", priority=7))
        self.assertEqual((run.outcome, run.delay, run.error, run.priority), ("retry", 30.0, "busy", 7))
        self.assertEqual(raises(Retry()).delay, None)
        self.assertEqual(raises(Bury("no address"))[:1] + (raises(Bury("no address")).error,), ("buried", "no address"))
        self.assertEqual((raises(Snooze(1.5)).outcome, raises(Snooze(1.5)).delay, raises(Snooze(0)).delay), ("snoozed", 1.5, 0.0))

    @quietly
    def test_an_end_that_cannot_be_told_is_a_failed_attempt(self):
        self.assertRegex(self.both(lambda job: {"a", "set"}).error, "TypeError: .* not JSON serializable")

        def handler(job):
            raise Retry("soon")

        self.assertIn("says no end that can be told", self.both(handler).error)

    def test_follow_ups_and_progress_are_told(self):
        def handler(job):
            job.progress(0.5, "half")
            job.progress(1)
            job.follow_up("mail", {"to": job.payload}, key="ann")

        run = self.both(handler)
        self.assertEqual(run.follow_ups, [{"queue": "mail", "payload": {"to": "payload"}, "key": "ann"}])
        self.assertEqual(run.progress, [(0.5, "half"), (1.0, "")])

    def test_a_job_that_is_cancelled(self):
        cleaned_up = []

        async def handler(job):
            asyncio.get_running_loop().call_soon(cancel_job, job)
            try:
                await asyncio.Event().wait()
            finally:
                cleaned_up.append(job.cancelled)

        self.assertEqual((run_handler(handler, make_job("q")).outcome, cleaned_up), ("cancelled", [True]))
        job = make_job("q")
        cancel_job(job)
        self.assertEqual(run_handler(lambda job: str(job.cancelled), job).result, "True")

    def test_where_a_loop_runs(self):
        async def handler(job):
            return job.attempt

        async def test():
            with self.assertRaisesRegex(RuntimeError, "await run_handler_async"):
                run_handler(handler, make_job("q"))
            return await run_handler_async(handler, make_job("q", attempt=2)), await run_handler_async(lambda job: 3, make_job("q"))

        self.assertEqual([run.result for run in asyncio.run(test())], ["2", "3"])

    def test_the_person_who_runs_the_tests_may_interrupt(self):
        def handler(job):
            raise KeyboardInterrupt

        with self.assertLogs("argiope", "WARNING"), self.assertRaises(KeyboardInterrupt):
            run_handler(handler, make_job("q"))


class SameAsAWorker(WorkerTest):
    """What run_handler() says is what the daemon is told by a worker."""

    @staticmethod
    def handlers():
        def failing(job):
            raise ValueError("x" * 5000)

        def raising(error):
            def handler(job):
                raise error

            return handler

        def following(job):
            job.follow_up("next", b"\xff", delay=3)
            return {"ok": True}

        yield from (failing, following, lambda job: None, lambda job: "text", lambda job: {1}, lambda job: b"\x00\xff")
        yield from (raising(error) for error in (Retry(2, "later"), Retry(), Bury("bad"), Snooze(0), Snooze(60), Retry("x"), SystemExit(3)))

    async def test_in_every_kind_of_end(self):
        for plain in self.handlers():

            async def handler(job, plain=plain):
                return plain(job)

            self.daemon.requests.clear()
            with mock.patch("argiope._running.log.warning"):
                run = await run_handler_async(handler, make_job("q", "payload"))
                await self.put("payload")
                worker = self.worker()
                worker.job("q")(handler)
                running = asyncio.ensure_future(worker.run_async())
                while not self.settlements():
                    await asyncio.sleep(0.01)
                worker.stop(at_once=True)
                await running
            told = {name: value for name, value in self.settlements()[0].items() if name not in ("token", "outcome")}
            self.assertEqual(run.error, told.get("error", ""))
            self.assertEqual(run.follow_ups, told.get("follow_ups", []))
            self.assertEqual(run.delay is None or run.delay == 0, "delay_ms" not in told)
            self.assertEqual({"done": "done", "retry": "retry", "buried": "bury", "snoozed": "release"}[run.outcome], self.settlements()[0]["outcome"])
            for job in list(self.daemon.jobs):
                del self.daemon.jobs[job]

    def settlements(self):
        found = [end for call in self.requests("POST", "/v1/leases") for end in call.get("settle", ())]
        return found + [end for call in self.requests("POST", "/v1/leases/settle") for end in call["settlements"]]


class Programs(unittest.TestCase):
    """Of the daemon, without one."""

    def program(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name, "argiope")
        path.write_text(f"#!{sys.executable}\n" + textwrap.dedent(text))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def test_a_program_that_is_not_there_is_named_with_the_ways_out(self):
        with mock.patch.dict(os.environ, {"PATH": "", "ARGIOPE": ""}), self.assertRaises(ProgramNotFound) as raised:
            Daemon()
        for word in ("'argiope'", "install Argiope", "PATH", "ARGIOPE=", "Daemon(program="):
            self.assertIn(word, str(raised.exception))
        with self.assertRaisesRegex(ProgramNotFound, "'/nowhere/argiope'"):
            Daemon(program="/nowhere/argiope")

    def test_one_that_does_not_listen_is_an_error_with_its_log(self):
        with self.assertRaisesRegex(RuntimeError, "(?s)serve.*does not listen.*no such store"):
            Daemon(program=self.program("import sys; sys.exit('no such store')"))

    def test_it_is_started_in_a_folder_of_its_own_without_this_process_s_settings_and_ended(self):
        program = self.program(
            """
            import os, signal, sys
            print("words", *sys.argv[1:])
            print("settings", [name for name in os.environ if name.startswith(("ARGIOPE", "LISTEN_"))])
            print("info listening: http://127.0.0.1:4711", flush=True)
            open("is here", "w").close()
            signal.signal(signal.SIGTERM, lambda *_: (print("ended", flush=True), sys.exit(0)))
            while True:
                signal.pause()
            """
        )
        with mock.patch.dict(os.environ, {"ARGIOPE_URL": "http://x", "LISTEN_FDS": "1"}):
            daemon = Daemon("--log", "json", program=program)
        self.addCleanup(daemon.stop)
        self.assertEqual(daemon.url, "http://127.0.0.1:4711")
        self.assertIn("words serve --store sqlite:jobs.db --listen 127.0.0.1:0 --log json\n", daemon.log)
        self.assertIn("settings []\n", daemon.log)
        daemon.restart()
        self.assertIn("--listen 127.0.0.1:4711", daemon.log)
        daemon.stop()
        daemon.stop()
        self.assertFalse(os.path.exists(daemon.folder))

    def test_the_fixture_of_pytest(self):
        fake = types.ModuleType("pytest")
        fake.fixture = lambda function: function
        started = mock.MagicMock()
        with mock.patch.dict(sys.modules, {"pytest": fake}):
            sys.modules.pop("argiope.testing.pytest_plugin", None)
            from argiope.testing import pytest_plugin
        with mock.patch.object(pytest_plugin, "Daemon", started):
            fixture = pytest_plugin.argiope_daemon()
            self.assertIs(next(fixture), started.return_value.__enter__.return_value)
            self.assertEqual(list(fixture), [])
        started.return_value.__exit__.assert_called_once()


@unittest.skipUnless(real_command(), "ARGIOPE is no command that serves")
class RealDaemons(DaemonTestCase):
    def test_a_handler_works_with_it(self):
        sent = []
        self.client.put("mail", {"to": "ann"})
        worker = Worker(self.daemon.url, until_empty=True, linger=0)
        worker.job("mail")(lambda job: sent.append(job.json()["to"]))
        worker.run()
        self.assertEqual((sent, worker.counts.done), (["ann"], 1))

    def test_it_is_there_again_after_a_restart(self):
        put, url = self.client.put("mail", "hello"), self.daemon.url
        self.daemon.restart()
        self.assertEqual((self.client.jobs.get(put.id)["payload"], self.daemon.url), ("hello", url))

    def test_two_at_a_time_know_nothing_of_each_other(self):
        with Daemon() as other, Client(other.url, token="") as client:
            client.put("mail")
            self.assertEqual(list(self.client.jobs.list()), [])


if __name__ == "__main__":
    unittest.main()
