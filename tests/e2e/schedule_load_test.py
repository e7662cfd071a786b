"""A real `argiope schedule run` on a busy machine: twenty schedules of every overlap policy, five planned times a second
each, beside a loop that keeps every core busy. Every planned time is accounted for, none is skipped that its policy does not
skip, cancel-running goes on to the end, and SIGTERM stops it all within ten seconds.
ARGIOPE_LOAD_SECONDS says how long (default 12; 300 is the long variant)."""
import collections
import datetime
import json
import os
import signal
import subprocess
import sys
import time
import unittest

from support import Commands

SECONDS = float(os.environ.get('ARGIOPE_LOAD_SECONDS', 12))
PERIOD_MS = 200
# Overlap policies, and with each: how many may run, how long a run takes in seconds.
VARIANTS = [(1, 0), (1, 0.3), (2, 0.5), (3, 0.1), (30, 1)]
POLICIES = ['skip', 'queue-one', 'queue-all', 'cancel-running']
# Stopping lets runs end for ten seconds; what a busy machine needs for the rest is no promise of ours.
STOP_SECONDS = 10 + 5


def milliseconds(text):
    return round(datetime.datetime.fromisoformat(text).timestamp() * 1000)


class ScheduleLoad(Commands):
    family = 'schedule'

    def test_every_planned_time_is_accounted_for_on_a_busy_machine(self):
        ledger = self.folder / 'ledger'
        ledger.touch()
        policy_of = {}
        for policy in POLICIES:
            for instances, takes in VARIANTS:
                # A queue that only grows would measure this machine: what waits in line gets through.
                if policy == 'queue-all' and takes * 5 > instances:
                    takes = 0
                name = f'{policy}-{instances}-{takes}'
                while name in policy_of:
                    name += '+'
                policy_of[name] = policy
                self.schedule('add', name, '--every', f'{PERIOD_MS}ms', '--overlap', policy, '--max-instances', instances,
                              '--coalesce', 'all', '--most-catch-up', 1000, '--max-attempts', 1, '--',
                              '/bin/sh', '-c', f'echo "$ARGIOPE_SCHEDULE_NAME $ARGIOPE_SCHEDULE_PLANNED_AT" >> {ledger}; '
                              f'exec sleep {takes}')
        for _ in range(os.cpu_count()):
            self.start([sys.executable, '-c', 'while True: pass'])
        events = self.folder / 'events.jsonl'
        with events.open('w') as out:
            run = self.start_command('schedule', 'run', '--json', '--concurrency', 500, stdout=out, stderr=subprocess.DEVNULL)
            with self.assertRaises(subprocess.TimeoutExpired, msg='it ended by itself'):
                run.wait(SECONDS)
            run.send_signal(signal.SIGTERM)
            stopping = time.monotonic()
            run.wait(120)
            took = time.monotonic() - stopping
        print(f'stopped in {took:.1f} s', flush=True)
        self.assertLess(took, STOP_SECONDS)
        self.check(policy_of, [json.loads(line) for line in events.read_text().splitlines()])

    def check(self, policy_of, events):
        planned = collections.defaultdict(list)
        skipped, last_seen = collections.Counter(), {}
        runs_of = collections.defaultdict(set)
        ended_of = collections.defaultdict(set)
        for event in events:
            name, kind = event.get('schedule'), event['event']
            if name not in policy_of:
                continue
            if kind in ('job_executed', 'job_error', 'job_cancelled'):
                last_seen[name] = milliseconds(event['at'])
                ended_of[name].add(event['run'])
            if kind not in ('job_submitted', 'job_missed', 'job_max_instances'):
                continue
            first = milliseconds(event['planned'])
            last = milliseconds(event.get('last_planned', event['planned']))
            if kind == 'job_submitted':
                runs_of[name].add(event['run'])
                planned[name].append(first)
                continue
            if kind == 'job_max_instances':
                why = {'skip': 'of its runs had not ended', 'queue-one': 'a run waits already'}.get(policy_of[name])
                self.assertTrue(why and why in event['text'], f'{name}: {event}')
            else:
                self.fail(f'{name}: {event}')
            new = range(first, last + 1, PERIOD_MS)
            self.assertEqual(len(new), event.get('count', 1), f'{name}: {event}')
            skipped[name] += len(new)
            planned[name].extend(new)
        total = 0
        for name, policy in policy_of.items():
            times = sorted(planned[name])
            self.assertTrue(times, name)
            self.assertEqual(times, list(range(times[0], times[-1] + 1, PERIOD_MS)), f'{name}: a planned time twice or never')
            if policy in ('queue-all', 'cancel-running'):
                self.assertEqual(skipped[name], 0, name)
            if policy == 'cancel-running':
                # Runs have ended up to the end: it does not wedge.
                self.assertGreater(last_seen[name], times[-1] - 1000 * max(5, SECONDS / 4), f'{name} is stuck')
            active = self.json('show', name)[0]['active']
            # What was put and has not ended is known as such.
            self.assertEqual(active, len(runs_of[name] - ended_of[name]), name)
            total += len(times)
        print(f'{total} planned times, {sum(skipped.values())} skipped by their policies', flush=True)


if __name__ == '__main__':
    unittest.main()
