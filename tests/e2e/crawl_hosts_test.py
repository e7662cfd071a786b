"""A crawl's file of settings: --config."""
import http.server
import json
import subprocess
import unittest

from support import ARGIOPE, EndToEnd


class Site(http.server.BaseHTTPRequestHandler):
    """Links from page to page, and notes what it was asked, with its header fields."""

    protocol_version = 'HTTP/1.1'
    asked = None  # a list, of each server its own
    pages = ['/', '/a', '/b', '/private/x', '/a/deep']
    robots = 'User-agent: *\nDisallow: /private/\n'

    def do_GET(self):
        self.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        body = self.robots if self.path == '/robots.txt' else ''.join(f'<a href="{page}">x</a>' for page in self.pages)
        self.send_response(200)
        self.send_header('Content-Type', 'text/plain' if self.path == '/robots.txt' else 'text/html')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    do_HEAD = do_GET

    def log_message(self, *arguments):
        pass


class CrawlHosts(EndToEnd):
    def site_with_log(self, **members):
        asked = []
        server = self.serve(type('LoggedSite', (Site,), {'asked': asked, **members}))
        return f'http://127.0.0.1:{server.server_address[1]}', asked

    def config(self, text):
        file = self.folder / 'crawl.toml'
        file.write_text(text)
        return file

    def paths(self, asked):
        return sorted({path for path, _ in asked})

    def test_each_host_is_treated_as_the_file_says(self):
        one, asked_one = self.site_with_log()
        two, asked_two = self.site_with_log()
        file = self.config(f'''
[crawl]
urls = ["{one}/", "{two}/"]
max_time = "60s"

[[host]]
match = "{one}"
robots = false
user_agent = "Visitor/1 (+http://example.org)"
headers = {{ "X-Key" = "s3cret" }}
exclude = "/b"

[[host]]
match = "*"
max_depth = 0
headers = {{ "X-Key" = "all" }}
''')
        summary = self.crawl('--config', file)
        self.assertTrue(summary['finished'])
        # The second block has a depth for the first host, too.
        self.assertEqual(self.paths(asked_one), ['/'])
        self.assertEqual(self.paths(asked_two), ['/', '/robots.txt'])
        self.assertEqual({fields['x-key'] for _, fields in asked_one}, {'s3cret'})
        self.assertEqual({fields['user-agent'] for _, fields in asked_one}, {'Visitor/1 (+http://example.org)'})
        self.assertEqual({fields['x-key'] for _, fields in asked_two}, {'all'})
        # With the depth gone a further run takes up the rest, as the file says.
        self.config(file.read_text().replace('max_depth = 0\n', ''))
        self.crawl('--config', file)
        self.assertEqual(self.paths(asked_one), ['/', '/a', '/a/deep', '/private/x'])
        self.assertEqual(self.paths(asked_two), ['/', '/a', '/a/deep', '/b', '/robots.txt'])
        self.assertEqual(dict(self.rows("SELECT reason, count(*) FROM urls WHERE state = 'excluded' GROUP BY reason")),
                         {'exclude': 1, 'robots': 1})

    def test_what_is_typed_counts_more_than_the_file(self):
        one, asked = self.site_with_log()
        file = self.config('[crawl]\nmax_depth = 0\nexclude = ["/a/**"]\nno_robots = true\n')
        self.crawl(f'{one}/', '--config', file, '--max-depth', 3)
        self.assertEqual(self.paths(asked), ['/', '/a', '/b', '/private/x'])

    def test_a_delay_of_one_host_is_kept(self):
        one, asked = self.site_with_log(robots='')
        file = self.config('[[host]]\nmatch = "127.0.0.1"\ndelay = "150ms"\n')
        summary = self.crawl(f'{one}/', '--config', file)
        self.assertEqual(summary['fetched'], 5)
        self.assertGreaterEqual(summary['seconds'], 5 * 0.15)

    def test_what_is_wrong_is_a_sentence_with_its_line(self):
        cases = [
            ('[[host]]\nmatch = "a.test"\nrate = -1\n', 'crawl.toml:3: host[0].rate "-1": a number above 0'),
            ('[[host]]\nmatch = "a.test"\ndealy = 1\n', 'did you mean "delay"?'),
            ('[crawl]\nmax_dpeth = 1\n', 'crawl.toml:2: member "max_dpeth": [crawl] has none; did you mean "max_depth"?'),
            ('[crawl]\nmax_depth = "deep"\n', 'crawl.toml:2: crawl.max_depth: '),
            ('[[host]\n', 'crawl.toml:1: '),
        ]
        for text, sentence in cases:
            result = subprocess.run([ARGIOPE, 'crawl', 'http://127.0.0.1:1/', '-d', str(self.database), '--config',
                                     str(self.config(text))], capture_output=True, text=True, timeout=60)
            self.assertEqual(result.returncode, 2, text)
            self.assertIn(sentence, result.stderr)
            self.assertFalse(self.database.exists())
        result = subprocess.run([ARGIOPE, 'crawl', '--summary', 'json', '--config', 'nowhere.toml'], capture_output=True, text=True,
                                timeout=60)
        self.assertEqual(result.returncode, 2)
        self.assertIn('--config nowhere.toml: No such file', result.stderr)
        self.assertIn('nowhere.toml', json.loads(result.stdout)['error'])


if __name__ == '__main__':
    unittest.main()
