"""kill -9 at random instants of the daemon, of its workers (Python and JavaScript over HTTP, and the beanstalkd protocol),
and of those who put jobs by either protocol, all on one queue. What was acknowledged is done; nothing is done twice but what
lost its lease; what is asked twice with one idempotency key is done once. ARGIOPE_KILLS and ARGIOPE_SEED say how often and
when; the long variant: ARGIOPE_KILLS=200."""
import collections
import contextlib
import os
import pathlib
import random
import sqlite3
import subprocess
import sys
import time
import unittest

from argiope_client import Client, PACKAGES
from daemon import Daemons

KILLS = int(os.environ.get('ARGIOPE_KILLS', 7))
SEED = int(os.environ.get('ARGIOPE_SEED', 20261122))
HERE = pathlib.Path(__file__).resolve().parent
LEASE_SECONDS = 3
SECOND = 1_000_000_000  # in what ledgers measure

# By role: the program, and how many of it there are.
WORKERS = {'http_worker.py': 2, 'http_worker.mjs': 1, 'beanstalkd_worker.py': 2}
PRODUCERS = {'http_producer.py': 2, 'beanstalkd_producer.py': 2}


class Run:
    """One run of a job, as its ledger tells. It was leased after `asked`, and may have waited for others, or for its process."""

    def __init__(self, start, life, asked):
        self.start, self.life, self.asked, self.ended, self.is_deleted = start, life, asked, False, False


class Role:
    """One program, in one life after another. `path`: the ledger of all of them."""

    def __init__(self, test, program, number):
        self.test, self.program, self.lives = test, program, 0
        self.name = f'{program.replace(".", "_")}-{number}'
        self.path = test.folder / f'ledger-{self.name}'
        self.path.touch()
        test.addCleanup(self.clean_up)
        self.start()

    def start(self):
        # A kill ends a write between two pages of the file: what the line says was not begun.
        written = self.path.read_bytes()
        os.truncate(self.path, written.rfind(b'\n') + 1)
        self.lives += 1
        self.life = f'{self.name}-{self.lives}'
        command = ['node'] if self.program.endswith('.mjs') else [sys.executable]
        environment = {**os.environ, **self.test.addresses, 'LEDGER': str(self.path), 'LIFE': self.life,
                       'LEASE_SECONDS': str(LEASE_SECONDS), 'PYTHONPATH': f'{HERE}:{PACKAGES}'}
        with open(self.test.folder / f'log-{self.name}', 'a') as log:
            self.process = subprocess.Popen([*command, str(HERE / 'ledger' / self.program)], env=environment, stderr=log)

    def clean_up(self):
        """It may wait for a daemon that is there no more."""
        self.process.kill()
        self.process.wait()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.test.killed_lives.add(self.life)

    def end(self):
        self.process.terminate()
        self.test.assertEqual(self.process.wait(60), 0, (self.test.folder / f'log-{self.name}').read_text())

    def lines(self):
        """(nanoseconds, life, what, words) of each line."""
        for line in self.path.read_text().splitlines():
            at, life, what, *words = line.split(' ')
            yield int(at), life, what, words

    def size(self):
        return self.path.stat().st_size


class ServeKill(Daemons):
    def test_acknowledged_jobs_survive_every_kill_and_none_is_done_twice_but_by_a_lost_lease(self):
        print(f'seed {SEED}, {KILLS} kills', flush=True)
        self.chance = random.Random(SEED)
        self.set_up()
        victims = collections.Counter()
        for _ in range(KILLS):
            self.wait_for_load()
            time.sleep(self.chance.uniform(0, 0.2))
            victim = self.next_victim(victims)
            victims[victim] += 1
            self.kill(victim)
        self.wind_up()
        self.check_puts()
        self.check_runs()
        self.check_store()
        print(f'{len(self.jobs)} jobs, kills {dict(victims)}', flush=True)

    def check_store(self):
        with contextlib.closing(sqlite3.connect(self.store.removeprefix('sqlite:'))) as database:
            self.assertEqual(database.execute('PRAGMA integrity_check').fetchone()[0], 'ok')

    # Life and death.

    def set_up(self):
        self.sockets = {'http': self.listening(), 'beanstalkd': self.listening()}
        self.daemon_kills, self.killed_lives = [], set()
        self.daemon = self.supervised(self.sockets)
        self.addresses = {'ARGIOPE_URL': f'http://127.0.0.1:{self.daemon.port}',
                          'BEANSTALKD_PORT': str(self.sockets['beanstalkd'].getsockname()[1])}
        self.client = Client(self.addresses['ARGIOPE_URL'])
        self.addCleanup(self.client.close)
        # A job is run again however often its lease runs out, and is there to be looked at when it is done.
        self.client.queues.set('ledger', keep_done_ms=86_400_000, lease_time_ms=1000 * LEASE_SECONDS,
                               max_lease_expiries=1_000_000)
        self.workers = self.start_roles(WORKERS)
        self.producers = self.start_roles(PRODUCERS)

    def start_roles(self, programs):
        return [Role(self, program, number) for program, count in programs.items() for number in range(count)]

    def wait_for_load(self, of_each=False):
        """Until each kind of producer and of worker, or each of them, has done something since this was called."""
        before = {role: role.size() for role in self.workers + self.producers}

        def all_have():
            idle = [role for role, size in before.items() if role.size() < size + 100]
            busy = {role.program for role in before if role not in idle}
            return not idle if of_each else len(busy) == len(WORKERS) + len(PRODUCERS)
        self.wait_until(all_have, 'not all were at work', 300)

    def next_victim(self, victims):
        """Each kind once, and then the daemon half of the time."""
        kinds = ['daemon', 'daemon and worker', *WORKERS, *PRODUCERS]
        fresh = [kind for kind in kinds if kind not in victims]
        if fresh:
            return self.chance.choice(fresh)
        return self.chance.choice(['daemon', 'daemon and worker', self.chance.choice(list(WORKERS)),
                                   self.chance.choice(list(PRODUCERS))])

    def kill(self, victim):
        dying = [self.chance.choice([role for role in self.workers + self.producers if role.program == victim])] \
            if victim in {**WORKERS, **PRODUCERS} else []
        if victim == 'daemon and worker':
            dying = [self.chance.choice(self.workers)]
        if victim.startswith('daemon'):
            self.daemon.process.kill()
            self.daemon_kills.append(time.monotonic_ns())
        for role in dying:
            role.kill()
        if victim.startswith('daemon'):
            self.daemon.process.wait()
            self.daemon = self.supervised(self.sockets)
        for role in dying:
            role.start()

    def wind_up(self):
        """Nothing more is put, what was put is done, and all end by themselves."""
        self.wait_for_load(of_each=True)
        for role in self.producers:
            role.end()

        def is_done():
            counts = self.client.queues.get('ledger')['counts']
            return counts['ready'] + counts['delayed'] + counts['running'] == 0
        self.wait_until(is_done, 'not all was done', 300 + KILLS)
        for role in self.workers:
            role.end()
        self.jobs = {job['id']: job for job in self.client.jobs.list(queue='ledger', payloads=True)}
        self.daemon.process.terminate()
        self.daemon.ended()

    # What the ledgers say.

    def check_puts(self):
        by_name = collections.defaultdict(list)
        for job in self.jobs.values():
            by_name[job['payload']].append(job['id'])
        self.assertEqual({name: ids for name, ids in by_name.items() if len(ids) > 1}, {}, 'one put, several jobs')
        asked, repeated = set(), 0
        for role in self.producers:
            over_http = role.program.startswith('http')
            keys, answered = {}, {}
            for _, _, what, (name, *words) in role.lines():
                if what == 'put':
                    keys[name] = int(words[0]) if over_http else 1
                    continue
                ids = list(map(int, words))
                repeated += what == 'repeated' or name in answered
                self.assertEqual(answered.setdefault(name, ids), ids, f'{name} was put as several jobs')
                names = [name] if len(ids) == 1 else [f'{name}.{i}' for i in range(len(ids))]
                self.assertEqual([by_name.get(one) for one in names], [[one] for one in ids],
                                 f'{name} was acknowledged, and lost')
            if over_http:
                self.assertEqual(set(keys) - set(answered), set(), 'not answered')
            asked.update(f'{name}.{i}' if count > 1 else name for name, count in keys.items() for i in range(count))
        self.assertEqual(set(by_name) - asked, set(), 'never put')
        self.assertGreater(repeated, 0)
        print(f'{repeated} puts repeated with their idempotency key', flush=True)

    def check_runs(self):
        self.assertEqual({job['state'] for job in self.jobs.values()}, {'done'})
        runs = self.runs()
        self.assertEqual(set(self.jobs) - set(runs), set(), 'done, and never run')
        self.assertEqual(set(runs) - set(self.jobs), set(), 'run, and never put')
        why = collections.Counter()
        for job, its in runs.items():
            for run, following in zip(its, its[1:]):
                why[self.why_again(job, run, following)] += 1
            self.assertTrue(its[-1].ended, f'{job} is done, and its last run has not ended')
            self.check_who_did_it(self.jobs[job], its)
        print(f'{sum(map(len, runs.values()))} runs; run again: {dict(why)}', flush=True)

    def runs(self):
        """By job, in the order of their leases: a process that stops for long begins with what is another's already."""
        runs = collections.defaultdict(list)
        for role in self.workers:
            latest, asked = {}, None
            for at, life, what, (word, *more) in role.lines():
                job = int(word)
                if what == 'asks':
                    asked = at
                elif what == 'start':
                    latest[job] = Run(at, life, int(more[0]) if more else asked)
                    runs[job].append(latest[job])
                elif what == 'end':
                    latest[job].ended = True
                elif what == 'deleted':
                    latest[job].is_deleted = True
                else:  # its lease was lost
                    self.assertGreaterEqual(at - latest[job].asked, LEASE_SECONDS * SECOND, f'{job} was taken from {life}')
        for its in runs.values():
            its.sort(key=lambda run: run.asked)
        return runs

    def why_again(self, job, run, following):
        self.assertFalse(run.is_deleted, f'{job} was deleted by {run.life}, and run again by {following.life}')
        if run.life in self.killed_lives:
            return 'its worker was killed'
        if run.life.startswith('beanstalkd') and any(run.asked < kill < following.start for kill in self.daemon_kills):
            return 'its connection was lost'
        self.assertGreaterEqual(following.start - run.asked, LEASE_SECONDS * SECOND,
                                f'{job} was run by {run.life}, and again by {following.life}')
        return 'its lease ran out'

    def check_who_did_it(self, job, runs):
        """What is kept as the result is what a run of it that has ended said; beanstalkd's clients say nothing."""
        said = {'' if run.life.startswith('beanstalkd') else run.life for run in runs if run.ended}
        self.assertIn(job['result'], said, job)


if __name__ == '__main__':
    unittest.main()
