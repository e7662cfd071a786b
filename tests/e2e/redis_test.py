"""The commands and the daemon on a store in Redis, by servers that the test starts; skipped where none is installed. Daemons and
servers are killed, connections cut: what was acknowledged is there, and once. ARGIOPE_KILLS: how often, each."""
import itertools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest
import urllib.parse

import serve_kill_test
from daemon import Daemons
from support import ARGIOPE, PATIENCE

PROGRAM = shutil.which('redis-server')
KILLS = int(os.environ.get('ARGIOPE_KILLS', 3))
PASSWORD = 'do-not-tell'


class RedisServer:
    """In a folder of its own, reached by a socket there alone. It keeps what it acknowledges."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='argiope-redis-'))
        self.socket = self.folder / 'redis.sock'
        (self.folder / 'redis.conf').write_text(
            f'port 0\nunixsocket {self.socket}\ndir {self.folder}\nlogfile log\nappendonly yes\nappendfsync always\n'
            f'requirepass {PASSWORD}\n')
        self.start()

    def start(self):
        self.process = subprocess.Popen([PROGRAM, self.folder / 'redis.conf'], stdin=subprocess.DEVNULL)
        while self.ask('PING', check=False) != 'PONG':
            pass

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, *words, check=True):
        return subprocess.run(['redis-cli', '-s', self.socket, *words], env={**os.environ, 'REDISCLI_AUTH': PASSWORD},
                              capture_output=True, text=True, check=check).stdout.strip()


class Cutter:
    """A proxy before the server's socket, at a socket of its own. Each connection is cut when the client has said so many bytes more
    as `after` gives; what it said before has reached the server, in pieces."""

    def __init__(self, server, folder, after):
        self.server, self.after, self.cuts = server, after, 0
        self.socket = folder / 'cut.sock'
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(self.socket))
        self.listening.listen(50)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listening.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(str(self.server.socket))
            except OSError:
                client.close()
                continue
            threading.Thread(target=self.say, args=(client, server), daemon=True).start()
            threading.Thread(target=self.answer, args=(client, server), daemon=True).start()

    def say(self, client, server):
        left = self.after()
        try:
            while left > 0 and (said := client.recv(min(left, 65536))):
                server.sendall(said)
                left -= len(said)
            self.cuts += left == 0
        except OSError:
            pass
        for one in (client, server):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def answer(self, client, server):
        try:
            while said := server.recv(65536):
                client.sendall(said)
        except OSError:
            pass
        client.close()

    def stop(self):
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()


@unittest.skipIf(PROGRAM is None, 'no Redis is installed: apt-get install redis-server')
class OnRedis(Daemons):
    def setUp(self):
        super().setUp()
        self.server = RedisServer()
        self.addCleanup(self.server.stop)
        self.store = self.at(self.server.socket)

    def at(self, path):
        return f'redis://:{PASSWORD}@{urllib.parse.quote(str(path), safe="")}/0?prefix=p'

    def argiope(self, *words, expect=0):
        """What it prints."""
        command = [ARGIOPE, *words[:2], '--store', self.store, *words[2:]]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, timeout=300)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        self.assertNotIn(PASSWORD, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def payloads(self):
        """Of all jobs."""
        lines = self.argiope('job', 'list', '--json', '--limit', '100000').splitlines()
        return sorted(json.loads(line)['payload'] for line in lines)

    def put(self, daemon, payload):
        return daemon.good('POST', '/v1/jobs', {'queue': 'mail', 'payload': payload}, 201)


class RedisTest(OnRedis):
    def test_commands_work_on_it(self):
        self.argiope('job', 'put', 'mail', 'hello')
        self.argiope('job', 'put', 'mail', 'again', '--id', 'second')
        self.assertEqual(self.payloads(), ['again', 'hello'])
        self.assertEqual(self.server.ask('HGET', '{p:0}:payloads', '1'), 'hello')
        self.argiope('job', 'cancel', 'second')
        self.argiope('job', 'work', 'mail', '--until-empty', '--quiet', '--', 'true')
        self.assertIn('appendfsync always', self.argiope('job', 'stats'))
        self.assertIn('appendfsync always', json.loads(self.argiope('job', 'stats', '--json'))['durability'])
        self.assertEqual(self.server.ask('ZCARD', '{p:0}:ready:1'), '0')
        self.argiope('schedule', 'add', 'nightly', '--every', '1h', '--queue', 'mail')
        self.assertIn('nightly', self.argiope('schedule', 'list'))

    def test_the_daemon_serves_it_tells_its_promise_and_no_password(self):
        daemon = self.daemon()
        self.put(daemon, 'p')
        for page in ('/v1/config', '/v1/version'):
            self.assertNotIn(PASSWORD, json.dumps(daemon.good('GET', page)))
        self.assertIn('appendfsync always', daemon.good('GET', '/v1/config')['durability'])
        self.argiope('job', 'put', 'mail', 'beside')
        self.assertEqual(self.server.ask('HLEN', '{p:0}:jobs'), '2')
        daemon.signal(signal.SIGTERM)
        daemon.ended()
        log = ''.join(daemon.log)
        self.assertIn('durability appendonly yes, appendfsync always', log)
        self.assertNotIn(PASSWORD, log)

    def test_a_second_daemon_is_refused_and_the_first_goes_on(self):
        first = self.daemon()
        self.put(first, '1')
        words = [ARGIOPE, 'serve', '--store', self.store, '--listen', '127.0.0.1:0']
        second = subprocess.run(words, capture_output=True, text=True, cwd=self.folder, timeout=PATIENCE)
        self.assertNotEqual(second.returncode, 0)
        self.assertIn(f':{first.process.pid} owns this store', second.stderr)
        self.put(first, '2')
        first.signal(signal.SIGTERM)
        first.ended()
        self.put(self.daemon(), '3')
        self.assertEqual(self.payloads(), ['1', '2', '3'])

    def test_a_standby_follows_a_daemon_that_was_killed(self):
        first = self.daemon()
        self.put(first, '1')
        second = self.daemon('--standby', '--listen', '127.0.0.1:0', listen=None)
        second.wait_for('stands by')
        self.put(first, '2')
        first.process.kill()
        second.port = int(second.wait_for(r'listening: http://[^ ]*:(\d+)')[1])
        self.put(second, '3')
        self.assertEqual(self.payloads(), ['1', '2', '3'])

    def test_a_daemon_that_was_stopped_while_another_took_over_writes_nothing_more(self):
        first = self.daemon()
        self.put(first, '1')
        first.signal(signal.SIGSTOP)
        second = self.daemon()  # when the lease is over
        self.put(second, '2')
        first.signal(signal.SIGCONT)
        first.wait_for('another process has become its owner')
        self.assertNotEqual(first.process.wait(PATIENCE), 0)
        self.put(second, '3')
        self.assertEqual(self.payloads(), ['1', '2', '3'])

    def test_the_server_is_killed_and_comes_back_with_all_it_acknowledged(self):
        daemon = self.daemon()
        put = []
        for life in range(KILLS):
            for i in range(20):
                put.append(f'{life}.{i}')
                self.put(daemon, put[-1])
            self.server.kill()
            # Asked while it is away: it waits.
            waits = threading.Thread(target=self.put, args=(daemon, f'{life}.waits'))
            put.append(f'{life}.waits')
            waits.start()
            daemon.wait_for('what is to be read or written waits for it')
            self.server.start()
            waits.join()
            daemon.wait_for('it answers again')
        self.assertEqual(self.payloads(), sorted(put))
        daemon.signal(signal.SIGTERM)
        daemon.ended()

    def test_connections_that_are_cut_at_any_byte_lose_and_double_nothing(self):
        # The first connection lives until it is open, as what opening meets is told at once. The others greet the server with
        # their scripts, some 5,500 bytes, and are cut a little later each time.
        steps = itertools.chain([20_000], itertools.count(7_000, 37))
        cutter = Cutter(self.server, self.folder, lambda: next(steps))
        self.addCleanup(cutter.stop)
        straight, self.store = self.store, self.at(cutter.socket)
        daemon = self.daemon()
        put = [str(i) for i in range(60)]
        for payload in put:
            self.put(daemon, payload)
        leased = []
        while len(leased) < len(put):
            answer = daemon.good('POST', '/v1/leases', {'queues': ['mail'], 'worker': 'w', 'most': 7})
            leased += [lease['job']['payload'] for lease in answer['leases']]
        self.assertEqual(sorted(leased), sorted(put))
        self.assertGreater(cutter.cuts, 3)
        daemon.signal(signal.SIGTERM)
        daemon.ended()
        self.store = straight
        self.assertEqual(self.payloads(), sorted(put))


class RedisKill(OnRedis, serve_kill_test.ServeKill):
    """Daemons, workers and producers are killed over Redis, as over SQLite."""

    def check_store(self):
        self.assertEqual(self.server.ask('EXISTS', '{p:0}:lock'), '0')


if __name__ == '__main__':
    unittest.main()
