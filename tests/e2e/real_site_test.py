"""A real documentation tree on nginx: exactly the pages an independent walk with a full HTML parser finds."""
import collections
import subprocess
import unittest

from support import WALK_ORACLE, EndToEnd, read_log


class RealSite(EndToEnd):
    def test_fetches_exactly_the_pages_that_an_independent_walk_finds(self):
        url, _ = self.nginx(self.documentation())
        summary = self.crawl(url)
        self.assertTrue(summary['finished'])
        ours = {row[0] for row in self.rows(
            "SELECT url FROM urls WHERE status_code = 200 AND content_type LIKE 'text/html%'")}
        walk = subprocess.run([WALK_ORACLE, url], capture_output=True, text=True, timeout=600, check=True)
        theirs = set(walk.stdout.split())
        print(f'{len(ours)} pages crawled, {len(theirs)} found by the independent walk')
        self.expect_both_trees(theirs)
        self.assertEqual(ours - theirs, set(), 'fetched and not found by the walk')
        self.assertEqual(theirs - ours, set(), 'found by the walk and not fetched')
        self.assertEqual(summary['pages'], len(theirs))

    def test_threads_orders_and_limits_fetch_the_same_pages_once(self):
        urls, log = self.site('--hosts', 4, '--pages', 300, '--by-address')
        seen = 0
        for number, arguments in enumerate([['--threads', 1], ['--threads', 3], ['--order', 'dfs'],
                                            ['--order', 'priority', '--threads', 2], ['-q', 20],
                                            ['-q', 100, '--threads', 3, '--order', 'priority'],
                                            ['--max-depth', 1000, '--threads', 2]]):
            self.database = self.folder / f'{number}.db'
            summary = self.crawl(*urls, *arguments)
            self.assertEqual(summary['pages'], 4 * 383, arguments)  # 300 a host, and what friendly features add
            requests = read_log(log)[seen:]
            seen += len(requests)
            times = collections.Counter((entry[1], entry[3]) for entry in requests if entry[4] != 503 and entry[3] != '/robots.txt')
            self.assertEqual([request for request, count in times.items() if count > 1], [], arguments)


if __name__ == '__main__':
    unittest.main()
