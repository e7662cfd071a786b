"""The crawl's rate with 50,000 and with 5,000,000 URLs known already, and what each costs in memory; and how long a crawl
takes to go on that knows 10 million URLs, of which a million or all are queued.

The database is filled beforehand with URLs that are done or queued; then a synthetic site of 20,000 pages is crawled on top,
or one page of it.
"""
import json
import shutil
import sqlite3
import statistics

from crawl_support import ARGIOPE, ROUNDS, measure, report
from support import EndToEnd

PAGES = 20_000


class Bench(EndToEnd):
    def fill(self, count):
        path = self.folder / f'known-{count}.db'
        measure([ARGIOPE, 'crawl', '--quiet', '--max-pages', '1', '-d', str(path), self.url])
        with sqlite3.connect(path) as database:
            database.execute('PRAGMA synchronous = OFF')
            database.execute('DELETE FROM urls')
            database.executemany(
                "INSERT INTO urls (url_id, url, ctime, mtime, state, status_code) VALUES (?, ?, 1, 1, 'done', 200)",
                ((i, f'http://known.example/section-{i % 1000}/page-{i}.html') for i in range(1, count + 1)))
        return path

    def fill_queue(self, done, queued):
        """As a crawl of the first version would have left it: the first run on it puts what is queued on shelves."""
        path = self.folder / f'queued-{queued}.db'
        measure([ARGIOPE, 'crawl', '--quiet', '--max-pages', '1', '-d', str(path), self.url])
        with sqlite3.connect(path) as database:
            database.execute('PRAGMA synchronous = OFF')
            database.execute('DELETE FROM urls')
            database.execute(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 + ?2) "
                "INSERT INTO urls (url_id, url, ctime, mtime, state, status_code, depth) "
                "SELECT i, 'http://host-' || (i % 1000) || '.invalid/section/page-' || i || '.html', 1, "
                "CASE WHEN i <= ?1 THEN 1 END, CASE WHEN i <= ?1 THEN 'done' ELSE 'queued' END, "
                "CASE WHEN i <= ?1 THEN 200 END, 3 FROM n", (done, queued))
        database.close()
        return path

    def resume(self, done, queued):
        path = self.fill_queue(done, queued)
        for which in ('first', 'next'):
            run = measure([ARGIOPE, 'crawl', '--quiet', '--summary', 'json', '--max-pages', '1', '-d', str(path), self.url])
            name = f'crawl_known resume, {done} done and {queued} queued, {which} run'
            report(name, 's', run['seconds'], {})
            report(name, 'MB', json.loads(run['output'].splitlines()[-1])['peak_rss_mb'], {})
        path.unlink()

    def runTest(self):
        urls, _ = self.site('--hosts', 1, '--pages', PAGES, '--features', 'none', '--links', 20)
        self.url = urls[0]
        for done, queued in ((9_000_000, 1_000_000), (0, 10_000_000)):
            self.resume(done, queued)
        rates, memory = {}, {}
        for count in (50_000, 5_000_000):
            path = self.fill(count)
            crawled = self.folder / 'crawled.db'
            runs = []
            for _ in range(min(ROUNDS, 3)):
                shutil.copyfile(path, crawled)
                run = measure([ARGIOPE, 'crawl', '--quiet', '--summary', 'json', '-d', str(crawled), self.url])
                run['summary'] = json.loads(run['output'].splitlines()[-1])
                runs.append(run)
            rates[count] = statistics.median(run['summary']['pages_per_second'] for run in runs)
            memory[count] = statistics.median(run['summary']['peak_rss_mb'] for run in runs)
            report(f'crawl_known, {count} URLs known', 'pages/s', rates[count], {})
            report(f'crawl_known memory, {count} URLs known', 'MB', memory[count], {})
            path.unlink()
        report('crawl_known, rate at 5,000,000 against 50,000', 'ratio', rates[5_000_000] / rates[50_000], {})
        report('crawl_known, bytes a URL', 'B', (memory[5_000_000] - memory[50_000]) * 1024 * 1024 / 4_950_000, {})


if __name__ == '__main__':
    import unittest
    unittest.main(argv=['crawl_known'])
