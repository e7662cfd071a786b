"""The crawl's rate with 50,000 and with 5,000,000 URLs known already, and what each costs in memory.

The database is filled beforehand with URLs that are done; then a synthetic site of 20,000 pages is crawled on top.
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

    def runTest(self):
        urls, _ = self.site('--hosts', 1, '--pages', PAGES, '--features', 'none', '--links', 20)
        self.url = urls[0]
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
