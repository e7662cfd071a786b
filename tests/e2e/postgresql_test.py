"""The commands and the daemon on a store in PostgreSQL, by a server that the test starts; skipped where none is installed."""
import glob
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

from daemon import Daemons
from support import ARGIOPE, PATIENCE

PROGRAMS = max(glob.glob('/usr/lib/postgresql/*/bin'), default=None)
PASSWORD = 'do-not-tell'


class PostgresServer:
    """In a folder of its own, reached by a socket there alone. It refuses to be root's. `primary`: it is a standby of that one,
    which acknowledges nothing that the standby does not have."""

    def __init__(self, primary=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='argiope-pg-'))
        self.folder.chmod(0o777)
        if primary is None:
            self.run('initdb', '-D', self.folder / 'data', '-U', 'argiope', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync')
        else:
            self.run('pg_basebackup', '-D', self.folder / 'data', '-h', primary.folder, '-U', 'argiope', '-R', '-c', 'fast', '--no-sync')
        self.start()
        if primary is not None:
            primary.query("alter system set synchronous_standby_names = '*'")
            primary.query('select pg_reload_conf()')
            while primary.query("select count(*) from pg_stat_replication where sync_state = 'sync'") != '1':
                pass

    def start(self):
        self.run('pg_ctl', '-D', self.folder / 'data', '-w', '-t', '120', '-l', self.folder / 'log', '-o',
                 f"-F -c listen_addresses='' -c unix_socket_directories='{self.folder}'", 'start')

    def run(self, program, *arguments):
        as_postgres = ['runuser', '-u', 'postgres', '--'] if os.geteuid() == 0 else []
        subprocess.run([*as_postgres, f'{PROGRAMS}/{program}', *map(str, arguments)], check=True, cwd='/',
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def die(self):
        self.run('pg_ctl', '-D', self.folder / 'data', '-m', 'immediate', '-w', 'stop')

    def promote(self):
        self.run('pg_ctl', '-D', self.folder / 'data', '-w', 'promote')

    def stop(self):
        if (self.folder / 'data' / 'postmaster.pid').exists():
            self.die()
        shutil.rmtree(self.folder, ignore_errors=True)

    def store(self, schema, *others):
        hosts = ','.join(str(server.folder) for server in (self, *others))
        return f'postgresql://argiope:{PASSWORD}@/postgres?host={hosts}&store_timeout=300&schema={schema}'

    def query(self, sql):
        return subprocess.run([f'{PROGRAMS}/psql', '-X', '-q', '-At', '-h', self.folder, '-U', 'argiope', '-d', 'postgres', '-c', sql],
                              capture_output=True, text=True, check=True).stdout.strip()


@unittest.skipIf(PROGRAMS is None, 'no PostgreSQL is installed: apt-get install postgresql')
class PostgresTest(Daemons):
    @classmethod
    def setUpClass(cls):
        cls.server = PostgresServer()
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        super().setUp()
        self.schema = self._testMethodName[:63]  # PostgreSQL's longest name
        self.store = self.server.store(self.schema)

    def argiope(self, *words, expect=0):
        """What it prints."""
        command = [ARGIOPE, *words[:2], '--store', self.store, *words[2:]]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, timeout=300)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        self.assertNotIn(PASSWORD, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_commands_work_on_it(self):
        self.argiope('job', 'put', 'mail', 'hello')
        self.argiope('job', 'put', 'mail', 'again', '--id', 'second')
        self.assertEqual(len(self.argiope('job', 'list', '--json').splitlines()), 2)
        seen = f'select queue, state, count(*) from {self.schema}.job_list group by 1, 2 order by 2'
        self.assertEqual(self.server.query(seen), 'mail|ready|2')
        self.argiope('job', 'cancel', 'second')
        self.argiope('job', 'work', 'mail', '--until-empty', '--quiet', '--', 'true')
        self.assertIn('mail', self.argiope('job', 'stats'))
        self.assertNotIn('ready', self.server.query(seen))
        self.argiope('schedule', 'add', 'nightly', '--every', '1h', '--queue', 'mail')
        self.assertIn('nightly', self.argiope('schedule', 'list'))

    def test_the_daemon_serves_it_and_tells_no_password(self):
        daemon = self.daemon()
        daemon.good('POST', '/v1/jobs', {'queue': 'mail', 'payload': 'p'}, 201)
        for page in ('/v1/config', '/v1/version'):
            self.assertNotIn(PASSWORD, json.dumps(daemon.good('GET', page)))
        self.assertIn('owns it, since', self.argiope('job', 'work', 'mail', '--', 'true', expect=3))
        self.argiope('job', 'put', 'mail', 'beside')
        self.assertEqual(self.server.query(f'select count(*) from {self.schema}.jobs'), '2')
        daemon.signal(signal.SIGTERM)
        daemon.ended()
        self.assertNotIn(PASSWORD, ''.join(daemon.log))

    def test_a_killed_daemon_is_followed_and_no_acknowledged_job_is_lost(self):
        daemon = self.daemon()
        for i in range(20):
            daemon.good('POST', '/v1/jobs', {'queue': 'mail', 'payload': str(i)}, 201)
        leased = daemon.good('POST', '/v1/leases', {'queues': ['mail'], 'worker': 'w', 'most': 5})
        self.assertEqual(len(leased['leases']), 5)
        daemon.signal(signal.SIGKILL)
        daemon.process.wait()
        after = self.daemon()  # when the lease of the other is over
        self.assertEqual(self.server.query(f'select count(*) from {self.schema}.jobs'), '20')
        after.good('POST', '/v1/jobs', {'queue': 'mail', 'payload': 'more'}, 201)

    def test_a_server_that_is_started_again_is_waited_for(self):
        daemon = self.daemon()
        daemon.good('POST', '/v1/jobs', {'queue': 'mail', 'payload': 'before'}, 201)
        self.server.die()
        starting = threading.Thread(target=self.server.start)
        starting.start()
        daemon.good('POST', '/v1/jobs', {'queue': 'mail', 'payload': 'meanwhile'}, 201)
        starting.join()
        daemon.wait_for('it answers again')
        leased = daemon.good('POST', '/v1/leases', {'queues': ['mail'], 'worker': 'w', 'most': 5})
        self.assertEqual([lease['job']['payload'] for lease in leased['leases']], ['before', 'meanwhile'])

    def test_a_standby_takes_over_and_the_one_that_slept_writes_nothing_more(self):
        first = self.daemon()
        first.good('POST', '/v1/jobs', {'queue': 'mail', 'payload': 'p'}, 201)
        second = self.daemon('--standby', '--listen', '127.0.0.1:0', listen=None)
        second.wait_for('stands by')
        first.signal(signal.SIGSTOP)
        self.server.query(f"update {self.schema}.partitions set until = now()")  # as if it had slept for longer than its lease
        second.port = int(second.wait_for(r'listening: http://[^ ]*:(\d+)')[1])
        second.good('POST', '/v1/jobs', {'queue': 'mail', 'payload': 'q'}, 201)
        first.signal(signal.SIGCONT)
        first.wait_for('another process has taken it over')
        self.assertNotEqual(first.process.wait(PATIENCE), 0)
        self.assertEqual(self.server.query(f'select count(*) from {self.schema}.jobs'), '2')

    def test_jobs_are_put_in_an_applications_own_transaction(self):
        daemon = self.daemon()
        put = f"select {self.schema}.argiope_put('mail', '%s', priority => %d)"
        self.server.query(f"begin; {put % ('never', 9)}; rollback")
        self.server.query(f"begin; {put % ('low', 0)}; {put % ('high', 1)}; commit")
        payloads = []
        while len(payloads) < 2:
            leased = daemon.good('POST', '/v1/leases', {'queues': ['mail'], 'worker': 'w', 'most': 5, 'wait_ms': 10000})
            payloads += [lease['job']['payload'] for lease in leased['leases']]
        self.assertEqual(payloads, ['high', 'low'])
        self.assertEqual(self.server.query(f'select count(*) from {self.schema}.inbox'), '0')

    def test_says_what_is_wrong(self):
        self.store = f'postgresql://nobody:{PASSWORD}@/none?host={self.server.folder}'
        self.assertIn('PGPASSWORD', self.argiope('job', 'list', expect=3))
        self.store = f'postgresql://u:{PASSWORD}@h/db?schema='
        self.assertIn('schema', self.argiope('job', 'list', expect=2))


@unittest.skipIf(PROGRAMS is None, 'no PostgreSQL is installed: apt-get install postgresql')
class FailoverTest(Daemons):
    def test_a_promoted_synchronous_standby_has_all_that_was_acknowledged(self):
        primary = PostgresServer()
        self.addCleanup(primary.stop)
        standby = PostgresServer(primary)
        self.addCleanup(standby.stop)
        self.store = primary.store('failover', standby)
        daemon = self.daemon()
        acknowledged = []

        def put_many():
            for i in range(60):
                answer = daemon.ask('POST', '/v1/jobs', {'queue': 'mail', 'payload': str(i)})
                if answer.status == 201:
                    acknowledged.append(answer.json['id'])
                if i == 20:
                    half.set()

        half = threading.Event()
        putting = threading.Thread(target=put_many)
        putting.start()
        half.wait(PATIENCE)
        primary.die()
        standby.promote()
        standby.query("alter system reset synchronous_standby_names")
        standby.query('select pg_reload_conf()')
        putting.join(PATIENCE)
        self.assertEqual(len(acknowledged), 60, ''.join(daemon.log))
        there = standby.query('select count(*), count(distinct payload) from failover.jobs')
        self.assertEqual(there, '60|60')


if __name__ == '__main__':
    unittest.main()
