#!/usr/bin/env python3
"""Makes files as an argiope leaves them: a store of jobs, one of schedules, the database of a crawl that was killed and that of
one that ended. Beside each goes what that argiope says of it. README.md says which ones are kept here, and why.

    make.py ARGIOPE FOLDER
"""
import contextlib
import gzip
import http.server
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

# The crawled site has its own address, so that nobody else has the port.
HOST, PORT = '127.77.12.3', 38029
SITE = f'http://{HOST}:{PORT}/'
FAR = '2099-01-01T00:00:00Z'
FOR_EVER = 100 * 365 * 86_400_000
# What runs jobs here and when the store has been opened again.
WORK = 'read text; case $text in bury) exit 65;; fail) echo broken >&2; exit 1;; *) echo "got $text";; esac'
# In the folder that the environment names: as long as it has no file `go`, a run does not end.
UNTIL_GO = 'cd "$RUN_IN"; echo began >> runs; test -e go || sleep 100; echo went on'


class Pages(http.server.BaseHTTPRequestHandler):
    """A page with five links, of which each leads to four more; and a few that are none."""

    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True

    def do_GET(self):
        self.server.asked.append(self.path)
        if self.server.on_request:
            self.server.on_request(self.path)
        status, fields, links = 200, {'Content-Type': 'text/html', 'ETag': f'"{self.path}"'}, []
        if self.path == '/robots.txt':
            fields['Content-Type'] = 'text/plain'
        elif self.path == '/':
            links = [f'/a{i}' for i in range(5)] + ['/missing', '/moved', '/private/x', 'http://127.77.12.4/elsewhere']
        elif self.path.startswith('/a'):
            links = [f'/b{self.path[2:]}{i}' for i in range(4)] + ['/']
        elif self.path == '/moved':
            status, fields = 301, {'Location': '/a0'}
        elif not self.path.startswith('/b'):
            status = 404
        if self.headers.get('If-None-Match') == fields.get('ETag', ''):
            status, links = 304, []
        body = f'<p>{self.path}\n' + ''.join(f'<a href="{link}">{link}</a>\n' for link in links)
        if self.path == '/robots.txt':
            body = 'User-agent: *\nDisallow: /private/\n'
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header('Content-Length', 0 if status == 304 else len(body))
        self.end_headers()
        if status != 304:
            self.wfile.write(body.encode())

    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def site():
    """Serves the pages; `asked` is what has been asked for, `on_request` is called before each answer."""
    http.server.ThreadingHTTPServer.allow_reuse_address = True
    server = http.server.ThreadingHTTPServer((HOST, PORT), Pages)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # whoever asked was killed
    server.asked, server.on_request = [], None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class Maker:
    def __init__(self, argiope, folder):
        self.argiope, self.folder = os.path.abspath(argiope), pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.work = pathlib.Path(tempfile.mkdtemp(prefix='argiope-stores-'))
        # Commands are run where they were added: in a folder that there is everywhere.
        self.around = {'cwd': '/', 'env': {**os.environ, 'RUN_IN': str(self.work)}}
        self.said = {}

    def run(self, *arguments, expect=(0,), text=None):
        result = subprocess.run([self.argiope, *map(str, arguments)], capture_output=True, text=True, input=text,
                                timeout=60, **self.around)
        if result.returncode not in expect:
            sys.exit(f'{arguments}: {result.returncode}\n{result.stdout}{result.stderr}')
        return result.stdout

    def lines(self, *arguments):
        return [json.loads(line) for line in self.run(*arguments).splitlines()]

    def keep(self, name):
        """As one file, whatever was in its log."""
        file = self.work / name
        with contextlib.closing(sqlite3.connect(file)) as connection:
            connection.execute('PRAGMA wal_checkpoint(TRUNCATE)')
        with open(self.folder / f'{name}.gz', 'wb') as out, gzip.GzipFile('', 'wb', 9, out, mtime=0) as packed:
            packed.write(file.read_bytes())

    def jobs(self):
        store = ('--store', f'sqlite:{self.work}/jobs.db')

        ids = {}

        def put(waits_for=(), **members):
            if waits_for:
                members['waits_for'] = [ids[name] for name in waits_for]
            self.run('job', 'put', *store, '-', text=json.dumps(members) + '\n')
            ids[members.get('id')] = len(ids) + 1

        policy = {'keep_done_ms': FOR_EVER, 'keep_cancelled_ms': FOR_EVER, 'max_attempts': 2, 'retry_first_ms': 1,
                  'retry_jitter': 0}
        put(queue='mail', id='hello', payload='hello', key='ann')
        self.run('job', 'queue', *store, 'mail', '--config', json.dumps({**policy, 'rate': 100, 'burst': 5,
                                                                         'key_concurrency': 1}))
        put(queue='mail', payload='bury', id='wrong')
        put(queue='mail', payload='fail', id='failing')
        self.run('job', 'work', *store, 'mail', '--until-empty', '--', 'sh', '-c', WORK)
        put(queue='mail', id='called-off', payload='no')
        put(queue='mail', id='called-off-too', waits_for=['called-off'])
        self.run('job', 'cancel', *store, 'called-off')
        put(queue='mail', id='new-year', unique='greeting', priority=7, key='bob', due_at=FAR, payload={'to': 'bob'})
        for i in range(6):
            put(queue='mail', id=f'ready{i}', key='ann' if i % 2 else 'bob', priority=i, function='send',
                payload=f'ready {i}')
        put(queue='mail', id='after', waits_for=['ready0', 'ready1'], payload='after')
        put(queue='mail', id='whatever-happens', waits_for=['after'], if_failed='run', payload='last')
        put(queue='mail', id='all-are-done', waits_for=['ready2'], payload='all')
        put(queue='mail', id='one-of-all', batch=ids['all-are-done'], due_at=FAR)
        put(queue='held', payload='held', id='held')
        self.run('job', 'queue', *store, 'held', '--pause')
        put(queue='slow', id='long', payload='long')
        self.run('job', 'queue', *store, 'slow', '--config', json.dumps(policy))
        self.kill_once_it_runs('job', 'work', *store, 'slow', '--', 'sh', '-c', UNTIL_GO)
        self.said['jobs'] = self.lines('job', 'list', *store, '--json', '--limit', '100')
        self.said['stats'] = self.lines('job', 'stats', *store, '--json')
        self.said['queues'] = {name: self.lines('job', 'queue', *store, name, '--json')[0]
                               for name in ('mail', 'held', 'slow')}
        self.keep('jobs.db')

    def schedules(self):
        store = ('--store', f'sqlite:{self.work}/schedules.db')

        def add(name, *arguments):
            self.run('schedule', 'add', *store, name, *arguments)

        add('often', '--every', '50ms', '--max-runs', '25', '--', 'true')
        add('wrong', '--at', '2026-01-01T00:00:00Z', '--max-attempts', '1', '--', 'sh', '-c', 'echo broken >&2; exit 1')
        self.run('schedule', 'run', *store, '--until-idle', '--quiet')
        add('nightly', '--cron', '30 3 * * *', '--zone', 'Europe/Berlin', '--misfire-grace', '6h', '--', './backup', '--all')
        self.run('schedule', 'pause', *store, 'nightly', '--by', 'ann')
        add('digest', '--cron', '0 7 * * mon-fri', '--start', FAR, '--queue', 'mail', '--payload', 'to: ann')
        add('either', '--trigger', json.dumps({'type': 'or', 'triggers': [
            {'type': 'cron', 'expression': '0 0 1 1 *', 'zone': 'UTC', 'start': FAR},
            {'type': 'date', 'time': FAR}]}), '--', 'true')
        add('long', '--at', FAR, '--', 'sh', '-c', UNTIL_GO)
        self.run('schedule', 'run-now', *store, 'long')
        self.kill_once_it_runs('schedule', 'run', *store)
        soon = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(time.time() + 10))
        add('overdue', '--at', soon, '--', 'sh', '-c', 'echo came late')
        add('request', '--at', soon, '--http', 'GET', SITE)
        self.said['schedules'] = self.lines('schedule', 'list', *store, '--json')
        self.said['histories'] = {one['name']: self.lines('schedule', 'history', *store, one['name'], '--json')
                                  for one in self.said['schedules']}
        self.keep('schedules.db')

    def kill_once_it_runs(self, *arguments):
        runs = self.work / 'runs'
        runs.unlink(missing_ok=True)
        process = subprocess.Popen([self.argiope, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   **self.around)
        while not runs.exists():
            time.sleep(0.01)
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def crawls(self):
        with site() as server:
            for name in ('crawl-ended', 'crawl-killed'):
                command = [self.argiope, 'crawl', SITE, '-d', f'{self.work}/{name}.db', '--quiet', '--per-host', '1',
                           '--max-depth', '5']
                process = subprocess.Popen(command)
                left = [12]

                def kill_at_the_twelfth(path):
                    left[0] -= 1
                    if left[0] == 0:
                        time.sleep(1)  # until what came before is in the file
                        process.send_signal(signal.SIGKILL)
                if name == 'crawl-killed':
                    server.on_request = kill_at_the_twelfth
                process.wait()
                with contextlib.closing(sqlite3.connect(self.work / f'{name}.db')) as connection:
                    connection.row_factory = sqlite3.Row
                    self.said[name] = [dict(row) for row in connection.execute(
                        'SELECT url_id, url, ctime, mtime, state, depth, priority, status_code, content_type, size, attempts, '
                        'referrer, redirect_to, etag, digest, error FROM urls ORDER BY url_id')]
                self.keep(f'{name}.db')

    def make(self):
        self.jobs()
        self.schedules()
        self.crawls()
        (self.folder / 'said.json').write_text(json.dumps(self.said, indent=1) + '\n')
        shutil.rmtree(self.work)


if __name__ == '__main__':
    Maker(sys.argv[1], sys.argv[2]).make()
