"""argiope project run and what looks at it: results are the site's truth, each once whatever kills the run; what is fresh is let be;
scripts, rates, versions, deleting and Ctrl-C."""
import collections
import contextlib
import csv
import http.server
import io
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock
import urllib.request

from support import ARGIOPE, PATIENCE, WALK_ORACLE, EndToEnd, PageHandler, read_log

ALL_PAGES = '''
[project]
name = "{name}"
start = "{start}"
{more}

[[rule]]
name = "page"
age = "{age}"
retries = 0

[rule.fields]
title = "css:title"
heading = "css:h1"
'''
SCRIPT = '''
from argiope.processor import BaseHandler, config

class Handler(BaseHandler):
    def on_start(self):
        self.crawl("{start}", callback=self.index_page)

    @config(age=3600)
    def index_page(self, response):
        for link in response.doc("a").items():
            self.crawl(link.attr.href, callback=self.detail_page)

    def detail_page(self, response):
        print("read", response.url)
        return {{"heading": response.doc("h1").text()}}

    def on_finished(self, response, task):
        self.crawl("data:,end", callback=self.at_the_end)

    def at_the_end(self, response):
        return {{"ended": True}}
'''
AGAIN = '''
from argiope.processor import BaseHandler, config

class Handler(BaseHandler):
    def on_start(self):
        self.crawl("{start}", callback=self.page, age=1, auto_recrawl=True, etag=False, last_modified=False)

    def page(self, response):
        return "old"
'''
WEBHOOK = pathlib.Path(__file__).resolve().parents[2] / 'examples' / 'processors' / 'webhook.py'
TELLTALE = '''
import os
from argiope.processor import BaseHandler

class Handler(BaseHandler):
    def on_start(self):
        print("the key is", os.environ["DOOR_KEY"])
        self.crawl("{start}", callback=self.page)
        self.crawl("{start}2", callback=self.broken, retries=0)

    def page(self, response):
        return {{"key": os.environ["DOOR_KEY"], "length": len(os.environ["DOOR_KEY"])}}

    def broken(self, response):
        raise ValueError("no door for " + os.environ["DOOR_KEY"])
'''
OWN_WAYS = '''
from pyspider.libs.base_handler import *

class Handler(BaseHandler):
    crawl_config = {{"retries": 0, "robots_txt": False, "proxy": "ann:secret@127.0.0.1:{proxy}"}}

    def on_start(self):
        self.crawl("http://127.0.0.9/x", callback=self.by_proxy)
        self.crawl("{secure}", callback=self.directly, proxy=False, validate_cert=False, connect_timeout=90)
        self.crawl("{secure}?verified", callback=self.directly, proxy=False)

    def by_proxy(self, response):
        return {{"by": response.text}}

    def directly(self, response):
        return {{"by": response.url}}
'''
MESSAGES = '''
from pyspider.libs.base_handler import *

class Handler(BaseHandler):
    def on_start(self):
        self.crawl("{start}", callback=self.page)

    def page(self, response):
        for number, name in enumerate(["#0", "#1", ""]):
            self.send_message(self.project_name, {{"n": number}}, url=response.url + name)
        return "a page"

    def on_message(self, project, msg):
        return [project, msg, self.response.url]
'''
SHOP = {
    '/robots.txt': '',
    '/': '<h1>Shop</h1>' + ''.join(f'<a href=/item/{n}>{n}</a>' for n in range(1, 6)) + '<a href=/item/none>none</a>',
    **{f'/item/{n}': f'<h1>Item {n}</h1><b class=p>{n}.50</b>' for n in range(1, 6)},
}
SHOP_FILE = '''
[project]
name = "shop"
start = "{start}"
group = "shops"

[[rule]]
name = "item"
match = "/item/*"
age = "1h"
retries = 0
[rule.fields]
title = "css:h1"
price = {{ css = ".p", type = "number", required = true }}

[[rule]]
name = "list"
match = "/"
{more}
'''


class Gate:
    """Lets as many through as it is told to; whoever comes then waits."""

    def __init__(self):
        self.changed = threading.Condition()
        self.came = self.passed = self.allowed = 0

    def allow(self, count):
        with self.changed:
            self.allowed = count
            self.changed.notify_all()

    def go_through(self):
        with self.changed:
            self.came += 1
            self.changed.wait_for(lambda: self.passed < self.allowed)
            self.passed += 1

    def is_waited_at(self):
        with self.changed:
            return self.passed == self.allowed < self.came


class ProjectRuns(EndToEnd):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)  # a script of root's reads it as a user of its own
        self.pages = self.folder / 'data' / 'pages.db'
        self.pages.parent.mkdir()

    def project(self, command, *arguments, expect=0, timeout=300):
        result = subprocess.run([ARGIOPE, 'project', command, *map(str, arguments), '-d', str(self.pages)], capture_output=True, text=True,
                                timeout=timeout, cwd=self.folder)
        self.assertEqual(result.returncode, expect, result.stdout + result.stderr)
        return result

    def once(self, *arguments, expect=0):
        """A round of the projects; the summary."""
        return json.loads(self.project('run', '--once', '--quiet', '--summary', 'json', *arguments, expect=expect).stdout.splitlines()[-1])

    def run_beside(self, *arguments):
        """Starts a run that goes on."""
        return self.start([ARGIOPE, 'project', 'run', '-d', str(self.pages), *map(str, arguments)], cwd=self.folder, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def file(self, text, name='project.toml'):
        path = self.folder / name
        path.write_text(text)
        return path

    def status(self, name='all'):
        return {one['name']: one for one in json.loads(self.project('status', '--json').stdout)['projects']}[name]

    def results(self, name='all'):
        return [json.loads(line) for line in self.project('results', name).stdout.splitlines()]

    def all_pages(self, start, name='all', age='1h', more=''):
        return self.file(ALL_PAGES.format(name=name, start=start, age=age, more=more), f'{name}.toml')

    def truth(self, start):
        """What an independent walk finds, each page read by urllib."""
        walk = subprocess.run([WALK_ORACLE, start], capture_output=True, text=True, check=True, timeout=300)
        found = {}
        for url in walk.stdout.split():
            with urllib.request.urlopen(url) as answer:
                html = answer.read().decode('utf-8', 'replace')
            found[url] = {name: re.sub(r'\s+', ' ', re.search(f'<{tag}[^>]*>(.*?)</{tag}>', html, re.S).group(1)).strip()
                          for name, tag in (('title', 'title'), ('heading', 'h1'))}
        return found

    def assert_truth(self, results, truth):
        self.assertEqual([count for count in collections.Counter((one['page'], one['part']) for one in results).items() if count[1] > 1], [])
        self.assertEqual({one['url']: one['value'] for one in results}, truth)

    # --- rules

    def test_results_are_the_sites_truth(self):
        urls, _ = self.site('--hosts', 1, '--pages', 60, '--features', 'none', '--seed', 3)
        truth = self.truth(urls[0])
        self.assertEqual(len(truth), 60)
        path = self.all_pages(urls[0])
        output = self.folder / 'out.csv'
        summary = self.once(path, '--results', output)
        self.assertEqual((summary['visits'], summary['failed'], summary['rounds'], summary['error']), (60, 0, 1, ''))
        self.assertEqual(summary['results'], {'added': 60, 'changed': 0, 'gone': 0})
        self.assert_truth(self.results(), truth)
        rows = list(csv.DictReader(io.StringIO(output.read_text())))
        self.assertEqual({row['url']: {'title': row['title'], 'heading': row['heading']} for row in rows}, truth)
        as_json = json.loads(self.project('results', 'all', '--format', 'json').stdout)
        self.assert_truth(as_json, truth)
        self.assertEqual(len(self.project('results', 'all', '--rule', 'none').stdout), 0)
        for name in ('all.json', 'all.jsonl'):
            self.project('results', 'all', '-o', self.folder / name)
        self.assert_truth(json.loads((self.folder / 'all.json').read_text()), truth)
        self.assertEqual(len((self.folder / 'all.jsonl').read_text().splitlines()), 60)

    def test_what_is_fresh_is_not_visited_again_and_what_is_old_is(self):
        urls, log = self.site('--hosts', 1, '--pages', 30, '--features', 'none')
        path = self.all_pages(urls[0])
        self.assertEqual(self.once(path)['visits'], 30)
        asked = len(read_log(log))
        again = self.once(path)
        self.assertEqual((again['visits'], again['rounds'], again['results']), (1, 1, {'added': 0, 'changed': 0, 'gone': 0}))
        self.assertLessEqual(len(read_log(log)) - asked, 2)  # the start, and perhaps robots.txt
        self.all_pages(urls[0], age='50m')
        with contextlib.closing(sqlite3.connect(self.pages)) as database, database:
            database.execute('UPDATE pages SET succeeded_at = succeeded_at - ?', (90 * 60_000,))
        aged = self.once(path)
        self.assertEqual((aged['visits'], aged['results']), (30, {'added': 0, 'changed': 0, 'gone': 0}))
        self.assertEqual(aged['projects'][0]['version'], 2)

    def test_a_run_that_was_killed_goes_on(self):
        start, gate = self.gated_site(300)
        path = self.all_pages(start)
        for part in (60, 150):
            gate.allow(part)
            run = self.run_beside(path, '--once', '--timeout', '1h')
            self.wait_until(gate.is_waited_at, 'it did not get that far')
            run.kill()
            self.assertEqual(run.wait(), -signal.SIGKILL)
        gate.allow(sys.maxsize)
        summary = self.once(path)
        self.assertEqual((summary['failed'], summary['projects'][0]['pages'], summary['projects'][0]['left']), (0, 300, 0))
        self.assert_truth(self.results(), self.truth(start))

    def gated_site(self, pages):
        """A site of so many pages, each of which leads to three others, and the gate that its requests go through."""
        gate = Gate()

        class Gated(PageHandler):
            protocol_version = 'HTTP/1.1'
            disable_nagle_algorithm = True

            def do_GET(self):
                number, links = -1, ''
                if self.path != '/robots.txt':
                    gate.go_through()
                    number = 0 if self.path == '/' else int(self.path.removeprefix('/p/'))
                    links = ''.join(f'<a href=/p/{n}>{n}</a>' for n in range(3 * number + 1, 3 * number + 4) if n < pages)
                body = f'<title>Page {number}</title><h1>Heading {number}</h1>{links}'.encode()
                self.reply(404 if number < 0 else 200, body)
        server = self.serve(Gated)
        server.handle_error = lambda *_: None  # connections of what was killed
        return f'http://127.0.0.1:{server.server_port}/', gate

    def timed_shop(self, pages):
        """A site of so many pages that notes when requests come and when it answers, in lists of times."""
        came, answered = [], []
        links = ''.join(f'<a href=/p/{n}>{n}</a>' for n in range(1, pages))

        class Timed(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_GET(self):
                came.append(time.monotonic())
                body = f'<title>Page {self.path}</title><h1>{self.path}</h1>{links}'.encode()
                answer = b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s' % (len(body), body)
                answered.append(time.monotonic())
                self.wfile.write(b'HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n' if self.path == '/robots.txt' else answer)

            def log_message(self, *_):
                pass
        return f'http://127.0.0.1:{self.serve(Timed).server_port}/', came, answered

    def assert_apart(self, came, answered, gap, at_once):
        """That no request was sent sooner than `gap` after the one before, as far as a server can know that on however busy a machine.

        A request comes some time after it was sent, so that two may come closer together than they were sent. But with `at_once` under way
        at most, number n is sent when n - at_once + 1 have been answered; and number n + steps at least steps * gap later."""
        came, answered = sorted(came), sorted(answered)
        for first in range(at_once, len(came)):
            for steps in range(1, len(came) - first):
                self.assertGreaterEqual(came[first + steps] - answered[first - at_once], steps * gap - 0.002, (first, steps))

    def test_two_projects_on_one_host_keep_its_rate_together(self):
        start, came, answered = self.timed_shop(40)
        one, two = self.all_pages(start, 'one'), self.all_pages(start, 'two')
        summary = self.once(one, two, '--rate', 40, '--per-host', 2)
        self.assertEqual((summary['visits'], summary['rounds']), (80, 2))
        self.assertGreaterEqual(len(came), 80)
        self.assert_apart(came, answered, 1 / 40, 2)
        self.assertEqual(len(self.results('one')), 40)
        self.assertEqual(len(self.results('two')), 40)

    def test_two_projects_on_one_host_keep_its_delay_together(self):
        start, came, answered = self.timed_shop(15)
        one, two = self.all_pages(start, 'one'), self.all_pages(start, 'two')
        self.assertEqual(self.once(one, two, '--delay', '50ms')['visits'], 30)
        # They go one by one, and the pause begins when an answer has come.
        gaps = [came[n + 1] - answered[n] for n in range(len(came) - 1)]
        self.assertGreaterEqual(len(gaps), 29)
        self.assertGreaterEqual(min(gaps), 0.05 - 0.002)

    def shop(self, pages=SHOP):
        class Shop(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = pages.get(self.path)
                self.send_response(404 if body is None else body if isinstance(body, int) else 200)
                body = '' if isinstance(body, int) else body
                self.send_header('Content-Type', 'text/html')
                self.send_header('Content-Length', str(len(body or '')))
                self.end_headers()
                self.wfile.write((body or '').encode())

            def log_message(self, *_):
                pass
        return f'http://127.0.0.1:{self.serve(Shop).server_port}/'

    def test_failures_alarms_and_changes_are_told(self):
        pages = dict(SHOP)
        start = self.shop(pages)
        path = self.file(SHOP_FILE.format(start=start, more='[alarm]\nleast_results = 6\n'))
        result = self.project('run', path, '--once', expect=1)
        for words in ('7 visits', '1 failed, 1 of them for good', '1 round ended', '5 added', 'Failed: ', '/item/none', '404', 'Alarm: shop: '):
            self.assertIn(words, result.stdout)
        self.assertEqual({one['value']['price'] for one in self.results('shop')}, {n + 0.5 for n in range(1, 6)})
        # A page that loses what is required, one that is cheaper now.
        pages['/item/1'] = '<h1>Item 1</h1>'
        pages['/item/2'] = '<h1>Item 2</h1><b class=p>1.99</b>'
        self.file(SHOP_FILE.format(start=start, more='').replace('age = "1h"', 'age = 0'))
        self.assertEqual(self.once(path, expect=1)['results'], {'added': 0, 'changed': 1, 'gone': 1})
        explained = json.loads(self.project('explain', 'shop', f'{start}item/none', '--json').stdout)
        self.assertEqual((explained['known'], explained['state'], explained['rule'], explained['status_code']), (True, 'failed', 'item', 404))
        self.assertIn('404', explained['error'])
        self.assertIn('its last visits failed', self.project('explain', 'shop', f'{start}item/none').stdout)
        self.assertEqual(json.loads(self.project('explain', 'shop', f'{start}other', '--json').stdout)['reason'], 'no_rule')
        self.assertEqual(json.loads(self.project('explain', 'shop', f'{start}item/9', '--json').stdout)['reason'], 'unknown')

    def test_what_waits_for_a_retry_is_left_for_the_next_run(self):
        start = self.shop({**SHOP, '/item/none': 500})
        path = self.file(SHOP_FILE.format(start=start, more='').replace('retries = 0', 'retries = 3\nretry_delay = ["1h"]'))
        result = self.project('run', path, '--once', '--quiet', expect=1)  # which ends before the hour does
        self.assertIn('project "shop": 1 page is left, the next at ', result.stderr)
        explained = json.loads(self.project('explain', 'shop', f'{start}item/none', '--json').stdout)
        self.assertEqual((explained['state'], explained['waits_for'], explained['reason']), ('waiting', 'retry', 'not_due'))

    def test_a_page_is_asked_for_while_nobody_runs(self):
        pages = {path: body for path, body in SHOP.items() if path != '/item/none'}
        pages['/'] = pages['/'].replace('<a href=/item/none>none</a>', '')
        start = self.shop(pages)
        path = self.file(SHOP_FILE.format(start=start, more=''))
        self.once(path)
        self.assertIn('fresh until', self.project('ask', 'shop', f'{start}item/1').stdout)
        self.assertEqual(json.loads(self.project('ask', 'shop', f'{start}item/2', '--force', '--json').stdout)['verdict'], 'again')
        result = self.project('run', path, '--once', '--quiet', '--summary', 'json')
        self.assertEqual(json.loads(result.stdout.splitlines()[-1])['visits'], 2)  # the start, too
        self.assertIn('not paused', self.project('resume', 'shop').stdout)
        for arguments, words in ((('ask', 'shop', 'htp://x/'), 'htp://x/'), (('ask', 'shop', f'{start}other'), 'no rule'),
                                 (('ask', 'nobody', start), 'nobody'),
                                 (('ask', 'shop', start, '--priority', 'high'), '--priority: "high": a whole number from'), (('resume', 'nobody'), 'nobody')):
            self.assertIn(words, self.project(*arguments, expect=2).stderr)

    def test_a_message_is_sent_while_nobody_runs(self):
        start = self.shop({'/': '<h1>One</h1>'})
        self.scripted(MESSAGES.format(start=start))
        self.project('message', 'script', '{"n": 6}', '--url', 'seven')
        self.assertIn('Sent to script', self.project('message', 'script', '{"n": 7}', '--url', 'seven').stdout)
        self.project('run', self.folder / 'script.toml', '--once', '--quiet', '--sandbox', 'basic', '--allow-private')
        self.assertEqual([one['value'] for one in self.results('script') if one['url'] == 'seven'], [['__command__', {'n': 7}, 'seven']])
        for arguments, words in ((('script', 'hello'), 'a text has quotes of its own'), (('nobody',), 'nobody')):
            self.assertIn(words, self.project('message', *arguments, expect=2).stderr)
        self.once(self.all_pages(start))
        self.assertIn('takes no messages', self.project('message', 'all', expect=2).stderr)

    def test_sinks_get_what_becomes_of_results(self):
        start = self.shop()
        path = self.file(SHOP_FILE.format(start=start, more='[[sink]]\nfile = "prices.jsonl"\n'))
        self.project('run', path, '--once', '--quiet', expect=1)
        lines = (self.folder / 'prices.jsonl').read_text().splitlines()
        self.assertEqual(len(lines), 5)
        self.project('run', path, '--once', '--quiet')
        self.assertEqual((self.folder / 'prices.jsonl').read_text().splitlines(), lines)

    def test_a_run_starts_its_projects_by_their_times_and_lets_others_rest(self):
        urls, log = self.site('--hosts', 1, '--pages', 10, '--features', 'none')
        other = self.all_pages(self.shop({'/': '<h1>One</h1>'}), 'other')
        self.once(other)
        path = self.all_pages(urls[0], more='every = "2s"')
        began = time.monotonic()
        run = self.run_beside(path)
        starts = lambda: [entry[0] for entry in read_log(log) if entry[3] == '/']
        self.wait_until(lambda: len(starts()) >= 3, 'no third round')
        run.send_signal(signal.SIGTERM)
        out, _ = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 130)
        self.assertIn('Results: 10 added, 0 changed, 0 gone', out)
        self.assertEqual((self.status()['round']['cause'], self.status('other')['round']['number'], self.status('other')['pages']), ('every', 1, 1))
        # The first round is due when the run begins, or up to 2 s later, and each other one 2 s after the one before; none comes early.
        for number, at in enumerate(starts()[1:]):
            self.assertGreaterEqual(at - began, 2 * number)

    def test_results_go_to_standard_output_and_a_proxy_that_is_not_there_is_told(self):
        path = self.all_pages(self.shop({'/': '<h1>One</h1><title>x</title>'}))
        result = self.project('run', path, '--once', '--results', '-')
        self.assertEqual(json.loads(result.stdout)['value'], {'title': 'x', 'heading': 'One'})
        self.assertIn('1 visit in ', result.stderr)
        failed = self.once(path, '--proxy', 'http://127.0.0.1:1', '--no-proxy', 'none.test', '--retry-wait', 0, expect=1)
        self.assertGreaterEqual(failed['failed'], 1)
        self.assertEqual(len(self.results()), 1)

    # --- beside a run

    def test_status_and_results_beside_a_run(self):
        start, gate = self.gated_site(400)
        path = self.all_pages(start, more='group = "g"')
        gate.allow(200)
        run = self.run_beside(path, '--timeout', '1h')
        self.wait_until(self.pages.exists)
        self.wait_until(lambda: self.is_known('all') and len(self.results()) > 20, 'no results')
        status = self.status()
        self.assertEqual((status['group'], status['status'], status['doing'], status['round']['number']), ('g', 'RUNNING', 'visiting', 1))
        table = self.project('status').stdout
        self.assertIn('RATE/BURST', table)
        self.assertIn('visiting', table)
        refused = self.project('delete', 'all', expect=3).stderr
        self.assertIn(f'process {run.pid} ', refused)
        self.assertIn('stop it first', refused)
        self.assertIn(f'process {run.pid} ', self.project('run', path, '--once', expect=3).stderr)
        gate.allow(sys.maxsize)
        self.wait_until(lambda: self.status()['counters']['success']['all'] == 400, 'not all pages')
        self.assertEqual(self.status()['counters']['pending']['all'], 0)
        self.assertEqual(self.status()['results'], 400)
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(PATIENCE), 130)
        self.assertEqual(self.status()['doing'], 'not run')

    def is_known(self, name):
        found = subprocess.run([ARGIOPE, 'project', 'status', name, '--json', '-d', str(self.pages)], capture_output=True, text=True, timeout=PATIENCE)
        return found.returncode == 0

    def test_ctrl_c_ends_in_order_and_the_next_run_goes_on(self):
        self.expect_end_in_order(signal.SIGINT, 130)

    def test_a_closed_terminal_ends_in_order_and_the_next_run_goes_on(self):
        self.expect_end_in_order(signal.SIGHUP, 129)

    def expect_end_in_order(self, number, status):
        start, gate = self.gated_site(200)
        path = self.all_pages(start)
        gate.allow(30)
        run = self.run_beside(path, '--once', '--summary', 'json', '--timeout', '1h')
        self.wait_until(gate.is_waited_at)
        run.send_signal(number)
        self.assertTrue(any('Stopping: ' in line for line in run.stderr))
        gate.allow(sys.maxsize)
        out, _ = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, status)
        summary = json.loads(out.splitlines()[-1])
        self.assertTrue(summary['interrupted'])
        self.assertLess(summary['visits'], 200)
        rest = self.once(path)
        self.assertEqual(summary['results']['added'] + rest['results']['added'], 200)
        self.assertLessEqual(summary['visits'] + rest['visits'], 201)  # the start once more

    # --- scripts

    def scripted(self, text, *arguments, sandbox='basic', expect=0):
        (self.folder / 'shop.py').write_text(text)
        path = self.file('[project]\nname = "script"\nprocessor = ["python3", "-m", "argiope.processor", "shop.py"]\n', 'script.toml')
        return self.project('run', path, '--once', '--sandbox', sandbox, '--allow-private', *arguments, expect=expect)

    def assert_script_results(self, count):
        found = {one['url']: one['value'] for one in self.results('script')}
        ended = found.pop('data:,end', None)
        self.assertEqual(len(found), count)
        self.assertTrue(all(value['heading'].startswith('Page ') for value in found.values()))
        self.assertEqual(ended, {'ended': True})

    def test_a_script_reads_pages_by_the_helper(self):
        urls, _ = self.site('--hosts', 1, '--pages', 20, '--links', 5, '--features', 'none')
        result = self.scripted(SCRIPT.format(start=urls[0]))
        self.assertIn('script: read http', result.stderr)
        links = len(self.truth_of_links(urls[0]))
        self.assert_script_results(links)

    def test_pages_have_a_way_of_their_own(self):
        class Proxy(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = f'{self.path} {self.headers.get("Proxy-Authorization")}'.encode()
                self.send_response(200)
                self.send_header('Content-Type', 'text/plain')
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        certificate, key = self.folder / 'cert.pem', self.folder / 'key.pem'
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
                        '-subj', '/CN=nobody', '-keyout', key, '-out', certificate], check=True, capture_output=True)
        urls, _ = self.site('--hosts', 1, '--pages', 3, '--features', 'none', '--tls-certificate', certificate, '--tls-key', key)
        script = OWN_WAYS.format(proxy=self.serve(Proxy).server_port, secure=urls[0])
        result = self.scripted(script, '--proxy', 'http://127.0.0.1:1', expect=1)
        found = {one['url']: one['value'] for one in self.results('script')}
        self.assertEqual(found, {'http://127.0.0.9/x': {'by': 'http://127.0.0.9/x Basic YW5uOnNlY3JldA=='}, urls[0]: {'by': urls[0]}})
        self.assertIn('certificate refused', json.loads(self.project('explain', 'script', urls[0] + '?verified', '--json').stdout)['error'])
        self.assertNotIn('secret', result.stdout + result.stderr)

    def test_messages_that_are_called_by_urls_have_results_and_are_not_fetched(self):
        urls, log = self.site('--hosts', 1, '--pages', 3, '--features', 'none')
        self.scripted(MESSAGES.format(start=urls[0]))
        own = [f'{urls[0]}#0', f'{urls[0]}#1', urls[0]]
        expected = [(urls[0], 'a page')] + [(name, ['script', {'n': number}, name]) for number, name in enumerate(own)]
        self.assertCountEqual([(one['url'], one['value']) for one in self.results('script')], expected)
        self.assertEqual(len([entry for entry in read_log(log) if 'robots.txt' not in str(entry)]), 1)

    def test_a_script_that_is_not_that_of_its_version_is_not_run(self):
        urls, _ = self.site('--hosts', 1, '--pages', 3, '--features', 'none')
        self.scripted(SCRIPT.format(start=urls[0]))
        self.assertIn('class Handler', self.project('versions', 'script', '--show-script', 1).stdout)
        self.project('run', '--once', '--sandbox', 'basic', '--allow-private')
        (self.folder / 'shop.py').write_text('import os\n')
        self.assertIn('--show-script 1', self.project('run', '--once', '--sandbox', 'basic', expect=2).stderr)

    def test_a_script_that_is_changed_during_a_run_makes_a_version(self):
        urls, _ = self.site('--hosts', 1, '--pages', 3, '--features', 'none')
        text = SCRIPT.format(start=urls[0])
        self.scripted(text)
        run = self.run_beside('script.toml', '--sandbox', 'basic', '--allow-private')
        self.wait_until(lambda: self.status('script')['doing'] == 'waiting', 'it does not run')
        new = self.folder / 'new.py'
        new.write_text(text.replace('read', 'has read'))
        new.replace(self.folder / 'shop.py')  # at once: half of it would be a version, too
        def versions():
            return json.loads(self.project('versions', 'script', '--json').stdout)['versions']
        self.wait_until(lambda: len(versions()) == 2, 'no version was made of it')
        self.assertEqual(versions()[0]['note'], 'the script has changed')
        self.assertIn('has read', self.project('versions', 'script', '--show-script', 2).stdout)
        run.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(PATIENCE), 130)
        self.project('run', '--once', '--quiet', '--sandbox', 'basic', '--allow-private')  # what is here is what the version has

    def test_killed_between_a_scripts_new_version_and_its_first_page_nothing_is_lost(self):
        urls, _ = self.site('--hosts', 1, '--pages', 3, '--features', 'none')
        text = AGAIN.format(start=urls[0])
        (self.folder / 'shop.py').write_text(text)
        self.file('[project]\nname = "script"\nprocessor = ["python3", "-m", "argiope.processor", "shop.py"]\n', 'script.toml')
        def words():
            return [one['value'] for one in self.results('script')]
        def versions():
            return json.loads(self.project('versions', 'script', '--json').stdout)['versions']
        run = self.run_beside('script.toml', '--sandbox', 'basic', '--allow-private')
        self.wait_until(lambda: self.pages.exists() and self.is_known('script'))
        self.wait_until(lambda: words() == ['old'], 'it was not read')
        # The new one does not come as far as a page before its gate is open.
        gate = self.folder / 'gate'
        new = self.folder / 'new.py'
        new.write_text(f'import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\n' + text.replace('"old"', '"new"'))
        new.replace(self.folder / 'shop.py')
        self.wait_until(lambda: len(versions()) == 2, 'no version was made of it')
        run.kill()
        run.wait(PATIENCE)
        self.assertEqual(words(), ['old'])
        self.assertIn('"new"', self.project('versions', 'script', '--show-script', 2).stdout)
        gate.write_text('')
        run = self.run_beside('script.toml', '--sandbox', 'basic', '--allow-private')
        self.wait_until(lambda: words() == ['new'], 'the new one reads no page')
        self.assertEqual(len(versions()), 2)
        run.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(PATIENCE), 130)

    def truth_of_links(self, url):
        walk = subprocess.run([WALK_ORACLE, '--graph', url], capture_output=True, text=True, check=True, timeout=300).stdout.splitlines()
        page, links = None, set()
        for line in walk:
            kind, _, where = line.partition(' ')
            page = where if kind != 'link' else page
            if kind == 'link' and page == url and where != url:
                links.add(where)
        return links

    @unittest.skipUnless(shutil.which('bwrap'), 'bubblewrap is not installed')
    def test_a_script_is_confined_strictly(self):
        urls, _ = self.site('--hosts', 1, '--pages', 5, '--features', 'none')
        peek = SCRIPT.format(start=urls[0]) + f'''
import os, socket
print("sees", os.path.exists({str(self.pages)!r}))
try:
    socket.create_connection(("127.0.0.1", {urls[0].rsplit(":", 1)[1].strip("/")}), 2)
    print("connected")
except OSError as error:
    print("cut off")
'''
        result = self.scripted(peek, sandbox='strict')
        self.assertIn('sees False', result.stderr)
        self.assertIn('cut off', result.stderr)
        self.assertNotIn('connected', result.stderr)
        self.assertGreater(len(self.results('script')), 1)

    def test_a_virtual_environment_that_is_readable_runs_in_the_strict_sandbox(self):
        start = self.shop({'/': '<h1>One</h1>'})
        venv = self.folder / 'venv'
        subprocess.run(['/usr/bin/python3', '-m', 'venv', '--without-pip', venv], check=True)
        (next(venv.glob('lib/python3*/site-packages')) / 'ours.py').write_text('WORD = "from the environment"')
        (self.folder / 'scripts').mkdir()
        text = SCRIPT.format(start=start).replace('"heading": response', '"word": ours.WORD, "heading": response').replace('index_page)', 'detail_page)', 1)
        (self.folder / 'scripts' / 'shop.py').write_text('import ours\n' + text)
        command = 'processor = ["venv/bin/python", "-m", "argiope.processor", "scripts/shop.py"]\n'
        path = self.file('[project]\nname = "script"\n' + command, 'script.toml')
        run = ['run', path, '--once', '--quiet', '--allow-private']
        self.assertIn('`readable` of [project]', self.project(*run, expect=1).stderr)
        self.file(path.read_text() + 'readable = ["venv"]\n', 'script.toml')
        self.project(*run)
        self.assertIn('from the environment', [one['value'].get('word') for one in self.results('script')])
        # Who runs what the database has is not who wrote the file.
        said = self.project('run', '--once', '--quiet', '--allow-private', expect=1)
        self.assertIn('readable: only a project that came from a file', said.stderr)

    def test_secrets_are_the_scripts_alone(self):
        start = self.shop({'/': '<h1>One</h1>', '/2': '<h1>Two</h1>'})
        (self.folder / 'shop.py').write_text(TELLTALE.format(start=start))
        key = self.folder / 'keys' / 'door'
        key.parent.mkdir()
        key.write_text('open sesame, twice\n')
        key.chmod(0o640)
        path = self.file('[project]\nname = "script"\nprocessor = ["python3", "-m", "argiope.processor", "shop.py"]\n'
                         '[project.secrets]\nDOOR_KEY = "keys/door"\n', 'script.toml')
        result = self.project('run', path, '--once', '--sandbox', 'basic', '--allow-private', '--debug', expect=1)
        self.assertIn('script: the key is ***\n', result.stderr)
        self.assertIn('no door for ***\n', result.stdout)
        self.assertEqual([one['value'] for one in self.results('script')], [{'key': '***', 'length': 18}])
        with sqlite3.connect(self.pages) as database:
            dump = '\n'.join(database.iterdump())
        self.assertIn('keys/door', dump)
        self.assertNotIn('sesame', dump + result.stdout + result.stderr)

        key.chmod(0o644)
        told = self.project('run', path, '--once', '--sandbox', 'basic', '--allow-private', expect=1)
        self.assertIn('others may read it', told.stderr)
        # What the database says a project is may have come from elsewhere: it gets no file that it names.
        self.assertIn('names its secrets alone', self.project('run', '--once', '--sandbox', 'basic', '--allow-private', expect=1).stderr)

    def test_a_webhook_reads_pages(self):
        start = self.shop({'/': '<a class=item href=/item/1>1</a><a class=item href=/item/2>2</a>',
                           **{f'/item/{n}': f'<h1>Item {n}</h1><b class=price>{n}.50</b>' for n in (1, 2)}})
        with unittest.mock.patch.dict(os.environ, SHOP_HOOK='long and random'):
            worker = self.start([sys.executable, WEBHOOK, '0', start], stdout=subprocess.PIPE, text=True)
            port = int(worker.stdout.readline().split()[-1])
            self.addCleanup(worker.stdout.close)
            text = f'[project]\nname = "shop"\nprocessor = {{ webhook = "http://127.0.0.1:{port}/shop", secret_env = "SHOP_HOOK" }}\n'
            path = self.file(text)
            summary = self.once(path, '--allow-private')
            self.assertEqual((summary['visits'], summary['failed']), (4, 0), summary)
            self.assertEqual(sorted((one['value']['name'], one['value']['price']) for one in self.results('shop')), [('Item 1', 1.5), ('Item 2', 2.5)])
            # Pages may not be at private addresses without being asked for, and the webhook may.
            self.file(text.replace('"shop"', '"other"'), 'other.toml')
            self.assertIn('is a loopback address', self.project('run', 'other.toml', '--once', expect=1).stdout)
            os.environ['SHOP_HOOK'] = 'another secret'
            told = self.project('run', path, '--once', '--allow-private', expect=1).stderr
            self.assertIn('status 403', told)
            self.assertIn('not signed with our secret', told)
        worker.kill()
        worker.wait()
        held = socket.socket()  # so that nobody else gets its port
        self.addCleanup(held.close)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(('127.0.0.1', port))
        self.assertIn('cannot be reached', self.project('run', self.file(text.replace(', secret_env = "SHOP_HOOK"', '')), '--once', expect=1).stderr)

    def test_what_is_wrong_with_a_script_is_told(self):
        result = self.scripted('def broken(:\n', expect=1)
        self.assertIn('SyntaxError', result.stderr)
        self.assertIn('project "script": ', result.stderr)
        self.assertEqual(self.status('script')['doing'], 'standing')
        self.assertIn('script: invalid syntax (shop.py:1)', self.project('status').stdout)
        path = self.file('[project]\nname = "other"\nprocessor = ["no-such-program"]\n', 'other.toml')
        self.assertIn('no-such-program', self.project('run', path, '--once', expect=1).stderr)

    def test_a_trace_is_logged_line_by_line(self):
        result = self.scripted('import nothing_of_that_name\n', expect=1)
        self.assertIn('error script: Traceback (most recent call last):\n', result.stderr)
        self.assertIn("error script: ModuleNotFoundError: No module named 'nothing_of_that_name'\n", result.stderr)
        self.assertNotIn('\\n', result.stderr)

    def test_a_private_address_is_refused_with_the_way_to_it(self):
        start = self.shop({'/': '<h1>One</h1>'})
        (self.folder / 'shop.py').write_text(SCRIPT.format(start=start).replace('callback=self.index_page', 'callback=self.detail_page'))
        self.file('[project]\nname = "script"\nprocessor = ["python3", "-m", "argiope.processor", "shop.py"]\n', 'script.toml')
        told = self.project('run', 'script.toml', '--once', '--sandbox', 'basic', expect=1).stdout
        self.assertIn('is a loopback address; --allow-private would connect to it', told)
        self.assertIn('Private addresses are not asked without --allow-private. To ask for such a page again: argiope project ask script URL --force', told)
        self.project('ask', 'script', start, '--force')
        self.assertNotIn('Private addresses', self.project('run', 'script.toml', '--once', '--sandbox', 'basic', '--allow-private').stdout)
        self.assertIn({'heading': 'One'}, [one['value'] for one in self.results('script')])

    # --- what is done with projects

    def test_deleting_is_undone(self):
        start = self.shop({'/': '<h1>One</h1>'})
        path = self.all_pages(start)
        self.once(path)
        self.assertIn('Until ', self.project('delete', 'all').stdout)
        self.assertEqual(self.status()['doing'], 'deleted')
        self.assertIn('was deleted', self.project('delete', 'all', expect=2).stderr)
        self.assertIn('restore', self.project('run', path, '--once', expect=2).stderr)
        self.project('restore', 'all')
        self.assertIn('was not deleted', self.project('restore', 'all', expect=2).stderr)
        self.assertEqual(len(self.results()), 1)
        self.assertEqual(self.once(path)['visits'], 1)
        self.assertIn('did you mean "all"?', self.project('restore', 'al', expect=2).stderr)

    def test_a_stopped_project_is_not_visited(self):
        path = self.all_pages(self.shop({'/': '<h1>One</h1>'}))
        self.once(path)
        self.project('stop', 'all')
        self.assertEqual((self.status()['status'], self.status()['doing']), ('STOP', 'stopped'))
        stopped = self.once(path, expect=1)
        self.assertEqual(stopped['visits'], 0)
        self.assertIn('is STOP', stopped['error'])
        self.project('start', 'all')
        self.assertEqual(self.once(path)['visits'], 1)

    def test_versions_are_listed_compared_and_gone_back_to(self):
        start = self.shop({'/': '<h1>One</h1>'})
        path = self.all_pages(start)
        self.once(path)
        self.once(path)
        self.all_pages(start, age='2h')
        self.once(path)
        versions = json.loads(self.project('versions', 'all', '--json').stdout)['versions']
        self.assertEqual([(one['version'], one['note']) for one in versions], [(2, 'run'), (1, 'run')])
        self.assertEqual(versions[0]['source'], path.read_text())
        difference = self.project('versions', 'all', '--diff', 1, 2).stdout
        self.assertIn('--- all/1/file\n+++ all/2/file\n@@ -', difference)
        self.assertIn('\n-age = "1h"\n+age = "2h"\n', difference)
        self.assertEqual(self.project('versions', 'all', '--diff', 2, 2).stdout, '')
        self.assertIn('version 3 is as version 1 was', self.project('versions', 'all', '--roll-back', 1).stdout)
        self.assertIn('age = "1h"', self.project('versions', 'all', '--show', 3).stdout)
        self.assertEqual(self.once()['projects'][0]['version'], 3)  # without the file
        self.assertIn('has no version 9', self.project('versions', 'all', '--roll-back', 9, expect=2).stderr)

    def test_usage_is_told(self):
        path = self.all_pages('http://127.0.0.1:1/')
        self.assertIn('No such file', self.project('run', 'none.toml', expect=2).stderr)
        self.assertIn('has no projects yet', self.project('run', '--once', expect=2).stderr)
        self.assertIn('--results', self.project('run', path, '--once', '--results', 'out.xml', expect=2).stderr)
        self.assertIn('in another file already', self.project('run', path, path, expect=2).stderr)
        for options in (['--proxy', 'nonsense://x'], ['--header', 'no colon'], ['--header-for', 'a host', 'A: b']):
            self.project('run', path, '--once', *options, expect=2)
        self.assertFalse(self.pages.exists(), 'a refused command has made it')
        self.once(path, '--retry-wait', 0, expect=1)
        self.assertIn('there is no project "x"', self.project('status', 'x', expect=2).stderr)
        self.pages.unlink()
        self.assertIn('argiope project run makes it', self.project('status', expect=3).stderr)


if __name__ == '__main__':
    unittest.main()
