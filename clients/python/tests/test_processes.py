"""Whole processes: the worker of five lines, the examples, signals, and daemons that are killed."""
import pathlib
import re
import signal
import sys
import tempfile
import unittest

from argiope import Client, new_job

from .running_daemon import PACKAGE, PATIENCE, DaemonTest, real_command

README = PACKAGE / "README.md"
# Says what it runs, and runs until there is the file that the payload names.
FORKING_WORKER = """
import os, sys
from argiope import Worker
worker = Worker(queues=["fork"], until_empty=True, linger=0)
@worker.default
def run(job):
    child = os.fork()
    if child == 0 and job.payload == "1":
        raise ValueError("in the child")
    if child == 0 and job.payload == "2":
        sys.exit(2)
    if child != 0:
        os.write(1, f"{job.payload} left {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\\n".encode())
worker.run()
"""

WORKER_WITH_HANDLERS = """
import signal
from argiope import Worker
signal.signal(signal.SIGTERM, lambda *_: print("mine", end=" ", flush=True))
worker = Worker(queues=["none"], until_empty=True)
worker.run()
signal.raise_signal(signal.SIGTERM)
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""

SLOW_WORKER = """
import os, time
from argiope import Worker
worker = Worker(concurrency=4)
@worker.job("slow")
def slow(job):
    print(f"begins {job.id}\\n", end="", flush=True)
    while not os.path.exists(job.payload):
        time.sleep(0.01)
    print(f"ends {job.id}\\n", end="", flush=True)
worker.run()
"""


class Processes(DaemonTest):
    def setUp(self):
        super().setUp()
        self.client = Client(self.url)
        self.addCleanup(self.client.close)

        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.gate = pathlib.Path(folder.name, "open")

    def worker(self):
        return self.start(sys.executable, "-c", SLOW_WORKER)

    def test_the_worker_of_five_lines_in_the_readme(self):
        text = README.read_text()
        program = re.search(r"```python\n(from argiope import Worker\n.*?)```", text, re.S).group(1)
        self.assertEqual(len(program.splitlines()), 5)
        worker = self.start(sys.executable, "-c", program.replace("http://127.0.0.1:7733", self.url))
        self.client.put("mail", "hello")
        self.assertEqual(worker.stdout.readline(), "sending hello\n")
        worker.terminate()
        self.assertEqual(worker.wait(PATIENCE), 0)

    def test_sigterm_lets_what_runs_end_and_gives_back_the_rest(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            self.client.queues.set("slow", keep_done_ms=3_600_000)
            jobs = [reply.id for reply in self.client.put_many([new_job("slow", str(self.gate))] * 6).replies]
            worker = self.worker()
            for _ in range(4):
                self.assertIn("begins", worker.stdout.readline())
            worker.send_signal(number)
            self.gate.touch()
            out, _ = worker.communicate(timeout=PATIENCE)
            self.assertEqual((worker.returncode, out.count("ends")), (0, 4))
            states = [self.client.jobs.get(job)["state"] for job in jobs]
            self.assertEqual((states.count("done"), states.count("ready")), (4, 2))
            self.client.jobs.change("erase", jobs)
            self.gate.unlink()

    def test_a_function_that_forks_and_returns_in_the_child_ends_the_child(self):
        self.client.queues.set("fork", keep_done_ms=3_600_000)
        for how in ("def", "async def"):
            jobs = [reply.id for reply in self.client.put_many([new_job("fork", str(status)) for status in range(3)]).replies]
            worker = self.start(sys.executable, "-c", FORKING_WORKER.replace("def run", f"{how} run"))
            statuses = sorted(worker.stdout.readline() for _ in jobs)
            self.assertEqual(statuses, ["0 left 0\n", "1 left 1\n", "2 left 2\n"])
            self.assertEqual(worker.wait(PATIENCE), 0)
            self.assertEqual([self.client.jobs.get(job)["state"] for job in jobs], ["done"] * 3)

    def test_a_programs_own_handlers_of_signals_are_back_when_a_worker_has_ended(self):
        worker = self.start(sys.executable, "-c", WORKER_WITH_HANDLERS)
        self.assertEqual(worker.communicate(timeout=PATIENCE)[0], "mine True\n")

    def test_a_worker_that_is_killed_loses_its_jobs_to_another(self):
        self.client.queues.set("slow", lease_time_ms=500)
        self.client.put("slow", str(self.gate))
        worker = self.worker()
        self.assertIn("begins", worker.stdout.readline())
        worker.kill()
        worker.wait()
        other = self.worker()
        self.assertIn("begins", other.stdout.readline())

    def test_a_daemon_that_stops_and_starts_again_is_waited_for(self):
        worker = self.worker()
        self.client.put("slow", str(self.gate))
        self.assertIn("begins", worker.stdout.readline())
        self.server.close()
        self.gate.touch()
        self.assertIn("ends", worker.stdout.readline())
        self.server.open()
        self.client.put("slow", str(self.gate))
        self.assertIn("begins", worker.stdout.readline())
        self.wait_until(lambda: self.client.queues.get("slow")["counts"]["running"] == 0)

    def test_the_mail_queue_with_three_workers_as_the_readme_runs_it(self):
        command = re.search(r"^PYTHONPATH=\. python3 (examples/mail_workers.py) ann bob", README.read_text(), re.M).group(1)
        once = self.start(sys.executable, command, "ann", "bob", "x3", cwd=PACKAGE)
        out, _ = once.communicate(timeout=PATIENCE)
        self.assertEqual((once.returncode, sorted(re.findall("sent welcome to (ann|bob|x3)", out))), (0, ["ann", "bob"]))
        workers = [self.start(sys.executable, command, cwd=PACKAGE) for _ in range(3)]
        self.wait_until(lambda: sum(worker["waiting"] for worker in self.client.workers()) == 3, "they do not wait for mails")
        names = list("abcdefghijkl")
        self.client.put_many([new_job("mail", {"text": "hello"}, key=name) for name in names])
        self.wait_until(self.no_mail_is_left, "some mails were not sent")
        sent = []
        for worker in workers:
            worker.terminate()
            out, _ = worker.communicate(timeout=PATIENCE)
            self.assertEqual(worker.returncode, 0)
            sent += re.findall("sent hello to ([a-l])", out)  # threads may write their lines into one
        self.assertEqual(sorted(sent), names)

    def no_mail_is_left(self):
        counts = self.client.queues.get("mail")["counts"]
        return counts["ready"] == counts["running"] == 0

    @unittest.skipUnless(real_command(), "ARGIOPE is no command that serves")
    def test_killed_in_the_middle_the_daemon_loses_no_job_and_no_end(self):
        # A lease whose answer was lost ends by itself, and each restart may end those that it finds.
        self.client.queues.set("slow", keep_done_ms=3_600_000, lease_time_ms=1000, max_lease_expiries=200)
        jobs = [reply.id for reply in self.client.put_many([new_job("slow", str(README))] * 300).replies]
        worker = self.worker()
        for _ in range(3):
            for _ in range(40):
                worker.stdout.readline()
            self.server.kill()
            self.server.open()
        self.wait_until(lambda: self.client.queues.get("slow")["counts"]["done"] == len(jobs), "some jobs were not done")
        worker.terminate()
        worker.wait(PATIENCE)


if __name__ == "__main__":
    unittest.main()
