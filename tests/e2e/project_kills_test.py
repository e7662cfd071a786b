"""A project with a script in Python whose process is killed at random instants: its results are the site's truth, each once, its sink has
each event once and in order, no more visits are repeated than were under way at the kills, and of each round the end is told once.

Most kills come while pages are visited: the site answers no more of them than leave some for the rest. The others come around the ends of
rounds. What is told of a round's end is what is committed: a callback that ran and whose commit was killed runs again, and then its
results, pages and messages are those of the run that was committed.

ARGIOPE_KILLS says how often (8), ARGIOPE_SEED by which instants."""
import collections
import json
import os
import random
import signal
import sqlite3
import subprocess
import threading
import time
import unittest

from support import ARGIOPE, EndToEnd, PageHandler

KILLS = int(os.environ.get('ARGIOPE_KILLS', 8))
KILLS_AT_THE_END = max(1, KILLS // 4)
SEED = int(os.environ.get('ARGIOPE_SEED', time.time()))
PAGES = max(300, 90 * KILLS)
CONCURRENCY = 8

SCRIPT = '''
import os
from argiope.processor import BaseHandler

class Handler(BaseHandler):
    def on_start(self):
        self.crawl("{start}", callback=self.index_page)

    def index_page(self, response):
        for link in response.doc("a").items():
            self.crawl(link.attr.href, callback=self.index_page)
        return {{"url": response.url, "heading": response.doc("h1").text()}}

    def on_finished(self, response, task):
        self.crawl("{start}finished/%d" % response.save["round"], callback=self.told)
        return {{"round": response.save["round"]}}

    def told(self, response):
        return {{"finished": True}}
'''
PROJECT = '''
[project]
name = "killed"
scope = ["127.0.0.1:{port}"]
processor = ["/usr/bin/python3", "-m", "argiope.processor", "script/site.py"]

[[sink]]
file = "out/results.jsonl"
'''


def links_of(page):
    """Each page leads to three others; all are reached from 0."""
    return [n for n in (3 * page + 1, 3 * page + 2, 3 * page + 3) if n < PAGES]


class Site(PageHandler):
    protocol_version = 'HTTP/1.1'
    visits = collections.Counter()
    gate = threading.Condition()
    allowed = 0  # pages that are answered; further ones wait

    @classmethod
    def allow(cls, pages):
        with cls.gate:
            cls.allowed = pages
            cls.gate.notify_all()

    @classmethod
    def pages_seen(cls):
        return sum(1 for path in cls.visits if path == '/' or path.startswith('/p/'))

    def do_GET(self):
        if self.path == '/robots.txt':
            return self.reply(404, b'')
        with Site.gate:
            Site.visits[self.path] += 1
            Site.gate.wait_for(lambda: Site.pages_seen() <= Site.allowed)
        if self.path.startswith('/finished/'):
            return self.reply(200, b'<h1>finished</h1>')
        page = 0 if self.path == '/' else int(self.path.removeprefix('/p/'))
        links = ''.join(f'<a href="/p/{n}">{n}</a>' for n in links_of(page))
        self.reply(200, f'<h1>Page {page}</h1>{links}'.encode())


class Kills(EndToEnd):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)
        for name in ('data', 'script', 'out'):
            (self.folder / name).mkdir()
        self.pages = self.folder / 'data' / 'pages.db'

    def run_project(self):
        return subprocess.Popen([ARGIOPE, 'project', 'run', 'project.toml', '--once', '-d', str(self.pages), '--quiet', '--allow-private',
                                 '--per-host', str(CONCURRENCY), '--concurrency', str(CONCURRENCY), '--sandbox', 'basic'], cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def kill_one(self, after):
        """A run that is killed then; whether it was before its end."""
        process = self.run_project()
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        out, _ = process.communicate()
        self.assertIn(process.returncode, (0, -signal.SIGKILL), out)
        return process.returncode != 0

    def test_kills_lose_and_double_nothing(self):
        print(f'ARGIOPE_SEED={SEED}')
        chance = random.Random(SEED)
        Site.visits.clear()
        server = self.serve(Site)
        server.handle_error = lambda *_: None  # connections of what was killed
        start = f'http://127.0.0.1:{server.server_address[1]}/'
        (self.folder / 'script' / 'site.py').write_text(SCRIPT.format(start=start))
        (self.folder / 'project.toml').write_text(PROJECT.format(port=server.server_address[1]))
        kills = 0
        for kill in range(KILLS - KILLS_AT_THE_END):
            Site.allow((PAGES - 1) * (kill + 1) // KILLS)
            self.assertTrue(self.kill_one(chance.uniform(0.1, 1.5)), 'it cannot end, for the site does not answer')
            kills += 1
        Site.allow(PAGES)
        began = time.monotonic()
        process = self.run_project()
        out, _ = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, out)
        longest = time.monotonic() - began
        while kills < KILLS:
            began = time.monotonic()
            if self.kill_one(chance.uniform(0, longest)):
                kills += 1
            else:
                longest = min(longest, time.monotonic() - began)  # a round in which nothing is left to visit
        process = self.run_project()
        out, _ = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, out)
        self.assertEqual(kills, KILLS)

        with sqlite3.connect(f'file:{self.pages}?mode=ro', uri=True) as database:
            results = database.execute('SELECT p.name, r.part, r.value FROM results r JOIN pages p USING (page_id)').fetchall()
            rounds = database.execute('SELECT number, ended, finished_told FROM rounds ORDER BY number').fetchall()
        truth = {(start if n == 0 else f'{start}p/{n}'): f'Page {n}' for n in range(PAGES)}
        found = {name: json.loads(value) for name, part, value in results if name in truth}
        self.assertEqual({name: value['heading'] for name, value in found.items()}, truth)
        self.assertEqual([count for count in collections.Counter((name, part) for name, part, _ in results).values() if count > 1], [])

        again = sum(count - 1 for count in Site.visits.values())
        self.assertEqual(Site.pages_seen(), PAGES)
        self.assertLessEqual(again, kills * CONCURRENCY, 'each kill repeats what was under way at most')

        events = [json.loads(line) for line in (self.folder / 'out' / 'results.jsonl').read_text().splitlines()]
        numbers = [event['number'] for event in events]
        self.assertEqual(numbers, sorted(set(numbers)), 'the sink has each event once, in order')
        added = collections.Counter(event['page'] for event in events if event['news'] == 'added')
        self.assertEqual([page for page, count in added.items() if count > 1], [])
        numbers = [number for number, end, told in rounds]
        self.assertEqual(numbers, list(range(1, len(rounds) + 1)))
        self.assertTrue(all(end is not None and told for _, end, told in rounds), rounds)
        told = [event['value']['round'] for event in events if event['page'] == 'data:,on_finished']
        self.assertEqual(told, numbers, 'of each round the end is told once, and in order')
        self.assertEqual(set(added), set(truth) | {'data:,on_finished'} | {f'{start}finished/{number}' for number in numbers})
        print(f'{kills} kills, {PAGES} pages, {again} of at most {kills * CONCURRENCY} visits repeated, {len(events)} events, {len(rounds)} rounds')


if __name__ == '__main__':
    unittest.main()
