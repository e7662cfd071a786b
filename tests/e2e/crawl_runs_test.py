"""Runs on one database, one after the other: what waits is not lost, what was left out is taken up, what is known is said."""
import contextlib
import csv
import json
import sqlite3
import subprocess
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

    def pages_done(self):
        with contextlib.suppress(sqlite3.Error):  # before the first commit there is no table
            if self.database.exists():
                return self.rows("SELECT count(*) FROM urls WHERE state = 'done'")[0][0]
        return 0


if __name__ == '__main__':
    unittest.main()
