"""Link checks, the graph and the report of one site whose faults are known: each format is read by a reader that is not ours."""
import contextlib
import csv
import gzip
import html.parser
import http.server
import io
import json
import os
import pathlib
import sqlite3
import subprocess
import unittest
import urllib.parse
import urllib.request
import xml.etree.ElementTree

from support import ARGIOPE, PATIENCE, SYSTEM_PYTHON, EndToEnd, PageHandler, free_port

HERE = pathlib.Path(__file__).parent
MODULES = HERE.parent.parent / 'dashboard' / 'tests' / 'node_modules'
SARIF_SCHEMA = MODULES / '@microsoft' / 'jest-sarif' / 'lib' / 'schemas' / 'sarif-2.1.0-rtm.5.json'
LARGE = int(os.environ.get('ARGIOPE_REPORT_PAGES', '400'))

# What each path answers: a status, a type and a body, or where it leads.
ANSWERS = {
    '/': (200, 'text/html', '''<!doctype html><html lang=en><title>Start "quoted" &amp; &lt;tagged&gt;</title>
<meta name=description content="The front page">
<link rel=stylesheet href=/style.css>
<h1>Start</h1>
<a href=/a.html>A</a> <a href=/b.html>B</a>
<a href="/gone.html">gone,
with a line break</a>
<a href=/moved.html>moved</a>
<a href="/a.html#there">there</a> <a href="/a.html#not-there">not there</a>
<a href="mailto:someone@example.org">mail</a> <a href="mailto:nobody@@example">bad mail</a>
<a href="http://[::bad/">no URL</a>
<img src=/here.png alt="a picture"> <img src="/missing.png" alt="no picture" srcset="/here.png 1x, /missing-2x.png 2x">
'''),
    '/a.html': (200, 'text/html', '<!doctype html><title>A</title><p id=there>Here.</p><a href=/>Back</a> <a href=/gone.html>again</a>'),
    '/b.html': (200, 'text/html', '<!doctype html><title>A</title><a href=/>Back</a> <a href=/a.html rel="next">A</a> <a href=/error>error</a>'),
    '/style.css': (200, 'text/css', 'body { background: url(here.png) } p { background: url("lost.png") }'),
    '/here.png': (200, 'image/png', 'not looked at'),
    '/moved.html': (301, '/a.html', ''),
    '/error': (500, 'text/plain', 'no'),
    '/robots.txt': (200, 'text/plain', ''),
}
BROKEN = {'/gone.html': 404, '/missing.png': 404, '/missing-2x.png': 404, '/lost.png': 404, '/error': 500}


class Site(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def answer(self):
        status, kind, body = ANSWERS.get(self.path, (404, 'text/html', '<title>Not found</title>'))
        content = body.encode()
        self.send_response(status)
        self.send_header('Location' if status == 301 else 'Content-Type', kind)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        if self.command == 'GET':
            self.wfile.write(content)

    do_GET = do_HEAD = answer

    def log_message(self, *_):
        pass


class Links(EndToEnd):
    def setUp(self):
        super().setUp()
        self.url = f'http://127.0.0.1:{self.serve(Site).server_port}'

    def look(self, *arguments, expect=0):
        result = subprocess.run([ARGIOPE, 'crawl', *map(str, arguments)], capture_output=True, text=True, timeout=100)
        self.assertEqual(result.returncode, expect, result.stdout + result.stderr)
        return result.stdout

    def checked(self, *arguments, **options):
        return self.crawl(self.url + '/', '--check-links', '--retries', 0, *arguments, **options)

    def test_the_report_tells_of_own_links_first_and_of_a_dead_host_once(self):
        dead = f'http://127.0.0.1:{free_port()}/x'

        class Own(PageHandler):
            def do_GET(self):
                body = f'<a href="{dead}">dead</a><a href=/gone>gone</a>' if self.path == '/' else ''
                self.reply(200 if self.path == '/' else 404, body.encode())
        said = self.look(f'http://localhost:{self.serve(Own).server_port}/', '-d', self.database, '--check-links', '--retries', 0)
        broken = said[said.index('2 broken links'):]
        self.assertLess(broken.index('/gone'), broken.index(dead))
        self.assertNotIn('host given up', said)

    def test_each_format_tells_the_same_faults_to_readers_that_are_not_ours(self):
        outputs = {name: self.folder / f'links.{name}' for name in ('txt', 'json', 'csv', 'xml', 'sarif')}
        words = [word for file in outputs.values() for word in ('--check-output', file)]
        summary = self.checked('--fail-on-broken', *words, expect=1)
        told = json.loads(outputs['json'].read_text())
        broken = {finding['url']: finding['status'] for finding in told['findings'] if finding['kind'] == 'broken'}
        self.assertEqual(broken, {self.url + path: status for path, status in BROKEN.items()})
        self.assertEqual(summary['findings']['broken'], len(BROKEN))
        kinds = {finding['kind'] for finding in told['findings']}
        self.assertEqual(kinds, {'broken', 'fragment', 'invalid', 'mail', 'redirect'})
        places = {(finding['url'], place['page'], place['line'])
                  for finding in told['findings'] for place in finding['places']}
        self.assertIn((self.url + '/gone.html', self.url + '/', 6), places)
        self.assertIn((self.url + '/lost.png', self.url + '/style.css', 1), places)
        moved = next(finding for finding in told['findings'] if finding['kind'] == 'redirect')
        self.assertEqual(moved['suggestion'], self.url + '/a.html')

        with open(outputs['csv'], newline='') as file:
            lines = list(csv.DictReader(file))
        self.assertEqual({(line['url'], line['page'], int(line['line'] or 0)) for line in lines},
                         {(url, page, line or 0) for url, page, line in places})
        self.assertIn('gone.html', outputs['txt'].read_text())

    def ask_reader(self, package, reader, *files):
        """What a reader of Debian's has to say."""
        if subprocess.run([SYSTEM_PYTHON, '-c', f'import {package}'], capture_output=True).returncode != 0:
            self.skipTest(f'python3-{package} is not installed')
        answer = subprocess.run([SYSTEM_PYTHON, str(HERE / reader), *map(str, files)], capture_output=True, text=True, timeout=100)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return json.loads(answer.stdout)

    def test_junit_is_read_by_a_reader_that_is_not_ours(self):
        self.checked('--check-output', self.folder / 'links.xml', '--check-output', self.folder / 'links.json')
        told = json.loads((self.folder / 'links.json').read_text())
        read = self.ask_reader('junitparser', 'junit_reader.py', self.folder / 'links.xml')
        self.assertEqual((read['tests'], read['failures']), (read['cases'], len(set(read['failed']))))
        self.assertEqual(set(read['failed']), {finding['url'] for finding in told['findings'] if finding['severity'] == 'error'})

    def test_sarif_is_what_its_schema_says(self):
        self.checked('--check-output', self.folder / 'links.sarif', '--check-output', self.folder / 'links.csv')
        with open(self.folder / 'links.csv', newline='') as file:
            places = list(csv.DictReader(file))
        log = json.loads((self.folder / 'links.sarif').read_text())
        results = log['runs'][0]['results']
        self.assertEqual(len(results), len(places))
        uris = [place['physicalLocation']['artifactLocation']['uri'] for result in results for place in result['locations']]
        self.assertEqual([uri for uri in uris if ':' in uri.split('/')[0]], [], 'GitHub takes no scheme, and what looks like one')
        self.assertTrue(all(result['partialFingerprints'].get('primaryLocationLineHash') for result in results), 'GitHub reads no other')
        rules = log['runs'][0]['tool']['driver']['rules']
        self.assertEqual([rule['id'] for rule in rules if not {'shortDescription', 'fullDescription', 'help'} <= rule.keys()], [], 'GitHub wants these')
        if not SARIF_SCHEMA.is_file():
            self.skipTest('no schema of SARIF (tools/install-dashboard.sh tests)')
        self.assertEqual(self.ask_reader('jsonschema', 'sarif_reader.py', SARIF_SCHEMA, self.folder / 'links.sarif'), [])

    def test_what_is_not_looked_for_does_not_fail_the_run_here_or_there(self):
        lenient = ('--check-only', 'mixed-content,redirect')
        summary = self.checked(*lenient, '--fail-on-broken')
        self.assertGreater(summary['broken'], 0, 'they are told all the same')
        self.look('check', self.database, *lenient)
        self.crawl(self.url + '/', '--check-links', '--check-only', 'mail', '--fail-on-broken', expect=1)
        self.look('check', self.database, '--check-only', 'mail', expect=1)
        self.crawl(self.url + '/', '--check-links', '--check-only', 'broken', '--fail-on-broken', expect=1)
        self.look('check', self.database, '--check-only', 'broken', expect=1)

    def test_a_format_that_is_named_counts_more_than_a_files_name(self):
        file = self.folder / 'links.out'
        self.checked('--check-output', file, '--check-format', 'json')
        self.assertEqual({finding['url'] for finding in json.loads(file.read_text())['findings'] if finding['kind'] == 'broken'},
                         {self.url + path for path in BROKEN})
        result = subprocess.run([ARGIOPE, 'crawl', self.url, '-d', str(self.database), '--check-output', str(file)], capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn('or give --check-format', result.stderr)

    def test_pages_elsewhere_are_asked_again_by_their_age_and_fetched_for_their_fragments(self):
        asked = []

        class Elsewhere(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append((self.command, self.path))
                body = b'<!doctype html><title>there</title><p id=there>' if self.path == '/page' else b''
                self.send_response(200 if body else 404)
                self.send_header('Content-Type', 'text/html')
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                if self.command == 'GET':
                    self.wfile.write(body)

            do_HEAD = do_GET

            def log_message(self, *_):
                pass
        there = f'http://localhost:{self.serve(Elsewhere).server_port}/page'

        def pages():
            requests = [request for request in asked if request[1] == '/page']
            asked.clear()
            return requests
        ANSWERS['/out'] = (200, 'text/html', f'<!doctype html><a href="{there}#there">1</a> <a href="{there}#missing">2</a>')
        self.addCleanup(ANSWERS.pop, '/out')
        start = [self.url + '/out', '--allow-private', '--check-links']
        self.assertEqual(self.crawl(*start)['findings']['fragment'], 0)
        self.assertEqual(pages(), [('HEAD', '/page')])
        self.crawl(*start, '--check-age', '1d')
        self.assertEqual(pages(), [], 'it was asked less than a day ago')
        self.crawl(*start, '--check-age', '0')
        self.assertEqual(pages(), [('HEAD', '/page')])
        self.database = self.folder / 'fragments.db'
        self.crawl(*start, '--check-foreign-fragments')
        self.assertEqual(pages()[-1], ('GET', '/page'))
        told = json.loads(self.look('check', self.database, '--format', 'json', expect=1))
        self.assertEqual([(finding['kind'], finding['url']) for finding in told['findings']], [('fragment', there + '#missing')])

    def changing_site(self, **pages):
        """A site whose pages are those of a dict, which the test changes; the dict, and its address. Pages have no validators. A page
        that is a path redirects there for good, and one that is a number answers with that status alone."""
        pages = {f'/{name}'.replace('/start', '/'): text for name, text in pages.items()}

        class Changing(PageHandler):
            def do_GET(self):
                page = pages.get(self.path, 404)
                body = page.encode() if isinstance(page, str) and not page.startswith('/') else b''
                self.send_response(page if isinstance(page, int) else 200 if body else 301)
                if not body and isinstance(page, str):
                    self.send_header('Location', page)
                self.send_header('Content-Type', {'.css': 'text/css', '.xml': 'application/xml'}.get(self.path[-4:], 'text/html'))
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                if self.command == 'GET':
                    self.wfile.write(body)

            do_HEAD = do_GET
        return pages, self.serve(Changing)

    def run_crawl(self, url, *arguments):
        return subprocess.run([ARGIOPE, 'crawl', url, '-d', str(self.database), '--retries', '0', *map(str, arguments)],
                              capture_output=True, text=True, timeout=PATIENCE, cwd=self.folder)

    def test_the_recipe_of_from_linkchecker_sees_what_has_changed_since_the_last_run(self):
        guide = (HERE.parent.parent / 'docs' / 'from-linkchecker.md').read_text()
        recipe = next(line for line in guide.splitlines() if line.startswith('argiope crawl ')).split()[3:]
        pages, server = self.changing_site(start='<a href=/a>a</a>', a='<a href=/>back</a>')
        url = f'http://127.0.0.1:{server.server_port}/'
        self.assertEqual(self.run_crawl(url, *recipe).returncode, 0)
        pages['/a'] = '<a href=/gone>gone</a>'
        found = self.run_crawl(url, *recipe, '--quiet')
        self.assertEqual(found.returncode, 1, 'a page has a broken link since')
        self.assertIn('/gone', found.stderr)
        self.assertIn('/gone', (self.folder / 'links.csv').read_text())
        pages['/gone'] = 'here'
        self.assertEqual(self.run_crawl(url, *recipe).returncode, 0)
        del pages['/a']
        self.assertEqual(self.run_crawl(url, *recipe).returncode, 1, 'a page is gone since')

    def night(self, url, *arguments):
        """Crawls once more, and gives what is wrong, "kind path < pages", as each output and the exit status agree on it."""
        files = {name: self.folder / name for name in ('links.json', 'links.csv', 'links.xml', 'broken.csv', 'report.html')}
        result = self.run_crawl(url, '--check-links', '--fail-on-broken', '--age', '0', '--quiet', '--summary', 'json', '--html',
                                files['report.html'], '--check-output', files['links.json'], '--check-output', files['links.csv'],
                                '--check-output', files['links.xml'], '--export-broken', files['broken.csv'], *arguments)
        told, summary = json.loads(files['links.json'].read_text()), json.loads(result.stdout)
        self.assertEqual(result.returncode, 1 if told['errors'] else 0, result.stderr)
        broken = {finding['url'] for finding in told['findings'] if finding['kind'] == 'broken'}
        self.assertEqual(summary['broken'], len(broken), 'the crawl by itself says the same')
        self.assertEqual({row['url'] for row in csv.DictReader(io.StringIO(files['broken.csv'].read_text()))}, broken)
        links = csv.DictReader(io.StringIO(files['links.csv'].read_text()))
        self.assertEqual({row['url'] for row in links if row['kind'] == 'broken'}, broken)
        self.assertEqual(files['links.xml'].read_text().count('<failure '), told['errors'])
        self.assertEqual('No broken links.' in files['report.html'].read_text(), not told['findings'])
        self.assertEqual(json.loads(self.look('check', self.database, '--format', 'json', expect=result.returncode))['errors'], told['errors'])
        return [' '.join([finding['kind'], finding['url'].removeprefix(url.rstrip('/')), '<',
                          *(place['page'].removeprefix(url.rstrip('/')) for place in finding['places'])]) for finding in told['findings']]

    def test_a_broken_link_that_was_taken_away_is_no_finding_any_more(self):
        pages, server = self.changing_site(start='<a href=/a>a</a> <a href=/b>b</a>', a='<a href=/gone>g</a>', b='b')
        url = f'http://127.0.0.1:{server.server_port}/'
        self.assertEqual(self.night(url), ['broken /gone < /a'])
        pages['/a'] = 'mended'
        self.assertEqual(self.night(url), [])
        self.assertEqual(self.night(url), [])
        pages['/b'] = '<a href=/gone>moved here</a>'
        self.assertEqual(self.night(url), ['broken /gone < /b'])
        pages['/a'] = '<a href=/gone>and back</a>'
        self.assertEqual(self.night(url), ['broken /gone < /a /b'])
        pages['/b'] = 'b'
        self.assertEqual(self.night(url), ['broken /gone < /a'])
        del pages['/a']
        self.assertEqual(self.night(url), ['broken /a < /'], 'the page is gone with its links')
        pages['/'] = '<a href=/b>b</a>'
        self.assertEqual(self.night(url), [])

    def test_a_broken_link_that_redirects_is_gone_when_any_part_of_the_way_is(self):
        pages, server = self.changing_site(start='<a href=/a>a</a>', a='/b', b='/gone', c='c', d='d')
        url = f'http://127.0.0.1:{server.server_port}/'
        self.assertEqual(self.night(url), ['broken /gone < /'])
        pages['/b'] = '/c'
        self.assertEqual(self.night(url), ['redirect /a < /'])
        pages['/b'] = '/gone'
        self.assertEqual(self.night(url), ['broken /gone < /'])
        pages['/'] = '<a href=/d>d</a>'
        self.assertEqual(self.night(url), [])
        pages['/d'], pages['/gone'] = '/gone', '/gone'
        self.assertEqual(self.night(url), ['broken /d < /', 'broken /gone < /'], 'in a circle now')
        pages['/d'] = 'd'
        self.assertEqual(self.night(url), [])

    def test_what_else_is_wrong_goes_with_its_link_or_its_page(self):
        faults = '<a href=/b#no>f</a> <a href="http://[::bad/">i</a> <a href="mailto:nobody@@example">m</a> <a href=/old>r</a>'
        pages, server = self.changing_site(start='<a href=/a>a</a> <a href=/b>b</a>', a=faults, b='b', old='/b')
        url = f'http://127.0.0.1:{server.server_port}/'
        all_of_them = ['fragment /b#no < /a', 'invalid http://[::bad/ < /a', 'mail mailto:nobody@@example < /a', 'redirect /old < /a']
        self.assertEqual(self.night(url), all_of_them)
        pages['/a'] = 'mended'
        self.assertEqual(self.night(url), [])
        pages['/a'] = faults
        self.assertEqual(self.night(url), all_of_them)
        del pages['/a']
        self.assertEqual(self.night(url), ['broken /a < /'])
        pages['/a'] = faults
        self.assertEqual(self.night(url), all_of_them)
        pages['/a'] = '/b'
        self.assertEqual(self.night(url), ['redirect /a < /'])
        pages['/a'], pages['/b'] = faults, '<p id=no>there'
        self.assertEqual(self.night(url), [finding for finding in all_of_them if 'fragment' not in finding])

    def test_what_a_style_sheet_or_a_sitemap_has_no_more_is_no_finding_any_more(self):
        of = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</urlset>'
        pages, server = self.changing_site(start='<link rel=stylesheet href=/s.css>', b='b')
        url = f'http://127.0.0.1:{server.server_port}/'
        listed = ''.join(f'<url><loc>{url}{page}</loc></url>' for page in ('', 'b', 'gone'))
        pages['/s.css'], pages['/sitemap.xml'] = 'p { background: url(/lost.png) }', of.format(listed)
        self.assertEqual(self.night(url, '--sitemaps'), ['broken /gone < /sitemap.xml', 'broken /lost.png < /s.css'])
        pages['/s.css'] = 'p { color: red }'
        self.assertEqual(self.night(url, '--sitemaps'), ['broken /gone < /sitemap.xml'])
        pages['/sitemap.xml'] = of.format(listed.replace(f'<url><loc>{url}gone</loc></url>', ''))
        self.assertEqual(self.night(url, '--sitemaps'), [])

    def test_what_is_not_known_to_be_gone_stays_a_finding(self):
        pages, server = self.changing_site(start='<a href=/a>a</a>', a='<a href=/gone>g</a>')
        url = f'http://127.0.0.1:{server.server_port}/'
        self.assertEqual(self.night(url), ['broken /gone < /a'])
        pages['/a'] = 503
        self.assertEqual(self.night(url), ['broken /a < /', 'broken /gone < /a'], 'nobody has read the page since')
        told = json.loads((self.folder / 'links.json').read_text())
        self.assertEqual([place['text'] for place in told['findings'][1]['places']], ['g'], 'its links stay as they were known')
        pages['/a'] = 'mended'
        without = self.run_crawl(url, '--fail-on-broken', '--age', '0')
        self.assertEqual(without.returncode, 1, 'a run that keeps no links does not know')
        self.assertEqual(self.night(url), [])
        given = url + 'given'
        self.assertEqual(self.run_crawl(given, '--check-links', '--fail-on-broken').returncode, 1)
        self.assertEqual(self.night(url), ['broken /given < '], 'it was given')

    def test_own_findings_come_first_and_a_host_that_cannot_be_reached_is_told_once(self):
        dead = f'http://localhost:{free_port()}'
        pages, server = self.changing_site(start=f'<a href={dead}/1>1</a> <a href={dead}/2>2</a> <a href=/x>x</a> <a href=/a>a</a>', a=f'<a href={dead}/1>3</a>')
        url = f'http://127.0.0.1:{server.server_port}/'
        self.assertEqual(self.night(url, '--allow-private'), ['broken /x < /', f'broken {dead}/1 < / /a', f'broken {dead}/2 < /'])
        told = json.loads((self.folder / 'links.json').read_text())
        self.assertEqual([finding['elsewhere'] for finding in told['findings']], [False, True, True])
        self.assertEqual(told['silent_hosts'], [{'host': dead.removeprefix('http://'), 'trouble': 'network', 'urls': 2, 'links': 3, 'pages': 2}])
        line = f'{dead.removeprefix("http://")} cannot be reached (network): '
        self.assertIn(line + '3 links on 2 pages\n', self.look('check', self.database, expect=1))
        self.assertIn(line + '<b>3 links</b> on 2 pages</summary>', (self.folder / 'report.html').read_text())
        names = [case.get('name') for case in xml.etree.ElementTree.parse(self.folder / 'links.xml').iter('testcase')]
        self.assertEqual(names[:3], [url + 'x', dead + '/1', dead + '/2'])
        pages['/'] = '<a href=/a>a</a>'
        self.night(url, '--allow-private')
        names = [case.get('name') for case in xml.etree.ElementTree.parse(self.folder / 'links.xml').iter('testcase')]
        self.assertEqual(sorted(names), sorted([url, url + 'a', dead + '/1']), 'what nothing leads to any more has not passed')
        self.assertEqual(json.loads(self.look('status', self.database, '--json'))['broken'], 1)

    def test_findings_say_what_is_new_since_the_night_before_and_on_which_page_it_is(self):
        pages, server = self.changing_site(start='<a href=/a>a</a> <a href=/x>x</a>', a='<a href=/x>x</a>')
        url = f'http://127.0.0.1:{server.server_port}/'
        for check in ([], ['--check-links']):
            self.database = self.folder / f'{len(check)}.db'
            pages['/'] = '<a href=/a>a</a> <a href=/x>x</a>'

            def told(*more):
                result = self.run_crawl(url, *check, '--fail-on-broken', '--age', '0', '--quiet', '--summary', 'json', *more)
                self.assertEqual(result.returncode, 1 if result.stderr else 0, result.stderr)
                return json.loads(result.stdout).get('findings_new'), result.stderr.replace(url, '/').removeprefix('argiope: ').strip()
            what, kind, also = ('error', ', broken: {}', ' and 1 more page') if check else ('broken link', '', '')
            self.assertEqual(told(), (None, f'1 {what}{kind.format(1)} (2 pages read in this run); the first: /x on /{also}'))
            self.assertEqual(told(), (0, f'1 {what}, none new{kind.format(1)} (2 pages read in this run); the first: /x on /{also}'))
            pages['/'] += ' <a href=/y>y</a>'
            news = f'2 {what}s, 1 new{kind.format(2)} (2 pages read in this run); the first new one: /y on /'
            self.assertEqual(told(), (1, news))
            self.assertEqual(told(), (0, news.replace('1 new', 'none new').replace('first new one: /y on /', f'first: /x on /{also}')))

    def test_a_check_that_was_stopped_goes_on_and_asks_nothing_twice(self):
        pages, server = self.changing_site(start=''.join(f'<a href=/{i}>x</a>' for i in range(9)), **{str(i): 'x' for i in range(9)})
        url = f'http://127.0.0.1:{server.server_port}/'
        self.crawl(url, '--check-links', '--max-pages', 4)
        rest = self.crawl(url, '--check-links')
        self.assertEqual(rest['fetched'], 6)
        self.assertEqual(self.crawl(url, '--check-links')['fetched'], 10)

    def test_a_silent_host_elsewhere_is_a_finding_and_one_that_was_given_is_named(self):
        dead = f'http://127.0.0.1:{free_port()}/'
        _, server = self.changing_site(start=f'<a href={dead}>elsewhere</a>')
        url = f'http://127.0.0.1:{server.server_port}/'
        for age in ('0', '1d', '1d'):
            found = self.run_crawl(url, '--check-links', '--fail-on-broken', '--allow-private', '--age', age)
            self.assertEqual(found.returncode, 1, found.stderr)
            self.assertNotIn('nothing could be fetched', found.stderr)
        server.shutdown()
        server.server_close()
        silent = self.run_crawl(url, '--check-links', '--fail-on-broken', '--age', '0')
        self.assertEqual(silent.returncode, 3)
        self.assertRegex(silent.stderr, rf'nothing could be fetched: {url}?: [a-z]+')
        self.assertNotIn('HTTP 200', silent.stderr)

    def test_a_url_is_asked_by_get_where_its_server_breaks_off_at_head_also_without_retries(self):
        class Breaking(http.server.BaseHTTPRequestHandler):
            def do_HEAD(self):
                if self.path != '/robots.txt':
                    self.close_connection = True
                    return
                self.do_GET()

            def do_GET(self):
                self.send_response(404 if self.path == '/robots.txt' else 200)
                self.send_header('Content-Length', '0')
                self.end_headers()

            def log_message(self, *_):
                pass
        there = f'http://localhost:{self.serve(Breaking).server_port}/page'
        ANSWERS['/breaking'] = (200, 'text/html', f'<!doctype html><a href="{there}">1</a>')
        self.addCleanup(ANSWERS.pop, '/breaking')
        summary = self.crawl(self.url + '/breaking', '--allow-private', '--check-links', '--retries', 0)
        self.assertEqual(summary['findings']['broken'], 0)

    def test_a_sitemap_is_written_at_the_end_packed_or_not(self):
        plain, packed = self.folder / 'map.xml', self.folder / 'map.xml.gz'
        self.checked('--sitemap-out', plain)
        self.database = self.folder / 'other.db'
        self.checked('--sitemap-out', packed)
        for text in (plain.read_bytes(), gzip.decompress(packed.read_bytes())):
            self.assertEqual(locations(text), [self.url + path for path in ('/', '/a.html', '/b.html')])

    def test_a_large_sitemap_is_an_index_of_files_that_are_looked_for_where_base_says(self):
        self.checked('--html', self.folder / 'report.html')
        with contextlib.closing(sqlite3.connect(self.database)) as connection, connection:
            columns = [name for _, name, *_ in connection.execute('PRAGMA table_info(urls)') if name not in ('url_id', 'url')]
            connection.execute(f"""INSERT INTO urls (url, {", ".join(columns)})
                WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 50000)
                SELECT ? || n, {", ".join(columns)} FROM number, urls WHERE url = ?""", (self.url + '/more/', self.url + '/a.html'))
        self.look('export', self.database, '--format', 'sitemap', '-o', self.folder / 'map.xml', '--base', self.url + '/maps/')
        self.assertEqual(locations((self.folder / 'map.xml').read_bytes()), [f'{self.url}/maps/map-{number}.xml' for number in (1, 2)])
        parts = [locations((self.folder / f'map-{number}.xml').read_bytes()) for number in (1, 2)]
        self.assertEqual([len(part) for part in parts], [50_000, 3])

    def test_what_cannot_be_written_at_the_end_is_told_before_anything_is_asked(self):
        missing = self.folder / 'none'
        for option, file in (('--html', 'a.html'), ('--sitemap-out', 'a.xml'), ('--export', 'a.csv'), ('--export-broken', 'a.csv'),
                             ('--save-cookies', 'a.txt'), ('--check-output', 'a.json')):
            result = subprocess.run([ARGIOPE, 'crawl', 'http://127.0.0.1:9/', '-d', str(self.database), option, str(missing / file)],
                                    capture_output=True, text=True, timeout=100)
            self.assertEqual((result.returncode, result.stderr), (3, f'argiope: {option} {missing / file}: No such file or directory\n'))
            self.assertFalse(self.database.exists(), 'it had begun')

    def test_fragments_are_missing_where_a_reader_of_the_pages_misses_them(self):
        urls, _ = self.site('--pages', 150)
        self.crawl(*urls, '--check-links', '--html', self.folder / 'report.html')
        told = json.loads(self.look('check', self.database, '--format', 'json', '--check-only', 'fragment', expect=1))
        found = {(finding['url'], place['page']) for finding in told['findings'] for place in finding['places']}
        final = dict(self.rows("SELECT url, redirect_to FROM urls WHERE redirect_to <> ''"))
        pages = {url: Names.of(url) for url, in self.rows(
            "SELECT url FROM urls WHERE status_code = 200 AND content_type LIKE 'text/html%' AND coalesce(reason, '') = ''")}
        missing = set()
        for page, names in pages.items():
            for link in names.links:
                target, _, fragment = link.partition('#')
                end = target
                while end in final:
                    end = final[end]
                if fragment and end in pages and fragment not in pages[end].names:
                    missing.add((target, page))
        print(f'{len(missing)} missing fragments on {len(pages)} pages')
        self.assertGreater(len(missing), 3)
        self.assertEqual({(url.partition('#')[0], page) for url, page in found}, missing)

    def test_what_was_found_is_judged_again_without_asking(self):
        self.checked()
        told = json.loads(self.look('check', self.database, '--format', 'json', expect=1))
        self.assertEqual(told['errors'], sum(finding['severity'] == 'error' for finding in told['findings']))
        # Whoever has only standard error, as a job does, hears what it comes to.
        silent = subprocess.run([ARGIOPE, 'crawl', 'check', self.database, '-o', self.folder / 'found.csv'], capture_output=True,
                                text=True, timeout=100)
        self.assertRegex(silent.stderr, r'^argiope: \d+ errors? and \d+ warnings? in \d+ links? to \d+ URLs?')
        lenient = json.loads(self.look('check', self.database, '--format', 'json', '--check-only', 'broken',
                                       '--accept-status', '..404', expect=1))
        self.assertEqual([finding['url'] for finding in lenient['findings']], [self.url + '/error'])
        self.look('check', self.database, '--check-only', 'broken', '--accept-status', '..599')
        self.look('check', self.database, '--check-only', 'redirect')
        self.look('check', self.database, '--check-only', 'redirect', '--strict', expect=1)

    def test_the_graph_is_that_of_the_pages_and_its_ranks_are_those_of_the_definition(self):
        self.checked('--html', self.folder / 'report.html')
        rows = list(csv.DictReader(io.StringIO(self.look('export', self.database, '--what', 'pages'))))
        ranks = {row['url'].removeprefix(self.url): float(row['pagerank']) for row in rows if row['pagerank']}
        self.assertAlmostEqual(sum(ranks.values()), 1, places=6)
        for path, rank in pagerank(self.edges(ranks)).items():
            self.assertAlmostEqual(ranks[path], rank, places=6, msg=path)
        graph = xml.etree.ElementTree.fromstring(self.look('export', self.database, '--format', 'graphml'))
        space = {'g': 'http://graphml.graphdrawing.org/xmlns'}
        nodes = {node.get('id') for node in graph.iterfind('.//g:node', space)}
        edges = [(edge.get('source'), edge.get('target')) for edge in graph.iterfind('.//g:edge', space)]
        self.assertGreaterEqual(len(nodes), 5)
        self.assertTrue(all(source in nodes and target in nodes for source, target in edges))
        sitemap = self.folder / 'sitemap.xml'
        self.look('export', self.database, '--format', 'sitemap', '-o', sitemap)
        locations = {each.text for each in xml.etree.ElementTree.parse(sitemap).iter('{http://www.sitemaps.org/schemas/sitemap/0.9}loc')}
        self.assertEqual(locations, {self.url + path for path in ('/', '/a.html', '/b.html')})

    def edges(self, pages):
        """Where links of pages lead to other pages, redirects followed to their ends."""
        edges = {}
        for line in csv.DictReader(io.StringIO(self.look('export', self.database))):
            source, target = (line[end].removeprefix(self.url) for end in ('from', 'to'))
            target = '/a.html' if target == '/moved.html' else target
            if source in pages and target in pages and source != target:
                edges.setdefault(source, set()).add(target)
        return edges

    def test_the_report_is_whole_in_a_browser_narrow_and_wide_light_and_dark(self):
        report = self.folder / 'report.html'
        self.checked('--html', report)
        self.expect_good(report)

    def test_a_large_report_is_whole_in_a_browser(self):
        urls, _ = self.site('--pages', LARGE)
        report = self.folder / 'report.html'
        self.crawl(*urls, '--check-links', '--html', report, timeout=600)
        self.expect_good(report)

    def expect_good(self, report):
        for view in self.browse('report', report, os.environ.get('ARGIOPE_PICTURES', '')):
            print(f'{view["width"]} px, {view["scheme"]}: {view["milliseconds"]} ms, {view["bytes"]} bytes')
            self.assertEqual((view['requests'], view['errors']), ([], []))
            self.assertLessEqual(view['scrollWidth'], view['width'], 'it is wider than the window')


def locations(sitemap):
    """The URLs of a sitemap or an index of sitemaps, in their order."""
    return [each.text for each in xml.etree.ElementTree.fromstring(sitemap).iter('{http://www.sitemaps.org/schemas/sitemap/0.9}loc')]


class Names(html.parser.HTMLParser):
    """The names on a page, and its links."""

    @classmethod
    def of(cls, url):
        names = cls()
        names.names, names.links, names.base, names.nofollow = set(), [], url, False
        with urllib.request.urlopen(url) as answer:
            charset = answer.headers.get_content_charset() or 'utf-8'
            body = answer.read()
        if body[:2] in (b'\xff\xfe', b'\xfe\xff'):
            charset = 'utf-16'
        names.feed(body.decode(charset, 'replace'))
        names.links = [urllib.parse.urljoin(names.base, link.strip()) for link in names.links if '#' in link]
        return names

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if values.get('id'):
            self.names.add(values['id'])
        if tag == 'a' and values.get('name'):
            self.names.add(values['name'])
        if tag == 'base':
            self.base = urllib.parse.urljoin(self.base, values['href'])
        if tag == 'a' and 'nofollow' not in (values.get('rel') or '').lower() and values.get('href'):
            self.links.append(values['href'])


def pagerank(edges, damping=0.85):
    """By the definition: a page's rank goes to the pages it links to, that of pages without links to all."""
    nodes = sorted(set(edges) | {target for targets in edges.values() for target in targets})
    ranks = dict.fromkeys(nodes, 1 / len(nodes))
    for _ in range(200):
        idle = sum(rank for node, rank in ranks.items() if not edges.get(node))
        moved = dict.fromkeys(nodes, (1 - damping + damping * idle) / len(nodes))
        for node, targets in edges.items():
            for target in targets:
                moved[target] += damping * ranks[node] / len(targets)
        ranks = moved
    return ranks


if __name__ == '__main__':
    unittest.main()
