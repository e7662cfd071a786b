"""Crawls that fetch again: kept fresh by --forever over signals and kills, and what `argiope crawl diff` says of them."""
import csv
import http.server
import io
import json
import signal
import subprocess
import threading
import time
import unittest

from support import ARGIOPE, EndToEnd


class RevisitTest(EndToEnd):
    def setUp(self):
        super().setUp()
        test = self
        self.lock = threading.Lock()
        self.asked = []
        self.bodies = {'/': '<a href=/a>a</a><a href=/b>b</a><a href=/c>c</a>', '/a': 'a', '/b': 'b', '/c': 'c'}
        self.redirects = {}
        self.failing = {}  # by path: a status, or None to answer nothing

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_GET(self):
                with test.lock:
                    body = test.bodies.get(self.path)
                    target = test.redirects.get(self.path)
                    tag = f'"{body}"'
                    known = body is not None and self.headers.get('If-None-Match') == tag
                    test.asked.append((self.path, known))
                if self.path in test.failing:
                    self.close_connection = True
                    if test.failing[self.path]:
                        self.reply(test.failing[self.path])
                    return
                self.send_response(301 if target else 304 if known else 200 if body is not None else 404)
                if target:
                    self.send_header('Location', target)
                if body is not None:
                    self.send_header('ETag', tag)
                content = b'' if known or target else (body or '').encode()
                self.send_header('Content-Type', 'text/html')
                self.send_header('Content-Length', str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def reply(self, status):
                self.send_response(status)
                self.send_header('Content-Length', '0')
                self.end_headers()

            def log_message(self, *arguments):
                pass

        self.root = f'http://127.0.0.1:{self.serve(Handler).server_port}'

    def times(self, path):
        with self.lock:
            return sum(asked == path for asked, _ in self.asked)

    def diff(self, *arguments):
        result = subprocess.run([ARGIOPE, 'crawl', 'diff', '--database', str(self.database), *arguments], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def let_a_moment_pass(self):
        """--age 0 asks what was fetched before the millisecond in which the run begins."""
        last, = self.rows('SELECT max(mtime) FROM urls')[0]
        while time.time_ns() // 10**6 <= last:
            time.sleep(0.001)

    def changes(self, *arguments):
        found = json.loads(self.diff('--json', *arguments))
        kinds = {change['url'].removeprefix(self.root): change['kind'] for change in found['changes']}
        self.assertEqual(sum(found['counts'].values()), len(kinds))
        return kinds

    def test_an_attempt_that_fails_in_between_costs_no_validators(self):
        self.bodies['/a'] = '<a href=/c>c</a>'
        self.crawl(self.root + '/', '--check-links')
        before = self.rows('SELECT count(*) FROM page_links')
        for _ in range(2):
            self.failing = {'/a': 503, '/b': None}
            self.let_a_moment_pass()
            self.crawl(self.root + '/', '--age', 0, '--retries', 0, '--check-links', expect=0)
        self.failing = {}
        self.let_a_moment_pass()
        self.assertEqual(self.crawl(self.root + '/', '--age', 0, '--check-links')['status'], {'304': 4})
        self.assertEqual(self.rows("SELECT state, status_code, count(*) FROM urls GROUP BY 1, 2"), [('done', 200, 4)])
        self.assertEqual(self.rows('SELECT count(*) FROM page_links'), before)

    def test_what_nobody_has_seen_is_asked_for_whole_after_a_failure(self):
        self.crawl(self.root + '/')
        self.failing = {'/a': 503}
        self.let_a_moment_pass()
        records = ['--field', 't=css:body', '--output', self.folder / 'records.jsonl', '--age', 0, '--retries', 0]
        self.crawl(self.root + '/', *records)
        self.failing = {}
        self.let_a_moment_pass()
        self.crawl(self.root + '/', *records)
        self.assertIn(self.root + '/a', (self.folder / 'records.jsonl').read_text())

    def test_what_has_changed_is_told(self):
        self.crawl(self.root)
        self.assertEqual(self.changes(), {'/': 'new', '/a': 'new', '/b': 'new', '/c': 'new'})
        self.let_a_moment_pass()
        del self.bodies['/a']
        self.bodies['/b'] = 'other'
        self.redirects['/c'] = '/d'
        self.bodies['/d'] = 'd'
        self.crawl(self.root, '--age', 0)
        self.assertEqual(self.changes(), {'/a': 'gone', '/b': 'changed', '/c': 'moved', '/d': 'new'})
        self.assertEqual(self.changes('--since', '2'), self.changes())
        self.assertIn('gone     ' + self.root + '/a  (200 → 404)', self.diff())
        rows = list(csv.DictReader(io.StringIO(self.diff('--csv'))))
        self.assertEqual({row['kind'] for row in rows}, {'gone', 'changed', 'moved', 'new'})
        self.bodies['/a'] = 'a'
        self.let_a_moment_pass()
        self.crawl(self.root, '--age', 0)
        self.assertEqual(self.changes(), {'/a': 'mended'})
        self.let_a_moment_pass()
        self.crawl(self.root, '--age', 0)
        self.assertEqual(self.changes(), {})
        self.assertEqual([run for run, in self.rows('SELECT run_id FROM runs WHERE finished AND ended >= began')], [1, 2, 3, 4])

    def test_what_was_queued_anew_is_compared_too(self):
        self.crawl(self.root)
        self.bodies['/b'] = 'other'
        del self.bodies['/c']
        requeued = subprocess.run([ARGIOPE, 'crawl', 'requeue', str(self.database), '--all'], capture_output=True, text=True, timeout=60)
        self.assertIn('4 URLs will be fetched again', requeued.stdout)
        self.let_a_moment_pass()
        self.crawl(self.root)
        self.assertFalse([path for path, known in self.asked if known], 'all of it whole')
        self.assertEqual(self.changes(), {'/b': 'changed', '/c': 'gone'})
        self.bodies['/c'] = 'c'
        self.bodies['/b'] = 'yet another'
        self.let_a_moment_pass()
        self.crawl(self.root, '--requeue', 'all')
        self.assertEqual(self.changes(), {'/b': 'changed', '/c': 'mended'})

    def forever(self):
        return self.start([ARGIOPE, 'crawl', self.root, '-d', str(self.database), '--age', '0.5', '--forever', '--quiet', '--summary', 'json'],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_a_site_is_kept_fresh_until_a_signal(self):
        process = self.forever()
        self.wait_until(lambda: self.times('/a') >= 3 and self.times('/c') >= 3)
        self.assertIn(('/a', True), self.asked)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertFalse(json.loads(out)['finished'])
        self.assertEqual(self.rows('SELECT count(*) FROM changes'), [(0,)])

    def test_its_mirror_can_be_browsed_while_it_runs(self):
        mirror = self.folder / 'mirror'
        process = self.start([ARGIOPE, 'crawl', self.root, '-d', str(self.database), '--age', '1h', '--forever', '--quiet', '--save', str(mirror)],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.wait_until(lambda: any(mirror.rglob('*.html')))
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)

    def test_it_goes_on_after_kills(self):
        for _ in range(3):
            process = self.forever()
            before = self.times('/b')
            self.wait_until(lambda: self.times('/b') >= before + 2)
            process.kill()
            process.communicate(timeout=30)
        self.assertEqual(self.rows("SELECT count(*), count(DISTINCT url) FROM urls"), [(4, 4)])
        with self.lock:
            self.bodies['/b'] = 'new'
        before = self.times('/b')
        process = self.forever()
        self.wait_until(lambda: self.times('/b') >= before + 4)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        self.assertEqual(self.changes(), {'/b': 'changed'})
        self.assertEqual(self.rows('SELECT count(*) FROM runs'), [(4,)])

    def test_what_was_kept_fresh_is_saved_and_compared_by_a_run_that_is_not(self):
        names = [f'/page-{i}' for i in range(40)]
        self.bodies = {'/': ''.join(f'<a href={name}>x</a>' for name in names), **{name: f'the same {i % 20}' for i, name in enumerate(names)}}
        process = self.start([ARGIOPE, 'crawl', self.root, '-d', str(self.database), '--age', '1h', '--forever', '--quiet', '--queue-size', '8'])
        self.wait_until(lambda: all(self.times(name) for name in names))
        self.wait_until(lambda: self.rows("SELECT count(*) FROM urls WHERE state = 'done'") == [(41,)])
        process.send_signal(signal.SIGINT)
        process.wait(30)
        summary = self.crawl(self.root, '--save', self.folder / 'mirror', timeout=60)
        self.assertEqual((summary['finished'], summary['fetched']), (True, 41))
        self.assertEqual(len([path for path in (self.folder / 'mirror').rglob('*') if path.is_file() and path.name.startswith('page-')]), 40)
        compared = self.crawl(self.root, '--skip-duplicates', 'exact', '--age', 0, timeout=60)
        self.assertEqual((compared['finished'], compared['fetched']), (True, 41))
        self.assertEqual(self.changes('--since', '1'), {'/': 'new', **{name: 'new' for name in names}})
        again = self.crawl(self.root, '--skip-duplicates', 'exact', '--requeue', 'all', timeout=60)
        self.assertEqual(again['left_out'], {'duplicate': 20})

    def test_bad_usage_is_a_sentence(self):
        for words, said in ((['--forever'], '--age'), (['--age', '0', '--forever'], 'rest'), (['--adaptive', '7d'], 'MIN..MAX'),
                            (['--adaptive', '7d..1h'], 'shorter')):
            result = subprocess.run([ARGIOPE, 'crawl', self.root, '-d', ':memory:', *words], capture_output=True, text=True, timeout=30)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(said, result.stderr)
        self.crawl(self.root)
        for words in (['--since', 'yesterday'], ['--json', '--csv']):
            result = subprocess.run([ARGIOPE, 'crawl', 'diff', str(self.database), *words], capture_output=True, text=True, timeout=30)
            self.assertEqual(result.returncode, 2, result.stderr)


if __name__ == '__main__':
    unittest.main()
