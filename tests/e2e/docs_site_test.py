"""The documentation as a site: every page is in its menu once, its links lead somewhere, and it works from disk."""
import functools
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import ARGIOPE, EndToEnd

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


class Menu(unittest.TestCase):
    def test_every_page_is_in_it_once(self):
        named = re.findall(r': (\S+\.md)$', (ROOT / 'mkdocs.yml').read_text(), re.M)
        pages = [str(page.relative_to(ROOT)) for page in (ROOT / 'docs').rglob('*.md')]
        self.assertEqual(sorted(name for name in named if name.startswith('docs/')), sorted(pages))
        self.assertEqual(len(named), len(set(named)), 'a page is in the menu twice')


@unittest.skipIf(shutil.which('mkdocs') is None, 'mkdocs is not there')
class Built(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        built = pathlib.Path(tempfile.mkdtemp(prefix='argiope-site-'))
        cls.addClassCleanup(shutil.rmtree, built, ignore_errors=True)
        made = subprocess.run([sys.executable, ROOT / 'tools/docs_site.py', built], capture_output=True, text=True, timeout=500)
        if made.returncode:
            raise AssertionError(made.stdout + made.stderr)
        cls.site_folder = built / 'site'
        cls.pages = list(cls.site_folder.rglob('*.html'))

    def test_its_links_lead_somewhere_and_nowhere_else(self):
        server = self.serve(functools.partial(Files, directory=self.site_folder))
        port = server.server_address[1]
        result = subprocess.run([ARGIOPE, 'crawl', f'http://127.0.0.1:{port}/index.html', '-d', self.database, '--check-links',
                                 '--check-only', 'broken,fragment,invalid', '--fail-on-broken', '--delay', '0', '--quiet',
                                 '--summary', 'json'], capture_output=True, text=True, timeout=500)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr + self.findings())
        foreign = self.rows('SELECT url FROM urls WHERE url NOT LIKE ?', f'http://127.0.0.1:{port}/%')
        self.assertEqual(foreign, [], 'it leads to the world outside')
        self.assertGreaterEqual(json.loads(result.stdout)['pages'], len(self.pages) - 1, 'pages without a link to them')

    def findings(self):
        return subprocess.run([ARGIOPE, 'crawl', 'check', self.database, '--check-only', 'broken,fragment,invalid'],
                              capture_output=True, text=True, timeout=100).stdout

    def test_it_opens_from_disk_with_search_at_every_width(self):
        some = ['index.html', 'docs/crawl.html', 'docs/crawl-links.html', 'docs/benchmarks.html', 'docs/serve.html']
        found, *looks = self.browse('site', self.site_folder, 'politeness', *some, timeout=500)
        self.assertTrue(any('/docs/' in url for url in found['found']), found)
        self.assertEqual(len(looks), 2 * len(some))
        for look in looks:
            with self.subTest(look['name'], width=look['width']):
                self.assertEqual((look['foreign'], look['broken']), ([], []))
                self.assertLessEqual(look['scrollWidth'], look['width'])


if __name__ == '__main__':
    unittest.main()
