"""The examples that crawl in a program: they get each page once, with its links; and the pages of a project, with their titles."""
import pathlib
import re
import subprocess
import unittest

from support import ARGIOPE, EndToEnd

EXAMPLE = pathlib.Path(ARGIOPE).with_name('example_crawl_pages')
READING = pathlib.Path(ARGIOPE).with_name('example_read_pages')


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

    def test_a_program_reads_the_pages_of_a_project(self):
        urls, _ = self.site('--hosts', 1, '--pages', 60, '--features', 'none', '--errors', 0)
        database = str(self.folder / 'pages.db')
        for run in range(2):
            result = subprocess.run([READING, urls[0], database], capture_output=True, text=True, timeout=120)
            self.assertEqual(result.returncode, 0, result.stderr)
            *pages, total = result.stdout.splitlines()
            self.assertEqual(total, '60 visits, 60 results' if run == 0 else '1 visits, 60 results')
            self.assertEqual(len({page.split()[0] for page in pages}), 60)
            for page in pages:
                self.assertRegex(page, r'^http://\S+ {"title":"[^"]+"}$')

    def test_what_is_no_url_is_said(self):
        for example in EXAMPLE, READING:
            result = subprocess.run([example, 'http://'], capture_output=True, text=True, timeout=60)
            self.assertEqual(result.returncode, 2)
            self.assertTrue(result.stderr.strip())


if __name__ == '__main__':
    unittest.main()
