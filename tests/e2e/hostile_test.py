"""Hosts that lie, loop, drip, stay silent or explode: bounded, counted by reason, and nobody else is slowed."""
import unittest

from support import EndToEnd, read_log


class Hostile(EndToEnd):
    def test_every_nuisance_is_bounded_and_counted(self):
        urls, log = self.site('--hosts', 2, '--pages', 50, '--hostile', 'all')
        summary = self.crawl(*urls, '--timeout', 20, '--retries', 1, '--max-pages-per-host', 2000, '--size-limit-kb', 256)
        self.assertTrue(summary['finished'])
        failures = summary['failures']
        self.assertGreaterEqual(failures.get('timeout', 0), 2)    # silence, drip
        self.assertGreaterEqual(failures.get('network', 0), 1)    # closed before an answer
        self.assertEqual(len(self.rows("SELECT 1 FROM urls WHERE url LIKE '%/lengths/0' AND status_code = 200 "
                                       "AND error LIKE 'cut short: %'")), 1)  # a Content-Length too long
        self.assertGreaterEqual(failures.get('protocol', 0), 1)   # garbage
        self.assertGreaterEqual(failures.get('too_large', 0) + len(self.rows(
            "SELECT 1 FROM urls WHERE url LIKE '%/bomb/%' AND error LIKE 'cut off%'")), 1)  # bomb
        self.assertEqual(len(self.rows("SELECT 1 FROM urls WHERE url LIKE '%/flood/%' AND error LIKE 'cut off%'")), 1)
        self.assertGreater(summary['excluded']['pages_per_host'], 0)
        self.assertLess(summary['peak_rss_mb'], 200)
        calm = [entry for entry in read_log(log) if entry[1] == 0]
        silent = [entry for entry in read_log(log) if entry[3] == '/silent/0']
        self.assertEqual(len(silent), 2)
        self.assertEqual(self.rows("SELECT count(*) FROM urls WHERE url LIKE ? AND status_code = 200",
                                   urls[0] + '%')[0][0], 91)  # 81 pages, 10 files
        self.assertLess(max(entry[0] for entry in calm), silent[1][0] + 20, 'one host waited for what another did not say')

    def test_servers_that_break_the_rules_are_read_as_browsers_read_them_and_it_is_said(self):
        urls, _ = self.site('--hosts', 1, '--pages', 5, '--features', 'none', '--hostile', 'odd')
        summary = self.crawl(*urls, '--retries', 1)
        odd = self.rows("SELECT url, status_code, error FROM urls WHERE url LIKE '%/odd/%'")
        self.assertEqual([status for _, status, _ in odd], [200] * 16, odd)  # each led to the next
        said = {url.rsplit('/', 1)[1]: error or '' for url, _, error in odd}
        self.assertEqual(said.pop('14'), '')  # early hints are allowed
        self.assertTrue(all(error.startswith(('odd: ', 'cut short: ')) for error in said.values()), odd)
        self.assertGreaterEqual(summary['odd']['bare_line_feeds'], 1)
        self.assertGreaterEqual(summary['odd']['cut_short'], 2)

    def test_robots_txt_that_fails_closes_its_host(self):
        import http.server
        asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_response(500)
                self.end_headers()

            def log_message(self, *arguments):
                pass

        server = self.serve(Handler)
        summary = self.crawl(f'http://127.0.0.1:{server.server_port}/', '--retries', 0, expect=3)
        self.assertEqual(summary['fetched'], 0)
        self.assertEqual(set(asked), {'/robots.txt'})
        self.assertIn('robots.txt', self.rows('SELECT error FROM urls')[0][0])


if __name__ == '__main__':
    unittest.main()
