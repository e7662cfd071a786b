"""The commands on a daemon: what they do to a file, they do to `argiope serve`, whatever happens to it meanwhile."""
import json
import os
import signal
import subprocess
import sys
import unittest

from support import ARGIOPE, Commands, EndToEnd, free_port

# Runs a command with a loopback that nobody else has, so that the usual port is free. Exit status 77: that is not allowed here.
OWN_NETWORK = '''
import ctypes, fcntl, os, socket, struct, sys
NEW_NETWORK, NEW_USER, SET_FLAGS, UP = 0x40000000, 0x10000000, 0x8914, 0x41
if ctypes.CDLL(None).unshare(NEW_NETWORK | (NEW_USER if os.geteuid() else 0)) != 0:
    sys.exit(77)
with socket.socket() as one:
    fcntl.ioctl(one, SET_FLAGS, struct.pack("16sh22x", b"lo", UP))
os.execvp(sys.argv[1], sys.argv[1:])
'''


class OnADaemon(Commands):
    """Commands whose store is a daemon on loopback."""

    def setUp(self):
        super().setUp()
        self.port = free_port()
        self.daemon = self.start_daemon()
        self.store = f'http://127.0.0.1:{self.port}'

    def start_daemon(self, *options):
        log = self.folder / 'daemon.log'
        with open(log, 'w') as stderr:
            daemon = self.start([ARGIOPE, 'serve', '--store', f'sqlite:{self.file}', '--listen', f'127.0.0.1:{self.port}',
                                 *options],
                                stderr=stderr, cwd=self.folder)
        self.wait_until(lambda: 'listening: http' in log.read_text(), 'the daemon did not listen')
        return daemon

    def restart(self, number=signal.SIGKILL):
        self.daemon.send_signal(number)
        self.daemon.wait(30)
        self.daemon = self.start_daemon()

    def counts(self, queue='mail'):
        return self.json('stats')[0]['queues'][queue]

    def worker(self, *options, command=('cat',)):
        return self.start_command('job', 'work', 'mail', '--json', *options, '--', *command,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class Jobs(OnADaemon):
    def test_a_job_is_put_worked_and_answered_for(self):
        self.assertEqual(self.job('put', 'mail', 'hello', '--key', 'a.org', '--priority', '5'), '1\n')
        self.assertEqual(self.job('put', 'mail', '--id', 'order/1 ä'), 'order/1 ä\n')
        self.assertEqual(self.job('put', 'mail', 'again', '--id', 'order/1 ä'), 'order/1 ä\n')
        self.assertEqual(self.json('list')[0]['payload'], 'hello')
        summary = self.json('work', 'mail', '--until-empty', '--', 'sh', '-c', 'cat; echo ".$ARGIOPE_JOB_KEY"')[-1]
        self.assertEqual((summary['done'], summary['buried'], summary['finished']), (2, 0, True))
        self.assertEqual(self.counts()['done'], 2)
        record = self.json('show', '1')[0]
        self.assertEqual((record['state'], record['result']), ('done', 'hello.a.org\n'))
        self.assertEqual(self.json('explain', 'order/1 ä')[0]['reason'], 'ended')
        self.assertIn('job 1 (done)', self.run_it('explain', '--store', self.store, '1').stdout)

    def test_many_lines_are_put_and_bad_ones_are_named(self):
        lines = ['{"queue":"mail"}'] * 1500 + ['nonsense', '{"queue":"mail","payload":"' + 'x' * (1 << 21) + '"}']
        result = self.run_it('job', 'put', '--store', self.store, '-', input='\n'.join(lines), expect=2)
        self.assertEqual(len(result.stdout.splitlines()), 1500)
        self.assertIn('standard input:1501: ', result.stderr)
        self.assertIn('standard input:1502: ', result.stderr)
        self.assertEqual(self.counts()['ready'], 1500)

    def test_failures_are_told_and_tried_again(self):
        self.job('put', 'mail', 'bad')
        self.job('queue', 'mail', '--max-attempts', '2', '--retry-first', '0')
        result = self.run_it('job', 'work', '--store', self.store, 'mail', '--until-empty', '--fail-on-buried', '--json', '--',
                             'sh', '-c', 'echo broken >&2; exit 1', expect=1)
        summary = json.loads(result.stdout.splitlines()[-1])
        self.assertEqual((summary['retried'], summary['buried']), (1, 1))
        self.assertIn('broken', result.stderr)
        self.assertEqual(self.json('show', '1')[0]['state'], 'buried')
        self.assertEqual(self.job('retry', '1').split()[-1], '1')
        self.assertEqual(self.counts()['ready'], 1)

    def test_what_is_not_there_is_refused_as_of_a_file(self):
        self.refused('job', 'show', '--store', self.store, '99', culprit='job 99: there is no such job')
        self.refused('job', 'list', '--store', self.store, '--queue', 'none', culprit='queue "none": there is no such queue')
        self.refused('job', 'kick', '--store', self.store, '99', culprit='job 99')
        self.refused('schedule', 'show', '--store', self.store, 'none', culprit='schedule "none": there is no such schedule')
        self.refused('schedule', 'run', '--store', self.store, culprit='the daemon itself runs its schedules')

    def test_queues_are_paused_and_jobs_changed(self):
        self.job('put', 'mail')
        self.job('queue', 'mail', '--pause')
        self.assertEqual(self.json('explain', '1')[0]['reason'], 'queue paused')
        self.job('queue', 'mail', '--resume')
        self.job('cancel', '1')
        self.assertEqual(self.json('show', '1')[0]['state'], 'cancelled')

    def test_a_job_may_have_any_name(self):
        for name in '.', '..', 'change', '=x', 'a/b?c#d', '%2e':
            self.job('put', 'mail', name, '--id', name)
            self.assertEqual(self.json('show', name)[0]['payload'], name)
            self.job('cancel', name)
            self.assertEqual(self.json('explain', name)[0]['state'], 'cancelled')
        self.job('put', '..')
        self.job('queue', '..', '--pause')
        self.assertEqual(self.counts('..')['ready'], 1)

    def test_output_is_followed_to_the_end_of_a_job(self):
        self.job('put', 'mail', 'good')
        self.job('put', 'mail', 'bad')
        followers = [self.start_command('job', 'output', '--follow', job, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                     for job in '12']
        self.refused('job', 'output', '--store', self.store, '1', culprit='job 1: no run of it has left a result')
        self.run_it('job', 'work', '--store', self.store, 'mail', '--until-empty', '--quiet', '--',
                    'sh', '-c', 'read it; echo "$it"; test "$it" = good || { echo sour >&2; exit 65; }',
                    input='')
        self.assertEqual([follower.communicate(timeout=60) for follower in followers],
                         [('good\n', ''), ('bad\nsour\n', 'argiope: job 2: buried: sour\n')])
        self.assertEqual([follower.returncode for follower in followers], [0, 1])
        self.assertEqual(self.job('output', '1'), 'good\n')

    def test_output_is_seen_while_the_command_runs(self):
        self.job('put', 'mail')
        follower = self.start_command('job', 'output', '--follow', '1', stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started, go = self.gates()
        worker = self.worker(command=('sh', '-c', f'echo first; echo . > {started}; read x < {go}; echo last'))
        self.wait_for_start(started)
        self.assertEqual(follower.stdout.readline(), 'first\n')
        self.assertEqual(self.json('show', '1')[0]['result'], 'first\n')
        with open(go, 'w') as gate:
            gate.write('.\n')
        self.assertEqual(follower.communicate(timeout=30), ('last\n', ''))
        self.assertEqual(follower.returncode, 0)
        self.assertEqual(self.job('output', '--wait', '1'), 'first\nlast\n')
        worker.send_signal(signal.SIGINT)

    def test_a_job_that_is_cancelled_is_stopped_at_once(self):
        self.job('put', 'mail')
        self.job('queue', 'mail', '--lease', '1h')  # renewing it would come too late
        started, go = self.gates()
        worker = self.worker(command=('sh', '-c', f'echo . > {started}; read x < {go}'))
        self.wait_for_start(started)
        self.job('cancel', '1')
        self.wait_until(lambda: self.json('show', '1')[0]['state'] == 'cancelled', 'the job was not stopped', 60)
        worker.send_signal(signal.SIGINT)
        self.assertEqual(worker.wait(30), 130)

    def test_a_scheme_may_be_in_capitals(self):
        self.store = self.store.replace('http', 'HTTP')
        self.job('put', 'mail', 'hello')
        self.store = self.store.replace('HTTP', 'Http')
        self.assertEqual(self.counts()['ready'], 1)

    def test_a_token_that_may_not_work_is_told_also_where_nothing_is_to_be_done(self):
        self.daemon.send_signal(signal.SIGTERM)
        self.daemon.wait(30)
        words = self.run_it('token', 'add', '--file', str(self.folder / 'tokens'), '--scope', 'read', 'looker').stdout
        self.daemon = self.start_daemon('--tokens', str(self.folder / 'tokens'))
        environment = {**os.environ, 'ARGIOPE_TOKEN': words.split()[0]}
        for more in ((), ('--until-empty',)):
            result = self.run_it('job', 'work', '--store', self.store, 'mail', *more, '--', 'cat', expect=2, env=environment)
            self.assertIn('"looker" has the scope read, and this needs work', result.stderr)

    def test_no_daemon_there_is_said_with_what_to_do(self):
        self.refused('job', 'list', '--store', f'http://127.0.0.1:{free_port()}', expect=3,
                     culprit=['--store http://127.0.0.1:', 'argiope serve'])

    def test_two_workers_share_the_jobs(self):
        self.run_it('job', 'put', '--store', self.store, '-', input='{"queue":"mail"}\n' * 200)
        ledger = self.folder / 'ledger'
        workers = [self.worker('--until-empty', '--concurrency', 4, '--name', name,
                               command=('sh', '-c', f'echo $ARGIOPE_JOB_ID >> {ledger}')) for name in 'ab']
        done = [json.loads(worker.communicate(timeout=120)[0].splitlines()[-1])['done'] for worker in workers]
        self.assertEqual(sum(done), 200)
        self.assertEqual(sorted(map(int, ledger.read_text().split())), list(range(1, 201)))


class Absences(OnADaemon):
    def test_a_worker_goes_on_when_the_daemon_is_killed_and_comes_back(self):
        self.job('put', 'mail', 'long')
        started, go = self.gates()
        worker = self.worker(command=('sh', '-c', f'echo . > {started}; read x < {go}; echo result'))
        self.wait_for_start(started)
        self.restart()
        self.let_go(go)
        self.wait_until(lambda: self.counts()['done'] == 1, 'the job was not settled', 60)
        worker.send_signal(signal.SIGINT)
        self.assertEqual(worker.wait(30), 130)
        self.assertEqual(self.json('show', '1')[0]['result'], 'result\n')

    def test_a_job_runs_once_though_the_daemon_is_away_when_it_ends(self):
        self.job('put', 'mail')
        ledger = self.folder / 'ledger'
        started, go = self.gates()
        worker = self.worker(command=('sh', '-c', f'echo . > {started}; read x < {go}; echo ran >> {ledger}'))
        self.wait_for_start(started)
        self.daemon.kill()
        self.daemon.wait(30)
        self.let_go(go)
        self.wait_until(ledger.exists, 'the command did not end')
        self.daemon = self.start_daemon()
        self.wait_until(lambda: self.counts()['done'] == 1, 'the job was not settled', 60)
        self.assertEqual(ledger.read_text(), 'ran\n')
        worker.send_signal(signal.SIGINT)
        self.assertEqual(worker.wait(30), 130)

    def test_a_feed_survives_a_restart_and_puts_nothing_twice(self):
        put = self.start_command('job', 'put', '-', stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        put.stdin.write('{"queue":"mail"}\n')
        put.stdin.flush()
        self.assertEqual(put.stdout.readline(), '1\n')
        self.restart(signal.SIGTERM)
        put.stdin.write('{"queue":"mail"}\n' * 50)
        put.stdin.close()
        self.assertEqual(len(put.stdout.read().splitlines()), 50)
        self.assertEqual(put.wait(30), 0)
        self.assertEqual(self.counts()['ready'], 51)


class Schedules(OnADaemon):
    family = 'schedule'

    def test_a_schedule_is_added_paused_run_and_removed(self):
        self.schedule('add', 'backup', '--cron', '30 3 * * *', '--zone', 'Europe/Berlin', '--', 'echo', 'saved')
        self.refused('schedule', 'add', '--store', self.store, 'backup', '--every', '1h', '--', 'true',
                     culprit='schedule "backup": there is one of that name')
        self.assertEqual([status['name'] for status in self.json('list')], ['backup'])
        self.assertEqual(self.json('explain', 'backup')[0]['reason'], 'not_due')
        self.schedule('pause', 'backup', '--by', 'ann')
        self.assertEqual(self.json('explain', 'backup')[0]['paused_by'], 'ann')
        self.schedule('resume', 'backup')
        job = self.schedule('run-now', 'backup').strip()
        self.assertTrue(job.isdigit())
        self.wait_until(lambda: self.schedule('output', 'backup') == 'saved\n', 'the run left nothing')
        self.assertEqual(self.json('history', 'backup')[0]['outcome'], 'done')
        self.assertIn('backup', self.run_it('explain', '--store', self.store, 'backup').stdout)
        report = json.loads(self.run_it('simulate', '--store', self.store, '--for', '3d', '--json', '--quiet').stdout)
        self.assertEqual([(fired['name'], fired['runs']) for fired in report['schedules']], [('backup', 3)])
        self.schedule('remove', 'backup')
        self.assertEqual(self.json('list'), [])


class Notifications(OnADaemon):
    family = 'notify'
    configuration = '''
        [[notify]]
        name = "ops"
        format = "text"
        command = ["sh", "-c", "cat >> ops"]

        [[notify]]
        name = ".."
        format = "text"
        command = ["sh", "-c", "cat >> dots"]
    '''

    def start_daemon(self, *options):
        file = self.folder / 'argiope.toml'
        file.write_text(self.configuration)
        return super().start_daemon(file, *options)

    def notify(self, subcommand, *arguments, **options):
        return self.run_it('notify', subcommand, '--store', self.store, *arguments, **options)

    def told(self, name):
        """How many tests have come to one."""
        file = self.folder / name
        return file.read_text().count('This is a test') if file.exists() else 0

    def state_of(self, job):
        return json.loads(self.run_it('job', 'show', '--store', self.store, '--json', job).stdout)['state']

    def test_a_test_message_is_sent_to_one_or_to_all(self):
        self.assertEqual([(one['name'], one['messages'], one['last_at']) for one in self.json('list')],
                         [('ops', 0, None), ('..', 0, None)])
        tested = self.notify('test', 'ops')
        job = tested.stdout.strip()
        self.assertTrue(job.isdigit(), job)
        self.assertIn(f'ops: the message is on its way; argiope job show {job} --store {self.store}', tested.stderr)
        self.wait_until(lambda: self.told('ops') == 1, 'no message came')
        self.wait_until(lambda: self.state_of(job) == 'done', 'the job of the message did not end')
        sent = self.json('test')
        self.assertEqual([one['name'] for one in sent], ['ops', '..'])
        self.wait_until(lambda: (self.told('ops'), self.told('dots')) == (2, 1), 'a message did not come')
        self.assertEqual([(one['name'], one['messages'], one['gathered'], one['lasting']) for one in self.json('list')],
                         [('ops', 2, 0, 0), ('..', 1, 0, 0)])
        table = self.notify('list').stdout
        self.assertRegex(table, r'^NAME +MESSAGES +GATHERED +LASTING +LAST\n')
        self.assertRegex(table, r'\nops +2 +0 +0 +20\d\d-')
        self.assertEqual(len(self.notify('test', '..').stdout.split()), 1)

    def test_what_is_wrong_is_said_with_what_to_do(self):
        self.refused('notify', 'test', '--store', self.store, 'nobody',
                     culprit=['notify "nobody": the configuration has none', 'argiope notify list'])
        self.refused('notify', 'list', '--store', f'sqlite:{self.file}', culprit=['only a daemon', '--store http://HOST:7733'])
        self.refused('notify', 'list', '--store', f'http://127.0.0.1:{free_port()}', expect=3,
                     culprit=['--store http://127.0.0.1:', 'argiope serve'])
        self.refused('notify', culprit='name one of these commands')
        self.refused('notify', 'lst', culprit='did you mean "list"?')
        self.assertIn('http://127.0.0.1:7733', self.run_it('notify', 'test', '--help').stdout)
        result = self.run_it('notify', 'list', '--json', env={**os.environ, 'ARGIOPE_STORE': self.store})
        self.assertEqual(len(result.stdout.splitlines()), 2)

    def test_a_token_that_looks_may_list_and_not_test(self):
        words = self.run_it('token', 'add', '--file', self.folder / 'tokens', '--scope', 'read', 'looker').stdout
        self.daemon.send_signal(signal.SIGTERM)
        self.daemon.wait(30)
        self.daemon = self.start_daemon('--tokens', str(self.folder / 'tokens'))
        environment = {**os.environ, 'ARGIOPE_TOKEN': words.split()[0]}
        self.assertIn('ops', self.notify('list', env=environment).stdout)
        self.assertIn('"looker" has the scope read, and this needs admin', self.notify('test', expect=2, env=environment).stderr)
        self.assertIn('ARGIOPE_TOKEN', self.notify('list', expect=2).stderr)


class NobodyIsTold(OnADaemon):
    def test_where_nobody_is_told_that_is_said(self):
        self.assertIn('Nobody is told', self.run_it('notify', 'list', '--store', self.store).stdout)
        self.assertEqual(self.run_it('notify', 'list', '--store', self.store, '--json').stdout, '')
        self.refused('notify', 'test', '--store', self.store, culprit=['nobody to test', 'SIGHUP'])
        self.refused('notify', 'test', '--store', self.store, 'ops', culprit='argiope notify list')


class WithoutAStore(EndToEnd):
    def test_commands_use_the_database_of_the_folder_or_else_the_daemon_and_say_so(self):
        script = self.folder / 'script'
        script.write_text('''
            say() { name=$1; shift; "$ARGIOPE" "$@" >"$OUT/$name.out" 2>"$OUT/$name.err"; echo $? >"$OUT/$name.status"; }
            mkdir out there empty; OUT=$PWD/out; unset ARGIOPE_STORE
            cd empty
            say neither job put mail hello
            say neither_schedule schedule add x --every 1h --queue q
            (cd ../there && exec "$ARGIOPE" serve) 2>"$OUT/log" &
            until grep -q "listening: http" "$OUT/log"; do kill -0 $! || exit 1; done
            say put job put mail hello
            say list job list --json
            say schedules schedule list
            say explained explain 1
            say notify notify list
            cd ../there
            say local job list
            say named job list --store http://127.0.0.1:7733
            kill $!; wait $!
            cd ../empty; ls -A >"$OUT/left"''')
        done = subprocess.run([sys.executable, '-c', OWN_NETWORK, 'bash', script], cwd=self.folder, env={**os.environ, 'ARGIOPE': ARGIOPE},
                              capture_output=True, text=True, timeout=300)
        if done.returncode == 77:
            self.skipTest('no network of its own may be made here')
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        told = {file.name: file.read_text() for file in (self.folder / 'out').iterdir()}
        for name in ('neither', 'neither_schedule'):
            self.assertEqual(told[f'{name}.status'], '2\n')
            for way in ('which store?', 'no argiope-jobs.db in this folder', 'http://127.0.0.1:7733', '--store sqlite:FILE', 'ARGIOPE_STORE',
                        'argiope serve'):
                self.assertIn(way, told[f'{name}.err'])
        at_daemon = 'argiope: using the daemon at http://127.0.0.1:7733; --store names another\n'
        for name in ('put', 'list', 'schedules', 'explained'):
            self.assertEqual((told[f'{name}.status'], told[f'{name}.err']), ('0\n', at_daemon))
        self.assertEqual(json.loads(told['list.out'])['payload'], 'hello')
        self.assertEqual((told['notify.status'], told['notify.err']), ('0\n', ''), 'it has always asked a daemon')
        self.assertEqual((told['local.status'], told['local.err']), ('0\n', 'argiope: using argiope-jobs.db of this folder; --store names another\n'))
        self.assertEqual((told['named.status'], told['named.err']), ('0\n', ''))
        self.assertEqual(told['local.out'], told['named.out'])
        self.assertEqual(told['left'], '', 'nothing was made')


if __name__ == '__main__':
    unittest.main()
