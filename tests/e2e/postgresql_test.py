"""The commands and the daemon on a store in PostgreSQL, by a server that the test starts; skipped where none is installed."""
import glob
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from daemon import Daemons
from support import ARGIOPE

PROGRAMS = max(glob.glob('/usr/lib/postgresql/*/bin'), default=None)
PASSWORD = 'do-not-tell'


class PostgresServer:
    """In a folder of its own, reached by a socket there alone. It refuses to be root's."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='argiope-pg-'))
        self.folder.chmod(0o777)
        self.run('initdb', '-D', self.folder / 'data', '-U', 'argiope', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync')
        self.run('pg_ctl', '-D', self.folder / 'data', '-w', '-l', self.folder / 'log', '-o',
                 f"-F -c listen_addresses='' -c unix_socket_directories='{self.folder}'", 'start')

    def run(self, program, *arguments):
        as_postgres = ['runuser', '-u', 'postgres', '--'] if os.geteuid() == 0 else []
        subprocess.run([*as_postgres, f'{PROGRAMS}/{program}', *map(str, arguments)], check=True, cwd='/',
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self):
        self.run('pg_ctl', '-D', self.folder / 'data', '-m', 'immediate', '-w', 'stop')
        shutil.rmtree(self.folder, ignore_errors=True)

    def store(self, schema):
        return f'postgresql://argiope:{PASSWORD}@/postgres?host={self.folder}&schema={schema}'

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
        self.schema = self._testMethodName
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
        self.argiope('job', 'put', 'mail', 'again', '--name', 'second')
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

    def test_says_what_is_wrong(self):
        self.store = f'postgresql://nobody:{PASSWORD}@/none?host={self.server.folder}'
        self.assertIn('PGPASSWORD', self.argiope('job', 'list', expect=3))
        self.store = f'postgresql://u:{PASSWORD}@h/db?schema='
        self.assertIn('schema', self.argiope('job', 'list', expect=2))


if __name__ == '__main__':
    unittest.main()
