"""Workers in both languages and the real daemon, killed at random moments: every job is done, and each worker's ledger says so.

ARGIOPE_KILL_SECONDS (6) says for how long; ARGIOPE_KILL_SEED which moments.
"""
import collections
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

from argiope import Client, new_job

from .running_daemon import PACKAGE, PATIENCE, DaemonTest, real_command

PYTHON = """
import random, sys, time
from argiope import Worker
worker, ledger = Worker(concurrency=8), open(sys.argv[1], "a", buffering=1)
@worker.job("ledger")
def write(job):
    time.sleep(random.random() * 0.004)
    ledger.write(f"{job.id}\\n")
    return str(job.id)
worker.run()
"""
JAVASCRIPT = """
import { appendFileSync } from "node:fs";
import { Worker } from "PACKAGE/src/index.js";
const worker = new Worker(undefined, { concurrency: 8, log: () => {} });
worker.job("ledger", async (job) => {
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 4));
  appendFileSync(process.argv[1], `${job.id}\\n`);
  return String(job.id);
});
await worker.run();
""".replace(
    "PACKAGE", str(PACKAGE.parent / "js")
)


@unittest.skipUnless(real_command(), "ARGIOPE is no command that serves")
class Ledger(DaemonTest):
    def setUp(self):
        super().setUp()
        self.client = Client(self.url)
        self.addCleanup(self.client.close)
        self.ledger = os.path.join(self.server.folder, "ledger")
        self.dice = random.Random(int(os.environ.get("ARGIOPE_KILL_SEED", "1")))

    def worker(self, number):
        if number == 0 and shutil.which("node"):
            return self.start("node", "--input-type=module", "-e", JAVASCRIPT, self.ledger, stderr=subprocess.DEVNULL)
        return self.start(sys.executable, "-c", PYTHON, self.ledger, stderr=subprocess.DEVNULL)

    def disturb(self, workers):
        chance = self.dice.random()
        if chance < 0.08:
            self.server.kill()
            self.server.open()
        elif chance < 0.25:
            number = self.dice.randrange(len(workers))
            workers[number].send_signal(self.dice.choice([signal.SIGKILL, signal.SIGTERM]))
            workers[number].wait(PATIENCE)
            workers[number] = self.worker(number)

    def test_no_job_is_lost_whoever_is_killed(self):
        # A lease that nobody knows of ends by itself, and each restart may end those that it finds.
        self.client.queues.set("ledger", keep_done_ms=3_600_000, lease_time_ms=1000, max_lease_expiries=250)
        workers = [self.worker(number) for number in range(3)]
        jobs = []
        end_at = time.monotonic() + float(os.environ.get("ARGIOPE_KILL_SECONDS", "6"))
        while time.monotonic() < end_at:
            jobs += [reply.id for reply in self.client.put_many([new_job("ledger")] * 100).replies]
            time.sleep(0.1)
            self.disturb(workers)
        self.wait_until(lambda: self.client.queues.get("ledger")["counts"]["done"] == len(jobs), "some jobs were not done")
        with open(self.ledger) as lines:
            runs = collections.Counter(int(line) for line in lines)
        self.assertEqual(set(runs), set(jobs))
        for worker in workers:
            worker.terminate()
            self.assertIn(worker.wait(PATIENCE), (0, -signal.SIGTERM))


if __name__ == "__main__":
    unittest.main()
