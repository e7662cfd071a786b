"""The command line as a contract: exit statuses, messages, the summary, the export, stopping and going on."""
import contextlib
import csv
import http.server
import json
import os
import signal
import socket
import subprocess
import threading
import unittest

from support import ARGIOPE, PATIENCE, EndToEnd, PageHandler, read_log


def run(*arguments, **options):
    return subprocess.run([ARGIOPE, *map(str, arguments)], capture_output=True, text=True, timeout=60, **options)


def deaf_port(test):
    """A port of loopback at which nothing listens, and which nobody else gets while the test runs."""
    taken = socket.socket()
    test.addCleanup(taken.close)
    taken.bind(('127.0.0.1', 0))
    return taken.getsockname()[1]


class OtherFiles(EndToEnd):
    def test_a_file_of_another_kind_is_told_with_the_command_that_takes_it(self):
        files = {'crontab': ('30 3 * * * ./backup --all\n', 'a crontab'), 'a.html': ('<!doctype html><p>x', 'a page of HTML'),
                 'a.warc': ('WARC/1.1\r\n', 'argiope crawl replay FILE'), 'a.py': ('import os\n', 'a script')}
        for name, (text, said) in files.items():
            path = self.folder / name
            path.write_text(text)
            readers = [['serve', '--check', path], ['simulate', path], ['schedule', 'import', '--store', 'memory:', path],
                       ['job', 'put', '--store', 'memory:', '--file', path], ['crawl', 'http://a.test/', '-d', ':memory:', '--extract', path],
                       ['crawl', 'http://a.test/', '-d', ':memory:', '--config', path], ['crawl', 'status', path],
                       ['crawl', 'check', path], ['project', 'status', '-d', path]]
            for reader in readers:
                with self.subTest(f'{reader[:2]} {name}'):
                    result = subprocess.run([ARGIOPE, *map(str, reader)], capture_output=True, text=True, timeout=60)
                    self.assertIn(result.returncode, (2, 3), result.stderr)
                    self.assertIn(said, result.stderr)
                    self.assertEqual(result.stderr.count('\n'), 1, result.stderr)


class Usage(EndToEnd):
    def test_help_and_version(self):
        self.assertRegex(run('--version').stdout, r'^argiope \d+\.\d+\.\d+\n$')
        for arguments in (['--help'], ['crawl', '--help'], ['site', '--help']):
            result = run(*arguments)
            self.assertEqual(result.returncode, 0)
            self.assertIn('--help', result.stdout)

    def test_bad_usage_exits_with_2_and_names_the_culprit(self):
        cases = [
            (['crawl'], 'URL'),
            (['crawl', 'http://a b/'], 'http://a b/'),
            (['crawl', 'http://host:99999/'], 'port'),
            (['crawl', 'ftp://host/'], 'ftp'),
            (['crawl', 'mailto:me@example.org'], 'mailto'),
            (['crawl', 'http://h/', '--order', 'sideways'], 'sideways'),
            (['crawl', 'http://h/', '--header', 'broken'], 'broken'),
            (['crawl', 'http://h/', '--export', 'x.xml'], 'x.xml'),
            (['crawl', 'http://h/', '--no-such-option'], '--no-such-option'),
            (['site', '--hostile', 'sloth'], 'sloth'),
            (['crawl', 'http://h/', '--max-pages', '-1'], '--max-pages: "-1": a whole number, 0 or more'),
            (['crawl', 'http://h/', '--quota', '1.5M'], '--quota: "1.5M": at least 1K bytes'),
            (['crawl', 'http://h/', '--check-age', '1d'], '--check-age: does nothing without --check-links'),
            (['crawl', 'http://h/', '--save', ''], '--save: "": it names nothing'),
            (['crawl', 'http://h/', '--sitemap-out', 'x.txt'], 'the name must end with .xml or .xml.gz'),
            (['site', '--port', '65536'], '--port: "65536": a whole number from 0 to 65535'),
            (['site', '--errors', '2'], '--errors: "2": a number from 0 to 1'),
            (['frobnicate'], 'frobnicate'),
        ]
        for arguments, culprit in cases:
            result = run(*arguments, cwd=self.folder)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(culprit, result.stderr + result.stdout, arguments)

    def test_a_database_that_is_not_ours_is_refused_and_left_alone(self):
        self.database.write_text('my notes ' * 100)
        result = run('crawl', '-d', self.database, 'http://127.0.0.1:1/')
        self.assertEqual(result.returncode, 3)
        self.assertIn(str(self.database), result.stderr)
        self.assertIn('--db names another file', result.stderr)
        self.assertEqual(self.database.read_text(), 'my notes ' * 100)

    def test_nothing_that_answers_exits_with_3(self):
        self.crawl(f'http://127.0.0.1:{deaf_port(self)}/', '--retries', 0, expect=3)

    def test_a_seed_that_gives_nothing_exits_with_3_and_says_why_though_it_is_quiet(self):
        urls, _ = self.site('--hosts', 1, '--pages', 3, '--hostile', 'loops')
        robots, _ = self.site('--hosts', 1, '--pages', 30)
        for seed, why in [(urls[0] + 'missing/1.html', 'HTTP 404'), (urls[0] + 'loops/0', 'redirects in a circle'),
                          (robots[0] + 'private/note-13.html', 'robots')]:
            with self.subTest(seed):
                self.database.unlink(missing_ok=True)
                result = run('crawl', seed, '-d', self.database, '--quiet', '--summary', 'json')
                self.assertEqual(result.returncode, 3, result.stderr)
                self.assertIn('argiope: nothing could be fetched: ' + seed, result.stderr)
                self.assertIn(why, result.stderr)
                self.assertIn('nothing could be fetched', json.loads(result.stdout)['error'])

    def test_the_summary_is_printed_with_the_error_when_nothing_can_begin(self):
        self.database.write_text('my notes ' * 100)
        result = run('crawl', '-d', self.database, 'http://127.0.0.1:1/', '--summary', 'json', '--quiet')
        self.assertEqual(result.returncode, 3)
        self.assertIn(str(self.database), json.loads(result.stdout)['error'])
        result = run('crawl', 'http://a b/', '--summary', 'json')
        self.assertEqual((result.returncode, json.loads(result.stdout)['finished']), (2, False))

    def test_usage_errors_say_what_would_do(self):
        for arguments, words in [(['http://h/', '--rate', '0'], '--delay'),
                                 (['http://h/', '-w', '*.example.org'], 'did you mean "example.org"?'),
                                 (['http://h/', '-w', '.example.org'], 'did you mean "example.org"?'),
                                 (['http://h/', '-w', '*'], 'name each domain'),
                                 (['http://h/', '-w', 'a.org,b.org'], '"a.org,b.org": not a domain name'),
                                 (['http://h/', '-w', 'a..org'], 'not a domain name'),
                                 (['http://h/', '-w', 'ex*mple.org'], 'not a domain name'),
                                 (['http://h/', '--header-for', 'ex*.org', 'X: y'], '--header-for "ex*.org"'),
                                 (['http://h/', '--header-for', '.example.org', 'X: y'], '--header-for ".example.org"'),
                                 (['http://h/', '-w', 'http://example.org/x'], 'did you mean "example.org"?'),
                                 (['-'], 'standard input'),
                                 (['http://h/', '--header-for', 'a b', 'X: y'], '--header-for "a b"'),
                                 (['http://ann:secret@a b/'], 'http://…@a b/')]:
            result = run('crawl', *arguments, cwd=self.folder)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(words, result.stderr, arguments)
            self.assertNotIn('secret', result.stderr)

    def test_nothing_from_outside_reaches_the_terminal_as_a_command(self):
        result = run('crawl', 'http://h/\x1b[2J', '--export', 'a\u009b31m.x')
        self.assertEqual(result.returncode, 2)
        self.assertNotRegex(result.stderr, '[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]')
        self.assertIn(r'a\u009b31m.x', result.stderr)

    def test_private_addresses_are_refused_unless_allowed(self):
        urls, log = self.site('--hosts', 1, '--pages', 3)
        port = urls[0].rsplit(':', 1)[1]
        name = socket.gethostname()
        try:
            address = socket.gethostbyname(name)
        except OSError:
            address = ''
        if not address.startswith('127.'):
            self.skipTest('this machine has no name of its own on loopback')
        # A name that resolves to loopback without being one that says so.
        summary = self.crawl(f'http://{name}:{port}', '--retries', 0, '--no-robots', expect=3)
        self.assertEqual(summary['failures'], {'refused': 1})
        self.assertEqual(read_log(log), [])


class Crawling(EndToEnd):
    def test_the_summary_has_what_scripts_rely_on(self):
        urls, _ = self.site('--hosts', 1, '--pages', 30)
        summary = self.crawl(urls[0])
        for key in ('pages', 'fetched', 'urls', 'bytes', 'errors', 'status', 'seconds', 'pages_per_second',
                    'cpu_seconds', 'peak_rss_mb', 'finished'):
            self.assertIn(key, summary)
        self.assertEqual(summary['pages'], 57)  # 30, and what friendly features add
        self.assertEqual(summary['fetched'], sum(summary['status'].values()))

    def test_broken_links_are_reported_with_a_page_that_has_them(self):
        root = self.folder / 'www'
        root.mkdir()
        (root / 'index.html').write_text('<a href="good.html">g</a><a href="gone.html">b</a>')
        (root / 'good.html').write_text('<p>good')
        url, _ = self.nginx(root)
        result = run('crawl', url, '-d', self.database)
        self.assertEqual(result.returncode, 0)
        self.assertIn(f'404  {url}gone.html', result.stdout)
        self.assertIn(f'linked from {url}', result.stdout)
        self.assertIn('1 broken link:', result.stdout)
        self.database.unlink()
        self.assertEqual(run('crawl', url, '-d', self.database, '--fail-on-broken').returncode, 1)

    def test_check_links_asks_about_other_hosts_without_fetching_them(self):
        urls, log = self.site('--hosts', 2, '--pages', 5, '--by-address', '--features', 'none')
        self.crawl(urls[0], '--check-links')
        others = [entry for entry in read_log(log) if entry[1] == 1]
        self.assertEqual({entry[2] for entry in others if entry[3] != '/robots.txt'}, {'HEAD'})

    def test_repeated_options_take_one_value_each_and_leave_the_urls_alone(self):
        urls, _ = self.site('--hosts', 2, '--pages', 5, '--by-address', '--features', 'none')
        summary = self.crawl('-w', '127.0.0.2', '-w', '127.0.0.3', '--header', 'X-One: 1', '--header', 'X-Two: 2', urls[0])
        self.assertEqual(summary['pages'], 10)

    def test_headers_and_credentials_go_to_their_hosts_alone_and_are_neither_stored_nor_printed(self):
        asked = {}

        def serve(links):
            class Handler(PageHandler):
                def do_GET(self):
                    asked.setdefault(self.server.server_port, []).append(dict(self.headers))
                    body = ''.join(f'<a href="{link}">x</a>' for link in links).encode()
                    self.reply(200, body)
            server = self.serve(Handler)
            return server.server_port
        third = serve([])
        other = serve([f'http://eve:trap@127.0.0.1:{third}/from-other'])
        seed = serve([f'http://127.0.0.1:{other}/', f'http://mallory:trap@127.0.0.1:{other}/in-a-link'])
        export = self.folder / 'out.jsonl'
        result = run('crawl', f'http://ann:s%65cret@127.0.0.1:{seed}/', '-d', self.database, '-D', '--header', 'X-Key: k1',
                     '--header-for', f'127.0.0.1:{third}', 'X-Third: k3', '--no-robots', '--export', export)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(asked[seed][0]['Authorization'], 'Basic YW5uOnNlY3JldA==')
        self.assertEqual(asked[seed][0]['X-Key'], 'k1')
        self.assertEqual(asked[third][0]['X-Third'], 'k3')
        for headers in asked[other] + asked[third]:
            self.assertNotIn('Authorization', headers)
            self.assertNotIn('X-Key', headers)
        told = result.stdout + result.stderr + export.read_text() + str(self.rows('SELECT * FROM urls'))
        for word in ('ann', 's%65cret', 'secret', 'mallory', 'eve', 'trap', 'YW5u'):
            self.assertNotIn(word + ':', told)
            self.assertNotIn(word + '@', told)
        self.assertNotIn('secret', told)

    def test_a_second_site_in_a_folder_is_told_that_the_database_has_another(self):
        class Site(PageHandler):
            def do_GET(self):
                self.reply(200 if self.path == '/' else 404, b'<p>one')

        port = self.serve(Site).server_port
        def told(url):
            return run('crawl', url, '--delay', '0', '--max-pages', '1', cwd=self.folder).stderr
        self.assertNotIn('keeps them apart', told(f'http://127.0.0.1:{port}/'))
        self.assertNotIn('keeps them apart', told(f'http://127.0.0.1:{port}/'))
        self.assertIn(f'argiope.db has the crawl of 127.0.0.1:{port} already', told(f'http://localhost:{port}/'))
        self.assertNotIn('keeps them apart', told(f'http://127.0.0.1:{port}/'))

    def test_the_export_has_every_url(self):
        urls, _ = self.site('--hosts', 1, '--pages', 30)
        jsonl, table = self.folder / 'out.jsonl', self.folder / 'out.csv'
        summary = self.crawl(urls[0], '--export', jsonl)
        records = [json.loads(line) for line in jsonl.read_text().splitlines()]
        self.assertEqual(len(records), summary['urls'])
        self.assertEqual(sum(record['status_code'] == 200 for record in records), summary['status']['200'])
        self.crawl(urls[0], '--export', table)  # nothing left to fetch
        with open(table, newline='') as file:
            self.assertEqual([row['url'] for row in csv.DictReader(file)], [record['url'] for record in records])

    def test_a_memory_database_leaves_no_file(self):
        urls, _ = self.site('--hosts', 1, '--pages', 5)
        result = run('crawl', '-d', ':memory:', '--quiet', urls[0], cwd=self.folder)
        self.assertEqual(result.returncode, 0)
        self.assertFalse((self.folder / ':memory:').exists())

    def test_a_second_run_fetches_nothing_again_until_it_is_old(self):
        urls, log = self.site('--hosts', 1, '--pages', 20, '--features', 'none')
        self.assertEqual(self.crawl(urls[0])['fetched'], 20)
        self.assertEqual(self.crawl(urls[0])['fetched'], 0)
        again = self.crawl(urls[0], '--age', 0)
        self.assertEqual(again['status'], {'304': 20})
        self.assertEqual(self.rows('SELECT DISTINCT status_code FROM urls'), [(200,)])

    def test_links_beyond_the_limit_of_a_page_are_counted_and_followed_by_a_wider_run(self):
        root = self.folder / 'www'
        root.mkdir()
        for number in range(10):
            (root / f'{number}.html').write_text('<title>x</title>')
        (root / 'index.html').write_text(''.join(f'<a href={number}.html>x</a>' for number in range(10)))
        url, _ = self.nginx(root)
        first = self.crawl(url, '--max-links-per-page', 3)
        self.assertEqual((first['pages'], first['left_out'], first['complete']), (4, {'links_per_page': 1}, False))
        self.assertEqual(self.crawl(url)['left_out'], {})
        self.assertEqual(self.rows("SELECT count(*) FROM urls WHERE status_code = 200"), [(11,)])

    def test_however_carefully_it_is_written_the_database_says_the_same(self):
        urls, _ = self.site('--hosts', 1, '--pages', 40)
        found = set()
        for mode in ('full', 'normal', 'off'):
            self.database = self.folder / f'{mode}.db'
            self.assertTrue(self.crawl(urls[0], '--sync', mode)['finished'])
            self.assertEqual(self.rows('PRAGMA integrity_check'), [('ok',)])
            found.add(tuple(self.rows('SELECT url, state, status_code FROM urls ORDER BY url')))
        self.assertEqual(len(found), 1)
        self.crawl(urls[0], '--sync', 'often', expect=2)

    def test_colours_are_for_terminals_unless_they_are_asked_for(self):
        port = deaf_port(self)
        said = [run('crawl', '-d', ':memory:', '--retries', 0, '--debug', *words, f'http://127.0.0.1:{port}/').stderr
                for words in ([], ['--color'], ['-C'])]
        self.assertEqual(['\x1b[' in text for text in said], [False, True, True])

    def test_it_stops_when_nothing_was_fetched_for_long_and_goes_on(self):
        urls, _ = self.site('--hosts', 1, '--pages', 10, '--features', 'none')
        first = self.crawl(urls[0], '--max-pages', 1)
        # Of the rest it asks for one more, unless the time is over before it comes to that.
        idle = self.crawl(urls[0], '--no-robots', '--delay', '1h', '--max-idle-sec', '200ms')
        self.assertEqual((idle['finished'], idle['stopped_by']), (False, 'idle'))
        self.assertLessEqual(idle['fetched'], 1)
        self.assertEqual(first['fetched'] + idle['fetched'] + self.crawl(urls[0])['fetched'], 10)

    def test_it_stops_at_max_pages_and_goes_on(self):
        urls, log = self.site('--hosts', 1, '--pages', 100, '--features', 'none')
        first = self.crawl(urls[0], '--max-pages', 30)
        self.assertEqual((first['fetched'], first['finished'], first['stopped_by']), (30, False, 'max_pages'))
        second = self.crawl(urls[0])
        self.assertEqual(first['fetched'] + second['fetched'], 100)

    def test_a_seed_that_redirects_elsewhere_takes_its_target_into_scope(self):
        urls, _ = self.site('--hosts', 1, '--pages', 10, '--features', 'redirects')
        summary = self.crawl(urls[0] + 'old/page-7.html')
        self.assertEqual(summary['pages'], 10)


class Stopping(EndToEnd):
    def start_crawl(self, *arguments):
        return self.start([ARGIOPE, 'crawl', '--quiet', '--summary', 'json', '-d', str(self.database),
                           *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def test_an_interrupt_finishes_what_runs_and_loses_nothing(self):
        self.expect_end_in_order([signal.SIGINT], 130)

    def test_a_closed_terminal_finishes_what_runs_and_loses_nothing(self):
        self.expect_end_in_order([signal.SIGHUP, signal.SIGHUP], 129)

    def expect_end_in_order(self, signals, status):
        pages, at_once = 400, 50
        asked, go_on = [], threading.Event()
        self.addCleanup(go_on.set)

        class Handler(PageHandler):
            """Links to all pages; from the 50. request on, each is answered when the test says so."""
            def do_GET(self):
                if self.path == '/robots.txt':
                    return self.send_error(404)
                asked.append(self.path)
                if len(asked) > at_once:
                    go_on.wait(300)
                body = ''.join(f'<a href=/{n}>x</a>' for n in range(1, pages)).encode() if self.path == '/' else b'page'
                self.reply(200, body)
        url = f'http://127.0.0.1:{self.serve(Handler).server_port}/'
        crawl = self.start_crawl(url)
        self.wait_until(lambda: len(asked) > at_once, f'the crawl did not send {at_once} requests')
        for number in signals:
            crawl.send_signal(number)
        go_on.set()
        output, _ = crawl.communicate(timeout=PATIENCE)
        self.assertEqual(crawl.returncode, status)
        summary = json.loads(output.splitlines()[-1])
        self.assertEqual(summary['stopped_by'], 'signal')
        self.assertEqual(summary['fetched'], len(asked), 'what was under way was not finished')
        self.assertLess(summary['fetched'], pages)
        second = self.crawl(url)
        self.assertEqual(summary['fetched'] + second['fetched'], pages)
        self.assertEqual(len(set(asked)), len(asked), 'a page was fetched twice')

    def test_a_second_interrupt_stops_at_once(self):
        release = threading.Event()
        self.addCleanup(release.set)
        asked = set()

        class Handler(http.server.BaseHTTPRequestHandler):
            """A start page; /soon answers when the test says so, /never when the test is over."""
            def do_GET(self):
                asked.add(self.path)
                if self.path == '/soon':
                    go_on.wait(600)
                elif self.path == '/never':
                    release.wait(600)
                body = b'<a href=/soon></a><a href=/never></a>' if self.path == '/' else b'page'
                self.send_response(200)
                self.send_header('Content-Type', 'text/html')
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(body)

            def log_message(self, *arguments):
                pass
        go_on = threading.Event()
        self.addCleanup(go_on.set)
        url = f'http://127.0.0.1:{self.serve(Handler).server_port}/'
        crawl = self.start_crawl(url, '--no-robots', '--per-host', 2, '--timeout', 600)
        self.wait_until(lambda: asked == {'/', '/soon', '/never'}, 'the crawl did not ask for its pages')
        crawl.send_signal(signal.SIGINT)
        go_on.set()
        # The first lets what is under way come to its end, and waits for the rest.
        self.wait_until(lambda: self.is_done(url + 'soon'), 'the page was not saved after the first interrupt')
        self.assertIsNone(crawl.poll())
        crawl.send_signal(signal.SIGINT)
        crawl.communicate(timeout=60)  # long before /never is given up
        self.assertEqual(crawl.returncode, 130)
        self.assertFalse(self.is_done(url + 'never'))

    def is_done(self, url):
        return self.rows('SELECT state FROM urls WHERE url = ?', url) == [('done',)]

    def test_a_full_disk_stops_the_crawl_and_spares_the_database(self):
        small = self.folder / 'small'
        small.mkdir()
        if os.geteuid() != 0 or subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=300k', 'none', str(small)],
                                               capture_output=True).returncode != 0:
            self.skipTest('cannot mount a small file system here')
        self.addCleanup(subprocess.run, ['umount', str(small)])
        self.database = small / 'crawl.db'
        urls, _ = self.site('--hosts', 1, '--pages', 20000, '--features', 'none')
        result = run('crawl', '--quiet', '-d', self.database, urls[0])
        self.assertEqual(result.returncode, 3)
        self.assertIn('disk is full', result.stderr)
        self.assertEqual(self.rows('PRAGMA integrity_check'), [('ok',)])


if __name__ == '__main__':
    unittest.main()
