"""`argiope schedule` as its users see it: what it prints, how it ends, and what it says of bad input."""
import contextlib
import datetime
import http.server
import json
import os
import signal
import sqlite3
import subprocess
import time
import unittest

from support import ARGIOPE, PATIENCE, Commands, PageHandler, lines_of


class Schedules(Commands):
    family = 'schedule'

    def start_run(self, *arguments, **options):
        return self.start_command('schedule', 'run', *arguments, **options)

    def events(self, *arguments):
        """A running `argiope schedule run`, and an iterator over its events."""
        process = self.start_run('--json', *arguments, stdout=subprocess.PIPE)
        return process, map(json.loads, lines_of(process))

    def wait_for(self, events, kind, **members):
        for event in events:
            if event['event'] == kind and all(event.get(name) == value for name, value in members.items()):
                return event
        self.fail(f'no event {kind} {members}')


class Adding(Schedules):
    def test_a_schedule_is_added_shown_and_run(self):
        out = self.schedule('add', 'backup', '--cron', '30 3 * * *', '--zone', 'Europe/Berlin', '--misfire-grace', '6h',
                            '--overlap', 'queue-one', '--', 'sh', '-c', 'echo $ARGIOPE_SCHEDULE_NAME')
        self.assertRegex(out, r'^added backup: next \d{4}-\d\d-\d\dT03:30:00\+0[12]:00, in ')
        status = self.json('list')[0]
        self.assertEqual((status['name'], status['id'], status['runs'], status['paused']), ('backup', 1, 0, False))
        form = status['schedule']
        self.assertEqual(form['trigger'], {'type': 'cron', 'expression': '30 3 * * *', 'zone': 'Europe/Berlin'})
        self.assertEqual((form['misfire_grace'], form['overlap']), ('6h', 'queue_one'))
        self.assertEqual(json.loads(form['job']['payload'])['args'], ['sh', '-c', 'echo $ARGIOPE_SCHEDULE_NAME'])
        table = self.schedule('list').splitlines()
        self.assertRegex(table[0], r'^NAME +TRIGGER +NEXT .*LAST RUN +OUTCOME +RUNS +MISSED +STATE$')
        self.assertRegex(table[1], r'^backup +30 3 \* \* \* Europe/Berlin +\d{4}.* in .* - +- +0 +0 +waiting$')
        shown = self.schedule('show', 'backup')
        for part in ('schedule 1 "backup"', 'misfire grace  6h', 'queue_one', '"type":"cron"', 'function       command'):
            self.assertIn(part, shown)
        upcoming = self.json('show', 'backup')[0]['upcoming']
        self.assertEqual(len(upcoming), 5)
        self.assertEqual(upcoming[0], status['next'])

    def test_what_is_due_at_once_is_run_to_its_end(self):
        self.schedule('add', 'hello', '--at', '2020-01-01T00:00:00Z', '--payload', 'in', '--', 'sh', '-c',
                      'cat; echo " $ARGIOPE_SCHEDULE_NAME $ARGIOPE_SCHEDULE_RUN $ARGIOPE_SCHEDULE_PLANNED_AT"')
        summary = self.json('run', '--until-idle')[-1]
        self.assertEqual((summary['fired'], summary['done'], summary['finished']), (1, 1, True))
        entry = self.json('history', 'hello')[0]
        self.assertEqual((entry['run'], entry['outcome'], entry['planned']), (1, 'done', '2020-01-01T00:00:00Z'))
        self.assertGreater(entry['lateness_ms'], 10**10)
        job = json.loads(self.run_it('job', 'show', entry['job'], '--store', self.store, '--json').stdout)
        self.assertEqual(job['result'], 'in hello 1 2020-01-01T00:00:00Z\n')
        self.assertRegex(self.schedule('list').splitlines()[1], r' done +1 +0 +over$')
        self.assertRegex(self.schedule('history', 'hello').splitlines()[1], r'^ *1 +2020-01-01T00:00:00Z .* done +1$')

    def test_a_command_knows_its_run_and_keeps_its_own_words(self):
        command = ['--', 'sh', '-c', 'cat; echo "$0 $ARGIOPE_SCHEDULE_NAME $ARGIOPE_SCHEDULE_RUN"', '{name}"\\']
        at = ['--at', '2020-01-01T00:00:00Z', '--payload', '{run} ']
        self.schedule('add', 'plain"', *at, *command)
        self.schedule('add', 'filled', *at, '--fill-in', *command)
        self.run_it('schedule', 'run', '--store', self.store, '--until-idle', '--fail-on-failed',
                    env=dict(os.environ, ARGIOPE_SCHEDULE_NAME='inherited'))
        for name, result in (('plain"', '{run} {name}"\\ plain" 1\n'), ('filled', '1 filled"\\ filled 1\n')):
            job = self.json('history', name)[0]['job']
            self.assertEqual(json.loads(self.run_it('job', 'show', job, '--store', self.store, '--json').stdout)['result'],
                             result)

    def test_intervals_count_from_their_anchor(self):
        self.schedule('add', 'a', '--every', '1h30m', '--anchor', '2026-01-01T00:15', '--zone', 'Asia/Tokyo', '--queue',
                      'q', '--function', 'f', '--payload', '{"x":1}', '--key', 'k', '--priority', '-3', '--fill-in',
                      '--max-attempts', '7', '--jitter', '10s', '--start', '2026-01-01', '--end', '2190-01-01')
        form = self.json('list')[0]['schedule']
        trigger = form['trigger']
        self.assertEqual((trigger['every'], trigger['anchor']), ('1h30m', '2025-12-31T15:15:00Z'))
        self.assertEqual((trigger['jitter'], trigger['start'], trigger['end']),
                         ('10s', '2025-12-31T15:00:00Z', '2189-12-31T15:00:00Z'))
        self.assertEqual(form['job'], {'queue': 'q', 'function': 'f', 'payload': '{"x":1}', 'key': 'k', 'priority': -3,
                                       'fill_in': True, 'max_attempts': 7})
        self.schedule('add', 'b', '--trigger', '{"type":"calendar","months":1,"start_date":"2026-01-31","hour":9}',
                      '--queue', 'q')
        self.assertEqual(self.json('show', 'b')[0]['schedule']['trigger']['months'], 1)

    def test_a_name_that_is_there_is_refused_kept_or_replaced(self):
        self.schedule('add', 'x', '--every', '1h', '--queue', 'q')
        self.refused('schedule', 'add', 'x', '--store', self.store, '--every', '2h', '--queue', 'q',
                     culprit=['"x"', 'there is one of that name', '--replace'])
        self.assertEqual(self.json('add', 'x', '--keep', '--every', '2h', '--queue', 'q'),
                         [{'name': 'x', 'id': 1, 'outcome': 'kept'}])
        self.assertEqual(self.json('show', 'x')[0]['schedule']['trigger']['every'], '1h')
        self.assertEqual(self.json('add', 'x', '--replace', '--every', '2h', '--queue', 'q'),
                         [{'name': 'x', 'id': 1, 'outcome': 'replaced'}])
        self.assertEqual(self.json('show', 'x')[0]['schedule']['trigger']['every'], '2h')
        self.assertEqual(len(self.json('list')), 1)

    def test_bad_lines_are_named_and_the_rest_goes_on(self):
        lines = ['{"name":"a","trigger":"@every 90s","job":{"queue":"q"}}', 'nonsense', '',
                 '{"name":"b","trigger":"61 * * * *"}', '{"name":"b","trigger":"@daily","overlap":"maybe"}',
                 '{"trigger":"@daily"}', '{"name":"a","trigger":"@daily"}',
                 '{"name":"c","trigger":"@daily","job":{"function":"http","payload":{"url":"ftp://x"}}}',
                 '{"name":"d","trigger":"@daily","job":{"function":"command","payload":{"args":["true"]}}}']
        result = self.run_it('schedule', 'add', '--store', self.store, '--file', '-', input='\n'.join(lines), expect=2)
        self.assertEqual(result.stdout, 'added a\nadded d\n')
        for line, culprit in ((2, 'JSON'), (4, '61'), (5, 'overlap "maybe"'), (6, 'name'), (7, 'one of that name'),
                              (8, 'url "ftp://x"')):
            self.assertRegex(result.stderr, rf':{line}: .*{culprit}')
        self.assertEqual(len(result.stderr.splitlines()), 6)
        self.assertEqual([status['name'] for status in self.json('list')], ['a', 'd'])
        again = self.run_it('schedule', 'add', '--store', self.store, '--file', '-', '--keep', '--json', input=lines[0])
        self.assertEqual(json.loads(again.stdout), {'name': 'a', 'id': 1, 'outcome': 'kept'})

    def test_a_large_file_streams_in_order(self):
        file = self.folder / 'schedules.jsonl'
        file.write_text(''.join(f'{{"name":"s{n}","trigger":{{"type":"interval","every":"{n + 1}s"}}}}\n'
                                for n in range(20_000)))
        added = self.schedule('add', '--file', file).splitlines()
        self.assertEqual(added, [f'added s{n}' for n in range(20_000)])
        self.assertEqual([status['id'] for status in self.json('list', '--after', 19_990)], list(range(19_991, 20_001)))
        self.assertIn('There may be more', self.schedule('list', '--limit', 3))

    def test_bad_usage_exits_with_2_names_the_culprit_and_stores_nothing(self):
        add = ['schedule', 'add', '--store', self.store, 'x']
        every = [*add, '--every', '1h']
        for arguments, culprit in (
                (['schedule'], 'name one of these commands'), (['schedule', 'frob'], 'frob'),
                (['schedule', 'add', '--store', self.store], 'NAME'),
                (add, '--cron'), ([*every, '--cron', '* * * * *', '--queue', 'q'], '--cron'), (every, '--queue'),
                ([*add, '--cron', '61 * * * *', '--queue', 'q'], 'minute "61": 0 to 59'),
                ([*add, '--cron', '0 0 * * *', '--zone', 'Mars/Base', '--queue', 'q'], 'Mars/Base'),
                ([*add, '--cron', '0 0 * * *', '--dialect', 'kron', '--queue', 'q'], 'kron'),
                ([*add, '--cron', '0 0 * * *', '--dst-gap', 'jump', '--queue', 'q'], 'jump'),
                ([*add, '--every', 'soon', '--queue', 'q'], '--every'), ([*add, '--at', 'noon', '--queue', 'q'], '--at'),
                ([*add, '--trigger', 'x', '--queue', 'q'], '--trigger'),
                ([*every, '--start', 'x', '--queue', 'q'], '--start'),
                ([*every, '--misfire-grace', '-1s', '--queue', 'q'], '--misfire-grace'),
                ([*every, '--max-instances', '0', '--queue', 'q'], '--max-instances 0: a whole number, 1 to'),
                ([*every, '--most-catch-up', '1001', '--queue', 'q'], '1000'),
                ([*every, '--overlap', 'maybe', '--queue', 'q'], 'maybe'),
                ([*every, '--replace', '--keep', '--queue', 'q'], '--keep'),
                ([*every, '--http', 'GET', 'ftp://x'], 'url "ftp://x"'),
                ([*every, '--http', 'get', 'http://x'], 'method "get"'),
                ([*every, '--http', 'GET', 'http://x', '--header', 'x'], '--header x'),
                ([*every, '--http', 'GET', 'http://x', '--header', 'Host: y'], 'Host'),
                ([*every, '--http', 'GET', 'http://x', '--expect', '999'], 'expect[0] "999"'),
                ([*every, '--http', 'GET', 'http://x', '--', 'true'], 'not both'),
                ([*every, '--queue', 'q', '--timeout', '1s'], '--timeout'),
                ([*every, '--timeout', 'long', '--', 'true'], 'timeout'),
                ([*every, '--queue', 'x' * 600], '512'),
                (['schedule', 'add', '--store', self.store, 'x' * 600, '--every', '1h', '--queue', 'q'], 'name'),
                (['schedule', 'add', '--store', self.store, '--file', '/no/such'], '/no/such'),
                (['schedule', 'run', '--store', self.store, '--executor', 'x=0'], '--executor x=0'),
                (['schedule', 'run', '--store', self.store, '--work', 'x'], '--work'),
                (['schedule', 'run', '--store', self.store, '--work', 'default', '--', 'true'], 'default')):
            with self.subTest(arguments=arguments):
                environment = {name: value for name, value in os.environ.items() if name != 'ARGIOPE_STORE'}
                self.refused(*arguments, culprit=culprit, env=environment)
                self.assertFalse(self.file.exists())
        for subcommand in ('add', 'list', 'show', 'history', 'explain', 'pause', 'resume', 'remove', 'run-now', 'run'):
            self.assertIn('--store', self.run_it('schedule', subcommand, '--help').stdout)


class Moving(Schedules):
    """Schedules are exported from one store and imported into another."""
    lines = ['{"name":"a","trigger":"@every 90s","job":{"queue":"q"}}', '{"name":"b","trigger":"@daily","paused":true}']

    def put(self, text, *options, **how):
        return self.run_it('schedule', 'import', '--store', self.store, '-', *options, input=text, **how)

    def test_an_export_is_imported_as_it_was(self):
        self.schedule('add', 'backup', '--cron', '30 3 * * *', '--zone', 'Europe/Berlin', '--misfire-grace', '6h', '--', 'true')
        self.schedule('add', 'ping', '--every', '90d', '--http', 'GET', 'https://example.org/ping')
        self.schedule('pause', 'ping')
        file = self.folder / 'schedules.jsonl'
        self.schedule('export', file)
        self.assertEqual(file.read_text(), self.schedule('export'))
        before = self.json('list')
        self.run_it('schedule', 'import', '--store', f'sqlite:{self.folder / "new.db"}', file)
        after = [json.loads(line) for line in self.run_it(
            'schedule', 'list', '--store', f'sqlite:{self.folder / "new.db"}', '--json').stdout.splitlines()]
        self.assertEqual([status['paused'] for status in after], [False, True])
        for one, other in zip(before, after):
            one['schedule'].pop('paused', None)
            other['schedule'].pop('paused', None)
            self.assertEqual((one['name'], one['schedule'], one['next']), (other['name'], other['schedule'], other['next']))

    def test_a_document_is_a_list_or_an_object_with_one(self):
        self.assertEqual(self.put('\n'.join(self.lines)).stdout, 'added a\nadded b\n')
        whole = '[\n' + ',\n'.join(self.lines) + '\n]\n'
        self.assertEqual(self.put(whole, '--keep').stdout, 'kept a\nkept b\n')
        self.assertEqual(self.put(f'{{"schedules":{whole}}}', '--replace').stdout, 'replaced a\nreplaced b\n')
        self.assertEqual(json.loads(self.put(self.lines[0], '--keep', '--json').stdout), {'name': 'a', 'id': 1, 'outcome': 'kept'})
        self.assertEqual([status['paused'] for status in self.json('list')], [False, True])

    def test_what_is_wrong_is_named_by_its_place_and_nothing_is_changed(self):
        wrong = ['{"name":"c","trigger":"61 * * * *"}', 'nonsense', self.lines[0],
                 '{"name":"d","trigger":"@daily","job":{"function":"http","payload":{"url":"ftp://x"}}}']
        result = self.put('\n'.join([*self.lines, '', *wrong]), expect=2)
        self.assertEqual(result.stdout, '')
        for place, culprit in ((4, '61'), (5, 'JSON'), (6, 'is there already: standard input:1'), (7, 'url "ftp://x"')):
            self.assertRegex(result.stderr, rf'standard input:{place}: .*{culprit}')
        self.assertIn('nothing was imported', result.stderr)
        self.assertFalse(os.path.exists(self.file))
        self.assertIn('standard input, entry 2: ', self.put(f'[{self.lines[0]},{wrong[0]}]', expect=2).stderr)
        self.put(self.lines[1])
        result = self.put('\n'.join(self.lines), expect=2)
        self.assertIn('standard input:2: schedule "b": there is one of that name; --replace', result.stderr)
        self.assertEqual([status['name'] for status in self.json('list')], ['b'])
        self.refused('schedule', 'import', '--store', self.store, self.folder / 'none', culprit=['none', 'No such file'])


class Changing(Schedules):
    def test_unknown_things_are_named(self):
        self.refused('schedule', 'list', '--store', self.store, culprit=str(self.file), expect=3)
        self.schedule('add', 'x', '--every', '1h', '--queue', 'q')
        for subcommand in ('show', 'history', 'explain', 'pause', 'resume', 'remove', 'run-now'):
            with self.subTest(subcommand=subcommand):
                self.refused('schedule', subcommand, '--store', self.store, 'nobody', culprit='schedule "nobody"')
        self.refused('explain', 'nobody', '--store', self.store, culprit='"nobody"')
        foreign = self.folder / 'foreign.db'
        with contextlib.closing(sqlite3.connect(foreign)) as database:
            database.execute('CREATE TABLE mine (x)')
            database.commit()
        self.refused('schedule', 'list', '--store', foreign, culprit='not made by argiope', expect=3)

    def test_pause_says_by_whom_and_resume_goes_on(self):
        self.schedule('add', 'x', '--every', '1h', '--anchor', '2020-01-01T00:00:00Z', '--queue', 'q')
        self.assertEqual(self.schedule('pause', 'x', '--by', 'ann'), 'paused x\n')
        status = self.json('list')[0]
        self.assertEqual((status['paused'], status['paused_by']), (True, 'ann'))
        self.assertRegex(self.schedule('list').splitlines()[1], 'paused by ann$')
        why = json.loads(self.run_it('explain', 'x', '--store', self.store, '--json').stdout)
        self.assertEqual((why['reason'], why['paused_by']), ('paused', 'ann'))
        self.assertIn('paused by ann since', self.run_it('explain', 'x', '--store', self.store).stdout)
        self.assertRegex(self.schedule('resume', 'x'), r'^resumed x: next \d{4}-')
        self.assertFalse(self.json('list')[0]['paused'])
        self.assertEqual(self.json('explain', 'x')[0]['reason'], 'scheduler_stopped')
        self.refused('schedule', 'resume', 'x', '--store', self.store, '--from', 'later', culprit='later')

    def test_times_of_a_pause_are_missed_or_due(self):
        for name in ('missed', 'due'):
            self.schedule('add', name, '--every', '200ms', '--coalesce', 'all', '--most-catch-up', '1000', '--max-instances', '1000',
                          '--queue', 'q')
            self.schedule('pause', name)
        # Until ten planned times of each have passed.
        paused_at = datetime.datetime.fromisoformat(self.json('explain', 'due')[0]['paused_at']).timestamp()
        self.wait_until(lambda: time.time() > paused_at + 11 * 0.2)
        self.assertEqual(self.json('resume', 'missed', '--from', 'now')[0]['paused'], False)
        self.schedule('resume', 'due', '--from', 'where-it-was')
        run, events = self.events()
        self.wait_for(events, 'job_submitted', schedule='due')
        run.terminate()
        self.assertEqual(run.wait(PATIENCE), 130)
        statuses = {status['name']: status for status in self.json('list')}
        self.assertGreaterEqual(statuses['missed']['missed'], 5)
        self.assertEqual(statuses['due']['missed'], 0)
        self.assertGreaterEqual(statuses['due']['runs'], 8)

    def test_remove_forgets_the_schedule_and_not_its_jobs(self):
        self.schedule('add', 'x', '--every', '1h', '--queue', 'q', '--payload', 'p')
        self.assertEqual(self.schedule('run-now', 'x'), '1\n')
        self.assertEqual(self.json('run-now', 'x'), [{'name': 'x', 'job': 2}])
        self.assertEqual(self.json('list')[0]['runs'], 2)
        self.assertEqual(self.json('remove', 'x'), [{'name': 'x', 'id': 1, 'outcome': 'removed'}])
        self.assertEqual(self.schedule('list'), 'No schedules.\n')
        self.assertEqual(self.json('list'), [])
        job = json.loads(self.run_it('job', 'show', '2', '--store', self.store, '--json').stdout)
        self.assertEqual((job['queue'], job['payload'], job['state']), ('q', 'p', 'ready'))

    def test_explain_tells_jobs_from_schedules(self):
        self.schedule('add', 'both', '--every', '1h', '--queue', 'q')
        self.schedule('add', 'mine', '--every', '1h', '--queue', 'q')
        self.run_it('job', 'put', 'q', '--id', 'both', '--store', self.store)
        self.assertIn('job 1 (ready)', self.run_it('explain', 'both', '--store', self.store).stdout)
        self.assertIn('job 1 (ready)', self.run_it('explain', '1', '--store', self.store).stdout)
        self.assertIn('schedule mine: ', self.run_it('explain', 'mine', '--store', self.store).stdout)
        self.assertIn('schedule both: ', self.schedule('explain', 'both'))


class Running(Schedules):
    def test_editing_while_run_owns_the_store(self):
        run, events = self.events()
        self.wait_for(events, 'scheduler_started')
        self.refused('schedule', 'run', '--store', self.store, culprit='one process at a time', expect=3)
        self.schedule('add', 'tick', '--every', '50ms', '--', 'true')
        self.wait_for(events, 'schedule_added', schedule='tick')
        first = self.wait_for(events, 'job_submitted', schedule='tick')
        self.assertEqual(first['queue'], 'default')
        self.wait_for(events, 'job_executed', schedule='tick', run=first['run'], job=first['job'])
        self.assertIn(self.json('explain', 'tick')[0]['reason'], ('not_due', 'due', 'overlap'))
        self.schedule('pause', 'tick', '--by', 'test')
        self.wait_for(events, 'schedule_modified', schedule='tick')
        paused = self.json('show', 'tick')[0]
        job = int(self.schedule('run-now', 'tick'))
        self.wait_for(events, 'job_executed', schedule='tick', job=job)
        self.assertEqual(self.json('show', 'tick')[0]['runs'], paused['runs'] + 1)
        self.schedule('add', 'tick', '--replace', '--at', '2020-01-01T00:00:00Z', '--', 'true')
        self.schedule('resume', 'tick')
        self.wait_for(events, 'schedule_finished', schedule='tick')
        self.schedule('remove', 'tick')
        self.wait_for(events, 'schedule_removed')
        run.send_signal(signal.SIGINT)
        summary = list(events)[-1]
        self.assertEqual((summary['event'], summary['finished'], summary['failed']), ('summary', False, 0))
        self.assertEqual(run.wait(PATIENCE), 130)

    def test_failures_are_in_the_history_and_the_exit_status(self):
        self.schedule('add', 'bad', '--at', '2020-01-01T00:00:00Z', '--max-attempts', '1', '--', 'sh', '-c',
                      'echo broken >&2; exit 3')
        self.schedule('add', 'none', '--at', '2020-01-01T00:00:00Z', '--max-attempts', '1', '--', '/no/such/program')
        self.schedule('add', 'slow', '--at', '2020-01-01T00:00:00Z', '--max-attempts', '1', '--timeout', '100ms', '--',
                      'sleep', '60')
        result = self.run_it('schedule', 'run', '--store', self.store, '--until-idle', '--fail-on-failed', expect=1)
        self.assertRegex(result.stderr, 'warning bad: run 1 failed: broken')
        self.assertRegex(result.stdout, r'^Finished after .*: 3 fired, 0 done, 3 failed, 0 missed, 0 skipped$')
        for name, error in (('bad', 'broken'), ('none', '/no/such/program'), ('slow', 'out of time')):
            entry = self.json('history', name)[0]
            self.assertEqual(entry['outcome'], 'failed')
            self.assertIn(error, entry['error'])
            self.assertIn(error, self.schedule('history', name))

    def test_exit_statuses_that_are_good_are_no_failure_and_leave_a_remark(self):
        command = ['sh', '-c', 'echo out; echo "2 broken links" >&2; exit 1']
        at = ['--at', '2020-01-01T00:00:00Z', '--max-attempts', '1']
        self.schedule('add', 'found', *at, '--ok-status', '0,1', '--', *command)
        self.schedule('add', 'failed', *at, '--', *command)
        result = self.run_it('schedule', 'run', '--store', self.store, '--until-idle', '--fail-on-failed', expect=1)
        self.assertIn('found: run 1 done: 2 broken links', result.stderr)
        self.assertEqual([(entry['outcome'], entry['error']) for name in ('found', 'failed') for entry in self.json('history', name)],
                         [('done', '2 broken links'), ('failed', '2 broken links')])
        self.assertRegex(self.schedule('history', 'found').splitlines()[0], ' REMARK$')
        self.assertEqual(self.schedule('output', 'found'), 'out\n')
        self.assertIn('ok status      0,1', self.schedule('show', 'found'))
        self.refused('schedule', 'add', 'x', '--store', self.store, *at, '--ok-status', '0,256', '--', 'true', culprit='--ok-status')
        self.refused('schedule', 'add', 'x', '--store', self.store, *at, '--ok-status', '0', '--queue', 'q', culprit='--ok-status')

    def test_a_worker_takes_exit_statuses_that_are_good(self):
        self.job('put', 'q', 'in', '--id', 'found')
        summary = self.run_it('job', 'work', 'q', '--store', self.store, '--until-empty', '--json', '--ok-status', '0,1', '--',
                              'sh', '-c', 'exit 1').stdout
        self.assertEqual(json.loads(summary)['done'], 1)
        self.assertEqual(json.loads(self.job('show', 'found', '--json'))['error'], 'exit status 1')
        self.job('put', 'q', 'in', '--id', 'beside')
        self.schedule('add', 'soon', '--at', '2020-01-01T00:00:00Z', '--queue', 'q', '--payload', 'in')
        self.run_it('schedule', 'run', '--store', self.store, '--until-idle', '--fail-on-failed', '--work', 'q', '--ok-status', '0,1',
                    '--', 'sh', '-c', 'exit 1')
        self.assertEqual([(entry['outcome'], entry['error']) for entry in self.json('history', 'soon')], [('done', 'exit status 1')])
        self.assertEqual(json.loads(self.job('show', 'beside', '--json'))['state'], 'done')
        self.refused('schedule', 'run', '--store', self.store, '--ok-status', '0', culprit='--work')

    def test_a_nightly_crawl_ends_well_and_its_findings_are_in_the_history(self):
        class Site(PageHandler):
            def do_GET(self):
                found = self.path == '/'
                self.reply(200 if found else 404, b'<title>Start</title><a href=/gone>gone</a>' if found else b'')

        crawl = [ARGIOPE, 'crawl', 'http://127.0.0.1:{}/'.format(self.serve(Site).server_address[1]), '-d', self.folder / 'site.db', '--check-links', '--fail-on-broken']
        self.schedule('add', 'links', '--every', '30ms', '--max-runs', '1', '--max-attempts', '1', '--', *crawl)
        self.schedule('run', '--until-idle', '--fail-on-failed')
        entry = self.json('history', 'links')[0]
        self.assertEqual(entry['outcome'], 'done')
        self.assertRegex(entry['error'], r'^argiope: 1 error, broken: 1 .*; the first: (http://127\.0\.0\.1:\d+/)gone on \1$')
        self.assertIn('Finished after', self.schedule('output', 'links'))

    def test_a_crawl_that_had_nothing_to_ask_is_no_good_night_in_the_history(self):
        pages = {'/': b'<title>Start</title><a href=/a>a</a>', '/a': b'a'}

        class Site(PageHandler):
            def do_GET(self):
                self.reply(200 if self.path in pages else 404, pages.get(self.path, b''))

        url = f'http://127.0.0.1:{self.serve(Site).server_port}/'
        for database in ('good.db', 'bad.db'):
            crawl = [ARGIOPE, 'crawl', url, '-d', self.folder / database, '--check-links', '--fail-on-broken', '--age', '12h', '--quiet']
            for number in (1, 2):
                self.schedule('add', f'{database}-{number}', '--every', '30ms', '--max-runs', '1', '--max-attempts', '1', '--', *crawl)
                self.schedule('run', '--until-idle', '--fail-on-failed')
            pages.pop('/a', None)
        first, second = (self.json('history', f'good.db-{number}')[0] for number in (1, 2))
        self.assertEqual((first['outcome'], second['outcome'], first['error']), ('done', 'done', ''))
        self.assertIn('nothing was due, and nothing was asked', second['error'])
        found = self.json('history', 'bad.db-2')[0]['error']
        self.assertEqual(found, f'argiope: 1 error, none new, broken: 1 (nothing was due in this run); the first: {url}a on {url}')

    def test_a_quiet_good_night_says_in_the_history_what_was_asked(self):
        class Site(PageHandler):
            def do_GET(self):
                self.reply(404 if self.path == '/robots.txt' else 200, b'<title>Page</title><a href=/a>a</a>')

        crawl = [ARGIOPE, 'crawl', f'http://127.0.0.1:{self.serve(Site).server_port}/', '-d', self.folder / 'site.db', '--check-links',
                 '--fail-on-broken', '--age', '0', '--quiet', '--summary', 'json']
        for number, news in ((1, ''), (2, ', nothing new')):
            self.schedule('add', f'links-{number}', '--every', '30ms', '--max-runs', '1', '--max-attempts', '1', '--', *crawl)
            self.schedule('run', '--until-idle', '--fail-on-failed')
            self.assertEqual(self.json('history', f'links-{number}')[0]['error'], f'2 URLs asked, 2 links{news}')

    def test_a_run_that_comes_too_late_is_missed(self):
        self.schedule('add', 'late', '--at', '2020-01-01T00:00:00Z', '--misfire-grace', '1h', '--', 'true')
        result = self.run_it('schedule', 'run', '--store', self.store, '--until-idle')
        self.assertRegex(result.stderr, 'late: missed 2020-01-01T00:00:00Z')
        status = self.json('list')[0]
        self.assertEqual((status['runs'], status['missed'], status['next']), (0, 1, None))
        why = self.json('explain', 'late')[0]
        self.assertEqual((why['reason'], why['last_misfire']['planned'][:10]), ('finished', '2020-01-01'))

    def test_max_runs_and_overlap(self):
        self.schedule('add', 'three', '--every', '30ms', '--max-runs', '3', '--', 'true')
        _, go = self.gates()
        self.schedule('add', 'long', '--every', '20ms', '--max-runs', '2', '--', 'sh', '-c', f'read x < {go}')
        run, events = self.events('--until-idle')
        self.wait_for(events, 'job_max_instances', schedule='long')
        self.let_go(go, lines=2)
        summary = list(events)[-1]
        self.assertEqual(run.wait(PATIENCE), 0)
        self.assertEqual((summary['fired'], summary['done']), (5, 5))
        self.assertGreaterEqual(summary['skipped'] + summary['missed'], 1)
        self.assertEqual(self.json('explain', 'three')[0]['reason'], 'max_runs')
        outcomes = [entry['outcome'] for entry in self.json('history', 'long')]
        self.assertEqual(outcomes.count('done'), 2)
        self.assertIn('skipped', outcomes)

    def test_requests_are_sent(self):
        received = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers['Content-Length'])).decode()
                received.append((self.path, self.headers['X-Key'], self.headers['User-Agent'], body))
                self.send_response(202)
                self.send_header('Content-Length', '2')
                self.end_headers()
                self.wfile.write(b'ok')

            def log_message(self, *_):
                pass

        server = self.serve(Handler)
        url = f'http://127.0.0.1:{server.server_port}/hook'
        at = ['--at', '2020-01-01T00:00:00Z', '--max-attempts', '1']
        self.schedule('add', 'hook', *at, '--http', 'POST', url, '--header', 'X-Key: k', '--body', '{planned_at}',
                      '--fill-in', '--expect', '202', '--timeout', '5m')
        self.schedule('add', 'wrong', *at, '--http', 'POST', url, '--body', '')
        self.schedule('add', 'refused', *at, '--http', 'GET', 'http://127.0.0.1:1/')
        self.json('run', '--until-idle', '--allow-private', '--user-agent', 'tester')
        self.assertEqual(received[0] if received[0][1] else received[1],
                         ('/hook', 'k', 'tester', '2020-01-01T00:00:00Z'))
        entry = self.json('history', 'hook')[0]
        job = json.loads(self.run_it('job', 'show', entry['job'], '--store', self.store, '--json').stdout)
        self.assertEqual(json.loads(job['result']), {'status': 202, 'content_type': '', 'body': 'ok'})
        self.assertEqual(self.json('history', 'wrong')[0]['outcome'], 'done')
        self.assertIn('127.0.0.1', self.json('history', 'refused')[0]['error'])
        # And without leave to go there.
        self.schedule('add', 'private', *at, '--http', 'POST', url)
        self.json('run', '--until-idle')
        entry = self.json('history', 'private')[0]
        self.assertEqual((entry['outcome'], len(received)), ('failed', 2))
        self.assertIn('127.0.0.1 is a loopback address; --allow-private would connect to it', entry['error'])

    def test_executors_and_other_queues(self):
        self.schedule('add', 'heavy', '--at', '2020-01-01T00:00:00Z', '--queue', 'heavy', '--', 'true')
        self.schedule('add', 'mail', '--at', '2020-01-01T00:00:00Z', '--queue', 'mail', '--payload', 'to: ann')
        self.schedule('add', 'lost', '--at', '2020-01-01T00:00:00Z', '--queue', 'heavy', '--function', 'f')
        run, events = self.events('--executor', 'heavy=1', '--work', 'mail', '--', 'cat')
        marked = self.wait_for(events, 'schedule_marked')
        self.assertEqual(marked['schedule'], 'lost')
        self.assertIn('"f"', marked['text'])
        self.wait_until(lambda: {status['name']: (status['runs'], status['active']) for status in self.json('list')} == {
            'heavy': (1, 0), 'mail': (1, 0), 'lost': (0, 0)}, 'the runs did not end')
        run.terminate()
        self.assertEqual(run.wait(PATIENCE), 130)
        entry = self.json('history', 'mail')[0]
        job = json.loads(self.run_it('job', 'show', entry['job'], '--store', self.store, '--json').stdout)
        self.assertEqual((entry['outcome'], job['result']), ('done', 'to: ann'))

    def start_sleeper(self):
        """A run that has started, and waits to be let go."""
        started, go = self.gates()
        self.schedule('add', 'long', '--replace', '--at', '2020-01-01T00:00:00Z', '--', 'sh', '-c',
                      f'echo . > {started}; read x < {go}')
        run = self.start_run('--quiet')
        self.wait_for_start(started)
        return run, go

    def test_a_signal_lets_runs_end_and_a_second_one_does_not(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGHUP, 129)):
            run, go = self.start_sleeper()
            run.send_signal(number)
            self.let_go(go)
            self.assertEqual(run.wait(PATIENCE), status)
            self.assertEqual(self.json('history', 'long')[0]['outcome'], 'done')
            self.schedule('remove', 'long')
        run, go = self.start_sleeper()
        run.send_signal(signal.SIGTERM)
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(PATIENCE), 130)
        entry = self.json('history', 'long')[0]
        job = json.loads(self.run_it('job', 'show', entry['job'], '--store', self.store, '--json').stdout)
        self.assertEqual((entry['outcome'], job['state'], job['attempts']), ('running', 'ready', 0))

    def test_a_reader_of_its_events_that_goes_lets_runs_end(self):
        self.schedule('add', 'tick', '--every', '100ms', '--', 'true')
        runner = self.start_command('schedule', 'run', '--json', stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertIn('scheduler_started', ''.join(runner.stdout.readline() for _ in range(2)))
        runner.stdout.close()
        self.assertEqual(runner.wait(PATIENCE), 141)
        self.assertIn('Stopping: letting what runs end', runner.stderr.read())
        self.assertEqual(self.job('list', '--state', 'running', '--json'), '', 'a job that had not begun may wait')

    def test_a_killed_run_is_run_again(self):
        run, go = self.start_sleeper()
        run.kill()
        run.wait()
        self.assertEqual(self.json('history', 'long')[0]['outcome'], 'running')
        self.assertEqual(self.json('list')[0]['active'], 1)
        started = self.folder / 'started'
        run = self.start_run('--quiet', '--until-idle')
        self.wait_for_start(started)
        self.let_go(go, lines=2)  # one may be read by who was to be killed with the first run
        self.assertEqual(run.wait(PATIENCE), 0)
        entries = self.json('history', 'long')
        self.assertEqual([entry['outcome'] for entry in entries], ['done'])


class Outputs(Schedules):
    def test_the_first_run_of_a_fresh_store_leaves_its_output(self):
        """Whoever makes the queue, run-now or run, makes it with the same defaults."""
        self.schedule('add', 'hello', '--every', '100d', '--', 'echo', 'hello there')
        job = self.schedule('run-now', 'hello').strip()
        process, events = self.events()
        self.wait_for(events, 'job_executed', schedule='hello')
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
        shown = json.loads(self.run_it('job', 'show', job, '--store', self.store, '--json').stdout)
        self.assertEqual(shown['result'], 'hello there\n')
        self.assertEqual(self.schedule('output', 'hello'), 'hello there\n')
        # However long its job is kept.
        self.run_it('job', 'delete', job, '--store', self.store)
        self.assertEqual(self.schedule('output', 'hello'), 'hello there\n')
        told = self.json('output', 'hello')[0]
        self.assertEqual((told['run'], told['job'], told['outcome'], told['output']), (1, int(job), 'done', 'hello there\n'))

    def test_a_failed_run_keeps_its_output(self):
        self.schedule('add', 'bad', '--at', '2020-01-01T00:00:00Z', '--max-attempts', '1', '--', 'sh', '-c',
                      'echo out; echo first >&2; echo last >&2; exit 3')
        self.run_it('schedule', 'run', '--store', self.store, '--until-idle', '--fail-on-failed', expect=1)
        self.assertEqual(self.schedule('output', 'bad'), 'out\nfirst\nlast\n')
        told = self.json('output', 'bad')[0]
        self.assertEqual((told['outcome'], told['error']), ('failed', 'last'))
        job = self.json('history', 'bad')[0]['job']
        self.assertEqual(self.run_it('job', 'show', job, '--result', '--store', self.store).stdout, 'out\nfirst\nlast\n')

    def test_before_the_first_output_there_is_none(self):
        self.schedule('add', 'x', '--every', '1h', '--queue', 'q')
        self.assertEqual(self.schedule('output', 'x'), '')
        self.assertEqual(self.json('output', 'x'), [None])
        self.refused('schedule', 'output', 'nobody', '--store', self.store, culprit='schedule "nobody"')

    def test_a_command_runs_where_it_was_added(self):
        there = self.folder / 'there'
        there.mkdir()
        script = there / 'backup'
        script.write_text('#!/bin/sh\npwd; echo $1\n')
        script.chmod(0o755)
        added = self.run_it('schedule', 'add', 'b', '--store', self.store, '--at', '2020-01-01T00:00:00Z', '--', './backup',
                            '{all}', cwd=there)
        self.assertEqual(added.stderr, '')
        self.schedule('run', '--until-idle')
        self.assertEqual(self.schedule('output', 'b'), f'{there}\n{{all}}\n')
        shown = self.schedule('show', 'b')
        self.assertRegex(shown, rf'(?m)^  directory +{there}$')
        self.assertRegex(shown, r"(?m)^  command +./backup '{all}'$")
        # One that is not there is warned of, and its run's failure names program and directory.
        warned = self.run_it('schedule', 'add', 'c', '--store', self.store, '--at', '2020-01-01T00:00:00Z', '--max-attempts', '1',
                             '--', './bakcup')
        self.assertRegex(warned.stderr, r'^argiope: warning: command "./bakcup" in /.*: No such file or directory$')
        self.schedule('run', '--until-idle')
        self.assertRegex(self.json('history', 'c')[0]['error'], r'^cannot run "./bakcup" in /.*: No such file or directory$')

    def test_schedules_from_before_directories_run_where_the_scheduler_does(self):
        form = {'name': 'old', 'trigger': {'type': 'date', 'time': '2020-01-01T00:00:00Z'},
                'job': {'function': 'command', 'payload': {'args': ['pwd']}}}
        self.run_it('schedule', 'add', '--store', self.store, '--file', '-', input=json.dumps(form))
        self.assertIn('that of argiope schedule run', self.schedule('show', 'old'))
        self.run_it('schedule', 'run', '--store', self.store, '--until-idle', cwd=self.folder)
        self.assertEqual(self.schedule('output', 'old'), f'{os.path.realpath(self.folder)}\n')


if __name__ == '__main__':
    unittest.main()
