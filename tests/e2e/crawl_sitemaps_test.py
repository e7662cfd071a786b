"""Crawls that read sitemaps and feeds: of the synthetic web, and of a server that gives them as servers do."""
import gzip
import http.server
import subprocess
import unittest

from support import ARGIOPE, EndToEnd


class SitemapTest(EndToEnd):
    def urls(self, where='1'):
        return {url for url, in self.rows(f'SELECT url FROM urls WHERE {where}')}

    def test_the_synthetic_web_is_found_whole(self):
        sites, _ = self.site('--hosts', 2, '--pages', 50, '--features', 'friendly,listed')
        first = self.crawl(*sites)
        self.assertFalse([url for url in self.urls() if '/hidden/' in url or '/posts/' in url])
        self.assertNotIn('sitemaps', first)
        summary = self.crawl(*sites, '--sitemaps', '--feeds', '--requeue', 'all')
        self.assertEqual(summary['sitemaps']['files'], 12)
        self.assertEqual(summary['sitemaps']['unreadable'] + summary['sitemaps']['cut'], 0)
        for site in sites:
            for part, count in (('hidden', 10), ('posts', 8)):
                found = self.urls(f"url LIKE '{site}{part}/%' AND status_code = 200")
                self.assertEqual(len(found), count, found)
        self.assertEqual(self.rows("SELECT count(*) FROM urls WHERE reason = 'sitemap' AND state = 'done'"), [(12,)])
        again = self.crawl(*sites, '--sitemaps', '--feeds')
        self.assertEqual(again['sitemaps']['files'], 0)
        self.assertEqual(again['sitemaps']['unchanged'], 12)

    def test_orphans_are_in_the_report(self):
        sites, _ = self.site('--hosts', 1, '--pages', 30, '--features', 'robots,sitemaps')
        self.crawl(sites[0], '--sitemaps', '--html', self.folder / 'report.html')
        report = (self.folder / 'report.html').read_text()
        self.assertIn('Sitemaps and feeds', report)
        self.assertIn('/hidden/9', report)

    def test_what_changed_is_asked_again(self):
        test = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_GET(self):
                test.asked.append(self.path)
                body = test.bodies.get(self.path)
                self.send_response(200 if body is not None else 404)
                self.send_header('Content-Type', 'text/plain' if 'map' in self.path else 'text/html')
                self.send_header('Content-Length', str(len(body or b'')))
                self.end_headers()
                self.wfile.write(body or b'')

            def log_message(self, *arguments):
                pass

        server = self.serve(Handler)
        root = f'http://127.0.0.1:{server.server_port}'

        def listed(date):
            self.bodies['/map'] = gzip.compress(
                f'<urlset><url><loc>{root}/a</loc><lastmod>{date}</lastmod></url><url><loc>{root}/b&c</loc></url></urlset>'.encode())

        def asked():
            """What was asked for, but for robots.txt: a server that is slow at first is asked for that twice."""
            self.assertIn('/robots.txt', self.asked)
            return sorted(path for path in self.asked if path != '/robots.txt')

        self.asked = []
        self.bodies = {'/': b'', '/a': b'a', '/b&c': b'b'}
        listed('2001-01-01')
        summary = self.crawl('--sitemap', f'{root}/map')
        self.assertEqual(asked(), ['/', '/a', '/b&c', '/map'])
        self.assertEqual(summary['pages'], 3)
        self.asked = []
        listed('2200-01-01')
        summary = self.crawl('--sitemap', f'{root}/map')
        self.assertEqual(asked(), ['/a', '/map'])
        self.assertEqual(summary['sitemaps']['asked_again'], 1)

    def test_a_file_may_be_a_sitemap(self):
        sites, _ = self.site('--hosts', 1, '--pages', 10, '--features', 'none')
        urls = ''.join(f'<url><loc>{sites[0]}?n={n}</loc></url>' for n in range(3))
        packed = self.folder / 'map'
        packed.write_bytes(gzip.compress(f'<urlset>{urls}</urlset>'.encode()))
        self.assertEqual(self.crawl('-i', packed, '--max-depth', 0)['pages'], 3)

    def test_bad_usage_is_a_sentence(self):
        result = subprocess.run([ARGIOPE, 'crawl', '--sitemap', 'ftp://h/x'], capture_output=True, text=True, timeout=30, cwd=self.folder)
        self.assertEqual(result.returncode, 2)
        self.assertIn('--sitemap', result.stderr)


if __name__ == '__main__':
    unittest.main()
