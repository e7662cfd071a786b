"""What the end-to-end tests share: the command, web servers on loopback, and their logs."""
import contextlib
import http.server
import json
import os
import pathlib
import random
import re
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ARGIOPE = os.path.abspath(os.environ.get('ARGIOPE', 'build/release/bin/argiope'))
WALK_ORACLE = os.path.abspath(os.environ.get('WALK_ORACLE', 'build/release/bin/walk_oracle'))
SYSTEM_PYTHON = '/usr/bin/python3'  # to which Debian's python3-… packages belong, whatever python3 is in PATH
PATIENCE = 120  # seconds, for what comes in a moment: only what never comes takes as long, also on a busy machine
# By Debian's packages cppreference-doc-en-html and python3-doc.
DOCUMENTATION = {
    'cppreference': '/usr/share/cppreference/doc/html',
    'python': '/usr/share/doc/python3.11/html',
}


class PageHandler(http.server.BaseHTTPRequestHandler):
    """Answers with pages, and prints nothing."""

    def reply(self, status, body):
        self.send_response(status)
        self.send_header('Content-Type', 'text/html')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # connections that wait while this process does not get to run


class EndToEnd(unittest.TestCase):
    """Each test has a folder of its own; what it starts is stopped with it."""

    def serve(self, handler):
        """A web server on loopback that answers by `handler`, until the test ends."""
        server = Server(('127.0.0.1', 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='argiope-e2e-'))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.database = self.folder / 'crawl.db'

    def crawl(self, *arguments, expect=0, timeout=300):
        """Runs `argiope crawl` to its end; gives the summary."""
        result = subprocess.run([ARGIOPE, 'crawl', '--quiet', '--summary', 'json', '-d', str(self.database),
                                 *map(str, arguments)], capture_output=True, text=True, timeout=timeout)
        self.assertEqual(result.returncode, expect, result.stdout + result.stderr)
        return json.loads(result.stdout.splitlines()[-1]) if result.stdout else None

    def rows(self, query, *values):
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            return connection.execute(query, values).fetchall()

    def start(self, command, **options):
        """Starts a process that is stopped when the test ends."""
        process = subprocess.Popen(command, **options)

        def stop():
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    raise
        self.addCleanup(stop)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                self.addCleanup(close, stream)
        return process

    def wait_until(self, condition, what='it did not come true', seconds=PATIENCE):
        """Looks until `condition()` holds; the test fails when it does not within `seconds`."""
        give_up_at = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), give_up_at, f'{what} within {seconds} s')
            time.sleep(0.01)

    def kill_at_work(self, command, log, wait, **options):
        """Starts a process, waits until `log` grows, which is the first sign of its work, then `wait` seconds, and kills it. Gives the
        process, and whether the kill has interrupted it: it may have ended before."""
        before = size_of(log)
        process = self.start(command, **options)
        self.wait_until(lambda: size_of(log) > before or process.poll() is not None, 'it did not begin to work')
        time.sleep(wait)
        process.kill()
        return process, process.wait() == -signal.SIGKILL

    def site(self, *arguments):
        """Starts `argiope site`; gives the hosts' URLs and the path of its log."""
        log = self.folder / f'site-{time.monotonic_ns()}.log'
        process = self.start([ARGIOPE, 'site', '--port', '0', '--log', str(log), *map(str, arguments)],
                             stdout=subprocess.PIPE, text=True)
        urls = []
        for line in lines_of(process):
            if line.startswith('  http'):
                urls.append(line.strip())
            elif line.startswith('Ctrl-C'):
                break
        log.touch()
        return urls, log

    def nginx(self, root):
        """Serves a folder by one nginx worker; gives its URL and the path of its access log."""
        if shutil.which('nginx') is None and not os.path.exists('/usr/sbin/nginx'):
            self.skipTest('nginx is not installed')
        port = free_port()
        log = self.folder / 'access.log'
        config = self.folder / 'nginx.conf'
        temporary = '\n'.join(f'{kind}_temp_path {self.folder}/tmp;'
                              for kind in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
        config.write_text(f'''
            daemon off; worker_processes 1; pid {self.folder}/nginx.pid; error_log {self.folder}/error.log;
            user {"root" if os.geteuid() == 0 else os.environ.get("USER", "nobody")};
            events {{ worker_connections 2048; }}
            http {{
              include /etc/nginx/mime.types; keepalive_requests 1000000; sendfile on; tcp_nopush on;
              log_format short '$status $request_uri'; access_log {log} short; {temporary}
              server {{ listen 127.0.0.1:{port}; root {root}; }}
            }}''')
        nginx = shutil.which('nginx') or '/usr/sbin/nginx'
        self.start([nginx, '-p', str(self.folder), '-c', str(config)], stderr=subprocess.DEVNULL)
        wait_for_port(port)
        return f'http://127.0.0.1:{port}/', log

    def documentation(self):
        """A folder with the documentation trees of Debian packages and a page that links to each."""
        missing = [path for path in DOCUMENTATION.values() if not os.path.isdir(path)]
        if missing:
            self.skipTest(f'the documentation packages are not installed: there is no {missing[0]}')
        root = self.folder / 'root'
        root.mkdir()
        links = []
        for name, path in DOCUMENTATION.items():
            (root / name).symlink_to(path)
            start = 'en/index.html' if name == 'cppreference' else 'index.html'
            links.append(f'<a href="{name}/{start}">{name}</a>')
        (root / 'index.html').write_text('<!doctype html><title>Documentation</title>' + ' '.join(links))
        return root

    def browse(self, program, *arguments, timeout=300):
        """What browse_PROGRAM.mjs prints of pages that it opens in Chromium."""
        here = pathlib.Path(__file__).parent
        if shutil.which('node') is None or not (here / '../../dashboard/tests/node_modules/playwright-core').is_dir():
            self.skipTest('no playwright-core (tools/install-dashboard.sh tests)')
        result = subprocess.run(['node', here / f'browse_{program}.mjs', *arguments], capture_output=True, text=True, timeout=timeout)
        if result.returncode == 77:
            self.skipTest('no Chromium')
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def expect_both_trees(self, pages):
        """Whether pages, by URLs or names of files, are of both trees of documentation(), and as many as these have."""
        pages = list(map(str, pages))
        for name, least in (('cppreference', 4000), ('python', 500)):
            of_tree = sum(f'{name}/' in page for page in pages)
            self.assertGreater(of_tree, least, f'pages of {name}')


class Commands(EndToEnd):
    """Commands on a store of jobs and schedules. `family` is the command that json() asks, 'job' or 'schedule'."""

    family = 'job'

    def setUp(self):
        super().setUp()
        self.file = self.folder / 'store.db'
        self.store = f'sqlite:{self.file}'

    def run_it(self, *arguments, expect=0, timeout=300, **options):
        """Runs the command to its end, which has to be with status `expect`."""
        result = subprocess.run([ARGIOPE, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, **options)
        self.assertEqual(result.returncode, expect, f'{arguments}\n{result.stdout}{result.stderr}')
        return result

    def job(self, subcommand, *arguments, **options):
        """Standard output of `argiope job SUBCOMMAND`."""
        return self.run_it('job', subcommand, '--store', self.store, *arguments, **options).stdout

    def schedule(self, subcommand, *arguments, **options):
        """Standard output of `argiope schedule SUBCOMMAND`."""
        return self.run_it('schedule', subcommand, '--store', self.store, *arguments, **options).stdout

    def json(self, subcommand, *arguments, **options):
        """What a subcommand of the family prints with --json, line by line."""
        out = self.run_it(self.family, subcommand, '--store', self.store, '--json', *arguments, **options).stdout
        return [json.loads(line) for line in out.splitlines()]

    def refused(self, *arguments, culprit, expect=2, **options):
        """A command that has to fail with status `expect` and to name its culprit, or each of several."""
        result = self.run_it(*arguments, expect=expect, **options)
        for part in [culprit] if isinstance(culprit, str) else culprit:
            self.assertIn(part, result.stderr + result.stdout)
        return result

    def start_command(self, family, subcommand, *arguments, **options):
        """Starts `argiope FAMILY SUBCOMMAND` on the store, until the test ends."""
        return self.start([ARGIOPE, family, subcommand, '--store', self.store, *map(str, arguments)],
                          **{'text': True, **options})

    def gates(self):
        """Two fresh named pipes: a command says through the first that it has started, and waits for a line in the second."""
        started, go = self.folder / 'started', self.folder / 'let-go'
        for pipe in (started, go):
            pipe.unlink(missing_ok=True)
            os.mkfifo(pipe)
        return started, go

    def wait_for_start(self, started):
        """Waits for a line through the named pipe `started`."""
        line = b''
        while not line:  # nothing: a command has closed the pipe that has said its line to an earlier reader
            with open(os.open(started, os.O_RDONLY | os.O_NONBLOCK)) as pipe:
                self.assertTrue(select.select([pipe], [], [], PATIENCE)[0], 'the command did not start')
                line = os.read(pipe.fileno(), 100)

    def let_go(self, go, lines=1):
        """Lets commands go on that wait for a line in the named pipe `go`."""
        def is_awaited():
            with contextlib.suppress(OSError):  # ENXIO: nothing has opened it to read
                self.opened = os.open(go, os.O_WRONLY | os.O_NONBLOCK)
                return True
        self.wait_until(is_awaited, 'no command waited to be let go')
        self.addCleanup(os.close, self.opened)
        os.write(self.opened, b'\n' * lines)


def close(stream):
    with contextlib.suppress(BrokenPipeError):
        stream.close()


def lines_of(process, seconds=PATIENCE):
    """The lines that a process prints, as they come. A process that prints none for `seconds` is killed, and the reader fails."""
    while True:
        silent = []

        def give_up():
            silent.append(True)
            process.kill()
        timer = threading.Timer(seconds, give_up)
        timer.start()
        line = process.stdout.readline()
        timer.cancel()
        if silent:
            raise AssertionError(f'{process.args} printed nothing for {seconds} s')
        if not line:
            return
        yield line


def size_of(path):
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def free_port():
    """A port that nobody has. It is none of those that the system gives away itself, from 32768 on: such a one may have been
    given to a connection by the time its server starts, or starts again."""
    for _ in range(1000):
        port = random.randrange(10_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(('127.0.0.1', port))
            return port
    raise RuntimeError('no port is free')


def wait_for_port(port):
    give_up_at = time.monotonic() + PATIENCE
    while time.monotonic() < give_up_at:
        with socket.socket() as probe:
            if probe.connect_ex(('127.0.0.1', port)) == 0:
                return
        time.sleep(0.02)
    raise RuntimeError(f'nothing listens on port {port}')


def read_log(path):
    """argiope site's log: (seconds, host, method, target, status) of each request."""
    entries = []
    for line in pathlib.Path(path).read_text().splitlines():
        fields = line.split(' ')
        if len(fields) == 5:
            entries.append((int(fields[0]) / 1e6, int(fields[1]), fields[2], fields[3], int(fields[4])))
    return entries
