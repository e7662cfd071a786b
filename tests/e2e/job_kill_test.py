"""kill -9 at random instants, of who puts jobs and of who runs them: what was acknowledged is done, nothing is done
twice but what a kill interrupted, and never two runs of a job at once. So also while another process locks the store for long.
ARGIOPE_KILLS and ARGIOPE_SEED say how often and when, ARGIOPE_LONGEST_LOCK how many seconds a lock lasts at most. The long
variant: ARGIOPE_KILLS=200 ARGIOPE_LONGEST_LOCK=20."""
import collections
import contextlib
import os
import random
import sqlite3
import subprocess
import threading
import time
import unittest

from support import PATIENCE, Commands, size_of

KILLS = int(os.environ.get('ARGIOPE_KILLS', 12))
SEED = int(os.environ.get('ARGIOPE_SEED', 20260131))
LONGEST_LOCK = float(os.environ.get('ARGIOPE_LONGEST_LOCK', 2))
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
            self.process = test.start_command('job', 'put', '-', stdin=subprocess.PIPE, stdout=out, text=False)

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
        status = self.process.wait(PATIENCE)
        # Killed in the middle of a line, it has not said that line.
        text = self.path.read_text()
        return status, text[:text.rfind('\n') + 1].splitlines()


class Locker:
    """Somebody else who writes to the store for long, now and then."""

    def __init__(self, path, seed):
        self.path, self.chance, self.over, self.locks = path, random.Random(seed), threading.Event(), 0
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        while not self.over.wait(self.chance.uniform(0.2, 1.5)):
            with contextlib.closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as database:
                with contextlib.suppress(sqlite3.OperationalError):
                    database.execute('BEGIN IMMEDIATE')
                    self.locks += 1
                    self.over.wait(self.chance.uniform(LONGEST_LOCK / 20, LONGEST_LOCK))
                    database.execute('ROLLBACK')

    def end(self):
        self.over.set()
        self.thread.join()


class Ledger(Commands):
    def set_up_store(self):
        self.ledger = self.folder / 'ledger'
        self.ledger.touch()
        # A job is run again however often its worker is killed.
        self.job('queue', 'ledger', '--max-expiries', 1_000_000)

    def start_worker(self, life, *options, **how):
        environment = dict(os.environ, LEDGER=str(self.ledger), LIFE=str(life))
        return self.start_command('job', 'work', 'ledger', '--quiet', '--concurrency', CONCURRENCY, *options, '--',
                                  'sh', '-c', JOB, env=environment, **how)

    def check_ledger(self, acknowledged, killed, ended_lives):
        runs = collections.defaultdict(list)  # name: the lives in which it was started, in order
        ends = collections.Counter()
        open_runs = {}  # name: the life of the run that has not ended
        turns = {}  # life: which one it was that owned the store. The one that waits to take over may be the older one.
        outlived = 0
        for line in self.ledger.read_text().splitlines():
            what, life, name, _ = line.split(' ')
            life = int(life)
            turns.setdefault(life, len(turns))
            if what == 'start':
                if name in open_runs:
                    self.assertIn(open_runs[name], ended_lives, f'{name} was started while it ran')
                    self.assertNotEqual(open_runs[name], life, f'{name} was started while it ran')
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
            # By lives: the first line of a command whose worker has just died may come after the next one's.
            for life in sorted(started, key=turns.get)[:-1]:
                again[life] += 1  # that life was ended by a kill, with this run in it
        print(f'{len(acknowledged)} jobs, {sum(map(len, runs.values()))} runs, kills {killed}, '
              f'{sum(again.values())} runs repeated, {outlived} outlived their worker', flush=True)
        self.assertEqual(acknowledged - set(ends), set(), 'acknowledged and never done')
        self.assertEqual(set(runs) - acknowledged, set(), 'done and never put')
        self.assertLessEqual(max(again.values(), default=0), CONCURRENCY, 'more was repeated than a kill interrupted')
        self.assertEqual(outlived, 0, 'a command outlived its worker and a second run of its job')
        with contextlib.closing(sqlite3.connect(self.file)) as database:
            self.assertEqual(database.execute('PRAGMA integrity_check').fetchone()[0], 'ok')
            done = database.execute("SELECT count(*) FROM job_list WHERE state = 'done'").fetchone()[0]
            self.assertEqual(done, len(acknowledged))
        stats = self.json('stats')[0]
        self.assertEqual(stats['queues']['ledger']['running'], 0, 'running for ever')


class JobKill(Ledger):
    def test_acknowledged_jobs_survive_every_kill_and_no_job_runs_twice_at_once(self):
        print(f'seed {SEED}, {KILLS} kills', flush=True)
        chance = random.Random(SEED)
        self.set_up_store()
        asked, acknowledged = [], set()
        lives = collections.Counter()
        killed = collections.Counter()
        worker, producer = self.start_worker(0), Producer(self, 0)
        for _ in range(KILLS):
            fresh = [f'job-{n}' for n in range(len(asked), len(asked) + JOBS_A_ROUND)]
            asked += fresh
            run_before = size_of(self.ledger)
            producer.feed(fresh)
            # A first job has been put and has begun, or ended: the kill comes into the middle of the others.
            self.wait_until(lambda: size_of(self.ledger) > run_before, 'no job was run')
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
        self.assertEqual(self.start_worker(lives['worker'] + 1, '--until-empty', '--fail-on-buried').wait(600), 0)
        self.check_ledger(acknowledged, dict(killed), range(lives['worker'] + 1))


class JobKillUnderLocks(Ledger):
    """Two workers, of which one owns the store and the other waits to take over, and three producers."""

    def test_nothing_is_lost_or_runs_for_ever_while_another_process_locks_the_store(self):
        print(f'seed {SEED}, {KILLS} kills, locks of up to {LONGEST_LOCK} s', flush=True)
        chance = random.Random(SEED)
        self.set_up_store()
        self.lives, self.ended = 0, set()
        killed = collections.Counter()
        workers = [self.next_worker(), self.next_worker()]
        producers = [Producer(self, f'{n}-0') for n in range(3)]
        asked = [[], [], []]
        acknowledged = set()
        locker = Locker(self.file, SEED)
        self.addCleanup(locker.end)
        for kill in range(1, KILLS + 1):
            for n, producer in enumerate(producers):
                fresh = [f'job-{n}-{i}' for i in range(len(asked[n]), len(asked[n]) + JOBS_A_ROUND // 3)]
                asked[n] += fresh
                producer.feed(fresh)
            time.sleep(chance.uniform(0.0, LONGEST_LOCK / 3))
            # Those that were turned away, because the other one owns the store or somebody locks it, try again.
            for n, (life, worker) in enumerate(workers):
                if worker.poll() is not None:
                    workers[n] = self.next_worker(ended=life)
            victim = chance.randrange(5)
            killed['worker' if victim < 2 else 'producer'] += 1
            if victim < 2:
                life, worker = workers[victim]
                worker.kill()
                worker.wait()
                workers[victim] = self.next_worker(ended=life)
            else:
                n = victim - 2
                acknowledged.update(producers[n].end(kill=True)[1])
                producers[n] = Producer(self, f'{n}-{kill}')
                producers[n].feed([name for name in asked[n] if name not in acknowledged])
        locker.end()
        for n, producer in enumerate(producers):
            status, last = producer.end(kill=False)
            acknowledged.update(last)
            if status != 0:  # it gave up on a lock; what it has not said is asked for again
                again = Producer(self, f'{n}-last')
                again.feed([name for name in asked[n] if name not in acknowledged])
                status, last = again.end(kill=False)
                acknowledged.update(last)
            self.assertEqual(status, 0)
        self.assertEqual(acknowledged, {name for names in asked for name in names}, 'put has not answered for each job')
        for life, worker in workers:
            worker.kill()
            worker.wait()
            self.ended.add(life)
        self.assertGreater(locker.locks, 0)
        last_life = self.lives
        self.assertEqual(self.start_worker(last_life, '--until-empty', '--fail-on-buried').wait(600), 0)
        self.check_ledger(acknowledged, dict(killed), self.ended | {last_life})

    def next_worker(self, ended=None):
        if ended is not None:
            self.ended.add(ended)
        self.lives += 1
        return self.lives - 1, self.start_worker(self.lives - 1, stderr=subprocess.DEVNULL)


if __name__ == '__main__':
    unittest.main()
