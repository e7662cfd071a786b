"""`argiope job` as its users see it: what it prints, how it ends, and what it says of bad input."""
import base64
import contextlib
import json
import os
import pathlib
import resource
import signal
import sqlite3
import subprocess
import unittest

from support import ARGIOPE, PATIENCE, Commands, lines_of


class Jobs(Commands):
    def counts(self, queue):
        return self.json('stats')[0]['queues'][queue]

    def start_sleeper(self, *options, queue='mail'):
        """A worker with one job that has started, and waits to be let go."""
        started, go = self.gates()
        worker = self.start_command('job', 'work', queue, '--quiet', *options, '--', 'sh', '-c',
                                    f'echo . > {started}; read x < {go}; echo result', stdout=subprocess.PIPE)
        self.wait_for_start(started)
        return worker, go


class Putting(Jobs):
    def test_a_job_is_put_worked_and_answered_for(self):
        self.assertEqual(self.job('put', 'mail', 'hello', '--key', 'a.org', '--priority', '5'), '1\n')
        self.assertEqual(self.job('put', 'mail', '--id', 'order-1'), 'order-1\n')
        self.assertEqual(self.job('put', 'mail', 'again', '--id', 'order-1'), 'order-1\n')
        self.assertEqual(self.job('put', 'mail', '--id', '17'), '17\n')
        self.assertEqual(self.counts('mail'), {'ready': 3, 'delayed': 0, 'running': 0, 'done': 0, 'buried': 0,
                                               'cancelled': 0})
        summary = self.json('work', 'mail', '--until-empty', '--', 'sh', '-c', 'cat; echo ".$ARGIOPE_JOB_KEY"')[-1]
        self.assertEqual((summary['done'], summary['buried'], summary['finished']), (3, 0, True))
        self.assertEqual(self.counts('mail')['done'], 3)
        record = self.json('show', '1')[0]
        self.assertEqual((record['state'], record['result'], record['key']), ('done', 'hello.a.org\n', 'a.org'))
        self.assertEqual(self.json('explain', 'order-1')[0]['reason'], 'ended')

    def test_the_more_important_job_runs_first(self):
        out = self.folder / 'order'
        for priority in (1, 3, 2):
            self.job('put', 'mail', priority, '--priority', priority)
        self.job('work', 'mail', '--until-empty', '--', 'sh', '-c', f'cat >> {out}')
        self.assertEqual(out.read_text(), '321')

    def test_lines_are_answered_one_by_one_while_the_pipe_stays_open(self):
        put = self.start_command('job', 'put', '-', stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        answers = lines_of(put)
        for line, answer in (('{"queue":"a"}', '1'), ('{"queue":"b","id":"mine"}', 'mine'), ('{"queue":"a"}', '3')):
            put.stdin.write(line + '\n')
            put.stdin.flush()
            self.assertEqual(next(answers).strip(), answer)
            self.assertEqual(len(self.json('list')), int(answer) if answer != 'mine' else 2)
        put.stdin.write('{"queue":"c"}')  # the last line need not end
        put.stdin.close()
        self.assertEqual(list(answers), ['4\n'])
        self.assertEqual(put.wait(PATIENCE), 0)

    def test_bad_lines_are_named_and_the_rest_goes_on(self):
        lines = ['{"queue":"a"}', 'nonsense', '', '{"queue":"a","priority":9999999999}', '{"queue":"a","prio":1}',
                 '{"payload":"x"}', '{"queue":"a","payload":"' + 'x' * (1 << 20) + 'x"}', '{"queue":"a","batch":99}',
                 '{"queue":"a","id":"last"}']
        result = self.run_it('job', 'put', '--store', self.store, '-', input='\n'.join(lines), expect=2)
        self.assertEqual(result.stdout, '1\nlast\n')
        for line, culprit in ((2, 'JSON'), (4, 'priority 9999999999: a whole number from -2147483648 to 2147483647'),
                              (5, '"prio"'), (6, 'queue'), (7, '1048576'), (8, '99')):
            self.assertRegex(result.stderr, rf'standard input:{line}: .*{culprit}')
        self.assertEqual(len(result.stderr.splitlines()), 6)
        self.assertEqual(len(self.json('list')), 2)

    def test_lines_that_are_all_bad_make_no_store(self):
        for text, status, culprits in (('', 0, []), ('\n \n', 0, []), ('nonsense\n{"queue":5}\n', 2, [':1: ', ':2: ']),
                                       ('{"queue":"a","waits_for":[99]}\n{"queue":"a","waits_for":["b"]}\n{"queue":"a","batch":7}', 2, [':1: ', ':2: ', ':3: '])):
            result = self.run_it('job', 'put', '--store', self.store, '-', input=text, expect=status)
            self.assertEqual(len(result.stderr.splitlines()), len(culprits), result.stderr)
            for culprit in culprits:
                self.assertIn('standard input' + culprit, result.stderr)
            self.assertFalse(self.file.exists(), text)
        self.refused('job', 'put', '--store', f'sqlite:{self.folder}/none/jobs.db', '-', input='', culprit='No such file', expect=3)
        result = self.run_it('job', 'put', '--store', self.store, '-', input='nonsense\n{"queue":"a","id":"one"}\n{"queue":"a","waits_for":["one"]}\n', expect=2)
        self.assertEqual(result.stdout, 'one\n2\n')
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertEqual(len(self.json('list')), 2)

    def test_a_signal_ends_a_stream_that_has_no_good_line_yet(self):
        put = self.start_command('job', 'put', '-', stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        put.stdin.write('nonsense\n')
        put.stdin.flush()
        self.assertIn('standard input:1', put.stderr.readline())
        put.send_signal(signal.SIGINT)
        self.assertEqual(put.wait(PATIENCE), 130)
        self.assertFalse(self.file.exists())

    def test_what_cannot_be_said_keeps_no_line_from_being_put(self):
        with open('/dev/full', 'w') as full:
            put = self.start_command('job', 'put', '-', stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=full)
            put.stdin.write('nonsense\n{"queue":"a"}\n')
            put.stdin.flush()
            self.assertEqual(put.stdout.readline(), '1\n')
            put.stdin.write('nonsense\n')
            put.stdin.flush()
            self.assertEqual(put.communicate('{"queue":"a"}\n', timeout=PATIENCE)[0], '2\n')
        self.assertEqual(put.returncode, 2)

    def test_a_stream_may_be_a_named_pipe_but_no_device(self):
        pipe = self.folder / 'pipe'
        os.mkfifo(pipe)
        put = self.start_command('job', 'put', '--file', pipe, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with open(pipe, 'w') as writer:
            writer.write('\ufeff{"queue":"a"}\n{"queue":"a"\n{"queue":"a"}')
        out, errors = put.communicate(timeout=PATIENCE)
        self.assertEqual((out, put.returncode), ('1\n2\n', 2))
        self.assertIn(f'{pipe}:2: ', errors)
        self.refused('job', 'put', '--store', f'sqlite:{self.folder}/other.db', '--file', '/dev/zero', culprit='--file /dev/zero: is not a plain file')
        self.assertFalse((self.folder / 'other.db').exists())

    def test_a_large_file_streams_in_order(self):
        jobs = self.folder / 'jobs.jsonl'
        jobs.write_text(''.join(f'{{"queue":"q{n % 7}","payload":{{"n": {n}}}}}\n' for n in range(50_000)))
        ids = self.job('put', '--file', jobs).split()
        self.assertEqual(ids, [str(n) for n in range(1, 50_001)])
        self.assertEqual(self.json('show', '50000')[0]['payload'], '{"n": 49999}')

    def test_delays_times_and_unique_names(self):
        self.job('put', 'mail', '--delay', '3600')
        self.job('put', 'mail', '--due-at', '2001-01-01T00:00:00Z')
        self.job('put', 'mail', 'first', '--unique', 'u')
        self.assertEqual(self.json('put', 'mail', 'second', '--unique', 'u')[0], {'id': 3, 'outcome': 'kept'})
        self.job('put', 'mail', 'third', '--unique', 'u', '--unique-policy', 'replace')
        self.assertEqual(self.json('show', '3')[0]['payload'], 'third')
        counts = self.counts('mail')
        self.assertEqual((counts['ready'], counts['delayed']), (2, 1))

    def test_bad_usage_exits_with_2_and_names_the_culprit(self):
        for arguments, culprit in (
                (['job'], 'name one of these commands'), (['job', 'frob'], 'frob'),
                (['job', 'put', '--store', self.store], 'QUEUE'),
                (['job', 'put', '--store', 'memory:', 'q'], 'memory:'),
                (['job', 'put', '--store', 'mysql://x', 'q'], 'mysql://x'),
                (['job', 'put', '--store', self.store, 'q', '--priority', '9999999999'], '9999999999'),
                (['job', 'put', '--store', self.store, 'q', '--due-at', 'tomorrow'], 'tomorrow'),
                (['job', 'put', '--store', self.store, 'q', '--id', '0'], '0'),
                (['job', 'put', '--store', self.store, 'q', '--waits-for', 'nobody'], 'nobody'),
                (['job', 'put', '--store', self.store, 'x' * 600], '512'),
                (['job', 'put', '--store', self.store, '--file', '/no/such'], '/no/such'),
                (['job', 'work', '--store', self.store, 'q'], '--'),
                (['job', 'list', '--store', self.store, '--state', 'sleepy'], 'sleepy')):
            with self.subTest(arguments=arguments):
                self.refused(*arguments, culprit=culprit)
        for subcommand in ('put', 'list', 'show', 'explain', 'cancel', 'kick', 'retry', 'delete', 'stats', 'work', 'queue'):
            self.assertIn('--store', self.run_it('job', subcommand, '--help').stdout)

    def test_a_refused_command_makes_no_store(self):
        long = 'x' * 600
        for arguments, culprit in (
                (['job', 'queue', 'q', '--rate', 'bad'], '--rate bad'), (['job', 'queue', 'q', '--config', '{"rat":1}'], '"rat"'),
                (['job', 'queue', long, '--pause'], '512'), (['job', 'put', long], '512'), (['job', 'put', 'q', '--key', long], '512'),
                (['job', 'put', 'q', '--waits-for', 'nobody'], 'nobody'), (['job', 'put', 'q', '--batch', 'nobody'], 'nobody'),
                (['job', 'put', 'q', '--unique', long], '512'),
                (['job', 'work', long, '--', 'true'], '512'), (['schedule', 'run', '--work', long, '--', 'true'], '512'),
                (['schedule', 'run', '--executor', long], '512'),
                (['schedule', 'add', 'n', '--cron', '* * * * *', '--queue', long], '512')):
            with self.subTest(arguments=arguments[:3]):
                self.refused(*arguments[:2], '--store', self.store, *arguments[2:], culprit=culprit)
                self.assertEqual(os.listdir(self.folder), [])

    def test_the_store_can_come_from_the_environment_and_be_a_bare_file(self):
        self.run_it('job', 'put', 'mail', env=dict(os.environ, ARGIOPE_STORE=str(self.file)))
        self.assertEqual(self.counts('mail')['ready'], 1)


class Looking(Jobs):
    def test_unknown_things_are_named(self):
        self.job('put', 'mail')
        for arguments, culprit in ((['list', '--queue', 'nope'], 'nope'), (['stats', '--queue', 'nope'], 'nope'),
                                   (['queue', 'nope'], 'nope'), (['show', '99'], '99'), (['explain', 'nobody'], 'nobody'),
                                   (['cancel', '99'], '99'), (['kick', 'nope', '--all'], 'nope')):
            with self.subTest(arguments=arguments):
                self.refused('job', *arguments, '--store', self.store, culprit=culprit)

    def test_files_that_are_not_ours_are_refused_and_left_alone(self):
        self.refused('job', 'stats', '--store', self.store, culprit=str(self.file), expect=3)
        self.assertFalse(self.file.exists())
        self.refused('job', 'cancel', '1', '--store', self.store, culprit=str(self.file), expect=3)
        self.assertFalse(self.file.exists())
        self.file.write_text('my notes ' * 1000)
        for arguments in (['put', 'mail'], ['stats'], ['work', 'mail', '--', 'true']):
            at = arguments.index('--') if '--' in arguments else len(arguments)
            self.refused('job', *arguments[:at], '--store', self.store, *arguments[at:], expect=3,
                         culprit=[str(self.file), '--store names another file'])
        self.assertEqual(self.file.read_text(), 'my notes ' * 1000)
        foreign = self.folder / 'foreign.db'
        with contextlib.closing(sqlite3.connect(foreign)) as database:
            database.execute('CREATE TABLE mine (x)')
            database.commit()
        self.refused('job', 'put', 'mail', '--store', foreign, expect=3,
                     culprit=['not made by argiope', '--store names another file'])
        self.refused('job', 'put', 'mail', '--store', 'mysql://here', culprit='--store "mysql://here": give "sqlite:FILE"')
        self.refused('job', 'put', 'mail', '--store', self.folder, culprit=str(self.folder), expect=3)
        pipe = self.folder / 'pipe'
        os.mkfifo(pipe)
        for command in (['job', 'put', 'mail'], ['job', 'list'], ['schedule', 'export']):
            self.refused(*command[:2], '--store', pipe, *command[2:], culprit='not a plain file', expect=3)

    def test_a_damaged_file_is_told_of(self):
        self.job('put', '-', input='{"queue":"a","payload":"%s"}\n' % ('x' * 1000) * 500)
        with open(self.file, 'r+b') as file:
            file.seek(8192)
            file.write(b'\xff' * 200_000)
        self.refused('job', 'list', '--store', self.store, '--limit', '1000', culprit='damaged', expect=3)

    @unittest.skipIf(os.geteuid() == 0, 'root may write everything')
    def test_a_read_only_file_can_be_looked_at(self):
        self.job('put', 'mail')
        self.file.chmod(0o444)
        self.assertEqual(self.counts('mail')['ready'], 1)
        self.refused('job', 'put', 'mail', '--store', self.store, culprit='read-only', expect=3)

    def test_explain_names_the_reason(self):
        self.job('put', 'mail')
        self.job('put', 'mail', '--delay', '3600')
        self.job('put', 'mail', '--waits-for', '2')
        self.assertEqual([why['reason'] for why in self.json('explain', 1, 2, 3)],
                         ['partition without owner', 'not due', 'waits for other jobs'])
        delayed, waiting = self.json('explain', 2, 3)
        self.assertRegex(delayed['until'], r'^\d{4}-\d\d-\d\dT.*Z$')
        self.assertEqual((waiting['until'], waiting['waits_for']), (None, [2]))
        self.assertIn('no process works', self.run_it('explain', '1', '--store', self.store).stdout)
        worker, go = self.start_sleeper()
        self.job('put', 'mail')
        self.job('put', 'mail', '--priority', '1')
        running, behind, first = self.json('explain', 1, 4, 5)
        self.assertEqual((running['state'], running['reason'], running['attempts']), ('running', 'running', 1))
        self.assertEqual((behind['reason'], behind['ahead']), ('more important jobs ahead', 1))
        self.assertEqual((first['reason'], first['ahead']), ('none', 0))
        worker.terminate()
        self.let_go(go)
        self.assertEqual(worker.wait(PATIENCE), 130)

    def test_explain_knows_the_urls_of_a_crawl(self):
        urls, _ = self.site('--hosts', 1, '--pages', 5, '--features', 'none')
        self.crawl(urls[0])
        page = self.rows("SELECT url FROM urls WHERE referrer IS NOT NULL LIMIT 1")[0][0]
        why = json.loads(self.run_it('explain', page, '-d', self.database, '--json').stdout)
        self.assertEqual((why['state'], why['status'], why['error']), ('done', 200, ''))
        self.assertTrue(why['referrer'].startswith('http'))
        self.assertIn('was fetched', self.run_it('explain', page, '-d', self.database).stdout)
        self.refused('explain', 'http://elsewhere.example/', '-d', self.database, culprit='elsewhere.example')


class Working(Jobs):
    def test_a_second_worker_is_turned_away_and_everything_else_goes_on_meanwhile(self):
        self.job('put', 'mail')
        worker, go = self.start_sleeper('--until-empty')
        self.refused('job', 'work', 'mail', '--store', self.store, '--', 'true', culprit='one worker at a time', expect=3)
        self.assertEqual(self.job('put', 'other', '--delay', '60'), '2\n')
        self.assertEqual(self.counts('mail')['running'], 1)
        self.refused('job', 'delete', '1', '--store', self.store, culprit='it runs')
        self.assertEqual(self.job('cancel', '2'), 'cancelled 2\n')
        self.job('queue', 'other', '--rate', '2')
        self.let_go(go)
        self.assertEqual(worker.wait(PATIENCE), 0)
        self.assertEqual(self.json('show', '1')[0]['result'], 'result\n')

    def test_a_job_that_runs_elsewhere_is_cancelled(self):
        self.job('put', 'mail')
        worker, _ = self.start_sleeper('--until-empty')
        self.assertEqual(self.job('cancel', '1', '--why', 'not needed'), 'asked 1 to stop: it runs\n')
        self.assertEqual(worker.wait(PATIENCE), 0)
        shown = self.json('show', '1')[0]
        self.assertEqual((shown['state'], shown['error']), ('cancelled', 'not needed'))

    def test_failures_are_tried_again_and_then_buried(self):
        self.job('queue', 'mail', '--max-attempts', '2', '--retry-first', '0.05')
        self.job('put', 'mail')
        self.job('put', 'mail', 'bad data')
        command = ['--', 'sh', '-c', 'read x; [ "$x" != "" ] && exit 65; echo attempt $ARGIOPE_JOB_ATTEMPT >&2; exit 3']
        result = self.run_it('job', 'work', 'mail', '--store', self.store, '--until-empty', '--fail-on-buried', '--json',
                             *command, expect=1)
        summary = json.loads(result.stdout)
        self.assertEqual((summary['retried'], summary['buried']), (1, 2))
        first, second = self.json('show', 1, 2)
        self.assertEqual((first['state'], first['error'], len(first['history'])), ('buried', 'attempt 2', 2))
        self.assertEqual((second['state'], second['attempts']), ('buried', 1))
        self.assertEqual(self.json('explain', 1)[0]['reason'], 'buried')
        # And again, by the three ways there are.
        self.assertEqual(self.job('retry', 1), '1\n')
        self.assertEqual(self.job('kick', 'mail', '--all'), 'kicked 1 job\n')
        self.job('work', 'mail', '--until-empty', '--', 'true')
        self.assertEqual(self.counts('mail')['done'], 2)
        self.assertEqual(self.job('retry', 1), '3\n')
        self.assertEqual(self.job('delete', 'mail', '--all', '--state', 'done'), 'deleted 2 jobs\n')
        self.assertEqual(self.counts('mail'), {'ready': 1, 'delayed': 0, 'running': 0, 'done': 0, 'buried': 0,
                                               'cancelled': 0})

    def test_until_empty_waits_for_rates_but_not_for_later_times_or_paused_queues(self):
        self.job('queue', 'mail', '--rate', '20')
        self.job('queue', 'paused', '--pause')
        for _ in range(4):
            self.job('put', 'mail')
        self.job('put', 'mail', '--delay', '3600')
        self.job('put', 'paused')
        self.job('work', 'mail', 'paused', '--until-empty', '--', 'true')
        self.assertEqual((self.counts('mail')['done'], self.counts('mail')['delayed']), (4, 1))
        self.assertEqual(self.counts('paused')['ready'], 1)

    def test_a_job_beyond_its_time_is_stopped(self):
        self.job('queue', 'mail', '--max-attempts', '1')
        self.job('put', 'mail')
        self.job('work', 'mail', '--until-empty', '--timeout', '0.2', '--', 'sleep', '60')
        self.assertIn('out of time', self.json('show', 1)[0]['error'])

    def test_a_signal_lets_jobs_end_and_a_second_one_does_not(self):
        self.job('put', 'mail')
        worker, go = self.start_sleeper()
        worker.send_signal(signal.SIGINT)
        self.let_go(go)
        self.assertEqual(worker.wait(PATIENCE), 130)
        self.assertEqual(self.counts('mail')['done'], 1)
        self.job('put', 'mail')
        worker, go = self.start_sleeper()
        worker.send_signal(signal.SIGTERM)
        worker.send_signal(signal.SIGINT)
        self.assertEqual(worker.wait(PATIENCE), 130)
        record = self.json('show', 2)[0]
        self.assertEqual((record['state'], record['attempts']), ('ready', 0))

    def test_a_closed_terminal_lets_jobs_end_however_often_it_is_told(self):
        self.job('put', 'mail')
        worker, go = self.start_sleeper()
        worker.send_signal(signal.SIGHUP)
        worker.send_signal(signal.SIGHUP)
        self.let_go(go)
        self.assertEqual(worker.wait(PATIENCE), 129)
        self.assertEqual(self.counts('mail')['done'], 1)

    def test_a_worker_under_nohup_goes_on_when_its_terminal_is_closed(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does for what it starts
        self.addCleanup(signal.signal, signal.SIGHUP, before)
        self.job('put', 'mail')
        worker, go = self.start_sleeper()
        worker.send_signal(signal.SIGHUP)
        self.let_go(go)
        self.wait_until(lambda: self.counts('mail')['done'] == 1, 'the job was not done')
        self.job('put', 'mail')
        self.wait_for_start(self.folder / 'started')
        self.let_go(go)
        self.wait_until(lambda: self.counts('mail')['done'] == 2, 'the worker takes no jobs any more')
        worker.send_signal(signal.SIGINT)
        self.assertEqual(worker.wait(PATIENCE), 130)

    def test_a_queue_has_a_policy(self):
        shown = self.json('queue', 'mail', '--rate', '2.5', '--key-delay', '1.5', '--capacity', '1')[0]['config']
        self.assertEqual((shown['rate'], shown['key_delay_ms'], shown['capacity']), (2.5, 1500, 1))
        self.assertEqual(shown['keep_done_ms'], 24 * 3600 * 1000)
        shown = self.json('queue', 'mail', '--config', '{"weight": 3}', '--rate', 'unlimited', '--pause')[0]['config']
        self.assertEqual((shown['rate'], shown['weight'], shown['paused'], shown['capacity']), ('unlimited', 3, True, 1))
        self.job('put', 'mail')
        self.refused('job', 'put', 'mail', '--store', self.store, culprit=['mail', 'full'])
        self.job('queue', 'small', '--max-payload', '3')
        self.refused('job', 'put', 'small', 'long', '--store', self.store,
                     culprit=['4 bytes', 'argiope job queue small --max-payload BYTES changes that'])
        self.refused('job', 'put', '-', '--store', self.store, input='{"queue":"small","payload":"long"}\n',
                     culprit=['standard input:1:', 'argiope job queue small --max-payload BYTES changes that'])
        for arguments, culprit in ((['--rate', 'fast'], '--rate fast'), (['--config', '{"wieght":1}'], 'wieght'),
                                   (['--weight', '0'], 'weight'), (['--pause', '--resume'], '--pause')):
            self.refused('job', 'queue', 'mail', '--store', self.store, *arguments, culprit=culprit)


class Shown(Jobs):
    """Names and texts that others have made."""

    def test_nothing_that_others_have_named_turns_the_writing_of_a_terminal(self):
        odd = 'a\u202eb\u009bc\x1bd'
        file = self.folder / 'odd\u202e.toml'
        file.write_text('[[queue]]\nname = "q"\n[[schedule]]\nname = "a\\u202e"\ntrigger = "@hourly"\n[[schedule]]\n'
                        'name = "b\\u202e"\ntrigger = "@hourly"\n')
        lines = self.folder / 'odd\u202e.jsonl'
        lines.write_text('{"queue":"q","colour":1}\n' + json.dumps({'queue': odd, 'id': odd + '2'}) + '\n')
        on_store = [
            ['job', 'put', odd, odd, '--id', odd, '--key', odd, '--delay', '1h'], ['job', 'list'], ['job', 'show', odd],
            ['job', 'explain', odd], ['job', 'queue', odd], ['job', 'queue', odd, '--weight', '2'],
            ['job', 'queue', odd, '--weight', '2'], ['job', 'stats'], ['job', 'put', '--file', lines],
            ['job', 'cancel', odd, '--why', odd], ['job', 'show', odd], ['job', 'cancel', odd + '3'],
            ['schedule', 'add', odd, '--every', '1h', '--queue', odd, '--payload', odd], ['schedule', 'list'],
            ['schedule', 'show', odd], ['schedule', 'explain', odd], ['schedule', 'next', odd], ['schedule', 'run-now', odd],
            ['schedule', 'history', odd], ['schedule', 'pause', odd, '--by', odd], ['schedule', 'explain', odd],
            ['schedule', 'list'], ['schedule', 'resume', odd], ['schedule', 'remove', odd], ['schedule', 'show', odd],
            ['explain', odd], ['job', 'work', odd, '--until-empty', '--', 'sh', '-c', 'exit 1']]
        tokens = ['--file', self.folder / 'tokens\u202e']
        others = [['serve', '--check', file], ['simulate', file, '--for', '3h'], ['token', 'add', 'odd', *tokens, '--prefix', odd],
                  ['token', 'list', *tokens], ['token', 'remove', odd, *tokens]]
        store = ['--store', self.store]
        for words in [[*words[:2], *store, *words[2:]] for words in on_store] + others:
            with self.subTest(words=words):
                result = subprocess.run([ARGIOPE, *map(str, words)], capture_output=True, text=True, timeout=300)
                self.assertNotRegex(result.stdout + result.stderr, '[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]')


class Helping(Jobs):
    """What is said of mistakes, and what is shown."""

    def test_a_misspelt_command_or_option_is_answered_with_the_one_that_was_meant(self):
        for arguments, said in (
                (['jbo'], 'did you mean "job"?'), (['job', 'wrok'], 'did you mean "work"?'),
                (['schedule', 'hsitory'], 'did you mean "history"?'),
                (['job', 'queue', 'mail', '--retry-frist', '2'], 'argiope job queue has no option --retry-frist; did you mean --retry-first?'),
                (['crawl', 'http://127.0.0.1/', '--max-dept', '3'], 'did you mean --max-depth?'),
                (['simulate', 'x.toml', '--form', '2026-01-01'], 'did you mean --from?'),
                (['next', '@daily', '--conut', '3'], 'did you mean --count?')):
            with self.subTest(arguments=arguments):
                result = self.refused(*arguments, culprit=said)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    def test_a_command_without_dashes_is_told_where_commands_stand(self):
        self.refused('job', 'work', 'mail', './send', '2', '--store', self.store,
                     culprit='which command? Write it after --, as in: argiope job work mail -- ./send 2')
        self.refused('schedule', 'add', 'b', '--every', '1h', './backup', '--all', '--store', self.store,
                     culprit='write a command after --, as in: argiope schedule add … -- ./backup --all')
        self.assertFalse(self.file.exists())

    def test_spans_are_given_in_one_notation_and_nothing_else_is_one(self):
        self.job('put', 'mail', '--delay', '1h30m')
        self.job('put', 'mail', '--delay', '90')
        self.assertEqual(self.counts('mail')['delayed'], 2)
        for text in ('nan', 'inf', '-1', '-5s', 'soon', '1x'):
            self.refused('job', 'put', 'mail', '--delay', text, '--store', self.store, culprit=['--delay', text])
            self.refused('job', 'queue', 'mail', '--retry-first', text, '--store', self.store, culprit=['--retry-first', text])
            self.refused('crawl', 'http://127.0.0.1:1/', '--delay', text, '-d', ':memory:', culprit='--delay')
        self.refused('crawl', 'http://127.0.0.1:1/', '--rate', 'nan', '-d', ':memory:', culprit='--rate')
        self.job('queue', 'mail', '--retry-first', '100ms', '--keep-done', '2d', '--lease', '90')
        config = self.json('queue', 'mail')[0]['config']
        self.assertEqual((config['retry_first_ms'], config['keep_done_ms'], config['lease_time_ms']),
                         (100, 2 * 86_400_000, 90_000))

    def test_a_changed_queue_shows_what_has_changed(self):
        self.job('put', 'mail')
        self.assertEqual(self.job('queue', 'mail', '--rate', '5').splitlines(),
                         ['queue "mail"', '  rate                 5 (was unlimited)'])
        self.assertIn('all is as before', self.job('queue', 'mail', '--rate', '5'))
        shown = self.job('queue', 'mail')
        self.assertRegex(shown, r'(?m)^  keep_done +1d$')
        self.assertRegex(shown, r'(?m)^  rate +5$')

    def test_a_job_that_ran_once_has_one_attempt_and_lists_agree_with_counts(self):
        self.job('put', 'mail', '--id', 'first')
        self.job('put', 'mail', '--waits-for', '1')
        self.assertEqual(self.job('list').splitlines()[2].split()[2:6], ['delayed', '0', '0', 'waits'])
        self.assertEqual(self.counts('mail')['delayed'], 1)
        self.job('work', 'mail', '--until-empty', '--', 'true')
        self.assertRegex(self.job('show', 'first'), r'(?m)^  attempts +1$')
        self.assertEqual(self.json('show', 'first')[0]['runs'], 1)

    def test_the_end_of_work_tells_of_what_is_due_later(self):
        self.job('put', 'mail')
        self.job('put', 'mail', '--delay', '1h')
        out = self.job('work', 'mail', '--until-empty', '--', 'true')
        self.assertRegex(out, r'(?m)^1 job is due later, the first .*\(in (1h|5\dm\d*s?)\)\.$')
        self.assertEqual(self.json('work', 'mail', '--until-empty', '--', 'true')[-1]['due_later'], 1)

    def test_names_of_jobs_may_stand_for_ids_in_lines_of_json(self):
        lines = ['{"queue":"a","id":"first"}', '{"queue":"a","id":"second","waits_for":["first"]}',
                 '{"queue":"a","waits_for":["nobody"]}', '{"queue":"a","id":"all","waits_for":["second",1]}',
                 '{"queue":"a","id":"one more","batch":"all"}']
        result = self.run_it('job', 'put', '--store', self.store, '-', input='\n'.join(lines), expect=2)
        self.assertEqual(result.stdout, 'first\nsecond\nall\none more\n')
        self.assertRegex(result.stderr, ':3: waits_for: job "nobody"')
        self.assertEqual(self.json('explain', 'second')[0]['waits_for'], [1])
        self.assertEqual(len(self.json('explain', 'all')[0]['waits_for']), 3)

    def test_bytes_that_are_no_text_come_and_go(self):
        payload = bytes(range(256))
        line = json.dumps({'queue': 'raw', 'payload_base64': base64.b64encode(payload).decode()})
        self.assertEqual(self.run_it('job', 'put', '--store', self.store, '-', input=line).stdout, '1\n')
        self.job('work', 'raw', '--until-empty', '--', 'cat')
        for option in ('--payload', '--result'):
            shown = subprocess.run([ARGIOPE, 'job', 'show', '--store', self.store, '1', option], capture_output=True, timeout=PATIENCE)
            self.assertEqual((shown.stdout, shown.returncode), (payload, 0))
        record = self.json('show', '1')[0]
        self.assertEqual(base64.b64decode(record['result_base64']), payload)
        self.assertEqual(base64.b64decode(record['payload_base64']), payload)


class Starting(Jobs):
    """What a worker cannot start is no job's fault."""

    def test_a_command_that_is_not_there_is_refused_before_a_job_is_taken(self):
        self.job('put', 'mail', '--max-attempts', '1')
        for command, said in (('no-such-program', 'PATH'), ('/nowhere/at-all', 'No such file'), ('/etc/passwd', 'not executable'),
                              ('/tmp', 'directory')):
            self.refused('job', 'work', 'mail', '--store', self.store, '--', command, culprit=[command, said])
            self.refused('schedule', 'run', '--work', 'mail', '--store', self.store, '--', command, culprit=[command, said])
        self.assertEqual(self.json('show', '1')[0]['attempts'], 0)
        self.assertEqual(self.counts('mail')['ready'], 1)

    def test_the_soft_limit_of_open_files_is_raised_and_commands_have_the_old_one(self):
        for _ in range(60):
            self.job('put', 'mail')
        _, go = self.gates()
        all_started = self.folder / 'all-started'
        # 60 at once need 300 descriptors and more.
        worker = self.start_command('job', 'work', 'mail', '--until-empty', '--json', '-c', '60', '--', 'sh', '-c',
                                    f'ulimit -Sn; echo . >> {all_started}; read x < {go}', stdout=subprocess.PIPE,
                                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE,
                                                                          (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
        self.wait_until(lambda: all_started.exists() and all_started.read_text().count('.') == 60, 'the 60 did not run at once')
        self.let_go(go, lines=60)
        self.assertEqual(json.loads(worker.communicate(timeout=PATIENCE)[0].splitlines()[-1])['done'], 60)
        self.assertEqual(self.json('show', '1')[0]['result'], '64\n')

    def test_a_misspelt_queue_is_not_made(self):
        self.job('put', 'mail')
        self.refused('job', 'work', 'mial', '--store', self.store, '--until-empty', '--', 'true',
                     culprit='there is no queue "mial"; did you mean "mail"? --create makes a new one')
        self.refused('schedule', 'run', '--work', 'mial', '--store', self.store, '--until-idle', '--', 'true',
                     culprit='did you mean "mail"?')
        self.assertEqual(list(self.json('stats')[0]['queues']), ['mail'])
        self.job('work', 'mial', '--create', '--until-empty', '--', 'true')
        self.job('work', 'something-else', '--until-empty', '--', 'true')
        self.assertEqual(len(self.json('stats')[0]['queues']), 3)

    def test_nothing_that_a_command_started_outlives_a_killed_worker(self):
        """Grandchildren in sessions of their own, and such as nobody's children."""
        marks = [self.folder / 'session', self.folder / 'orphan']
        line = (f'setsid sh -c "echo \\$\\$ > {marks[0]}; exec sleep 300" >/dev/null 2>&1 & '
                f'( (setsid sh -c "echo \\$\\$ > {marks[1]}; exec sleep 300" >/dev/null 2>&1 &) & ); sleep 300')
        self.job('put', 'mail')
        worker = self.start_command('job', 'work', 'mail', '--quiet', '--', 'sh', '-c', line)
        self.wait_until(lambda: all(mark.exists() and mark.read_text().strip() for mark in marks))
        pids = [int(mark.read_text()) for mark in marks]
        self.assertTrue(all(map(alive, pids)))
        worker.kill()
        worker.wait(PATIENCE)
        self.wait_until(lambda: not any(map(alive, pids)))

    def test_the_second_signal_ends_them_too(self):
        mark = self.folder / 'mark'
        self.job('put', 'mail')
        worker = self.start_command('job', 'work', 'mail', '--quiet', '--', 'sh', '-c',
                                f'trap "" TERM; setsid sh -c "trap \'\' TERM; echo \\$\\$ > {mark}; exec sleep 300" & wait; sleep 300')
        self.wait_until(lambda: mark.exists() and mark.read_text().strip())
        pid = int(mark.read_text())
        worker.send_signal(signal.SIGTERM)
        worker.send_signal(signal.SIGINT)  # two of one kind at the same instant may be one
        self.assertEqual(worker.wait(PATIENCE), 130)
        self.wait_until(lambda: not alive(pid))
        self.assertEqual(self.json('show', '1')[0]['attempts'], 0)


def alive(pid):
    try:
        return pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()[0] != 'Z'
    except OSError:
        return False


if __name__ == '__main__':
    unittest.main()
