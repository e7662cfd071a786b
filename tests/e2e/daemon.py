"""What tests of the daemon share: a running `argiope serve`, and a client that says what it was answered."""
import fcntl
import http.client
import json
import os
import queue
import re
import socket
import subprocess
import threading

from support import ARGIOPE, PATIENCE, EndToEnd


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class Daemon:
    """A running daemon. `log` has what it has said so far."""

    def __init__(self, test, process):
        self.test, self.process = test, process
        self.log = []
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        test.addCleanup(self._clean_up)

    def _read(self):
        with self.process.stderr as stderr:
            for line in stderr:
                self.log.append(line)
                self.lines.put(line)
        self.lines.put(None)

    def _clean_up(self):
        """The pipe is closed by its reader alone, when the process has ended."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise
        self.reader.join()

    def wait_for(self, pattern, seconds=PATIENCE):
        """The first line from here on that the pattern is found in."""
        while True:
            try:
                line = self.lines.get(timeout=seconds)
            except queue.Empty:
                self.test.fail(f'it did not say {pattern} within {seconds} s: {"".join(self.log)}')
            self.test.assertIsNotNone(line, f'it ended without {pattern}: {"".join(self.log)}')
            found = re.search(pattern, line)
            if found:
                return found

    def ask(self, method, path, body=None, headers=()):
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=PATIENCE)
        try:
            data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
            connection.request(method, path, data, dict(headers))
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def good(self, method, path, body=None, status=200, **options):
        answer = self.ask(method, path, body, **options)
        self.test.assertEqual(answer.status, status, answer.body)
        return answer.json if answer.body else None

    def signal(self, number):
        self.process.send_signal(number)

    def ended(self, status=0, seconds=PATIENCE):
        """Waits for its end."""
        self.test.assertEqual(self.process.wait(seconds), status, ''.join(self.log))


class Daemons(EndToEnd):
    def setUp(self):
        super().setUp()
        self.store = f'sqlite:{self.folder}/jobs.db'

    def daemon(self, *arguments, listen='127.0.0.1:0', **options):
        """Starts `argiope serve`, and waits until it listens."""
        words = [ARGIOPE, 'serve', '--store', self.store]
        if listen:
            words += ['--listen', listen]
        daemon = Daemon(self, subprocess.Popen(words + list(map(str, arguments)), stderr=subprocess.PIPE, text=True,
                                               **{'cwd': self.folder, **options}))
        if listen:
            daemon.port = int(daemon.wait_for(r'listening: http://[^ ]*:(\d+)')[1])
        return daemon

    def token(self, *words):
        """The words of `argiope token`, and what a client says of the token that it has made."""
        done = subprocess.run([ARGIOPE, 'token', words[0], '--file', str(self.folder / 'tokens'), *words[1:]], check=True,
                              capture_output=True, text=True)
        found = re.search(r'argiope_\S+', done.stdout)
        return {'Authorization': 'Bearer ' + found[0]} if found else None

    def listening(self, address='127.0.0.1'):
        """A socket of this process that a daemon may inherit: clients that come while none lives wait in its backlog."""
        listening = socket.socket()
        self.addCleanup(listening.close)
        listening.bind((address, 0))
        listening.listen(500)
        return listening

    def supervised(self, sockets, *arguments, **more):
        """Starts `argiope serve` as systemd does, with sockets by name ("http", "beanstalkd"), and waits until it listens. `more`: of
        its environment. Without a socket for HTTP it listens where nobody else does: its default address may be taken."""
        if 'http' not in sockets:
            arguments = ('--listen', '127.0.0.1:0', *arguments)
        daemon = self.handed_over(sockets, *arguments, **more)
        for i, (name, one) in enumerate(sockets.items()):
            daemon.wait_for(f'listening: {name} at descriptor {3 + i}')
            if name == 'http':
                daemon.port = one.getsockname()[1]
        return daemon

    def handed_over(self, sockets, *arguments, **more):
        # Out of the way of the numbers that they get.
        passed = [fcntl.fcntl(one.fileno(), fcntl.F_DUPFD_CLOEXEC, 100) for one in sockets.values()]
        moves = ' '.join(f'{3 + i}<&{fd} {fd}<&-' for i, fd in enumerate(passed))
        script = f'export LISTEN_PID=$$ LISTEN_FDS={len(passed)} LISTEN_FDNAMES={":".join(sockets)}; exec "$0" "$@" {moves}'
        words = [ARGIOPE, 'serve', '--store', self.store, *map(str, arguments)]
        daemon = Daemon(self, subprocess.Popen(['bash', '-c', script, *words], stderr=subprocess.PIPE, text=True,
                                               cwd=self.folder, pass_fds=passed, env=environment(**more)))
        for fd in passed:
            os.close(fd)
        return daemon

    def file(self, text, name='argiope.toml'):
        path = self.folder / name
        path.write_text(text)
        return path

    def refused(self, *arguments, culprit, status=2, **options):
        result = subprocess.run([ARGIOPE, 'serve', *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE,
                                cwd=self.folder, **options)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        self.assertIn(culprit, result.stderr)


def environment(**more):
    return {**os.environ, **more}
