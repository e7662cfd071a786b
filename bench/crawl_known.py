"""How long a crawl that knows 10 million URLs takes to send its first request: most done, all queued out of its scope, or all queued
in it. Then the crawl's rate with 50,000 and with 5,000,000 URLs known already, and what each costs in memory; and how long a crawl
takes to go on that knows 10 million URLs, of which a million or all are queued.

ARGIOPE_KNOWN names the only part to be measured: start, resume or rate. The database is filled beforehand with URLs that are done or queued; then a synthetic site of 20,000 pages is crawled on top,
or one page of it.
"""
import contextlib
import json
import os
import pathlib
import shutil
import sqlite3
import statistics
import subprocess
import time

from crawl_support import ARGIOPE, ROUNDS, measure, peak_mb, report
from support import EndToEnd

PAGES = 20_000
KNOWN = int(os.environ.get('ARGIOPE_KNOWN_URLS', '10000000'))  # of the part `start`; fewer to try it


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

    def start_times(self, done, queued, in_scope):
        """From the start of the process to the first request that the site has seen, in seconds; its processor time and memory. Of the
        second run: the first one puts what is queued on shelves."""
        path = self.fill_queue(done, queued)
        command = [ARGIOPE, 'crawl', '--quiet', '--no-robots', '--max-pages', '1', '-d', str(path), self.url]
        if in_scope:
            command += ['-w', 'invalid']
        measure(command)
        with contextlib.closing(sqlite3.connect(path)) as database, database:  # so that there is something to ask for at once
            database.execute("UPDATE urls SET state = 'queued', due = NULL WHERE url = ?", (self.url,))
        name = f'crawl_known first request, {done} done and {queued} queued' + (' in scope' if in_scope else '')
        figures = {'s': [], 'CPU s': [], 'MB': []}
        for _ in range(min(ROUNDS, 3)):
            seen = len(self.log.read_text().splitlines())
            # One URL anew, so that each run has one that nobody has asked.
            before = time.monotonic()
            process = subprocess.Popen([*command, f'{self.url}?run={before}'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while len(self.log.read_text().splitlines()) == seen and process.poll() is None:
                time.sleep(0.005)
            figures['s'].append(time.monotonic() - before)
            fields = pathlib.Path(f'/proc/{process.pid}/stat').read_text().rpartition(')')[2].split()
            figures['CPU s'].append((int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK'))
            figures['MB'].append(peak_mb(process.pid) or 0)
            process.terminate()
            process.wait()
        for unit, values in figures.items():
            report(name, unit, statistics.median(values), {})
        path.unlink()

    def runTest(self):
        part = os.environ.get('ARGIOPE_KNOWN', '')
        urls, self.log = self.site('--hosts', 1, '--pages', PAGES, '--features', 'none', '--links', 20)
        self.url = urls[0]
        if part in ('', 'start'):
            for done, queued, in_scope in ((KNOWN * 9 // 10, KNOWN // 10, False), (0, KNOWN, False), (0, KNOWN, True)):
                self.start_times(done, queued, in_scope)
        if part in ('', 'resume'):
            for done, queued in ((9_000_000, 1_000_000), (0, 10_000_000)):
                self.resume(done, queued)
        if part in ('', 'rate'):
            self.rate()

    def rate(self):
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
