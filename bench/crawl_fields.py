"""Four fields by CSS selectors from a real documentation tree: Argiope crawls it from one nginx worker; beside it parsel on lxml,
which reads the same pages from disk, one process, and crawls nothing.

ROUNDS (5) runs of each, in turn; medians.
"""
import json
import os
import sqlite3
import tempfile
import time
import urllib.parse

from crawl_support import ARGIOPE, ROUNDS, measure, median, report
from support import EndToEnd

FIELDS = {'title': 'css:title', 'heading': 'css:h1', 'links[]': 'css:a::attr(href)', 'first': 'css:p::text'}


class Bench(EndToEnd):
    def runTest(self):
        root = self.documentation()
        url, _ = self.nginx(root)
        ours, theirs = [], []
        for number in range(ROUNDS):
            folder = tempfile.mkdtemp(dir=self.folder)
            output, database = os.path.join(folder, 'fields.jsonl'), os.path.join(folder, 'crawl.db')
            words = [word for name, selector in FIELDS.items() for word in ('--field', f'{name}={selector}')]
            run = measure([ARGIOPE, 'crawl', '--quiet', '--summary', 'json', '-d', database, *words, '--output', output, url])
            run['pages'] = json.loads(run['output'])['pages']
            with open(output) as lines:
                self.assertEqual(sum(1 for _ in lines), run['pages'])
            ours.append(run)
            rows = sqlite3.connect(database).execute(
                "SELECT url FROM urls WHERE status_code = 200 AND content_type LIKE 'text/html%'").fetchall()
            theirs.append(self.parsel(root, url, rows))
        pages = ours[0]['pages']
        rate = {name: pages / median(runs, 'seconds') for name, runs in (('argiope', ours), ('parsel', theirs)) if runs[0]}
        cpu = {name: median(runs, 'cpu') for name, runs in (('argiope', ours), ('parsel', theirs)) if runs[0]}
        name = f'crawl_fields, {pages} pages, four selectors'
        report(name, 'pages/s', rate.pop('argiope'), rate)
        report(name, 'CPU s', cpu.pop('argiope'), cpu)
        report(name, 'MB', median(ours, 'mb'), {})

    def parsel(self, root, url, rows):
        try:
            import parsel
        except ImportError:
            return None
        start, busy = time.monotonic(), time.process_time()
        for page, in rows:
            path = root / urllib.parse.unquote(urllib.parse.urlsplit(page).path).lstrip('/')
            if path.is_dir():
                path /= 'index.html'
            document = parsel.Selector(text=path.read_text('utf-8', 'replace'))
            document.css('title').xpath('string()').get()
            document.css('h1').xpath('string()').get()
            document.css('a::attr(href)').getall()
            document.css('p::text').get()
        return {'seconds': time.monotonic() - start, 'cpu': time.process_time() - busy}


if __name__ == '__main__':
    import unittest
    unittest.main(argv=['crawl_fields'])
