"""Crawls by TLS: of a site that answers after 100 ms, by HTTP/1.1 over 240 connections and by HTTP/2 over a twentieth of them; and
of real pages by nginx, how many a second, beside wget2, which also writes them to files.

Connections are those that the kernel has at the server's port, looked at while the crawl runs.
"""
import json
import pathlib
import re
import tempfile
import threading

from crawl_support import ARGIOPE, ROUNDS, installed, measure, median, report
from secure_sites import SecureSites

PAGES = 12_000
REQUESTS = 240
VERSIONS = {'HTTP/1.1': '1.1', 'HTTP/2': '2'}


def connections_to(port):
    """How many are established, seen from the crawler."""
    lines = pathlib.Path('/proc/net/tcp').read_text().splitlines()[1:]
    return sum(line.split()[2].endswith(f':{port:04X}') and line.split()[3] == '01' for line in lines)


class Bench(SecureSites):
    def crawls(self, url, *options):
        """Runs by version of HTTP, taken in turn, each with its pages and the most connections it had."""
        port = int(re.search(r':(\d+)/', url)[1])
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        runs = {name: [] for name in VERSIONS}
        for number in range(ROUNDS):
            for name, version in VERSIONS.items():
                most = [0]
                ended = threading.Event()

                def watch():
                    while not ended.wait(0.1):
                        most[0] = max(most[0], connections_to(port))
                watching = threading.Thread(target=watch)
                watching.start()
                run = measure([ARGIOPE, 'crawl', '--quiet', '--summary', 'json', '--ca-file', str(self.authority), '--http', version,
                               *map(str, options), '-d', str(folder / f'{number}-{version}.db'), url])
                ended.set()
                watching.join()
                run.update(pages=json.loads(run['output'].splitlines()[-1])['pages'], connections=most[0])
                run['rate'] = run['pages'] / run['seconds']
                runs[name].append(run)
        return runs

    def wget2(self, url):
        """Runs of wget2, with its own choice of version."""
        runs = []
        for _ in range(ROUNDS):
            target = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
            run = measure(['wget2', '-q', '-r', '-l', '0', '--max-threads=32', f'--ca-certificate={self.authority}', '-P', str(target), url])
            run['pages'] = sum(1 for path in target.rglob('*.html') if path.is_file())
            run['rate'] = run['pages'] / run['seconds']
            runs.append(run)
        return runs

    def tell(self, workload, runs):
        for key, unit in (('rate', 'pages/s'), ('connections', 'at once'), ('cpu', 'CPU s'), ('mb', 'MB')):
            report(f'{workload}, HTTP/2', unit, median(runs['HTTP/2'], key),
                   {name: median(theirs, key) for name, theirs in runs.items() if name != 'HTTP/2' and key in theirs[0]})

    def runTest(self):
        urls, _ = self.site_by_tls('--hosts', 1, '--pages', PAGES, '--features', 'none', '--latency-ms', 100, '--links', 20)
        runs = self.crawls(urls[0], '-c', REQUESTS, '--per-host', REQUESTS)
        self.tell(f'{PAGES} pages after 100 ms, {REQUESTS} at a time', runs)
        url, _ = self.nginx_by_tls(self.documentation(), more='access_log off; gzip off;')
        runs = self.crawls(url, '-c', 32, '--per-host', 32)
        if installed('wget2'):
            runs['wget2'] = self.wget2(url)
        self.tell(f'{runs["HTTP/2"][0]["pages"]} real pages by nginx, TLS', runs)


if __name__ == '__main__':
    import unittest
    unittest.main(argv=['crawl_http2'])
