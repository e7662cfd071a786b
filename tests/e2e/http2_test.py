"""HTTP/2 against servers that are not ours, and against the synthetic web: the same pages as by HTTP/1.1."""
import collections
import os
import random
import shutil
import subprocess
import unittest

from secure_sites import SecureSites
from support import ARGIOPE, free_port, wait_for_port


class Http2(SecureSites):
    def tree(self, pages=300):
        """A folder of pages that link to each other, to what is missing, and to files that are no pages."""
        chance = random.Random(14)
        root = self.folder / 'root'
        for number in range(pages):
            place = root / f'd{number % 7}'
            place.mkdir(parents=True, exist_ok=True)
            targets = {2 * number + 1, 2 * number + 2, chance.randrange(pages), pages + number % 5}
            links = ' '.join(f'<a href="../d{target % 7}/p{target}.html">{target}</a>' for target in sorted(targets))
            text = 'word ' * chance.randrange(10, 20_000)
            (place / f'p{number}.html').write_text(f'<!doctype html><title>{number}</title>{links} <a href="../file.bin">f</a> {text}')
        (root / 'index.html').write_text('<!doctype html><a href="d0/p0.html">pages</a>')
        (root / 'file.bin').write_bytes(bytes(3_000_000))
        os.chmod(self.folder, 0o755)
        return root

    def pages(self, *arguments):
        """Status and digest by URL, and the summary, of a crawl into a database of its own."""
        self.database.unlink(missing_ok=True)
        summary = self.crawl('--ca-file', self.authority, *arguments)
        self.assertTrue(summary['finished'])
        return {url: (status, size) for url, status, size in
                self.rows('SELECT url, status_code, size FROM urls WHERE status_code IS NOT NULL')}

    def expect_same_pages(self, url, least):
        by_1 = self.pages(url, '--http', '1.1', '--per-host', 20)
        by_2 = self.pages(url, '--per-host', 20)
        self.assertEqual(by_2, by_1)
        self.assertGreaterEqual(sum(status == 200 for status, _ in by_2.values()), least)

    def requests_of(self, log):
        """(protocol, connection, status, path) of each, but for robots.txt: a server that is slow at first is asked for it twice."""
        entries = [line.split(' ', 3) for line in log.read_text().splitlines()]
        return [entry for entry in entries if entry[3] != '/robots.txt']

    def test_nginx_is_crawled_by_http2_over_few_connections(self):
        url, log = self.nginx_by_tls(self.tree())
        self.expect_same_pages(url, 300)
        requests = self.requests_of(log)
        by_2 = [entry for entry in requests if entry[0] == 'HTTP/2.0']
        self.assertEqual(len(by_2) * 2, len(requests))
        connections = collections.Counter(entry[1] for entry in by_2)
        self.assertLessEqual(len(connections), 3, connections)
        self.assertGreater(len({entry[1] for entry in requests if entry[0] == 'HTTP/1.1'}), 3)

    def test_a_server_that_closes_connections_often_loses_no_page(self):
        # A GOAWAY every 20 requests, and few streams at a time.
        url, log = self.nginx_by_tls(self.tree(), 'keepalive_requests 20; http2_max_concurrent_streams 7;')
        self.expect_same_pages(url, 300)
        connections = collections.Counter(entry[1] for entry in self.requests_of(log) if entry[0] == 'HTTP/2.0')
        self.assertGreater(len(connections), 10)

    def test_nghttpd_is_crawled_by_http2(self):
        nghttpd = shutil.which('nghttpd') or '/usr/sbin/nghttpd'
        if not os.path.exists(nghttpd):
            self.skipTest('nghttpd is not installed')
        port = free_port()
        self.start([nghttpd, '-d', str(self.tree()), str(port), str(self.key), str(self.certificate)],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_port(port)
        # It speaks nothing else.
        pages = self.pages(f'https://127.0.0.1:{port}/', '--per-host', 20)
        found = [url for url, (status, _) in pages.items() if status == 200 and url.endswith('.html')]
        self.assertEqual(len(found), 300)
        self.assertEqual({url for url, (status, _) in pages.items() if status == 404},
                         {f'https://127.0.0.1:{port}/d{number % 7}/p{number}.html'
                          for number in {300, 301, 302, 303, 304} | set(range(300, 601))})

    def test_the_synthetic_web_is_the_same_by_http2(self):
        urls, _ = self.site_by_tls('--hosts', 2, '--pages', 150, '--features', 'friendly')
        self.expect_same_pages(urls[0], 150)
        # Cookies know no ports: two hosts of one address would let in who comes first.
        urls, _ = self.site_by_tls('--hosts', 1, '--pages', 50, '--features', 'friendly,guarded')
        self.expect_same_pages(urls[0], 50)

    def test_hostile_servers_end_no_crawl(self):
        urls, _ = self.site_by_tls('--hosts', 2, '--pages', 40, '--hostile',
                                   'loops,reset,lengths,garbage,bomb,flood,closed,failing,headers,odd')
        summary = self.crawl('--ca-file', self.authority, '--timeout', '15s', '--retries', 0, '-s', 200, urls[0])
        self.assertTrue(summary['finished'])
        good = self.rows('SELECT count(*) FROM urls WHERE status_code = 200')[0][0]
        self.assertGreater(good, 80)

    def test_a_version_that_a_server_has_not_is_an_error_with_words(self):
        urls, _ = self.site('--hosts', 1, '--pages', 5)  # http URLs go by HTTP/1.1 whatever is asked for
        self.assertTrue(self.crawl(urls[0], '--http', '2')['finished'])
        self.database.unlink()
        url, _ = self.nginx_by_tls(self.tree(5), protocols='ssl')
        self.crawl('--ca-file', self.authority, '--http', '2', '--retries', 0, url, expect=3)
        errors = [error for error, in self.rows('SELECT error FROM urls') if error]
        self.assertTrue(errors and all('HTTP/2' in error for error in errors), errors)
        result = subprocess.run([ARGIOPE, 'crawl', '--http', '3', urls[0]], capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn('--http', result.stderr)

    def test_an_archive_of_http2_is_crawled_again_without_the_net(self):
        url, _ = self.nginx_by_tls(self.tree(60))
        pages = self.pages(url, '--warc', self.folder / 'site', '--per-host', 20)
        self.database.unlink()
        self.replay(*self.folder.glob('site*.warc.gz'))
        again = dict(self.rows('SELECT url, status_code FROM urls WHERE status_code IS NOT NULL'))
        self.assertEqual(again, {url: status for url, (status, _) in pages.items()})

    def replay(self, *files):
        result = subprocess.run([ARGIOPE, 'crawl', 'replay', '--quiet', '--summary', 'json', '-d', str(self.database),
                                 *map(str, files)], capture_output=True, text=True, timeout=100)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


if __name__ == '__main__':
    unittest.main()
