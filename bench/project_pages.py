"""Projects (`argiope project run FILE --once`), from sites on loopback: following alone, four fields by CSS, and a trivial Python
callback in each sandbox; 500 idle projects in one run; a million results as files; a start with a million known pages; and a project with a
script beside another whose script is hostile.

    python3 bench/project_pages.py [--known 1000000] [--results 1000000] [--projects 500] [CASE...]

A case is follow, fields, script, idle, export, known or hostile; without any: all. ROUNDS (5) runs of each measured by pages a second, in
turn with `argiope crawl` of the same site; medians. A rate is that of the visits: by the command's own clock, from its start of the project to the
end of the round, in runs of which no visit failed. Processor time and peak memory are of the whole process, of `script` with its children's
processor time.
"""
import argparse
import http.server
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time

from crawl_support import ARGIOPE, ROUNDS, measure, median, peak_mb, report
from support import EndToEnd

FIELDS = {'title': 'css:title', 'heading': 'css:h1', 'links[]': 'css:a::attr(href)', 'first': 'css:p::text'}
CALLBACK = '''
from argiope.processor import BaseHandler


class Handler(BaseHandler):
    def page(self, response):
        return {"url": response.url, "bytes": len(response.content)}
'''
# A script that has nothing to do.
IDLE_SCRIPT = '''
import sys
for line in sys.stdin.buffer:
    print('{"type":"described","protocol":1}', flush=True)
'''
# Each page of its project ends as its function does.
HOSTILE_SCRIPT = '''
import json, os, sys, time
receive, send = sys.stdin.buffer, sys.stdout
def say(**members): send.write(json.dumps(members) + "\\n"); send.flush()
def spin(page):
    while True: pass
def fork_bomb(page):
    while True:
        try: os.fork()
        except OSError: pass
def memory(page):
    kept = []
    while True: kept.append(bytearray(16 << 20))
def fill_tmp(page):
    i = 0
    while True:
        i += 1
        open("/tmp/%d" % i, "wb").write(bytes(1 << 20))
def output(page):
    while True: os.write(1, b"z" * (1 << 20))
def queries(page):
    while True: say(type="select", id=page["id"], query=1, css="*", html="<p>" * 1000)
def silent(page): time.sleep(3600)
while line := receive.readline():
    page = json.loads(line)
    if page["type"] == "describe": say(type="described", protocol=1); continue
    receive.read(page["body"])
    globals()[sys.argv[1]](page)
'''
DEEDS = os.environ.get('DEEDS', 'spin,fork_bomb,memory,fill_tmp,output,queries,silent').split(',')
SANDBOXES = os.environ.get('SANDBOXES', 'none,basic,strict').split(',')
ARGUMENTS = argparse.Namespace()


def children_of(pid):
    return pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text().split()


def resident_mb(pid):
    for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines():
        if line.startswith('VmRSS:'):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(pid)


class Bench(EndToEnd):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)  # a script of root's reads its folder as a user of its own

    # --- pages a second

    def small_site(self, pages=20_000):
        """Four hosts by address, so that no bound of one host counts; pages of 4 KB."""
        urls, _ = self.site('--hosts', 4, '--pages', pages // 4, '--features', 'none', '--errors', 0, '--by-address')
        return urls

    def real_site(self):
        """Empty where neither nginx nor the pages are there."""
        if not os.path.exists('/usr/sbin/nginx') or not os.path.isdir('/usr/share/doc/python3.11/html'):
            print('# nginx or the documentation packages are not installed: left out')
            return []
        url, _ = self.nginx(self.documentation())
        return [url]

    def project_file(self, folder, urls, fields=None, more=''):
        file = folder / 'project.toml'
        text = f'[project]\nname = "bench"\nstart = {json.dumps(urls)}\n{more}\n[[rule]]\nname = "page"\n'
        if fields:
            text += '[rule.fields]\n' + ''.join(f'"{name}" = {json.dumps(source)}\n' for name, source in fields.items())
        file.write_text(text)
        return file

    def run_project(self, file, *arguments, dead=0):
        database = file.parent / 'data' / 'pages.db'
        database.parent.mkdir()
        run = measure([ARGIOPE, 'project', 'run', str(file), '--once', '--quiet', '--summary', 'json', '-d', str(database),
                       '--per-host', '64', *arguments], cwd=file.parent)
        summary = json.loads(run['output'].splitlines()[-1])
        # The real pages have some links that lead nowhere: given up at once, without a wait.
        if summary['failed'] > dead or summary['failed'] > summary['given_up'] or summary['projects'][0]['left'] or not summary['rounds']:
            self.fail(f'not all visits went well, so that the time is not theirs alone: {summary}')
        run['pages'] = summary['succeeded']
        run['seconds'] = summary['seconds']
        run['results'] = summary['results']['added']
        return run

    def run_crawl(self, folder, urls, *arguments):
        run = measure([ARGIOPE, 'crawl', '--quiet', '--summary', 'json', '-d', str(folder / 'crawl.db'), '--per-host', '64', *arguments, *urls])
        summary = json.loads(run['output'].splitlines()[-1])
        run['pages'] = summary['pages']
        return run

    def rates(self, name, runs):
        """runs: who → its runs; Argiope's project among them."""
        for unit, figure in (('pages/s', lambda done: done['pages'] / done['seconds']), ('CPU s', lambda done: done['cpu']),
                             ('CPU us/page', lambda done: 1e6 * done['cpu'] / done['pages']), ('MB', lambda done: done['mb'])):
            figures = {who: sorted(map(figure, done))[len(done) // 2] for who, done in runs.items()}
            report(f'{name}, {runs["project"][0]["pages"]} pages', unit, figures.pop('project'), figures)

    def compare(self, name, urls, fields, dead=0):
        runs = {'project': [], 'argiope crawl': []}
        for _ in range(ROUNDS):
            folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
            runs['project'].append(self.run_project(self.project_file(folder, urls, fields), dead=dead))
            if fields and not dead:
                self.assertEqual(runs['project'][-1]['results'], runs['project'][-1]['pages'])
            words = [word for field, source in (fields or {}).items() for word in ('--field', f'{field}={source}')]
            output = ['--output', str(folder / 'fields.jsonl')] if fields else []
            runs['argiope crawl'].append(self.run_crawl(folder, urls, *words, *output))
        self.rates(name, runs)

    def test_follow(self):
        self.compare('project_pages follow, small', self.small_site(), None)
        if urls := self.real_site():
            self.compare('project_pages follow, real', urls, None, dead=10)

    def test_fields(self):
        self.compare('project_pages fields, small', self.small_site(), FIELDS)
        if urls := self.real_site():
            self.compare('project_pages fields, real', urls, FIELDS, dead=10)

    def test_script(self):
        urls = self.small_site()
        runs = {sandbox: [] for sandbox in SANDBOXES}
        for _ in range(ROUNDS):
            for sandbox, done in runs.items():
                folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
                folder.chmod(0o755)
                script = folder / 'script'
                script.mkdir()
                (script / 'page.py').write_text(CALLBACK)
                file = self.project_file(folder, urls, more='processor = ["python3", "-m", "argiope.processor", "script/page.py"]\n')
                done.append(self.run_project(file, '--sandbox', sandbox, '--workers', '2'))
                self.assertEqual(done[-1]['results'], done[-1]['pages'])
        for sandbox, done in runs.items():
            self.rates(f'project_pages script, {sandbox}', {'project': done})

    # --- beside a hostile script

    def seconds_beside(self, urls, deed, more):
        """Of the round of a project with a script, beside one whose script does that."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        folder.chmod(0o755)
        for name, text in (('page.py', CALLBACK), ('hostile.py', HOSTILE_SCRIPT)):
            (folder / name).write_text(text)
        files = [self.project_file(folder, urls, more=more + 'processor = ["python3", "-m", "argiope.processor", "page.py"]\n')]
        if deed:
            files.append(folder / 'hostile.toml')
            pages = [f'{url}?{number}' for url in urls for number in range(50)]
            files[-1].write_text(f'[project]\nname = "hostile"\nstart = {json.dumps(pages)}\n'
                                 f'processor = ["python3", "hostile.py", "{deed}"]\n\n[[rule]]\nname = "page"\n')
        database = folder / 'data' / 'pages.db'
        database.parent.mkdir()
        process = self.start([ARGIOPE, 'project', 'run', *map(str, files), '--quiet', '-d', str(database), '--per-host', '64',
                              '--workers', '2'], cwd=folder, stdout=subprocess.DEVNULL)
        took = []

        def has_ended():
            self.assertIsNone(process.poll())
            if not database.exists():
                return False
            with sqlite3.connect(f'file:{database}?mode=ro', uri=True, timeout=60) as connection:
                try:
                    took[:] = connection.execute("SELECT ended - began FROM rounds JOIN projects USING (project_id) "
                                                 "WHERE name = 'bench' AND ended IS NOT NULL").fetchall()
                except sqlite3.OperationalError:
                    return False
            connection.close()
            return took

        self.wait_until(has_ended, 'the round did not end', 600)
        process.terminate()
        process.wait(60)
        return took[0][0] / 1000

    def test_hostile(self):
        """At a rate, where the processors are enough for both; and as fast as it goes, where a script that spins has its share of them."""
        urls = self.small_site(10_000)
        for name, more in (('500 pages/s', 'rate = 500\nburst = 50\n'), ('no rate', '')):
            rounds = {deed: [] for deed in ('', *DEEDS)}
            for _ in range(ROUNDS):
                for deed, seconds in rounds.items():
                    seconds.append(self.seconds_beside(urls, deed, more))
            medians = {deed or 'alone': sorted(seconds)[len(seconds) // 2] for deed, seconds in rounds.items()}
            report(f'project_pages hostile, {name}', 's of the round', medians.pop('alone'), medians)

    # --- many projects

    def test_idle(self):
        """Each project has a script, and had its round: from then on nothing is due."""
        script = self.folder / 'idle.py'
        script.write_text(IDLE_SCRIPT)
        files = []
        for number in range(ARGUMENTS.projects):
            file = self.folder / f'idle-{number}.toml'
            file.write_text(f'[project]\nname = "idle-{number}"\nprocessor = ["python3", {json.dumps(str(script))}]\n')
            files.append(str(file))
        process = self.start([ARGIOPE, 'project', 'run', *files, '--quiet', '--sandbox', 'none', '-d', str(self.folder / 'pages.db')],
                             stdout=subprocess.DEVNULL)
        most = 0

        def is_at_rest():
            nonlocal most
            self.assertIsNone(process.poll())
            most = max(most, len(children_of(process.pid)))
            return most > 0 and not children_of(process.pid)

        start = time.monotonic()
        self.wait_until(is_at_rest, 'the children did not end', 600)
        name = f'project_pages idle, {ARGUMENTS.projects} projects'
        report(name, 's to rest', time.monotonic() - start, {})
        report(name, 'children at most', most, {})
        report(name, 'MB', resident_mb(process.pid), {})
        report(name, 'MB at most', peak_mb(process.pid), {})
        before = sum(map(int, pathlib.Path(f'/proc/{process.pid}/stat').read_text().rsplit(') ', 1)[1].split()[11:13]))
        time.sleep(5)
        after = sum(map(int, pathlib.Path(f'/proc/{process.pid}/stat').read_text().rsplit(') ', 1)[1].split()[11:13]))
        report(name, 'CPU ms/s at rest', (after - before) * 1000 / os.sysconf('SC_CLK_TCK') / 5, {})

    # --- large stores

    def stored_project(self, urls, fields=None):
        """The file of a project that had its round, and its database."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        file = self.project_file(folder, urls, fields)
        self.run_project(file)
        return file, folder / 'data' / 'pages.db'

    def add_pages(self, database, count, results=False):
        """Pages that were visited just now, of the first page's host and rule. Fingerprints need only be spread."""
        with sqlite3.connect(database) as connection:
            connection.executescript('PRAGMA synchronous = off; PRAGMA journal_mode = wal;')
            connection.execute(f'''
                WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})
                INSERT INTO pages (page_id, fingerprint, host_id, rule_id, state, wait, again, priority, due, succeeded_at, ended_at, retried, tag, round,
                                   status_code, crashes, digest, name)
                SELECT last.page_id + n, random(), last.host_id, last.rule_id, last.state, last.wait, 0, last.priority, last.due, last.succeeded_at,
                       last.ended_at, 0, last.tag, 0, 200, 0, random(), 'https://example.org/item/' || n || '.html'
                FROM numbers, (SELECT * FROM pages ORDER BY page_id DESC LIMIT 1) AS last''')
            connection.execute("UPDATE projects SET counters = json_set(counters, '$.all.success', ?)", (count + 1,))
            if results:
                connection.execute('''
                    INSERT INTO results (page_id, part, value, added_at, changed_at)
                    SELECT page_id, '', json_object('title', 'The title of ' || name, 'heading', 'Its heading, with "quotes", and a comma',
                           'links', json_array(name || '?1', name || '?2', name || '?3'), 'first', 'The first paragraph, ' || abs(random())),
                           succeeded_at, succeeded_at
                    FROM pages WHERE name LIKE 'https://example.org/item/%' ORDER BY page_id''')
                connection.execute('UPDATE tallies SET results = (SELECT count(*) FROM results)')
        connection.close()

    def test_export(self):
        urls, _ = self.site('--hosts', 1, '--pages', 1, '--features', 'none', '--errors', 0)
        _, database = self.stored_project(urls, FIELDS)
        self.add_pages(database, ARGUMENTS.results, results=True)
        for form in ('csv', 'jsonl', 'json'):
            output = self.folder / f'results.{form}'
            run = measure([ARGIOPE, 'project', 'results', 'bench', '-d', str(database), '-o', str(output)])
            with open(output, 'rb') as lines:
                count = sum(1 for _ in lines)
            self.assertGreaterEqual(count, ARGUMENTS.results)
            name = f'project_pages export, {form}, {ARGUMENTS.results} results'
            report(name, 's', run['seconds'], {})
            report(name, 'CPU s', run['cpu'], {})
            report(name, 'results/s', ARGUMENTS.results / run['seconds'], {})
            report(name, 'MB', run['mb'], {})
            output.unlink()

    def test_known(self):
        """From the start of the command to its first request; memory against a run that knows one page."""
        first = []

        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                first.append(time.monotonic())
                body = b'' if self.path == '/robots.txt' else b'<title>Page</title>'
                self.send_response(200)
                self.send_header('Content-Type', 'text/html')
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = self.serve(Page)
        file, database = self.stored_project([f'http://127.0.0.1:{server.server_port}/'])
        command = [ARGIOPE, 'project', 'run', str(file), '--once', '--quiet', '--summary', 'json', '-d', str(database)]

        def start():
            first.clear()
            begun = time.monotonic()
            run = measure(command)
            self.assertEqual(json.loads(run['output'].splitlines()[-1])['succeeded'], 1)
            return {**run, 'first': first[0] - begun}

        few = [start() for _ in range(3)]
        self.add_pages(database, ARGUMENTS.known)
        many = [start() for _ in range(3)]
        name = f'project_pages known, {ARGUMENTS.known} pages'
        report(name, 's to first', median(many, 'first'), {'one page': median(few, 'first')})
        report(name, 'CPU s', median(many, 'cpu'), {'one page': median(few, 'cpu')})
        report(name, 'MB', median(many, 'mb'), {'one page': median(few, 'mb')})
        report(name, 'B a page', (median(many, 'mb') - median(few, 'mb')) * 2**20 / ARGUMENTS.known, {})


if __name__ == '__main__':
    import unittest
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--known', type=int, default=1_000_000, help='pages known at a start')
    parser.add_argument('--results', type=int, default=1_000_000, help='results to export')
    parser.add_argument('--projects', type=int, default=500, help='idle projects')
    parser.add_argument('case', nargs='*', choices=['follow', 'fields', 'script', 'idle', 'export', 'known', 'hostile', []])
    ARGUMENTS = parser.parse_args()
    cases = ARGUMENTS.case or ['follow', 'fields', 'script', 'idle', 'export', 'known', 'hostile']
    suite = unittest.TestSuite(Bench(f'test_{case}') for case in cases)
    sys.exit(not unittest.TextTestRunner(verbosity=0).run(suite).wasSuccessful())
