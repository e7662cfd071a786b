"""Runs on one database, one after the other: what waits is not lost, what was left out is taken up, what is known is said."""
import contextlib
import csv
import json
import random
import resource
import sqlite3
import subprocess
import threading
import unittest

from support import ARGIOPE, EndToEnd, PageHandler, lines_of, read_log


class Tagged(PageHandler):
    """Two pages, one of them not for indexes, whose answers are 304 to who has them."""
    PAGES = {'/': '<title>One</title><h1>one</h1><a href=/b>b</a><a href="/#nope">n</a><a href="mailto:bad@@">m</a><img src=/gone.png>',
             '/b': '<title>Two</title><meta name=robots content=noindex><h1>two</h1><a href=/>back</a>'}

    def do_GET(self):
        body = self.PAGES.get(self.path)
        tag = f'"{self.path}"'
        known = body is not None and self.headers.get('If-None-Match') == tag
        self.send_response(404 if body is None else 304 if known else 200)
        if body is not None:
            self.send_header('ETag', tag)
        if not known:
            self.send_header('Content-Type', 'text/html')
            self.send_header('Content-Length', str(len(body or '')))
        self.end_headers()
        if not known and self.command == 'GET':
            self.wfile.write((body or '').encode())

    do_HEAD = do_GET


class LateOptions(EndToEnd):
    """What a run writes of a site that is known, against what it writes of one that is not."""

    def setUp(self):
        super().setUp()
        self.url = f'http://127.0.0.1:{self.serve(Tagged).server_port}/'

    def run_it(self, *arguments):
        return subprocess.run([ARGIOPE, 'crawl', *map(str, arguments)], capture_output=True, text=True, timeout=300)

    def known_site(self, name):
        self.database = self.folder / name
        self.crawl(self.url)

    def test_links_are_checked_and_a_look_says_what_it_does_not_know(self):
        truth = self.crawl(self.url, '--check-links', '--fail-on-broken', expect=1)
        for age in ([], ['--age', 0]):
            self.known_site(f'known{len(age)}.db')
            look = self.run_it('check', self.database)
            self.assertEqual(look.returncode, 1)
            self.assertIn('Not judged: the links of 2 pages', look.stdout)
            for ending in ('sarif', 'xml', 'json', 'csv'):
                self.assertEqual(self.run_it('check', self.database, '-o', self.folder / f'look.{ending}').returncode, 1)
                self.assertRegex((self.folder / f'look.{ending}').read_text(), 'links of 2 pages|"unread":2')
            late = self.crawl(self.url, '--check-links', '--fail-on-broken', *age, expect=1)
            self.assertEqual((late['findings'], late['links_unread']), (truth['findings'], 0))
            self.assertNotIn('Not judged', self.run_it('check', self.database).stdout)
            self.assertEqual(self.crawl(self.url, '--check-links')['status']['304'], 2, 'a check after one that has finished looks again')

    def test_what_is_not_known_ends_a_strict_run_with_1(self):
        self.crawl(self.url)
        late = self.crawl(self.url, '--check-links', '--check-only', 'redirect', '--fail-on-broken', '--max-pages', 1, expect=1)
        self.assertEqual(late['links_unread'], 1)

    def test_a_sitemap_and_a_report_know_the_heads_of_pages_or_say_that_they_do_not(self):
        self.known_site('known.db')
        sitemap, report = self.folder / 'map.xml', self.folder / 'report.html'
        look = self.run_it('export', self.database, '--format', 'sitemap', '-o', sitemap)
        self.assertEqual(look.returncode, 0)
        self.assertIn('2 pages left out of the sitemap', look.stderr)
        self.assertIn('noindex', look.stderr)
        self.assertNotIn('<loc>', sitemap.read_text())
        for words, expected in (('--what links', 'links'), ('--what pages', 'titles'), ('--what duplicates', 'near duplicates'), ('--format dot', 'links')):
            told = self.run_it('export', self.database, *words.split())
            self.assertEqual(told.returncode, 0)
            self.assertIn(f'not known of 2 pages: {expected}', told.stderr)
        self.assertEqual(self.run_it('report', self.database, '-o', report).returncode, 0)
        self.assertIn('not known of 2 pages', report.read_text())
        self.assertNotIn('No broken links.', report.read_text())
        self.crawl(self.url, '--sitemap-out', sitemap, '--html', report)
        self.assertEqual(sitemap.read_text().count('<loc>'), 1)
        self.assertIn(f'<loc>{self.url}</loc>', sitemap.read_text())
        self.assertNotIn('not known of', report.read_text())
        self.assertEqual(self.run_it('export', self.database, '--what', 'pages').stderr, '')

    def test_an_archive_can_be_replayed_or_says_what_is_not_in_it(self):
        self.known_site('known.db')
        archive = self.folder / 'site'
        told = self.run_it(self.url, '-d', self.database, '--warc', archive)
        self.assertEqual(told.returncode, 0)
        self.assertIn('Not in the archive: 2 pages', told.stdout)
        self.crawl(self.url, '--warc', archive, '--age', 0)
        again = self.run_it('replay', f'{archive}.warc.gz', '--quiet', '--summary', 'json')
        self.assertEqual((again.returncode, json.loads(again.stdout)['pages']), (0, 2))
        self.assertEqual(self.crawl(self.url, '--warc', archive, '--age', 0)['status'], {'304': 2})
        for file in self.folder.glob('site*'):
            file.unlink()
        self.assertEqual(self.crawl(self.url, '--warc', archive, '--age', 0)['status'], {'200': 2})

    def test_an_archive_that_lacks_an_error_says_so_too(self):
        class Gone(Tagged):
            PAGES = {'/': '<a href=/gone>g</a>'}
        self.url = f'http://127.0.0.1:{self.serve(Gone).server_port}/'
        self.known_site('known.db')
        self.assertEqual(self.crawl(self.url, '--warc', self.folder / 'site')['unseen'], {'archive': 2})

    def test_records_are_those_of_all_pages_or_it_says_what_is_missing(self):
        self.known_site('known.db')
        fields = ['--field', 'h=css:h1', '--output', self.folder / 'a.jsonl']
        told = self.run_it(self.url, '-d', self.database, *fields)
        self.assertIn('Not in the records: 2 pages', told.stdout)
        self.assertEqual(self.crawl(self.url, *fields, '--age', 0)['unseen'], {})
        self.assertEqual(sorted(json.loads(line)['h'] for line in (self.folder / 'a.jsonl').read_text().splitlines()), ['one', 'two'])
        self.assertEqual(self.crawl(self.url, *fields, '--age', 0)['status'], {'304': 2})
        other = ['--field', 't=page:title', '--output', self.folder / 'b.jsonl', '--age', 0]
        self.assertEqual(self.crawl(self.url, *other)['status'], {'200': 2})
        self.assertEqual(len((self.folder / 'b.jsonl').read_text().splitlines()), 2)


class Styled(PageHandler):
    """Pages with a style sheet, and what that refers to."""
    PAGES = {'/': ('text/html', '<link rel=stylesheet href=/s.css><a href=/p1>1</a><a href=/p2>2</a><a href=/linked.css>l</a>'),
             '/p1': ('text/html', '<a href=/p3>3</a>'), '/p2': ('text/html', 'two'), '/p3': ('text/html', 'three'),
             '/s.css': ('text/css', '@import "imp.css"; a { background: url(a.png) } b { background: url(gone1.png) }'),
             '/imp.css': ('text/css', 'b { background: url(b.png) }\nc { background: url(gone2.png) }'),
             '/linked.css': ('text/css', 'd { background: url(gone3.png) }'),
             '/a.png': ('image/png', 'A'), '/b.png': ('image/png', 'B')}

    def do_GET(self):
        kind, body = self.PAGES.get(self.path, ('text/plain', 'gone'))
        self.send_response(200 if self.path in self.PAGES else 404)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if self.command == 'GET':
            self.wfile.write(body.encode())

    do_HEAD = do_GET


class SavedAndChecked(EndToEnd):
    """What style sheets refer to is saved and checked in whatever order runs ask for either."""

    def setUp(self):
        super().setUp()
        self.url = f'http://127.0.0.1:{self.serve(Styled).server_port}/'
        self.number = 0

    def begin(self):
        self.number += 1
        self.database = self.folder / f'{self.number}.db'
        return self.folder / f'mirror{self.number}'

    def files(self, mirror):
        return sorted(path.relative_to(mirror).as_posix() for path in mirror.rglob('*') if path.is_file() and '.argiope' not in str(path))

    def checked(self, *arguments):
        report = self.folder / f'{self.number}.json'
        self.crawl(self.url, '--check-links', '--check-output', report, *arguments)
        found = json.loads(report.read_text())['findings']
        links = self.rows('SELECT f.url, t.url, kind, line FROM page_links JOIN urls f ON f.url_id = from_id JOIN urls t ON t.url_id = to_id '
                          'ORDER BY f.url, t.url')
        places = [(one['kind'], one['url'], sorted((place['page'], place['line'], place['kind']) for place in one['places'])) for one in found]
        return sorted(places), links

    def test_the_same_faults_are_found_with_a_mirror_and_after_one(self):
        for limit, faults in {(): ['gone1.png', 'gone2.png', 'gone3.png'], ('--max-depth', 0): ['gone1.png', 'gone2.png']}.items():
            self.begin()
            truth = self.checked(*limit)
            self.assertEqual([url.rsplit('/', 1)[1] for _, url, _ in truth[0]], faults)
            mirror = self.begin()
            self.assertEqual(self.checked(*limit, '--save', mirror), truth)
            for later in ([], ['--save']):
                mirror = self.begin()
                self.crawl(self.url, *limit, '--save', mirror)
                self.assertEqual(self.checked(*limit, *later, *([mirror] if later else [])), truth)

    def test_a_mirror_is_whole_after_any_check_that_has_stopped(self):
        whole = self.begin()
        self.crawl(self.url, '--check-links', '--save', whole)
        for pages in range(1, 9):
            mirror = self.begin()
            self.crawl(self.url, '--check-links', '--max-pages', pages)
            self.crawl(self.url, '--check-links', '--save', mirror)
            self.assertEqual(self.files(mirror), self.files(whole), pages)
            self.assertEqual(self.rows("SELECT count(*) FROM urls WHERE state = 'queued'"), [(0,)])


class CrawlRuns(EndToEnd):
    def test_another_seed_leaves_the_queue_of_the_first_untouched(self):
        urls, log = self.site('--hosts', 2, '--pages', 60, '--by-address', '--features', 'none')
        self.crawl(urls[0], '--max-pages', 10)
        waiting = self.rows("SELECT url FROM urls WHERE state = 'queued' ORDER BY url_id")
        self.assertGreater(len(waiting), 10)
        for arguments in ([], ['--check-links'], ['--threads', 2]):
            summary = self.crawl(urls[1], *arguments)
            self.assertTrue(summary['finished'])
            self.assertEqual(summary['waiting'], len(waiting))
            self.assertEqual(self.rows("SELECT url FROM urls WHERE state = 'queued' ORDER BY url_id"), waiting)
        summary = self.crawl(urls[0])
        self.assertEqual((summary['finished'], summary['waiting']), (True, 0))
        pages = {(host, target) for _, host, method, target, _ in read_log(log) if method == 'GET' and target != '/robots.txt'}
        self.assertEqual(len(pages), 120)

    def test_a_wider_whitelist_fetches_the_other_hosts_and_nothing_again(self):
        urls, log = self.site('--hosts', 2, '--pages', 40, '--by-address', '--features', 'none')
        self.assertEqual(self.crawl(urls[0])['pages'], 40)
        before = len(read_log(log))
        for threads in (1, 3):
            summary = self.crawl(urls[0], '-w', '127.0.0.2', '--threads', threads)
            self.assertEqual(summary['pages'], 40 if threads == 1 else 0)
        self.assertEqual({host for _, host, _, target, _ in read_log(log)[before:] if target != '/robots.txt'}, {1})

    def test_depth_is_that_of_the_shortest_way_with_a_limit_and_without(self):
        links = {'/': '/slow /a', '/a': '/b', '/b': '/c', '/c': '/x', '/slow': '/x', '/x': '/y', '/y': ''}
        far = threading.Event()

        class Late(PageHandler):
            def do_GET(self):
                if self.path == '/slow':
                    far.wait(60)
                if self.path == '/y':
                    far.set()
                body = ''.join(f'<a href={link}>l</a>' for link in links.get(self.path, '').split()).encode()
                self.send_response(200 if self.path in links else 404)
                self.send_header('Content-Type', 'text/html')
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        url = f'http://127.0.0.1:{self.serve(Late).server_port}/'
        for limit in ([], ['--max-depth', 10]):
            far.clear()
            self.database = self.folder / f'{len(limit)}.db'
            self.crawl(url, '--per-host', 4, *limit)
            depths = {found[len(url) - 1:]: depth for found, depth in self.rows('SELECT url, depth FROM urls')}
            self.assertEqual((depths['/x'], depths['/y']), (2, 3), limit)

    def test_a_file_that_may_not_grow_is_an_error_that_names_it(self):
        noise = random.Random(1).randbytes(40_000).hex()

        class Large(PageHandler):
            def do_GET(self):
                self.reply(200 if self.path == '/' else 404, noise.encode() if self.path == '/' else b'')

        url = f'http://127.0.0.1:{self.serve(Large).server_port}/'
        for name, arguments in {'crawl.db': ['-d', 'crawl.db'], 'site.warc.gz': ['--warc', 'site'], 'x.jsonl': ['--field', 'b:raw=css:body', '--output', 'x.jsonl'],
                                'mirror': ['--save', 'mirror'], 'r.html': ['--html', 'r.html']}.items():
            database = [] if '-d' in arguments else ['-d', ':memory:']
            result = subprocess.run([ARGIOPE, 'crawl', '--quiet', *database, url, *arguments], capture_output=True, text=True, timeout=300, cwd=self.folder,
                                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)))
            self.assertEqual(result.returncode, 3, (name, result.stderr))
            self.assertIn(name, result.stderr)

    def test_an_archive_is_not_touched_by_a_run_that_another_option_ends(self):
        archive = self.folder / 'site.warc.gz'
        self.crawl(f'http://127.0.0.1:{self.serve(Tagged).server_port}/', '--warc', archive)
        torn = archive.read_bytes()[:-20]
        archive.write_bytes(torn)
        (self.folder / 'mirror').mkdir()
        (self.folder / 'mirror' / 'mine.txt').write_text('mine')
        for refused in (['--field', 'a=nonsense:b'], ['--save', self.folder / 'mirror']):
            result = subprocess.run([ARGIOPE, 'crawl', '-d', ':memory:', 'http://127.0.0.1:9/', '--warc', archive, *refused], capture_output=True, text=True, timeout=300)
            self.assertIn(result.returncode, (2, 3))
            self.assertEqual(archive.read_bytes(), torn, refused)

    def test_all_urls_go_to_standard_output(self):
        url = f'http://127.0.0.1:{self.serve(Tagged).server_port}/'
        result = subprocess.run([ARGIOPE, 'crawl', '--quiet', '-d', ':memory:', url, '--export', '-'], capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(url, [json.loads(line)['url'] for line in result.stdout.splitlines()])

    def test_a_run_with_nothing_due_says_so_and_what_would_fetch_again(self):
        urls, _ = self.site('--hosts', 1, '--pages', 5, '--features', 'none')
        self.crawl(urls[0])
        result = subprocess.run([ARGIOPE, 'crawl', '-d', self.database, urls[0]], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0)
        for quiet in ([], ['--quiet']):
            result = subprocess.run([ARGIOPE, 'crawl', '-d', self.database, urls[0], *quiet], capture_output=True, text=True, timeout=60)
            self.assertEqual(result.returncode, 0)
            self.assertIn('argiope: nothing was due, and nothing was asked', result.stderr)
            self.assertIn('--age 0', result.stderr)

    def test_broken_links_are_exported_with_a_page_that_has_them(self):
        root = self.folder / 'www'
        root.mkdir()
        (root / 'index.html').write_text('<a href="gone.html">b</a>')
        url, _ = self.nginx(root)
        jsonl, table, every = self.folder / 'broken.jsonl', self.folder / 'broken.csv', self.folder / 'all.jsonl'
        first = self.crawl(url, '--export-broken', jsonl, '--export', every)
        self.assertEqual((first['broken'], first['broken_before']), (1, 0))
        again = self.crawl(url, '--export-broken', table, '--fail-on-broken', expect=1)
        self.assertEqual((again['broken'], again['broken_before']), (1, 1))
        expected = {'url': url + 'gone.html', 'status': 404, 'error': '', 'linked_from': url}
        self.assertEqual([json.loads(line) for line in jsonl.read_text().splitlines()], [expected])
        with open(table, newline='') as file:
            self.assertEqual(list(csv.DictReader(file)), [{**expected, 'status': '404'}])
        self.assertEqual([json.loads(line)['referrer'] for line in every.read_text().splitlines()], ['', url])
        (root / 'gone.html').write_text('here again')
        mended = self.crawl(url, '--requeue', 'broken', '--fail-on-broken')
        self.assertEqual((mended['fetched'], mended['broken']), (1, 0))

    def test_a_foreign_write_lock_is_waited_for(self):
        urls, _ = self.site('--hosts', 1, '--pages', 300, '--features', 'none', '--latency-ms', 5)
        self.crawl(urls[0], '--max-pages', 1)
        with contextlib.closing(sqlite3.connect(self.database, isolation_level=None)) as other:
            other.execute('BEGIN IMMEDIATE')
            process = self.start([ARGIOPE, 'crawl', '--summary', 'json', '-d', str(self.database), urls[0]],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            lines = []
            for line in lines_of(process):  # until it says that it waits
                lines.append(line)
                if 'has kept it locked' in line:
                    break
            self.assertIn('has kept it locked', lines[-1])
            self.assertIsNone(process.poll())
            other.execute('COMMIT')
        output = ''.join(lines) + process.communicate(timeout=60)[0]
        self.assertEqual(process.returncode, 0, output)
        self.assertEqual(output.count('has kept it locked'), 1, output)
        self.assertTrue(json.loads(output.splitlines()[-1])['finished'])
        self.assertEqual(self.rows("SELECT count(*) FROM urls WHERE state = 'done'"), [(300,)])

    def test_a_database_that_is_deleted_or_replaced_ends_the_crawl(self):
        urls, _ = self.site('--hosts', 1, '--pages', 5000, '--features', 'none', '--latency-ms', 20)
        for replaced in (False, True):
            self.database = self.folder / f'{replaced}.db'
            process = self.start([ARGIOPE, 'crawl', '--quiet', '-d', str(self.database), urls[0]],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.wait_until(lambda: self.pages_done() > 20, 'the crawl did not save 21 pages')
            if replaced:
                another = self.folder / 'another'
                another.write_text('another')
                another.replace(self.database)
            else:
                self.database.unlink()
            _, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 3, errors)
            self.assertIn('replaced' if replaced else 'deleted', errors)
            self.assertIn(str(self.database), errors)

    def test_a_database_whose_log_is_deleted_ends_the_crawl(self):
        urls, _ = self.site('--hosts', 1, '--pages', 5000, '--features', 'none', '--latency-ms', 20)
        process = self.start([ARGIOPE, 'crawl', '--quiet', '-d', str(self.database), urls[0]],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.wait_until(lambda: self.pages_done() > 20, 'the crawl did not save 21 pages')
        log = self.database.with_name(f'{self.database.name}-wal')
        log.unlink()
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, errors)
        self.assertIn(str(log), errors)
        self.crawl(urls[0])
        self.assertEqual(self.rows("SELECT count(*) FROM urls WHERE state != 'done'"), [(0,)])

    def pages_done(self):
        with contextlib.suppress(sqlite3.Error):  # before the first commit there is no table
            if self.database.exists():
                return self.rows("SELECT count(*) FROM urls WHERE state = 'done'")[0][0]
        return 0


if __name__ == '__main__':
    unittest.main()
