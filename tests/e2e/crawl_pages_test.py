"""The example that crawls in a program: it gets each page once, and as many links as are on it."""
import pathlib
import re
import subprocess
import unittest

from support import ARGIOPE, EndToEnd

EXAMPLE = pathlib.Path(ARGIOPE).with_name('example_crawl_pages')


class CrawlPages(EndToEnd):
    def test_each_page_comes_once_with_its_links(self):
        urls, _ = self.site('--hosts', 1, '--pages', 60, '--features', 'none')
        result = subprocess.run([EXAMPLE, urls[0]], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        *pages, total = result.stdout.splitlines()
        self.assertEqual(total, '60 pages')
        found = {}
        for line in pages:
            status, url, links = re.fullmatch(r'(\d+) (\S+) (\d+)', line).groups()
            self.assertNotIn(url, found)
            found[url] = (int(status), int(links))
        self.crawl(urls[0])
        self.assertEqual({url: status for url, (status, _) in found.items()},
                         dict(self.rows("SELECT url, status_code FROM urls WHERE state = 'done'")))
        self.assertGreater(found[urls[0]][1], 5)

    def test_what_is_no_url_is_said(self):
        result = subprocess.run([EXAMPLE, 'http://'], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 2)
        self.assertTrue(result.stderr.strip())


if __name__ == '__main__':
    unittest.main()
