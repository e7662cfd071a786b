"""Pages as JavaScript makes them, in the Chromium of this machine."""
import contextlib
import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import unittest

from support import ARGIOPE, EndToEnd

BROWSER = next(filter(None, map(shutil.which, ('chromium', 'chromium-browser', 'google-chrome'))), None)
# Root has no sandbox; whoever else runs this should.
SANDBOX = ['--render-no-sandbox'] if os.geteuid() == 0 else []


class Sites(http.server.BaseHTTPRequestHandler):
    """Answers by path; notes what it was asked."""

    protocol_version = 'HTTP/1.1'
    pages = None
    asked = None

    def do_GET(self):
        self.asked.append((self.command, self.path, dict(self.headers)))
        status, kind, body, *fields = self.pages.get(self.path, (404, 'text/html', 'nothing here'))
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(body)))
        for name, value in fields:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET
    do_DELETE = do_GET

    def log_message(self, *arguments):
        pass


SCRIPT = '''
from pyspider.libs.base_handler import *

class Handler(BaseHandler):
    def on_start(self):
        self.crawl("{origin}/", callback=self.index, fetch_type="js", js_viewport_width=1234,
                   js_script="function() {{ return [innerWidth, document.querySelectorAll('a').length] }}")

    def index(self, response):
        for each in response.doc("a").items():
            self.crawl(each.attr.href, callback=self.item, retries=0, fetch_type="js", js_run_at="document-start", js_script="window.given = 'before'",
                       load_images=each.text() == "shown", cookies={{"who": "me"}})
        return response.js_script_result

    def item(self, response):
        return [response.doc("h1").text(), response.js_script_result]
'''


def page(body):
    return 200, 'text/html; charset=utf-8', '<!doctype html><title>t</title><body>' + body


class Listener:
    """Takes whatever comes to a port of loopback, by TCP and by UDP."""

    # Another site than that of the pages: nothing that they may ask for is there.
    host = '127.0.0.2'

    def __init__(self):
        self.tcp = socket.create_server((self.host, 0))
        self.port = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind((self.host, self.port))
        self.heard = []
        for one in (self.hear_tcp, self.hear_udp):
            threading.Thread(target=one, daemon=True).start()

    def hear_tcp(self):
        while True:
            try:
                connection, _ = self.tcp.accept()
            except OSError:
                return
            self.heard.append('tcp')
            connection.close()

    def hear_udp(self):
        while True:
            try:
                self.udp.recvfrom(2000)
            except OSError:
                return
            self.heard.append('udp')

    def close(self):
        self.tcp.close()
        self.udp.close()


@unittest.skipIf(BROWSER is None, 'there is no Chromium on this machine: chromium, chromium-browser or google-chrome in PATH')
class Rendering(EndToEnd):
    def sites(self, pages):
        """A server of these pages; gives its origin and what it was asked."""
        handler = type('Handler', (Sites,), {'pages': pages, 'asked': []})
        server = self.serve(handler)
        return f'http://127.0.0.1:{server.server_port}', handler.asked

    def render(self, *arguments, **options):
        return self.crawl('--render', *SANDBOX, '--render-timeout', '100s', '--timeout', '100s', *arguments, **options)

    def urls(self):
        return {url.partition('//')[2].partition('/')[2]: (state, status, redirect, error) for url, state, status, redirect, error in
                self.rows('SELECT url, state, status_code, redirect_to, error FROM urls')}

    def test_scripts_lead_through_the_synthetic_web(self):
        urls, log = self.site('--hosts', '1', '--pages', '2', '--features', 'scripts')
        summary = self.render(urls[0])
        found = self.urls()
        for number in range(1, 10):
            self.assertIn(f'scripts/{number}', found)
            self.assertEqual(found[f'scripts/{number}'][1], 200, found)
        self.assertTrue(found['scripts/4'][2].endswith('/scripts/5'), found['scripts/4'])
        self.assertNotIn('scripts/never', found)
        self.assertEqual(summary['rendered']['failed'], 0)
        self.assertEqual(log.read_text().count('/scripts/links.js'), 1)
        self.assertNotIn('favicon', log.read_text())
        without = self.folder / 'without.db'
        self.database = without
        self.crawl(urls[0])
        self.assertNotIn('scripts/2', self.urls())

    def test_a_page_that_never_ends_or_grows_without_end_is_an_error_of_its_own(self):
        urls, _ = self.site('--hosts', '1', '--pages', '2', '--features', 'scripts')
        summary = self.crawl('--render', *SANDBOX, '--render-timeout', '5s', '--retries', '0', '--max-depth', '0',
                             urls[0] + 'scripts/loop')
        self.assertIn('timeout: rendering:', self.urls()['scripts/loop'][3])
        self.assertTrue(summary['finished'])
        # Laying out lines of a megabyte takes the browser longer than it is given; whatever comes of that, others go on.
        summary = self.crawl('--render', *SANDBOX, '--render-timeout', '20s', '--retries', '0', '--max-depth', '0', '-s', '1000',
                             urls[0] + 'scripts/huge', urls[0] + 'scripts/5')
        found = self.urls()
        self.assertEqual(found['scripts/5'][1], 200, found)
        self.assertTrue('rendering:' in found['scripts/huge'][3] or 'cut off at' in found['scripts/huge'][3], found)
        self.assertTrue(summary['finished'])

    def test_a_large_document_is_cut(self):
        origin, _ = self.sites({'/': page("""<script>document.body.style.display = 'none'
            const some = '<p>a few words</p>'.repeat(20000)
            for (let i = 0; i < 10; ++i) document.body.insertAdjacentHTML('beforeend', some)</script>""")})
        self.render(origin + '/', '-s', '1000')
        self.assertEqual(self.urls()[''][1], 200)
        self.assertIn('cut off at', self.urls()[''][3])

    def test_nothing_leaves_the_browser_but_by_the_crawl(self):
        away = Listener()
        self.addCleanup(away.close)
        there = f'{away.host}:{away.port}'
        script = f'''
          for (const u of ['http://10.255.255.1/secret', 'http://169.254.169.254/latest/meta-data', 'file:///etc/passwd'])
            fetch(u).then(() => out('GOT ' + u)).catch(() => out('no'));
          function out(text) {{ document.body.append(text + ' ') }}
          try {{ new WebSocket('ws://{there}/ws') }} catch (e) {{}}
          navigator.sendBeacon('http://{there}/beacon', 'x');
          new Image().src = 'http://{there}/picture';
          window.open('http://{there}/popup');
          try {{ const p = new RTCPeerConnection({{iceServers: [{{urls: 'stun:{there}'}}]}}); p.createDataChannel('x');
                p.createOffer().then(o => p.setLocalDescription(o)) }} catch (e) {{}}
          navigator.serviceWorker.register('/worker.js').catch(() => out('no worker'));
          fetch('http://{there}/post', {{method: 'POST', mode: 'no-cors', body: 'x'}}).catch(() => out('no post'));
          fetch('/api', {{method: 'DELETE'}}).catch(() => out('no delete'));
          const frame = document.createElement('iframe'); frame.src = 'http://{there}/frame'; document.body.append(frame);
          new Worker(URL.createObjectURL(new Blob([`
            try {{ new WebSocket('ws://{there}/ws2') }} catch (e) {{}}
            fetch('http://10.255.255.1/from-worker').catch(() => 0)`])));
          location.hash = 'x';'''
        origin, asked = self.sites({
            '/': page(f'<script>{script}</script><link rel=preconnect href="http://{there}"><link rel=prefetch href="http://{there}/p">'
                      f'<link rel=dns-prefetch href="//leak.example"><a href="/next">on</a>'),
            '/next': page('<p>next')})
        # Waiting makes sure that what is sent late is seen, too.
        summary = self.render(origin + '/', '--render-wait', '3s')
        self.assertEqual(away.heard, [])
        self.assertEqual(summary['rendered'], {'pages': 2, 'requests': 0, 'failed': 0})
        self.assertEqual(sorted(path for _, path, _ in asked if path != '/robots.txt'), ['/', '/next'])

    def test_requests_of_a_page_are_the_crawls_own(self):
        origin, asked = self.sites({
            '/robots.txt': (200, 'text/plain', 'User-agent: *\nDisallow: /private/'),
            '/': (*page('<script src=/s.js></script>'), ('Set-Cookie', 'server=1; HttpOnly')),
            '/s.js': (200, 'text/javascript', '''document.cookie = 'script=2';
                for (const u of ['/data', '/private/data']) fetch(u, {headers: {'X-Token': 't'}}).then(r => r.ok ? r.json() : [])
                    .then(l => l.forEach(h => document.body.innerHTML += `<a href="${h}">x</a>`)).catch(() => 0)'''),
            '/data': (200, 'application/json', '["/made"]'),
            '/private/data': (200, 'application/json', '["/secret"]'),
            '/made': page('<p>made')})
        self.render(origin + '/', '--user-agent', 'spider/9')
        paths = [path for _, path, _ in asked]
        self.assertIn('/data', paths)
        self.assertIn('/made', paths)
        self.assertNotIn('/private/data', paths)
        for _, path, fields in asked:
            self.assertEqual(fields['User-Agent'], 'spider/9', path)
            self.assertNotIn('Sec-Fetch-Mode', fields)
        data = next(fields for _, path, fields in asked if path == '/data')
        self.assertEqual(data['X-Token'], 't')
        self.assertEqual(sorted(data['Cookie'].split('; ')), ['script=2', 'server=1'])
        made = next(fields for _, path, fields in asked if path == '/made')
        self.assertEqual(sorted(made['Cookie'].split('; ')), ['script=2', 'server=1'])

    def test_records_and_archives_are_of_what_scripts_make(self):
        origin, _ = self.sites({
            '/': page('<h1>before</h1><script src=/s.js></script>'),
            '/s.js': (200, 'text/javascript', 'setTimeout(() => document.querySelector("h1").outerHTML = "<h1 class=late>after \\u00e9</h1>", 300)')})
        until = ['--render-until', 'h1.late']
        records = self.folder / 'records.jsonl'
        archive = self.folder / 'site'
        self.render(origin + '/', *until, '--field', 'title=css:h1', '--output', records, '--warc', archive)
        self.assertIn('after é', records.read_text())
        index = pathlib.Path(f'{archive}.cdxj').read_text()
        self.assertIn('/s.js', index)
        # From the archive alone the page becomes the same.
        replayed = self.folder / 'replayed.jsonl'
        result = subprocess.run([ARGIOPE, 'crawl', 'replay', f'{archive}.warc.gz', '--quiet', '--render', *SANDBOX, *until, '--field',
                                 'title=css:h1', '--output', str(replayed)], capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('after é', replayed.read_text())

    def test_a_stream_of_events_holds_up_nothing(self):
        origin, asked = self.sites({
            '/': page("""<script>new EventSource('/events'); fetch('/data').then(() =>
                document.body.insertAdjacentHTML('beforeend', '<a href=/made>made</a>'))</script>"""),
            '/data': (200, 'application/json', '1')})
        self.render(origin + '/')
        self.assertIn('made', self.urls())
        self.assertNotIn('/events', [path for _, path, _ in asked])

    def test_a_page_that_sets_a_cookie_and_loads_itself_anew_is_passed(self):
        origin, asked = self.sites({
            '/': page('<a href=/wall>w</a><a href=/form>f</a><a href=/again>a</a>'),
            '/wall': page("""<script>if (!document.cookie.includes('js=1')) { document.cookie = 'js=1; path=/'; location.reload() }
                else document.body.insertAdjacentHTML('beforeend', '<a href=/behind>b</a>')</script>"""),
            '/form': page('<a href=/below>b</a><form method=post></form><script>document.forms[0].submit()</script>'),
            '/again': page('<a href=/after>b</a><script>location.reload()</script>')})
        summary = self.render('--retries', '0', origin + '/')
        found = self.urls()
        for path in ('behind', 'below', 'after'):
            self.assertIn(path, found)
        self.assertEqual(summary['rendered']['failed'], 0)
        walls = [fields.get('Cookie') for _, path, fields in asked if path == '/wall']
        self.assertEqual(walls, [None, 'js=1'])
        self.assertEqual({method for method, _, _ in asked}, {'GET'})

    def test_one_odd_cookie_keeps_no_other_from_scripts(self):
        origin, _ = self.sites({
            '/': (*page('<a href=/next>n</a>'), ('Set-Cookie', 'good=1'), ('Set-Cookie', 'odd=\xe4'),
                  ('Set-Cookie', 'domain=1; Domain=127.0.0.1'), ('Set-Cookie', '__Host-x=1; Secure; Path=/')),
            '/next': page("""<script>if (document.cookie.includes('good=1'))
                document.body.insertAdjacentHTML('beforeend', '<a href=/seen>s</a>')</script>""")})
        self.render(origin + '/')
        self.assertIn('seen', self.urls())

    def test_a_page_of_another_site_asks_without_what_says_who_we_are(self):
        origin, asked = self.sites({
            '/': page('home'),
            '/other': page("""<script>fetch(`//127.0.0.1:${location.port}/data?cross`, {mode: 'no-cors'}); fetch('/data?own')</script>"""),
            '/data': (200, 'application/json', '1')})
        other = origin.replace('127.0.0.1', 'localhost') + '/other'
        self.render(origin + '/', other, '--header', 'X-Key: secret', '--header-for', '*', 'Accept-Language: de')
        got = {path: (fields.get('X-Key'), fields.get('Accept-Language')) for _, path, fields in asked if path.startswith('/data')}
        self.assertEqual(got, {'/data?cross': (None, 'de'), '/data?own': ('secret', 'de')})

    def test_a_process_of_the_browser_gets_no_more_memory_than_it_may(self):
        origin, _ = self.sites({'/': page('<script>document.body.insertAdjacentHTML("beforeend", "<a href=/made>m</a>")</script>')})
        told = self.folder / 'limit'
        browser = self.folder / 'browser'
        browser.write_text(f'#!/bin/sh\nulimit -d >{told}\nexec {BROWSER} "$@"\n')
        browser.chmod(0o755)
        self.render(origin + '/', '--browser', str(browser))
        self.assertIn('made', self.urls())
        self.assertEqual(int(told.read_text()), 3 * 1024 * 1024)

    def test_no_more_pages_are_rendered_at_a_time_and_nothing_more_is_asked_for_than_the_options_say(self):
        scripts = ''.join(f'<script src=/{name}.js></script>' for name in 'abc')
        links = "document.body.insertAdjacentHTML('beforeend', '<a href=/%s-was-here>x</a>')"
        pages = {'/': page('<a href=/1>1</a> <a href=/2>2</a> <a href=/3>3</a>'),
                 **{f'/{number}': page(scripts) for number in (1, 2, 3)},
                 **{f'/{name}.js': (200, 'text/javascript', links % name) for name in 'abc'}}
        for limit, found in ((0, []), (1, ['/a-was-here']), (100, ['/a-was-here', '/b-was-here', '/c-was-here'])):
            self.database = self.folder / f'{limit}.db'
            origin, _ = self.sites(pages)
            self.render(origin + '/', '--render-requests', limit, '--render-pages', 1, '--per-host', 8)
            self.assertEqual([url for url, in self.rows("SELECT substr(url, ?) FROM urls WHERE url LIKE '%-was-here' ORDER BY url", len(origin) + 1)], found)

    def test_as_many_pages_are_rendered_at_a_time_as_the_option_says(self):
        pages = {'/': page('<a href=/1>1</a> <a href=/2>2</a>'), **{f'/{number}': page(f'<script src=/{number}.js></script>') for number in (1, 2)}}
        for at_a_time in (1, 2):
            lock, under_way, most = threading.Lock(), [], []
            both = threading.Barrier(at_a_time)

            class Counting(Sites):
                asked = []

                def do_GET(self):
                    if not self.path.endswith('.js'):
                        return super().do_GET()
                    with lock:
                        under_way.append(self.path)
                        most.append(len(under_way))
                    both.wait(60)  # as many are here at a time, or it breaks
                    with lock:
                        under_way.remove(self.path)
                    super().do_GET()
            Counting.pages = {**pages, **{f'/{number}.js': (200, 'text/javascript', '') for number in (1, 2)}}
            self.database = self.folder / f'{at_a_time}.db'
            self.render(f'http://127.0.0.1:{self.serve(Counting).server_port}/', '--render-pages', at_a_time, '--per-host', 8)
            self.assertEqual((max(most), both.broken), (at_a_time, False))

    def test_a_page_is_done_when_its_element_is_there(self):
        origin, _ = self.sites({'/': page('<script>setTimeout(() => { document.body.innerHTML = "<a id=late href=/late>x</a>" }, 2000)</script>'),
                                '/late': page('<p id=late>')})
        self.render(origin + '/', '--render-until', '#late')
        self.assertEqual(self.urls()['late'][1], 200)

    def test_a_browser_that_is_killed_is_replaced(self):
        go_on = threading.Event()
        self.addCleanup(go_on.set)

        class Holding(Sites):
            """A script of the third page is there when the browser has been killed."""
            asked = []
            pages = {**{f'/{i}': page(f'<script>document.write("<a href=/{i + 1}>x</a>")</script>') for i in range(1, 12)},
                     '/3': page('<script src=/held.js></script>'),
                     '/held.js': (200, 'text/javascript', 'document.write("<a href=/4>x</a>")')}

            def do_GET(self):
                if self.path == '/held.js':
                    self.asked.append((self.command, self.path, {}))
                    go_on.wait(300)
                super().do_GET()
        origin, asked = f'http://127.0.0.1:{self.serve(Holding).server_port}', Holding.asked
        crawl = self.start([ARGIOPE, 'crawl', '--quiet', '--summary', 'json', '-d', str(self.database), '--render', *SANDBOX,
                            '--timeout', '100s', '--render-timeout', '100s', origin + '/1'], stdout=subprocess.PIPE, text=True)
        self.wait_until(lambda: any(path == '/held.js' for _, path, _ in asked), 'the third page was not rendered', 60)
        browsers = self.browsers_below(crawl.pid)
        self.assertTrue(browsers)
        for process in browsers:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        go_on.set()
        out, _ = crawl.communicate(timeout=300)
        summary = json.loads(out.splitlines()[-1])
        self.assertTrue(summary['finished'])
        self.assertEqual(self.urls()['11'][1], 200)

    def test_no_browser_and_no_folder_is_left_however_the_crawl_ends(self):
        pages = {'/': page('<script>setInterval(() => fetch("/tick"), 100)</script>'), '/tick': (200, 'text/plain', 'x')}
        for end in (signal.SIGINT, signal.SIGKILL):
            self.database = self.folder / f'{end.name}.db'
            origin, asked = self.sites(pages)
            environment = {**os.environ, 'TMPDIR': str(self.folder)}
            crawl = self.start([ARGIOPE, 'crawl', '--quiet', '-d', str(self.database), '--render', *SANDBOX, origin + '/'], env=environment)
            self.wait_until(lambda: any(path == '/tick' for _, path, _ in asked), 'the page did not run', 60)
            browsers = self.browsers_below(crawl.pid)
            self.assertTrue(browsers)
            crawl.send_signal(end)
            crawl.wait(60)
            self.wait_until(lambda: not any(self.is_alive(process) for process in browsers), 'a browser lives on')
            left = list(self.folder.glob('argiope-browser-*'))
            if end == signal.SIGINT:
                self.assertEqual(left, [])
        # What the killed one left behind, the next one removes.
        self.database = self.folder / 'next.db'
        result = subprocess.run([ARGIOPE, 'crawl', '--quiet', '-d', str(self.database), '--render', *SANDBOX, '--render-wait', '0', origin + '/'],
                                env={**os.environ, 'TMPDIR': str(self.folder)}, capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(list(self.folder.glob('argiope-browser-*')), [])

    @staticmethod
    def is_alive(process):
        try:
            return pathlib.Path(f'/proc/{process}/stat').read_text().rsplit(')', 1)[1].split()[0] != 'Z'
        except OSError:
            return False

    @staticmethod
    def browsers_below(process):
        """The processes of Chromium among the descendants of a process."""
        parents = {}
        for entry in pathlib.Path('/proc').iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / 'stat').read_text().rsplit(')', 1)[1].split()
                    parents[int(entry.name)] = int(fields[1])
                except OSError:
                    pass
        found = []
        for one in parents:
            above = one
            while above in parents and above != process:
                above = parents[above]
            if above == process and one != process:
                try:
                    if 'chrom' in pathlib.Path(f'/proc/{one}/cmdline').read_text():
                        found.append(one)
                except OSError:
                    pass
        return found


class Projects(EndToEnd):
    """Pages whose project's script wants them rendered."""

    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)  # a script of root's reads it as a user of its own
        (self.folder / 'data').mkdir()
        self.pages = self.folder / 'data' / 'pages.db'

    def run_project(self, script, *arguments, sandbox='basic', expect=0, **environment):
        (self.folder / 'scripts').mkdir(exist_ok=True)
        (self.folder / 'scripts' / 'shop.py').write_text(script)
        (self.folder / 'shop.toml').write_text('[project]\nname = "shop"\nprocessor = ["python3", "-m", "argiope.processor", "scripts/shop.py"]\n')
        result = subprocess.run([ARGIOPE, 'project', 'run', 'shop.toml', '--once', '--sandbox', sandbox, '--allow-private', '-d', self.pages, *arguments],
                                capture_output=True, text=True, timeout=300, cwd=self.folder, env={**os.environ, **environment})
        self.assertEqual(result.returncode, expect, result.stdout + result.stderr)
        rows = subprocess.run([ARGIOPE, 'project', 'results', 'shop', '-d', self.pages], capture_output=True, text=True, timeout=60, cwd=self.folder)
        return {one['url']: one['value'] for one in map(json.loads, rows.stdout.splitlines())}

    def sites(self, pages):
        handler = type('Handler', (Sites,), {'pages': pages, 'asked': []})
        return f'http://127.0.0.1:{self.serve(handler).server_port}', handler.asked

    @unittest.skipIf(BROWSER is None, 'there is no Chromium on this machine: chromium, chromium-browser or google-chrome in PATH')
    def test_a_script_gets_what_scripts_of_pages_make_and_what_its_own_gave(self):
        item = page('<script src=/item.js></script><script>document.write("<img src=/picture.png>")</script>')
        origin, asked = self.sites({
            '/': page('<script>for (const n of ["shown", "plain"]) document.write("<a href=/" + n + ">" + n + "</a>")</script>'),
            '/item.js': (200, 'text/javascript', 'document.write("<h1>" + window.given + " " + document.cookie + "</h1>")'),
            '/shown': item, '/plain': item})
        results = self.run_project(SCRIPT.format(origin=origin), *SANDBOX)
        self.assertEqual(results, {f'{origin}/': [1234, 2], f'{origin}/shown': ['before who=me', 'before'], f'{origin}/plain': ['before who=me', 'before']})
        paths = [path for _, path, _ in asked]
        self.assertEqual(paths.count('/picture.png'), 1)
        self.assertEqual(paths.count('/item.js'), 2)  # it was sent with the page's cookie, and is no other page's
        self.assertEqual({fields.get('Cookie') for _, path, fields in asked if path == '/item.js'}, {'who=me'})

    @unittest.skipIf(BROWSER is None, 'there is no Chromium on this machine: chromium, chromium-browser or google-chrome in PATH')
    def test_a_script_of_a_page_that_fails_is_the_pages_failure(self):
        origin, _ = self.sites({'/': page('hello')})
        text = SCRIPT.format(origin=origin)
        for script, said in ((text.replace('return [innerWidth', 'return [nothing.there'), 'nothing is not defined'),
                             (text.replace('function() {', 'function() { ('), 'neither a function')):
            with self.subTest(said):
                self.run_project(script.replace('callback=self.index, ', 'callback=self.index, retries=0, '), *SANDBOX, expect=1)
                self.assertIn(said, self.errors())
                self.pages.unlink()

    def test_without_a_browser_such_a_page_fails_and_is_not_asked_for(self):
        origin, asked = self.sites({'/': page('hello')})
        (self.folder / 'bin').mkdir()
        (self.folder / 'bin' / 'python3').symlink_to(sys.executable)
        self.run_project(SCRIPT.format(origin=origin), '--render-no-sandbox', sandbox='none', expect=1, PATH=str(self.folder / 'bin'))
        self.assertIn("request/render: there is no browser in PATH", self.errors())
        self.assertNotIn('/', [path for _, path, _ in asked])

    def test_a_browser_that_is_named_and_not_there_is_told_at_the_start(self):
        (self.folder / 'shop.toml').write_text('[project]\nname = "shop"\nstart = "http://127.0.0.1:9/"\n[[rule]]\nname = "page"\n')
        result = subprocess.run([ARGIOPE, 'project', 'run', 'shop.toml', '--once', '--browser', '/nowhere/chromium'], capture_output=True, text=True, timeout=60,
                                cwd=self.folder)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn('--browser: browser "/nowhere/chromium"', result.stderr)

    def errors(self):
        with contextlib.closing(sqlite3.connect(self.pages)) as connection:
            return ' '.join(error for error, in connection.execute('SELECT error FROM pages WHERE error IS NOT NULL'))


class WithoutABrowser(EndToEnd):
    def refused(self, *arguments, culprit, **environment):
        result = subprocess.run([ARGIOPE, 'crawl', '-d', str(self.database), 'http://127.0.0.1:9/', *arguments], capture_output=True,
                                text=True, timeout=60, env={**os.environ, **environment})
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(culprit, result.stderr)

    def test_it_is_said_at_the_start(self):
        self.refused('--render', '--render-no-sandbox', culprit="Debian's package is `chromium`", PATH='/nowhere')
        self.refused('--render', '--browser', '/nowhere/chromium', culprit='--browser: browser "/nowhere/chromium"')

    def test_options_that_make_no_sense_are_refused(self):
        self.refused('--render-wait', '1s', culprit='--render')
        self.refused('--render', '--threads', '2', culprit='--threads 1')
        self.refused('--render', '--render-wait', '1s', '--render-until', 'p', culprit='one of them')
        self.refused('--render', '--render-only', 're:(', culprit='--render-only')
        self.refused('--render', '--browser', '/bin/true', '--render-no-sandbox', '--render-until', 'a[', culprit='--render-until')
        if os.geteuid() == 0:
            self.refused('--render', '--browser', '/bin/true', culprit='--render-no-sandbox')

    def test_a_program_that_is_no_browser_ends_the_crawl(self):
        result = subprocess.run([ARGIOPE, 'crawl', '-d', str(self.database), 'http://127.0.0.1:9/', '--render', '--render-no-sandbox',
                                 '--browser', '/bin/true'], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn('the browser cannot be started', result.stderr)


if __name__ == '__main__':
    unittest.main()
