"""Rates and rests, checked request by request in the server's own log, in real time."""
import unittest

from support import EndToEnd, read_log


class Politeness(EndToEnd):
    def times(self, log):
        """When each request of host 0 came, from the last one for robots.txt on: a server that is slow at first is asked for it twice."""
        entries = [entry for entry in read_log(log) if entry[1] == 0]
        robots = [i for i, entry in enumerate(entries) if entry[3] == '/robots.txt']
        return [entry[0] for entry in entries[robots[-1]:]]

    def assert_apart(self, times, seconds):
        self.assertGreater(len(times), 5)
        gaps = [later - earlier for earlier, later in zip(times, times[1:])]
        self.assertGreaterEqual(min(gaps), seconds)

    def assert_rate(self, times, rate, connections):
        # In every window. The log's times are of arrival, later than the start that is paced, by more for one request than for the
        # next. But no request begins before all but the last `connections` of those before it were answered, and so have arrived:
        # that much slack, however late the server is.
        self.assertGreater(len(times), 15)
        times = sorted(times)
        for first in range(len(times)):
            for last in range(first + connections, len(times)):
                self.assertLessEqual(last - first, rate * (times[last] - times[first]) + connections)

    def test_delay_is_kept_between_any_two_requests(self):
        urls, log = self.site('--hosts', 1, '--pages', 4)
        self.crawl(urls[0], '--delay', 0.1)
        self.assert_apart(self.times(log), 0.1)

    def test_rate_is_never_exceeded(self):
        urls, log = self.site('--hosts', 1, '--pages', 8)
        self.crawl(urls[0], '--rate', 20, '--per-host', 1)
        self.assert_rate(self.times(log)[1:], 20, 1)

    def test_rate_holds_with_several_connections_too(self):
        # Without the rate, or with one for each connection, 8 of them would fetch 160 pages a second.
        urls, log = self.site('--hosts', 1, '--pages', 60, '--latency-ms', 50)
        self.crawl(urls[0], '--rate', 40, '--per-host', 8)
        self.assert_rate(self.times(log)[1:], 40, 8)

    def test_per_host_bounds_what_is_under_way(self):
        urls, log = self.site('--hosts', 1, '--pages', 60, '--latency-ms', 30)
        self.crawl(urls[0], '--per-host', 3)
        times = sorted(self.times(log)[1:])
        # Each request takes at least 30 ms, so of any four the last comes that much after the first.
        for first in range(len(times) - 3):
            self.assertGreaterEqual(times[first + 3] - times[first], 0.029)

    def test_retry_after_rests_the_whole_host(self):
        urls, log = self.site('--hosts', 1, '--pages', 30, '--latency-ms', 5, '--features', 'flaky')
        self.crawl(urls[0], '--per-host', 1)
        entries = read_log(log)
        busy = [i for i, entry in enumerate(entries) if entry[4] == 503]
        self.assertEqual(len(busy), 2)
        for index in busy:
            self.assertGreaterEqual(entries[index + 1][0] - entries[index][0], 1.0)

    def test_crawl_delay_of_robots_txt_is_kept(self):
        root = self.folder / 'www'
        root.mkdir()
        (root / 'robots.txt').write_text('User-agent: *\nCrawl-delay: 0.3\nDisallow: /secret\n')
        (root / 'index.html').write_text(''.join(f'<a href="{n}.html">x</a>' for n in range(6)) + '<a href="/secret.html">')
        for n in range(6):
            (root / f'{n}.html').write_text('<title>x</title>')
        url, log = self.nginx(root)
        summary = self.crawl(url)
        self.assertEqual(summary['pages'], 7)
        self.assertGreaterEqual(summary['seconds'], 7 * 0.3)
        self.assertNotIn('/secret.html', log.read_text())


if __name__ == '__main__':
    unittest.main()
