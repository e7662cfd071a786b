"""kill -9 of `argiope schedule run` at random instants while it fires: no planned time is lost and none fires twice.
ARGIOPE_KILLS and ARGIOPE_SEED say how often and when."""
import collections
import contextlib
import datetime
import json
import os
import random
import sqlite3
import time
import unittest

from support import PATIENCE, Commands

KILLS = int(os.environ.get('ARGIOPE_KILLS', 25))
SEED = int(os.environ.get('ARGIOPE_SEED', 20260131))
PERIODS_MS = {'every-50': 50, 'every-70': 70, 'every-130': 130, 'every-300': 300}


def milliseconds(text):
    return round(datetime.datetime.fromisoformat(text).timestamp() * 1000)


class ScheduleKill(Commands):
    family = 'schedule'

    def start_run(self, *options):
        return self.start_command('schedule', 'run', '--quiet', *options)

    def wait_until_it_fires(self):
        """Who fires has long begun to listen for signals."""
        with contextlib.closing(sqlite3.connect(self.file)) as database:
            fired = lambda: database.execute('SELECT sum(fired) FROM schedule_list').fetchone()[0]
            before = fired()
            self.wait_until(lambda: fired() != before, 'nothing fired')

    def add(self, name, *when):
        # Every planned time is to become a job, however long nobody was there, and however many wait.
        self.schedule('add', name, *when, '--queue', 'ledger', '--fill-in', '--payload',
                      '{"name":"{name}","planned":"{planned_at}","run":{run}}', '--max-instances', 1_000_000)

    def test_no_planned_time_is_lost_and_none_fires_twice(self):
        print(f'seed {SEED}, {KILLS} kills', flush=True)
        chance = random.Random(SEED)
        every = ['--coalesce', 'all', '--most-catch-up', 1000]
        for name, period in PERIODS_MS.items():
            self.add(name, '--every', f'{period}ms', *every)
        self.add('each-second', '--cron', '* * * * * *', *every)
        self.add('latest', '--every', '40ms')
        self.add('asked', '--at', '2199-01-01T00:00:00Z')
        asked = []
        process = self.start_run()
        for kill in range(KILLS):
            self.wait_until_it_fires()  # so that a kill interrupts work, and before more is overdue than is caught up with
            time.sleep(chance.uniform(0.0, 0.25))
            if kill % 5 == 0:  # by somebody else, who is not killed
                asked.append(int(self.schedule('run-now', 'asked')))
            process.kill()
            process.wait()
            time.sleep(chance.choice([0, 0, 0.1]))
            process = self.start_run()
        self.wait_until_it_fires()
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 130)
        self.check(asked)

    def test_every_planned_time_is_run_and_only_what_a_kill_interrupted_is_run_again(self):
        print(f'seed {SEED}, {KILLS} kills', flush=True)
        chance = random.Random(SEED)
        ledger = self.folder / 'ledger'
        ledger.touch()
        # A job is run again however often its worker is killed.
        self.job('queue', 'default', '--max-expiries', 1_000_000)
        self.schedule('add', 'note', '--every', '60ms', '--coalesce', 'all', '--most-catch-up', 1000, '--max-instances',
                      1_000_000, '--', 'sh', '-c',
                      f'echo $ARGIOPE_SCHEDULE_RUN $ARGIOPE_SCHEDULE_PLANNED_AT >> {ledger}')
        concurrency = 4
        process = self.start_run('--concurrency', str(concurrency))
        for kill in range(KILLS):
            self.wait_until_it_fires()
            time.sleep(chance.uniform(0.0, 0.25))
            process.kill()
            process.wait()
            process = self.start_run('--concurrency', str(concurrency))
        self.wait_until_it_fires()
        self.schedule('pause', 'note')
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 130)
        self.assertEqual(self.start_run('--until-idle', '--fail-on-failed').wait(600), 0)
        status = self.json('list')[0]
        times = collections.Counter()
        runs = collections.defaultdict(set)
        for line in ledger.read_text().splitlines():
            run, planned = line.split(' ')
            times[milliseconds(planned)] += 1
            runs[milliseconds(planned)].add(run)
        self.assertEqual((status['missed'], status['active']), (0, 0))
        self.assertEqual(status['runs'], len(times), 'fired and never run, or run and never fired')
        self.assertEqual(sorted(times), list(range(min(times), max(times) + 1, 60)), 'a planned time was lost')
        self.assertEqual(min(times) - self.anchor('note'), 60, 'the first was lost')
        self.assertTrue(all(len(numbers) == 1 for numbers in runs.values()), 'a planned time fired twice')
        again = sum(times.values()) - len(times)
        print(f'{len(times)} planned times, {sum(times.values())} commands, {again} of them again', flush=True)
        self.assertLessEqual(again, KILLS * concurrency, 'more was repeated than kills interrupted')

    def check(self, asked):
        planned = collections.defaultdict(list)
        runs = collections.defaultdict(list)
        ids = collections.defaultdict(list)
        for job in map(json.loads, self.job('list', '--queue', 'ledger', '--json', '--limit', 100_000_000).splitlines()):
            payload = json.loads(job['payload'])
            planned[payload['name']].append(milliseconds(payload['planned']))
            runs[payload['name']].append(payload['run'])
            ids[payload['name']].append(job['id'])
        statuses = {status['name']: status for status in self.json('list')}
        lost = doubled = 0
        for name, status in statuses.items():
            times = planned[name]
            self.assertEqual(status['runs'], len(times), f'{name}: jobs and runs differ')
            self.assertEqual(status['active'], len(times), f'{name}: nobody has worked on them')
            doubled += len(times) - len(set(times)) if name != 'asked' else 0
            self.assertEqual(len(runs[name]), len(set(runs[name])), f'{name}: two jobs of one run')
            if name == 'asked':
                self.assertEqual(sorted(ids[name]), asked)
                continue
            self.assertEqual(times, sorted(times), f'{name}: not in order')
            period = 40 if name == 'latest' else PERIODS_MS.get(name, 1000)
            expected = (times[-1] - times[0]) // period + 1
            self.assertTrue(all((at - times[0]) % period == 0 for at in times), f'{name}: a time that was not planned')
            if name == 'latest':
                # What came due together is one run, and the others are counted.
                self.assertEqual(status['runs'] + status['missed'],
                                 (milliseconds(status['last']) - self.anchor(name)) // period)
            else:
                lost += expected - len(set(times))
                self.assertEqual(status['missed'], 0, f'{name}: missed')
                self.assertEqual(milliseconds(status['last']), times[-1])
                if name != 'each-second':
                    self.assertEqual(times[0] - self.anchor(name), period, f'{name}: the first was lost')
            history = self.json('history', name)
            fired = [entry for entry in history if entry['outcome'] == 'running']
            self.assertEqual([entry['job'] for entry in fired], ids[name][::-1][:len(fired)], f'{name}: history')
            self.assertEqual([milliseconds(entry['planned']) for entry in fired], times[::-1][:len(fired)])
        print(f'{sum(map(len, planned.values()))} runs of {len(statuses)} schedules, '
              f'{statuses["latest"]["missed"]} times left out by coalescing, {lost} lost, {doubled} doubled', flush=True)
        self.assertEqual((lost, doubled), (0, 0))
        with contextlib.closing(sqlite3.connect(self.file)) as database:
            self.assertEqual(database.execute('PRAGMA integrity_check').fetchone()[0], 'ok')

    def anchor(self, name):
        status = self.json('show', name)[0]
        return milliseconds(status['schedule']['trigger']['anchor'])


if __name__ == '__main__':
    unittest.main()
