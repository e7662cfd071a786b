"""Runs on one database, one after the other: what waits is not lost, what was left out is taken up, what is known is said."""
import contextlib
import csv
import json
import sqlite3
import subprocess
import unittest

from support import ARGIOPE, EndToEnd, lines_of, read_log


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
        self.assertIn('Nothing was due', result.stdout)
        self.assertIn('--age 0', result.stdout)

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
