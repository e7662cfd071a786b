"""What hosts ask for and what a run may take, over real connections: rests outlive a killed run, and streams end at the quota."""
import json
import signal
import subprocess
import threading
import unittest

from support import ARGIOPE, EndToEnd, PageHandler


class Site:
    """Answers by `answers`: path -> (status, fields, body); counts what was asked."""

    def __init__(self, test, answers):
        self.asked = []
        self.lock = threading.Lock()
        site = self

        class Handler(PageHandler):
            def do_GET(self):
                with site.lock:
                    site.asked.append(self.path)
                status, fields, body = answers.get(self.path, (404, {}, b''))
                self.send_response(status)
                self.send_header('Content-Type', 'text/plain' if self.path == '/robots.txt' else 'text/html')
                self.send_header('Content-Length', str(len(body)))
                for name, value in fields.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    if self.command == 'GET':
                        self.wfile.write(body)
                except OSError:
                    pass  # the quota is used up

            do_HEAD = do_GET

        self.server = test.serve(Handler)
        self.url = f'http://127.0.0.1:{self.server.server_address[1]}/'


class Budgets(EndToEnd):
    def explain(self, url):
        result = subprocess.run([ARGIOPE, 'crawl', 'explain', url, str(self.database), '--json'], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_retry_after_outlives_a_run_that_was_killed(self):
        links = b''.join(b'<a href=/other%d>x</a>' % n for n in range(3))
        site = Site(self, {'/': (200, {}, b'<a href=/busy>x</a>' + links), '/busy': (503, {'Retry-After': '600'}, b'')})
        process = self.start([ARGIOPE, 'crawl', site.url, '-d', str(self.database), '--quiet', '--per-host', '1'])
        self.wait_until(lambda: self.database.exists() and '/busy' in site.asked and self.rests(), 'no rest was written down')
        process.send_signal(signal.SIGKILL)
        process.wait()
        before = len(site.asked)
        summary = self.crawl(site.url, '--per-host', '1', '--max-time', '1s')
        self.assertEqual(site.asked[before:], [])
        self.assertEqual(summary['stopped_by'], 'max_time')
        why = self.explain(site.url + 'other2')
        self.assertIn('Retry-After', why['why'])
        self.assertEqual(why['host']['rests_for'], 'retry_after')

    def rests(self):
        return self.rows("SELECT 1 FROM notes WHERE name LIKE 'hosts/%'")

    def test_a_large_page_ends_at_the_quota(self):
        links = b''.join(b'<a href=/%d>x</a>' % n for n in range(5))
        answers = {f'/{n}': (200, {}, b'page') for n in range(5)}
        site = Site(self, answers | {'/': (200, {}, b'<a href=/big>x</a>' + links), '/big': (200, {}, b'z' * 40_000_000)})
        summary = self.crawl(site.url, '--quota', '1M', '--size-limit-kb', '100000', '--per-host', '1')
        self.assertEqual(summary['stopped_by'], 'quota')
        self.assertLess(summary['bytes'], 2_000_000)
        self.assertEqual(self.rows("SELECT state FROM urls WHERE url LIKE '%/big'"), self.rows("SELECT 'failed'"))
        # A run that may take it does.
        self.crawl(site.url, '--size-limit-kb', '100000')
        for n in range(5):
            self.assertIn(f'/{n}', site.asked)
        self.assertEqual(self.rows("SELECT count(*) FROM urls WHERE state = 'done'"), [(7,)])

    def test_small_pages_that_are_cut_stay_queued(self):
        answers = {f'/{n}': (200, {}, b'y' * 300_000) for n in range(12)}
        site = Site(self, answers | {'/': (200, {}, b''.join(b'<a href=/%d>x</a>' % n for n in range(12)))})
        received = 0
        for _ in range(20):
            summary = self.crawl(site.url, '--quota', '1M')
            received += summary['bytes']
            self.assertLess(summary['bytes'], 2_000_000)
            self.assertEqual(summary['errors'], 0)
            if summary['finished']:
                break
        self.assertTrue(summary['finished'])
        self.assertEqual(len(self.rows("SELECT 1 FROM urls WHERE state = 'done'")), 13)

    def test_the_host_that_holds_up_a_run_is_named_while_it_runs(self):
        slow = Site(self, {'/robots.txt': (200, {}, b'User-agent: *\nCrawl-delay: 1e9\n'), '/x': (200, {}, b'')})
        site = Site(self, {'/': (200, {}, f'<a href="{slow.url}x">x</a>'.encode())})
        log = self.folder / 'log'
        with log.open('w') as out:
            process = self.start([ARGIOPE, 'crawl', site.url, '-d', str(self.database), '--check-links'], stderr=out, stdout=out)
            self.wait_until(lambda: f'{slow.url[:-1]} for ' in log.read_text(), 'the progress did not name the host')
        self.assertIn('5m is the most that is heeded', log.read_text())
        why = self.explain(slow.url + 'x')
        self.assertIn('Crawl-delay', why['why'])
        process.send_signal(signal.SIGINT)
        process.wait()

    def neighbours(self):
        """A site, and twelve others whose robots.txt is on it."""
        answers = {'/robots.txt': (200, {}, b'User-agent: *\nDisallow: /no\n')}
        site = Site(self, answers)
        others = [Site(self, {'/robots.txt': (301, {'Location': f'{site.url}robots.txt?{n}'}, b''), '/': (200, {}, b'')}) for n in range(12)]
        for n in range(12):
            answers[f'/robots.txt?{n}'] = answers['/robots.txt']
        answers['/'] = (200, {}, ''.join(f'<a href="{one.url}">x</a>' for one in others).encode())
        return site, others

    def test_robots_txt_on_another_host_keeps_to_its_pace_whichever_thread_asks(self):
        for threads in (1, 3):
            site, _ = self.neighbours()
            self.database = self.folder / f'{threads}.db'
            summary = self.crawl(site.url, '-w', '127.0.0.1', '--rate', 10, '--per-host', 1, '--threads', threads)
            self.assertEqual(summary['pages'], 13)
            self.assertTrue(summary['finished'])
            self.assertGreaterEqual(summary['seconds'], 13 * 0.1)

    def test_a_run_ends_while_robots_files_wait_for_their_turn(self):
        site, _ = self.neighbours()
        for threads in (1, 3):
            self.database = self.folder / f'{threads}.db'
            summary = self.crawl(site.url, '-w', '127.0.0.1', '--delay', '5s', '--threads', threads, '--max-time', '6s')
            self.assertEqual(summary['stopped_by'], 'max_time')

    def test_a_robots_txt_that_redirects_nowhere_forbids_nothing(self):
        for number, location in enumerate(('ftp://example.org/robots.txt', 'http://', 'mailto:a@example.org', '/robots.txt')):
            self.database = self.folder / f'robots{number}.db'
            site = Site(self, {'/robots.txt': (301, {'Location': location}, b''), '/': (200, {}, b'<a href=/x>x</a>'), '/x': (200, {}, b'')})
            summary = self.crawl(site.url)
            self.assertEqual((summary['pages'], summary['errors'], summary['finished']), (2, 0, True), location)

    def test_a_shorter_most_of_crawl_delay(self):
        site = Site(self, {'/robots.txt': (200, {}, b'User-agent: *\nCrawl-delay: inf\n'), '/': (200, {}, b'<a href=/x>x</a>')})
        summary = self.crawl(site.url, '--max-crawl-delay', '100ms')
        self.assertTrue(summary['finished'])


if __name__ == '__main__':
    unittest.main()
