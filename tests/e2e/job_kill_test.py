"""kill -9 at random instants, of who puts jobs and of who runs them: what was acknowledged is done, nothing is done
twice but what a kill interrupted, and never two runs of a job at once. ARGIOPE_KILLS and ARGIOPE_SEED say how often and
when."""
import collections
import contextlib
import os
import random
import sqlite3
import subprocess
import time
import unittest

from support import ARGIOPE, EndToEnd

KILLS = int(os.environ.get('ARGIOPE_KILLS', 25))
SEED = int(os.environ.get('ARGIOPE_SEED', 20260131))
CONCURRENCY = 4
JOBS_A_ROUND = 30
# What a job does: a line when it starts, a moment of work, a line when it ends. One write each, to the end of the ledger.
JOB = '''echo start $LIFE $ARGIOPE_JOB_NAME $ARGIOPE_JOB_ATTEMPT >> "$LEDGER"
i=0; while [ $i -lt 1500 ]; do i=$((i+1)); done
echo end $LIFE $ARGIOPE_JOB_NAME $ARGIOPE_JOB_ATTEMPT >> "$LEDGER"'''


class Producer:
    """One life of `argiope job put -`. What it acknowledges goes to a file of its own."""

    def __init__(self, test, life):
        self.path = test.folder / f'acknowledged-{life}'
        with open(self.path, 'wb') as out:
            self.process = test.start([ARGIOPE, 'job', 'put', '--store', test.store, '-'], stdin=subprocess.PIPE,
                                      stdout=out)

    def feed(self, names):
        lines = ''.join(f'{{"queue":"ledger","id":"{name}","payload":{{"n":"{name}"}}}}\n' for name in names)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(lines.encode())
            self.process.stdin.flush()

    def end(self, kill):
        if kill:
            self.process.kill()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        status = self.process.wait(60)
        # Killed in the middle of a line, it has not said that line.
        text = self.path.read_text()
        return status, text[:text.rfind('\n') + 1].splitlines()


class JobKill(EndToEnd):
    def start_worker(self, life, *options):
        environment = dict(os.environ, LEDGER=str(self.ledger), LIFE=str(life))
        return self.start([ARGIOPE, 'job', 'work', 'ledger', '--store', self.store, '--quiet', '--concurrency',
                           str(CONCURRENCY), *options, '--', 'sh', '-c', JOB], env=environment)

    def test_acknowledged_jobs_survive_every_kill_and_no_job_runs_twice_at_once(self):
        print(f'seed {SEED}, {KILLS} kills', flush=True)
        chance = random.Random(SEED)
        self.store = f'sqlite:{self.folder / "jobs.db"}'
        self.ledger = self.folder / 'ledger'
        self.ledger.touch()
        # A job is to be run again however often its worker is killed.
        subprocess.run([ARGIOPE, 'job', 'queue', 'ledger', '--store', self.store, '--max-expiries', '1000000'],
                       check=True, stdout=subprocess.DEVNULL)
        asked, acknowledged = [], set()
        lives = collections.Counter()
        killed = collections.Counter()
        worker, producer = self.start_worker(0), Producer(self, 0)
        for _ in range(KILLS):
            fresh = [f'job-{n}' for n in range(len(asked), len(asked) + JOBS_A_ROUND)]
            asked += fresh
            producer.feed(fresh)
            time.sleep(chance.uniform(0.0, 0.15))
            victim = chance.choice(['worker', 'producer', 'worker', 'both'])
            killed[victim] += 1
            if victim in ('worker', 'both'):
                worker.kill()
                worker.wait()
                lives['worker'] += 1
                worker = self.start_worker(lives['worker'])
            if victim in ('producer', 'both'):
                acknowledged.update(producer.end(kill=True)[1])
                lives['producer'] += 1
                producer = Producer(self, lives['producer'])
                # Whoever has had no answer asks again; the name keeps it from being a second job.
                producer.feed([name for name in asked if name not in acknowledged])
        status, last = producer.end(kill=False)
        self.assertEqual(status, 0)
        acknowledged.update(last)
        self.assertEqual(acknowledged, set(asked), 'put has not answered for each job')
        worker.kill()
        worker.wait()
        self.assertEqual(self.start_worker(lives['worker'] + 1, '--until-empty', '--fail-on-buried').wait(60 + 2 * KILLS), 0)
        self.check_ledger(acknowledged, dict(killed))

    def check_ledger(self, acknowledged, killed):
        runs = collections.defaultdict(list)  # name: the lives in which it was started, in order
        ends = collections.Counter()
        open_runs = {}  # name: the life of the run that has not ended
        outlived = 0
        for line in self.ledger.read_text().splitlines():
            what, life, name, _ = line.split(' ')
            life = int(life)
            if what == 'start':
                if name in open_runs:
                    self.assertLess(open_runs[name], life, f'{name} was started while it ran')
                runs[name].append(life)
                open_runs[name] = life
            else:
                ends[name] += 1
                if open_runs.get(name) == life:
                    del open_runs[name]
                else:
                    outlived += 1  # its worker was dead, and it had been started again
        again = collections.Counter()
        for name, started in runs.items():
            self.assertEqual(len(set(started)), len(started), f'{name} ran twice in one life of the worker')
            for life in started[:-1]:
                again[life] += 1  # that life was ended by a kill, with this run in it
        print(f'{len(acknowledged)} jobs, {sum(map(len, runs.values()))} runs, kills {killed}, '
              f'{sum(again.values())} runs repeated, {outlived} outlived their worker', flush=True)
        self.assertEqual(acknowledged - set(ends), set(), 'acknowledged and never done')
        self.assertEqual(set(runs) - acknowledged, set(), 'done and never put')
        self.assertLessEqual(max(again.values(), default=0), CONCURRENCY, 'more was repeated than a kill interrupted')
        self.assertEqual(outlived, 0, 'a command outlived its worker and a second run of its job')
        with contextlib.closing(sqlite3.connect(self.folder / 'jobs.db')) as database:
            self.assertEqual(database.execute('PRAGMA integrity_check').fetchone()[0], 'ok')
            done = database.execute("SELECT count(*) FROM job_list WHERE state = 'done'").fetchone()[0]
            self.assertEqual(done, len(acknowledged))


if __name__ == '__main__':
    unittest.main()
