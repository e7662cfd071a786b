"""What the end-to-end tests share: the command, web servers on loopback, and their logs."""
import contextlib
import http.server
import json
import os
import pathlib
import re
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
DOCUMENTATION = {
    'cppreference': '/usr/share/cppreference/doc/html',
    'python': '/usr/share/doc/python3.11/html',
}


class EndToEnd(unittest.TestCase):
    """Each test has a folder of its own; what it starts is stopped with it."""

    def serve(self, handler):
        """A web server on loopback that answers by `handler`, until the test ends."""
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
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
                process.wait(20)
        self.addCleanup(stop)
        return process

    def site(self, *arguments):
        """Starts `argiope site`; gives the hosts' URLs and the path of its log."""
        log = self.folder / f'site-{time.monotonic_ns()}.log'
        process = self.start([ARGIOPE, 'site', '--port', '0', '--log', str(log), *map(str, arguments)],
                             stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        urls = []
        for line in process.stdout:
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
        present = {name: path for name, path in DOCUMENTATION.items() if os.path.isdir(path)}
        if not present:
            self.skipTest('none of the documentation packages is installed')
        root = self.folder / 'root'
        root.mkdir()
        links = []
        for name, path in present.items():
            (root / name).symlink_to(path)
            start = 'en/index.html' if name == 'cppreference' else 'index.html'
            links.append(f'<a href="{name}/{start}">{name}</a>')
        (root / 'index.html').write_text('<!doctype html><title>Documentation</title>' + ' '.join(links))
        return root


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def wait_for_port(port):
    for _ in range(500):
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
