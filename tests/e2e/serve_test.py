"""`argiope serve` as its users see it: how it starts, what its file says, how it ends."""
import contextlib
import http.client
import http.server
import json
import os
import queue
import re
import signal
import socket
import sqlite3
import stat
import subprocess
import threading
import time
import unittest

from daemon import Daemons
from support import ARGIOPE, PATIENCE


class Starting(Daemons):
    def test_a_job_is_put_leased_and_done_over_http(self):
        daemon = self.daemon()
        put = daemon.good('POST', '/v1/jobs', {'queue': 'mail', 'payload': 'hello'}, status=201)
        self.assertEqual(put, {'id': 1, 'outcome': 'added'})
        leases = daemon.good('POST', '/v1/leases', {'queues': ['mail'], 'worker': 'w'})['leases']
        self.assertEqual(leases[0]['job']['payload'], 'hello')
        settled = daemon.good('POST', '/v1/leases/settle',
                              {'settlements': [{'token': leases[0]['token'], 'outcome': 'done', 'result': 'sent'}]})
        self.assertEqual(settled['replies'][0]['outcome'], 'ok')
        job = daemon.good('GET', '/v1/jobs/1')
        self.assertEqual((job['state'], job['result']), ('done', 'sent'))
        daemon.signal(signal.SIGTERM)
        daemon.ended()

    def test_what_was_acknowledged_is_there_after_kill_9(self):
        daemon = self.daemon()
        for _ in range(50):
            daemon.good('POST', '/v1/jobs', {'queue': 'mail'}, status=201)
        daemon.process.kill()
        daemon.process.wait()
        self.assertEqual(self.daemon().good('GET', '/v1/queues/mail')['counts']['ready'], 50)

    def test_other_commands_use_the_store_beside_it(self):
        daemon = self.daemon()
        daemon.good('POST', '/v1/jobs', {'queue': 'mail'}, status=201)
        subprocess.run([ARGIOPE, 'job', 'put', '--store', self.store, 'mail', 'x'], check=True, stdout=subprocess.PIPE)
        self.wait_until(lambda: daemon.good('GET', '/v1/queues/mail')['counts']['ready'] == 2)

    def test_one_daemon_at_a_time_owns_a_store(self):
        self.daemon()
        self.refused('--store', self.store, '--listen', '127.0.0.1:0', status=3, culprit='one process at a time owns a store')

    def test_what_others_reach_is_guarded(self):
        self.refused('--listen', '0.0.0.0:0', culprit='give a certificate and a key')
        self.refused('--listen', '0.0.0.0:0', '--insecure', culprit='without tokens they may do everything')

    def test_sockets_that_were_handed_over_are_guarded_as_addresses_are(self):
        for name, culprit in (('http', 'give a certificate and a key'), ('beanstalkd', 'the protocol knows no tokens')):
            daemon = self.handed_over({name: self.listening('0.0.0.0')})
            daemon.wait_for(culprit)
            daemon.ended(2)
        self.handed_over({'http': self.listening('0.0.0.0')}, '--insecure').wait_for('without tokens they may do everything')
        self.token('add', 'boss')
        self.supervised({'http': self.listening('0.0.0.0'), 'beanstalkd': self.listening('0.0.0.0')},
                        '--insecure', '--tokens', self.folder / 'tokens')

    def test_the_last_token_that_is_removed_is_good_for_nothing_at_once(self):
        boss = self.token('add', '--scope', 'admin', 'boss')
        daemon = self.daemon('--tokens', self.folder / 'tokens')
        self.assertEqual(daemon.ask('GET', '/v1/queues', headers=boss).status, 200)
        self.token('remove', 'boss')
        daemon.signal(signal.SIGHUP)
        daemon.wait_for('nobody is let in any more: .*tokens" has no tokens')
        daemon.wait_for('was read again')
        for headers in (boss, {}):
            self.assertEqual(daemon.ask('GET', '/v1/queues', headers=headers).status, 401)
        self.assertEqual(daemon.ask('GET', '/healthz').status, 200)
        again = self.token('add', '--scope', 'read', 'looker')
        daemon.signal(signal.SIGHUP)
        daemon.wait_for('was read again')
        self.assertEqual(daemon.ask('GET', '/v1/queues', headers=again).status, 200)
        self.assertEqual(daemon.ask('GET', '/v1/queues', headers=boss).status, 401)

    def test_what_waits_for_a_token_ends_with_it(self):
        boss, gone = self.token('add', '--scope', 'admin', 'boss'), self.token('add', '--scope', 'work', 'gone')
        daemon = self.daemon('--tokens', self.folder / 'tokens')
        stream = http.client.HTTPConnection('127.0.0.1', daemon.port, timeout=PATIENCE)
        self.addCleanup(stream.close)
        stream.request('GET', '/v1/events?kinds=job', headers=gone)
        events = stream.getresponse()
        self.assertTrue(events.readline().startswith(b'retry:'))
        polled = queue.Queue()
        poll = threading.Thread(target=lambda: polled.put(daemon.ask(
            'POST', '/v1/leases', {'queues': ['secret'], 'wait_ms': 60000, 'worker': 'w'}, headers=gone)))
        poll.start()
        while not any(worker['waiting'] for worker in daemon.good('GET', '/v1/workers', headers=boss)['workers']):
            pass
        self.token('remove', 'gone')
        daemon.signal(signal.SIGHUP)
        self.assertEqual(polled.get(timeout=PATIENCE).status, 401)
        poll.join()
        events.read()  # to its end
        job = daemon.good('POST', '/v1/jobs', {'queue': 'secret'}, status=201, headers=boss)['id']
        self.assertEqual(daemon.good('GET', f'/v1/jobs/{job}', headers=boss)['state'], 'ready')

    def test_what_others_reach_is_not_opened_by_reading_the_file_again(self):
        boss = self.token('add', '--scope', 'admin', 'boss')
        file = self.file('[serve]\nlisten = "0.0.0.0:0"\ninsecure = true\ntokens = "tokens"\n')
        daemon = self.daemon(file, listen='')
        daemon.port = int(daemon.wait_for(r'listening: http://0\.0\.0\.0:(\d+)')[1])
        file.write_text('[serve]\nlisten = "127.0.0.1:0"\n')  # which would be listened at after a restart
        daemon.signal(signal.SIGHUP)
        daemon.wait_for('the configuration stays as it was: .*without tokens they may do everything')
        self.assertEqual(daemon.ask('GET', '/v1/queues').status, 401)
        self.assertEqual(daemon.ask('GET', '/v1/queues', headers=boss).status, 200)

    def test_a_file_that_was_emptied_opens_no_daemon(self):
        boss = self.token('add', '--scope', 'admin', 'boss')
        file = self.file('[serve]\ntokens = "tokens"\n[[queue]]\nname = "a"\n')
        daemon = self.daemon(file)
        for text in ('', '[[queue]]\nname = "a"\n', '[serve]\n'):
            file.write_text(text)
            daemon.signal(signal.SIGHUP)
            daemon.wait_for('the configuration stays as it was: tokens: .*takes a restart')
            self.assertEqual(daemon.ask('GET', '/v1/queues').status, 401)
            self.assertEqual(daemon.ask('GET', '/v1/queues', headers=boss).status, 200)

    def test_a_program_that_is_not_there_ends_no_later_reload(self):
        boss, gone = self.token('add', '--scope', 'admin', 'boss'), self.token('add', '--scope', 'admin', 'gone')
        file = self.file('[serve]\ntokens = "tokens"\n[[queue]]\nname = "a"\n')
        daemon = self.daemon(file)
        file.write_text('[serve]\ntokens = "tokens"\n[[queue]]\nname = "late"\ncommand = ["./not-there"]\n')
        self.refused('--check', file, culprit='argiope.toml:5: queue "late": command "./not-there"')
        daemon.signal(signal.SIGHUP)
        daemon.wait_for(r'stays as it was: .*argiope\.toml:5: queue "late": command "\./not-there"')
        file.write_text('[serve]\ntokens = "tokens"\n[[queue]]\nname = "a"\nrate = 7\n')
        self.token('remove', 'gone')
        daemon.signal(signal.SIGHUP)
        daemon.wait_for('the configuration was read again')
        self.assertEqual(daemon.ask('GET', '/v1/version', headers=gone).status, 401)
        self.assertEqual(daemon.good('GET', '/v1/queues/a', headers=boss)['config']['rate'], 7)

    def test_an_address_that_is_taken_is_named(self):
        daemon = self.daemon()
        self.refused('--store', 'memory:', '--listen', f'127.0.0.1:{daemon.port}', status=3,
                     culprit=f'cannot listen at "127.0.0.1:{daemon.port}": Address already in use')

    def test_a_socket_that_another_daemon_answers_at_is_not_taken_away(self):
        path = self.folder / 's'
        daemon = self.daemon('--listen', f'unix:{path}')
        self.refused('--store', 'memory:', '--listen', f'unix:{path}', status=3,
                     culprit=f'cannot listen at "unix:{path}": Address already in use')
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            client.connect(str(path))
            client.sendall(b'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
            self.assertTrue(client.recv(100).startswith(b'HTTP/1.1 200'))
        daemon.signal(signal.SIGKILL)
        daemon.ended(-signal.SIGKILL)
        self.daemon('--listen', f'unix:{path}').signal(signal.SIGTERM)

    def test_the_log_can_be_json(self):
        process = self.start([ARGIOPE, 'serve', '--store', 'memory:', '--listen', '127.0.0.1:0', '--log', 'json'],
                             stderr=subprocess.PIPE, text=True)
        line = json.loads(process.stderr.readline())
        self.assertEqual(line['level'], 'info')
        self.assertIn('listening: http://127.0.0.1:', line['text'])


class Telling(Daemons):
    def test_who_changed_what_outlives_the_daemon(self):
        daemon = self.daemon()
        daemon.good('PUT', '/v1/queues/mail', {'rate': 1})
        daemon.process.kill()
        daemon.process.wait()
        daemon = self.daemon()
        daemon.good('POST', '/v1/queues/mail/pause')
        entries = daemon.good('GET', '/v1/audit')['entries']
        self.assertEqual([(entry['number'], entry['path']) for entry in entries],
                         [(1, '/v1/queues/mail'), (2, '/v1/queues/mail/pause')])
        self.assertEqual((self.folder / 'jobs.db-audit.jsonl').stat().st_mode & 0o777, 0o600)

    def test_what_was_counted_outlives_the_daemon(self):
        daemon = self.daemon()
        for _ in range(3):
            daemon.good('POST', '/v1/jobs', {'jobs': [{'queue': 'mail'}]})
        added = lambda: sum(daemon.good('GET', '/v1/history?queue=mail')['added'])
        self.wait_until(lambda: added() == 3)
        daemon.signal(signal.SIGTERM)
        daemon.process.wait(30)
        daemon = self.daemon()
        self.assertEqual(added(), 3)
        self.assertEqual((self.folder / 'jobs.db-history.jsonl').stat().st_mode & 0o777, 0o600)

    def test_a_state_that_was_told_is_not_told_again_after_a_kill(self):
        file = self.file('[[notify]]\nname = "ops"\ncommand = ["cat"]\ndepth = 2\nwait = "0s"\ninterval = "0s"\n')
        daemon = self.daemon(file)
        for _ in range(3):
            daemon.good('POST', '/v1/jobs', {'jobs': [{'queue': 'mail'}]})
        kept = self.folder / 'jobs.db-notify.jsonl'
        self.wait_until(lambda: kept.exists() and '"lasting":[{"trouble":"depth","subject":"mail",' in kept.read_text())
        daemon.process.kill()
        daemon.process.wait()
        daemon = self.daemon(file)
        told = daemon.good('GET', '/v1/notify')['notify'][0]
        self.assertEqual((told['lasting'], told['gathered'], told['messages']), (1, 0, 0))

    def test_a_what_if_is_answered_and_nothing_of_it_happens(self):
        soon = (time.gmtime().tm_min + 20) % 60  # the test is over before
        daemon = self.daemon(self.file(f'[[schedule]]\nname = "often"\ntrigger = "{soon} * * * *"\njob = {{ queue = "night" }}\n'))
        for _ in range(6):
            daemon.good('POST', '/v1/jobs', {'queue': 'mail'}, status=201)
        asked = {'for_ms': 7_200_000, 'queues': [{'name': 'mail', 'workers': 2, 'duration_ms': 1000,
                                                     'arrivals_per_second': 0}]}
        answer = daemon.good('POST', '/v1/simulate', asked)
        report = answer['report']
        mail = next(queue for queue in report['queues'] if queue['name'] == 'mail')
        self.assertEqual((mail['put'], mail['done'], mail['waiting']), (6, 6, 0))
        self.assertIsNotNone(mail['empty_at'])
        self.assertEqual((report['schedules'][0]['runs'], report['schedules'][0]['skipped']), (1, 1))  # nobody works for it
        self.assertEqual(next(queue for queue in answer['assumed'] if queue['name'] == 'mail')['waiting'], 6)
        self.assertEqual(daemon.good('GET', '/v1/queues/mail')['counts']['ready'], 6)
        self.assertEqual(daemon.ask('POST', '/v1/simulate', {'for_ms': 0}).status, 400)

    def test_troubles_are_told_by_a_command(self):
        told = self.folder / 'told'
        daemon = self.daemon(self.file('''
            [[notify]]
            name = "ops"
            wait = 0
            interval = 0
            format = "text"
            command = ["sh", "-c", "cat >> told"]'''))
        daemon.good('POST', '/v1/jobs', {'queue': 'mail'}, status=201)
        leases = daemon.good('POST', '/v1/leases', {'queues': ['mail'], 'worker': 'w'})['leases']
        daemon.good('POST', '/v1/leases/settle',
                    {'settlements': [{'token': leases[0]['token'], 'outcome': 'bury', 'error': 'no such address'}]})
        self.wait_until(lambda: told.exists() and 'no such address' in told.read_text())
        self.assertIn('argiope at ', json.loads(told.read_text())['text'])
        daemon.good('POST', '/v1/notify/ops/test')
        self.wait_until(lambda: 'This is a test' in told.read_text())
        self.assertEqual(daemon.good('GET', '/v1/notify')['notify'][0]['messages'], 2)

    def test_messages_of_a_rule_that_was_renamed_are_counted(self):
        rule = '[[notify]]\nname = "{}"\nwait = 0\ninterval = 0\ncommand = ["false"]\n'
        daemon = self.daemon(self.file(rule.format('ops')))
        for _ in range(2):
            daemon.good('POST', '/v1/notify/ops/test')
        self.file(rule.format('team'))
        daemon.signal(signal.SIGHUP)
        daemon.wait_for('there is no notify "ops" any more, and 2 messages of it will not be delivered: .*argiope job list argiope.notify.ops')
        self.assertEqual(daemon.good('GET', '/v1/notify')['left'], [{'name': 'ops', 'messages': 2}])
        self.assertIn(b'\nargiope_notify_left_messages 2\n', daemon.ask('GET', '/metrics').body)
        listed = [subprocess.run([ARGIOPE, 'notify', 'list', '--store', f'http://127.0.0.1:{daemon.port}', *more], check=True,
                                 capture_output=True, text=True).stdout.splitlines() for more in ([], ['--json'])]
        self.assertIn('ops: there is no [[notify]] of that name any more, and nobody delivers 2 messages; see argiope job list argiope.notify.ops',
                      listed[0])
        self.assertEqual(json.loads(listed[1][-1]), {'name': 'ops', 'left': 2})
        self.file(rule.format('ops'))
        daemon.signal(signal.SIGHUP)
        self.wait_until(lambda: daemon.good('GET', '/v1/notify')['left'] == [])
        self.wait_until(lambda: b'\nargiope_notify_left_messages 0\n' in daemon.ask('GET', '/metrics').body)

    def test_findings_are_told_to_be_over_by_a_good_run_after_a_kill_and_a_reload(self):
        told = self.folder / 'told'
        rule = '[[notify]]\nname = "me"\nwait = 0\ninterval = 0\ncommand = ["sh", "-c", "cat >> told; echo >> told"]\n'
        nightly = ('[[schedule]]\nname = "links"\ntrigger = "@yearly"\njob.queue = "nightly"\njob.function = "command"\n'
                   'job.payload = { args = ["sh", "-c", "test ! -e broken || { echo 2 broken links; exit 1; }"], ok_status = [0, 1] }\n'
                   '[[queue]]\nname = "nightly"\nworkers = 1\n')
        file = self.file(nightly + rule)
        notices = lambda: [notice for line in (told.read_text() if told.exists() else '').splitlines() if line.endswith('}')
                           for notice in json.loads(line)['notices']]
        states = lambda: [(notice['trouble'], notice['status']) for notice in notices()]
        lasting = lambda: daemon.good('GET', '/v1/notify')['notify'][0]['lasting']
        (self.folder / 'broken').write_text('')
        daemon = self.daemon(file)
        daemon.good('POST', '/v1/schedules/links/run', {})
        self.wait_until(lambda: states() == [('findings', 'trouble')])
        kept = self.folder / 'jobs.db-notify.jsonl'
        self.wait_until(lambda: kept.exists() and '"lasting":[{"trouble":"findings","subject":"links",' in kept.read_text())
        daemon.process.kill()
        daemon.process.wait()
        daemon = self.daemon(file)
        self.assertEqual(lasting(), 1)
        self.file(nightly + rule + 'on = ["findings", "failed"]\n')
        daemon.signal(signal.SIGHUP)
        daemon.wait_for('was read again')
        self.assertEqual(lasting(), 1)
        (self.folder / 'broken').unlink()
        for _ in range(2):
            daemon.good('POST', '/v1/schedules/links/run', {})
        self.wait_until(lambda: len(daemon.good('GET', '/v1/schedules/links/history')['runs']) == 3 and
                        all(run['outcome'] == 'done' for run in daemon.good('GET', '/v1/schedules/links/history')['runs']))
        self.wait_until(lambda: states() == [('findings', 'trouble'), ('findings', 'well')])
        self.assertEqual(lasting(), 0)
        self.assertEqual(notices()[1]['sentence'], '"links" is well again: its run 2 has found nothing')
        self.assertEqual(notices()[1]['command'], f'argiope schedule history links --store http://127.0.0.1:{daemon.port}')


class Configured(Daemons):
    def test_a_file_is_checked_without_being_used(self):
        good = self.file('[[queue]]\nname = "mail"\n')
        result = subprocess.run([ARGIOPE, 'serve', '--check', good], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('1 queue, 0 schedules, 0 tokens', result.stdout)
        self.refused('--check', self.file('[[queue]]\nname = "mail"\nrat = 1\n', 'bad.toml'),
                     culprit='bad.toml:3: queue "mail": there is no member "rat"')
        self.refused('--check', 'nowhere.toml', culprit='nowhere.toml')
        for line, culprit in (('store = ""', 'store'), ('store = "mysql:x"', 'store'), ('listen = ["127.0.0.1:1", "127.0.0.1:1"]', 'listen'),
                              ('origins = ["null"]', 'origins'), ('tokens = ""', 'tokens')):
            self.refused('--check', self.file(f'[serve]\n{line}\n', 'bad.toml'), culprit=f'bad.toml:2: serve: {culprit}')

    def test_a_reader_of_its_log_that_goes_does_not_end_it(self):
        read, write = os.pipe()
        process = self.start([ARGIOPE, 'serve', '--store', 'memory:', '--listen', f'unix:{self.folder}/socket'], stderr=write)
        os.close(write)
        with open(read) as log:
            self.assertIn('listening', log.readline())
        for number in (signal.SIGHUP, signal.SIGTERM):  # of each it writes a line
            process.send_signal(number)
        self.assertEqual(process.wait(PATIENCE), 0)

    def test_places_that_a_start_cannot_use_are_told_by_a_check_too(self):
        (self.folder / 'dir').mkdir()
        (self.folder / 'junk').write_text('neither a database nor a socket\n')
        os.mkfifo(self.folder / 'pipe')
        self.token('add', 'one')
        for line, culprit in (
                ('store = "sqlite:no/x.db"', 'serve.store no/x.db: No such file'), ('store = "sqlite:dir"', 'serve.store dir: Is a directory'),
                ('store = "sqlite:junk"', 'serve.store junk: this file is no SQLite database'),
                ('store = "sqlite:pipe"', 'serve.store pipe: not a plain file'), ('pages = "no/p.db"', 'serve.pages no/p.db: No such file'),
                ('pages = "junk"', 'serve.pages junk: '), ('audit = "no/a"', 'serve.audit no/a: No such file'),
                ('audit = "dir"', 'serve.audit dir: Is a directory'), ('audit = "pipe"', 'serve.audit pipe: not a plain file'),
                ('listen = "192.0.2.1:0"\ninsecure = true\ntokens = "tokens"', 'serve.listen 192.0.2.1:0: Cannot assign'),
                ('beanstalkd = "192.0.2.1:0"\ninsecure = true', 'serve.beanstalkd 192.0.2.1:0: Cannot assign'),
                ('tokens = "none"', 'argiope.toml: serve.tokens: "none" has no tokens'),
                ('tls = { certificate = "none.pem", key = "k.pem" }', 'argiope.toml: serve.tls.certificate: "none.pem": No such file'),
                ('audit = "junk"', 'serve.audit junk: another program has written it'),
                ('listen = "unix:no/s"', 'serve.listen unix:no/s: No such file'), ('listen = "unix:junk"', 'there is another file'),
                ('pages = "jobs.db"\nstore = "sqlite:jobs.db"', 'names the same file'),
                ('audit = "argiope.toml"', 'names the same file'), ('pages = "jobs.db-wal"\nstore = "sqlite:jobs.db"', 'for its own')):
            file = self.file(f'[serve]\n{line}\n')
            for check in ([], ['--check']):
                with self.subTest(line, check=check):
                    result = subprocess.run([ARGIOPE, 'serve', *check, file.name], capture_output=True, text=True, timeout=PATIENCE,
                                            cwd=self.folder)
                    self.assertIn(result.returncode, (2, 3), result.stdout + result.stderr)
                    self.assertIn(culprit, result.stderr)
                    self.assertEqual(list(self.folder.glob('*.db*')), [])
        self.assertEqual((self.folder / 'junk').read_text(), 'neither a database nor a socket\n')

    def test_databases_that_a_start_refuses_are_told_by_a_check_too(self):
        jobs, pages = 0x4172676a, 0x41726770
        for name, mark, version in (('foreign', 0, 0), ('jobs', jobs, 1), ('newer-jobs', jobs, 99), ('pages', pages, 1), ('newer-pages', pages, 99)):
            with contextlib.closing(sqlite3.connect(self.folder / name)) as database:
                database.executescript(f'CREATE TABLE t (a); PRAGMA application_id = {mark}; PRAGMA user_version = {version};')
        (self.folder / 'cut').write_bytes(b'SQLite format 3\0 and no more')
        kept = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        for line, culprit in (
                ('store = "sqlite:foreign"', 'serve.store database foreign: not made by argiope'),
                ('store = "sqlite:pages"', 'serve.store database pages: not made by argiope'),
                ('store = "sqlite:newer-jobs"', 'serve.store database newer-jobs: made by a newer argiope (schema 99, '),
                ('store = "sqlite:cut"', 'serve.store database cut: this file is no SQLite database'),
                ('store = "sqlite::memory:"', '"memory:" (nothing is kept)'),
                ('pages = "foreign"', 'serve.pages database foreign: not made by argiope'),
                ('pages = "jobs"', 'serve.pages database jobs: not made by argiope'),
                ('pages = "newer-pages"', 'serve.pages database newer-pages: made by a newer argiope (schema 99, '),
                ('pages = "cut"', 'serve.pages database cut: this file is no SQLite database')):
            file = self.file(f'[serve]\nlisten = "127.0.0.1:0"\n{line}\n')
            for check in ([], ['--check']):
                with self.subTest(line, check=check):
                    result = subprocess.run([ARGIOPE, 'serve', *check, file.name], capture_output=True, text=True, timeout=PATIENCE, cwd=self.folder)
                    self.assertIn(result.returncode, (2, 3), result.stdout + result.stderr)
                    self.assertIn(culprit, result.stderr)
                    self.assertEqual({path.name: path.read_bytes() for path in self.folder.iterdir() if path != file}, kept)

    def test_a_check_says_which_addresses_are_taken_just_now(self):
        with socket.create_server(('127.0.0.1', 0)) as taken, socket.socket(socket.AF_UNIX) as answered:
            answered.bind(str(self.folder / 'answered'))
            answered.listen()
            address = f'127.0.0.1:{taken.getsockname()[1]}'
            file = self.file(f'[serve]\nlisten = ["{address}", "127.0.0.1:0", "unix:answered", "unix:fresh"]\n')
            result = subprocess.run([ARGIOPE, 'serve', '--check', file.name], capture_output=True, text=True, timeout=PATIENCE, cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(re.findall(r'warning .*serve\.listen (\S+): Address already in use', result.stderr), [address, 'unix:answered'])

    def test_what_is_not_to_be_kept_goes_to_the_null_device(self):
        if os.geteuid() != 0:
            self.skipTest('only root makes devices')
        os.mknod(self.folder / 'null', stat.S_IFCHR | 0o666, os.makedev(1, 3))
        for ending in ('history', 'notify'):
            (self.folder / f'jobs.db-{ending}.jsonl').symlink_to('null')
        file = self.file(f'[serve]\nstore = "sqlite:{self.folder}/jobs.db"\naudit = "{self.folder}/null"\n')
        subprocess.run([ARGIOPE, 'serve', '--check', file.name], check=True, capture_output=True, timeout=PATIENCE, cwd=self.folder)
        for _ in range(2):
            daemon = self.daemon(file)
            daemon.good('PUT', '/v1/queues/mail', {'rate': 1})
            self.assertEqual([entry['path'] for entry in daemon.good('GET', '/v1/audit')['entries']], ['/v1/queues/mail'])
            daemon.signal(signal.SIGTERM)
            daemon.ended(0)
            self.assertNotRegex(''.join(daemon.log), 'begins anew|is not known|cannot be')
        self.assertTrue(stat.S_ISCHR((self.folder / 'null').lstat().st_mode))

    def test_a_check_beside_the_daemon_leaves_its_files_alone(self):
        file = self.file('[serve]\nstore = "sqlite:jobs.db"\nlisten = "unix:s"\n')
        daemon = self.daemon('--listen', 'unix:s')
        for _ in range(2):  # while it runs, and behind it
            result = subprocess.run([ARGIOPE, 'serve', '--check', file.name], capture_output=True, text=True, timeout=PATIENCE, cwd=self.folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            if daemon.process.poll() is None:
                daemon.signal(signal.SIGTERM)
                daemon.ended(0)
        self.assertEqual(list(self.folder.glob('jobs.db-wal')), [])

    def test_pages_of_configured_origins_may_use_it(self):
        daemon = self.daemon(self.file('[serve]\norigins = ["https://shop.example"]\n'))
        asks = {'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'idempotency-key'}
        told = daemon.ask('OPTIONS', '/v1/jobs', headers={'Origin': 'https://shop.example', **asks})
        self.assertEqual((told.status, told.headers['Access-Control-Allow-Origin']), (204, 'https://shop.example'))
        for origin, status in (('https://shop.example', 201), ('https://evil.example', 403)):
            put = daemon.ask('POST', '/v1/jobs', {'queue': 'mail'}, headers={'Origin': origin})
            allowed = origin if status == 201 else None
            self.assertEqual((put.status, put.headers.get('Access-Control-Allow-Origin')), (status, allowed))

    def test_a_command_runs_the_jobs_of_its_queue(self):
        daemon = self.daemon(self.file('''
            [[queue]]
            name = "shout"
            keep_done_ms = 600000
            command = ["tr", "a-z", "A-Z"]'''))
        daemon.good('POST', '/v1/jobs', {'queue': 'shout', 'payload': 'hello'}, status=201)
        self.wait_until(lambda: daemon.good('GET', '/v1/jobs/1')['state'] == 'done')
        self.assertEqual(daemon.good('GET', '/v1/jobs/1')['result'], 'HELLO')

    def test_a_push_queue_sends_its_jobs_to_a_web_server(self):
        requests = queue.Queue()

        class Receiver(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                requests.put((dict(self.headers), self.rfile.read(int(self.headers['Content-Length']))))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'thanks')

            def log_message(self, *_):
                pass
        port = self.serve(Receiver).server_port
        file = self.file(f'''
            [[queue]]
            name = "hooks"
            keep_done_ms = 600000
            push = {{ url = "http://127.0.0.1:{port}/hook", secret = "s" }}''')
        daemon = self.daemon(file, '--allow-private')
        daemon.good('POST', '/v1/jobs', {'queue': 'hooks', 'payload': 'hello'}, status=201)
        headers, body = requests.get(timeout=60)
        self.assertEqual((headers['Argiope-Job-Id'], body), ('1', b'hello'))
        self.assertRegex(headers['Argiope-Signature'], r'^t=\d+,v1=[0-9a-f]{64}$')
        self.wait_until(lambda: daemon.good('GET', '/v1/jobs/1')['state'] == 'done')

    def test_a_private_address_is_not_pushed_to_unless_that_is_allowed(self):
        daemon = self.daemon(self.file('[[queue]]\nname = "hooks"\npush = "http://127.0.0.1:9/"'))
        daemon.good('POST', '/v1/jobs', {'queue': 'hooks'}, status=201)
        daemon.wait_for('queue "hooks": its jobs wait, .*--allow-private')
        job = daemon.good('GET', '/v1/jobs/1')
        self.assertEqual((job['state'], job['attempts']), ('ready', 0))

    def test_a_schedule_of_the_file_fires(self):
        daemon = self.daemon(self.file('''
            [[queue]]
            name = "default"
            workers = 2
            keep_done_ms = 600000
            [[schedule]]
            name = "once"
            trigger = { type = "date", time = "2020-01-01T00:00:00Z" }
            job = { function = "command", payload = { args = ["echo", "ran"] } }'''))
        self.wait_until(lambda: daemon.ask('GET', '/v1/jobs/1').status == 200 and
                        daemon.good('GET', '/v1/jobs/1')['state'] == 'done')
        self.assertEqual(daemon.good('GET', '/v1/jobs/1')['result'], 'ran\n')

    def test_what_the_file_names_is_locked(self):
        daemon = self.daemon(self.file('[[queue]]\nname = "mail"\nrate = 5'))
        answer = daemon.ask('PATCH', '/v1/queues/mail', {'rate': 7})
        self.assertEqual((answer.status, answer.json['type']), (409, 'urn:argiope:problem:locked'))
        self.assertTrue(daemon.good('GET', '/v1/queues/mail')['locked'])
        self.assertEqual(daemon.good('GET', '/v1/queues/mail')['config']['rate'], 5)

    def test_the_file_is_read_again_and_what_is_wrong_with_it_changes_nothing(self):
        file = self.file('''
            [[queue]]
            name = "a"
            rate = 5
            [[schedule]]
            name = "gone later"
            trigger = "@every 1h"''')
        daemon = self.daemon(file)
        self.assertEqual(len(daemon.good('GET', '/v1/schedules')['schedules']), 1)
        file.write_text('[[queue]]\nname = "a"\nrate = "fast"')
        daemon.signal(signal.SIGHUP)
        daemon.wait_for(r'argiope\.toml:3: queue "a": rate')
        self.assertEqual(daemon.good('GET', '/v1/queues/a')['config']['rate'], 5)
        file.write_text('[[queue]]\nname = "a"\nrate = 6\n[[queue]]\nname = "cat"\nkeep_done_ms = 600000\ncommand = ["cat"]')
        daemon.signal(signal.SIGHUP)
        daemon.wait_for('was read again')
        self.assertEqual(daemon.good('GET', '/v1/queues/a')['config']['rate'], 6)
        self.assertEqual(daemon.good('GET', '/v1/schedules')['schedules'], [])
        self.assertEqual(daemon.ask('GET', '/v1/queues', headers={'Host': 'jobs.example'}).status, 403)
        file.write_text('[serve]\nhosts = "jobs.example"\ndrain_limit = "3s"\nmax_streams = 7\n' + file.read_text())
        daemon.signal(signal.SIGHUP)
        daemon.wait_for('needs a restart, and stays as it was: max_streams, drain_limit')
        daemon.wait_for('was read again')
        self.assertEqual(daemon.ask('GET', '/v1/queues', headers={'Host': 'jobs.example'}).status, 200)
        daemon.good('POST', '/v1/jobs', {'queue': 'cat', 'payload': 'x'}, status=201)
        self.wait_until(lambda: daemon.good('GET', '/v1/jobs/1')['state'] == 'done')
        entries = daemon.good('GET', '/v1/audit')['entries']
        deeds = [(entry['who'], entry['method'], json.loads(entry['request'])) for entry in entries]
        self.assertEqual(deeds, [('operator', 'SIGHUP', {'queues': {'added': ['cat'], 'changed': ['a']},
                                                         'schedules': {'removed': ['gone later']}}),
                                 ('operator', 'SIGHUP', {'hosts': ['jobs.example']})])

    def test_a_file_that_became_a_pipe_stops_no_reload_for_good(self):
        self.file('[project]\nname = "shop"\nstart = "http://127.0.0.1:9/"\nstatus = "STOP"\n[[rule]]\nname = "all"\n', 'shop.toml')
        file = self.file('[[project]]\nfile = "shop.toml"\n[[queue]]\nname = "a"\nrate = 5\n')
        daemon = self.daemon(file, '--pages', self.folder / 'pages.db')
        for name in ('argiope.toml', 'shop.toml'):
            path = self.folder / name
            text = path.read_text()
            path.unlink()
            os.mkfifo(path)
            daemon.signal(signal.SIGHUP)
            daemon.wait_for(f'the configuration stays as it was: .*{name}: is not a plain file: it cannot be read again')
            self.assertEqual(daemon.good('GET', '/v1/queues/a')['config']['rate'], 5)
            path.unlink()
            path.write_text(text)
            daemon.signal(signal.SIGHUP)
            daemon.wait_for('was read again')

    def test_a_configuration_of_an_open_pipe_is_read_at_the_start(self):
        reading, writing = os.pipe()
        os.write(writing, b'[[queue]]\nname = "a"\nrate = 5\n')
        os.close(writing)
        os.set_inheritable(reading, True)
        daemon = self.daemon(f'/dev/fd/{reading}', pass_fds=[reading])
        os.close(reading)
        daemon.signal(signal.SIGHUP)
        daemon.wait_for(f'/dev/fd/{reading}: is not a plain file: it cannot be read again')
        self.assertEqual(daemon.good('GET', '/v1/queues/a')['config']['rate'], 5)

    def test_a_file_that_is_wrong_at_its_end_changes_nothing(self):
        file = self.file('''
            [[queue]]
            name = "a"
            rate = 5
            [[schedule]]
            name = "kept"
            trigger = "@every 1h"
            [[schedule]]
            name = "left out"
            trigger = "@every 1h"''')
        daemon = self.daemon(file)
        daemon.good('PUT', '/v1/queues/own', {'rate': 7})
        daily = {'type': 'cron', 'expression': '0 3 * * *'}
        daemon.good('POST', '/v1/schedules', {'name': 'of the API', 'trigger': daily, 'job': {'queue': 'own', 'payload': 'x'}},
                    status=201)
        before = self.all_there_is(daemon)
        file.write_text('''
            [serve]
            hosts = "jobs.example"
            [[queue]]
            name = "a"
            rate = 6
            [[queue]]
            name = "own"
            rate = 8
            [[queue]]
            name = "new"
            command = ["cat"]
            [[schedule]]
            name = "kept"
            trigger = "@every 2h"
            [[schedule]]
            name = "of the API"
            trigger = "@every 2h"
            [[schedule]]
            name = "new"
            trigger = "@every 2h"
            [[schedule]]
            name = "never"
            trigger = { type = "and", triggers = [{ type = "cron", expression = "0 8 * * *" },
                                                  { type = "cron", expression = "0 9 * * *" }] }''')
        daemon.signal(signal.SIGHUP)
        daemon.wait_for('the configuration stays as it was: .*schedule "never": trigger: no time was found')
        self.assertEqual(self.all_there_is(daemon), before)
        self.assertNotIn('could not be put back', ''.join(daemon.log))
        self.assertEqual(daemon.ask('GET', '/v1/queues', headers={'Host': 'jobs.example'}).status, 403)
        file.write_text('[[queue]]\nname = "a"\nrate = 6')
        daemon.signal(signal.SIGHUP)
        daemon.wait_for('was read again')
        self.assertEqual(daemon.good('GET', '/v1/queues/a')['config']['rate'], 6)
        self.assertEqual([one['name'] for one in daemon.good('GET', '/v1/schedules')['schedules']], ['of the API'])

    def all_there_is(self, daemon):
        queues = {queue['name']: (queue['config'], queue['locked']) for queue in daemon.good('GET', '/v1/queues')['queues']}
        schedules = {one['name']: {name: value for name, value in one.items() if name != 'version'}
                     for one in daemon.good('GET', '/v1/schedules')['schedules']}
        return queues, schedules


class Beanstalkd(Daemons):
    def test_the_default_tube_is_its_clients(self):
        daemon = self.daemon('--beanstalkd', '127.0.0.1:0')
        self.use_default(int(daemon.wait_for(r'beanstalkd at 127\.0\.0\.1:(\d+)')[1]))

    def test_the_default_tube_is_its_clients_also_over_a_socket_that_was_handed_over(self):
        sockets = {'beanstalkd': self.listening()}
        self.supervised(sockets)
        self.use_default(sockets['beanstalkd'].getsockname()[1])

    def use_default(self, port):
        with socket.create_connection(('127.0.0.1', port), timeout=60) as client, client.makefile('rb') as answers:
            client.sendall(b'put 0 0 60 5\r\nhello\r\n')
            self.assertEqual(answers.readline(), b'INSERTED 1\r\n')
            client.sendall(b'put 0 0 60 5\r\nthere\r\nreserve\r\nreserve\r\n')
            self.assertEqual([answers.readline() for _ in range(5)],
                             [b'INSERTED 2\r\n', b'RESERVED 1 5\r\n', b'hello\r\n', b'RESERVED 2 5\r\n', b'there\r\n'])


class Ending(Daemons):
    def slow_job(self, daemon, started, go):
        os.mkfifo(started)
        os.mkfifo(go)
        daemon.good('POST', '/v1/jobs', {'queue': 'slow'}, status=201)
        with open(started) as pipe:
            pipe.readline()

    def slow_daemon(self, *arguments):
        started, go = self.folder / 'started', self.folder / 'go'
        daemon = self.daemon(self.file(f'''
            [serve]
            drain_limit = "10m"
            [[queue]]
            name = "slow"
            keep_done_ms = 600000
            command = ["sh", "-c", "echo . > {started}; read x < {go}; echo finished"]'''), *arguments)
        self.slow_job(daemon, started, go)
        return daemon, go

    def test_what_runs_ends_first(self):
        daemon, go = self.slow_daemon()
        daemon.signal(signal.SIGTERM)
        daemon.wait_for('stopping')
        go.write_text('\n')
        daemon.ended()
        self.assertEqual(self.daemon().good('GET', '/v1/jobs/1')['result'], 'finished\n')

    def test_a_second_signal_gives_it_back(self):
        daemon, _ = self.slow_daemon()
        daemon.signal(signal.SIGTERM)
        daemon.wait_for('stopping')
        daemon.signal(signal.SIGTERM)
        daemon.ended()
        job = self.daemon().good('GET', '/v1/jobs/1')
        self.assertEqual((job['state'], job['attempts']), ('ready', 0))

    def test_a_poll_that_waits_is_answered(self):
        daemon = self.daemon()
        answers = queue.Queue()
        threading.Thread(target=lambda: answers.put(daemon.ask('POST', '/v1/leases', {
            'queues': ['mail'], 'worker': 'w', 'wait_ms': 60000})), daemon=True).start()
        self.wait_until(lambda: any(worker['waiting'] for worker in daemon.good('GET', '/v1/workers')['workers']))
        daemon.signal(signal.SIGTERM)
        self.assertIn(answers.get(timeout=30).status, (200, 503))
        daemon.ended()


class Supervised(Daemons):
    """As systemd starts it: sockets handed over, and told of its life."""

    def test_the_supervisor_hears_of_its_life(self):
        path = str(self.folder / 'notify')
        ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(ear.close)
        ear.bind(path)
        ear.settimeout(60)
        daemon = self.supervised({'http': self.listening()}, NOTIFY_SOCKET=path, WATCHDOG_USEC='20000000')

        def next_state():
            while True:
                state = ear.recv(1000)
                if state != b'WATCHDOG=1':
                    return state
        self.assertEqual(next_state(), b'READY=1')
        self.assertEqual(ear.recv(1000), b'WATCHDOG=1')
        daemon.signal(signal.SIGHUP)
        self.assertEqual([next_state(), next_state()], [b'RELOADING=1', b'READY=1'])
        daemon.signal(signal.SIGTERM)
        self.assertEqual(next_state(), b'STOPPING=1')
        daemon.ended()

    def test_a_supervisor_that_wants_no_word_of_life_gets_none(self):
        path = str(self.folder / 'notify')
        ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(ear.close)
        ear.bind(path)
        ear.settimeout(60)
        daemon = self.supervised({'http': self.listening()}, NOTIFY_SOCKET=path)
        for _ in range(20):
            daemon.good('GET', '/healthz')
        daemon.signal(signal.SIGTERM)
        self.assertEqual([ear.recv(1000), ear.recv(1000)], [b'READY=1', b'STOPPING=1'])
        daemon.ended()


class Answers(Daemons):
    """What holds of every answer, whoever gives it."""

    def raw(self, daemon, request):
        """The answer to bytes that may be no request: status, headers, body."""
        with socket.create_connection(('127.0.0.1', daemon.port), timeout=PATIENCE) as connection:
            connection.sendall(request)
            response = http.client.HTTPResponse(connection)
            response.begin()
            return response.status, response.headers, response.read()

    def test_every_answer_has_an_id_and_every_error_a_type(self):
        words = self.token('add', '--scope', 'read', 'looker')['Authorization']
        daemon = self.daemon('--tokens', self.folder / 'tokens')
        head = 'Host: localhost\r\nX-Request-Id: mine\r\nConnection: close\r\n'
        authorized = f'{head}Authorization: {words}\r\n'
        long = 'x' * 20000
        known = [
            (f'GET /nope HTTP/1.1\r\n{head}\r\n', 404, 'not_found'),
            (f'GET /v1/nope HTTP/1.1\r\n{head}\r\n', 404, 'not_found'),
            (f'POST /metrics HTTP/1.1\r\n{authorized}\r\n', 405, 'method_not_allowed'),
            (f'POST / HTTP/1.1\r\n{head}\r\n', 405, 'method_not_allowed'),
            (f'GET /metrics HTTP/1.1\r\n{head}\r\n', 401, 'unauthorized'),
            (f'POST /v1/jobs HTTP/1.1\r\n{head}Content-Length: 9\r\n\r\n', 401, 'unauthorized'),
            (f'POST /v1/next HTTP/1.1\r\n{authorized}Content-Length: 99999999\r\n\r\n', 413, 'too_large'),
            (f'POST /v1/next HTTP/1.1\r\n{authorized}Content-Length: 4194305\r\n\r\n', 413, 'too_large'),
            (f'POST /v1/simulate HTTP/1.1\r\n{authorized}Content-Length: 4194305\r\n\r\n', 413, 'too_large'),
            (f'POST /v1/next HTTP/1.1\r\n{authorized}Transfer-Encoding: chunked\r\n\r\nnone\r\n', 400, 'invalid_input'),
            (f'POST /v1/next HTTP/1.1\r\n{authorized}Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{{}}', 415,
             'unsupported_coding'),
        ]
        unknown = [
            ('GET / HTTP/1.1\r\n\r\n', 400, 'invalid_input'),
            ('NONSENSE\r\n\r\n', 400, 'invalid_input'),
            (f'GET /{long} HTTP/1.1\r\n{head}\r\n', 414, 'too_large'),
            (f'GET / HTTP/1.1\r\n{head}X: {long}\r\n\r\n', 431, 'too_large'),
            (f'BREW / HTTP/1.1\r\n{head}\r\n', 501, 'not_implemented'),
            (f'GET / HTTP/3.0\r\n{head}\r\n', 505, 'not_implemented'),
        ]
        for request, status, kind in known + unknown:
            with self.subTest(request=request[:60]):
                answered, headers, body = self.raw(daemon, request.encode())
                problem = json.loads(body)
                self.assertEqual((answered, problem['status'], problem['type']),
                                 (status, status, f'urn:argiope:problem:{kind}'))
                self.assertEqual(headers['Content-Type'], 'application/problem+json')
                self.assertEqual(headers['X-Request-Id'], problem['request_id'])
                if (request, status, kind) in known:
                    self.assertEqual(headers['X-Request-Id'], 'mine')
        for target in ('/', '/healthz', '/readyz', '/v1/openapi.json'):
            self.assertTrue(daemon.ask('GET', target).headers['X-Request-Id'], target)
        self.assertEqual(daemon.ask('OPTIONS', '/v1/jobs').headers['Allow'], 'GET, HEAD, POST, OPTIONS')


if __name__ == '__main__':
    unittest.main()
