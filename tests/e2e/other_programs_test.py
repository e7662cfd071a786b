"""A crawl's database and other programs: URLs that they put in, and those of asyncio-crawler that are taken over."""
import contextlib
import http.server
import itertools
import json
import signal
import sqlite3
import subprocess
import threading
import unittest

from support import ARGIOPE, PATIENCE, EndToEnd

# As asyncio-crawler makes it.
FOREIGN_TABLE = '''CREATE TABLE urls (
  url_id INTEGER PRIMARY KEY AUTOINCREMENT, url TEXT NOT NULL UNIQUE, ctime TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
  mtime TIMESTAMP DEFAULT NULL, content_type TEXT DEFAULT NULL, status_code INTEGER DEFAULT NULL, size INTEGER DEFAULT NULL)'''


class OtherPrograms(EndToEnd):
    def setUp(self):
        super().setUp()
        self.asked = []
        self.go_on = threading.Event()  # from then on /slow is answered

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_GET(handler):
                self.asked.append(handler.path)
                if handler.path == '/robots.txt':
                    kind, body = 'text/plain', b''
                elif handler.path.endswith('.xml'):
                    kind, body = 'application/xml; charset=utf-8', b'<?xml version="1.0"?><doc><a href="from-xml">x</a></doc>'
                elif handler.path == '/links':
                    kind, body = 'text/html', b'<a href=slow>s</a><a href=waits>w</a>'
                else:
                    if handler.path == '/slow':
                        self.go_on.wait(PATIENCE)
                    kind, body = 'text/html', b'<title>x</title>'
                handler.send_response(200)
                handler.send_header('Content-Type', kind)
                handler.send_header('Content-Length', str(len(body)))
                handler.end_headers()
                handler.wfile.write(body)

            def log_message(self, *_):
                pass

        self.url = f'http://127.0.0.1:{self.serve(Handler).server_port}/'

    def put(self, *statements):
        """As any program with SQLite would."""
        with contextlib.closing(sqlite3.connect(self.database, timeout=60)) as connection, connection:
            for sql, *values in statements:
                connection.executemany(sql, values)

    def states(self):
        return dict(self.rows('SELECT url, state FROM urls'))

    def test_what_others_put_in_is_fetched_by_the_next_run(self):
        self.crawl(self.url)
        mine = [(self.url + name,) for name in ('a', 'b#part', 'b', 'c')]
        self.put(('INSERT INTO urls (url) VALUES (?)', *mine),
                 ('INSERT OR IGNORE INTO urls (url, depth) VALUES (?, 3)', (self.url + 'd',)),
                 ('INSERT INTO inbox (url) VALUES (?)', (self.url + 'e',), ('http://127.0.0.2:1/elsewhere',), ('mailto:x@example.org',),
                  ('no url',), (self.url,), (b'\xff\xfe',)))
        self.assertEqual(self.rows('SELECT count(*) FROM urls'), [(1,)])
        self.assertEqual(self.rows('SELECT count(*) FROM inbox'), [(11,)])
        summary = self.crawl(self.url)
        self.assertEqual(summary['inbox'], {'taken': 5, 'known': 2, 'left_out': 1, 'skipped': 3})
        self.assertTrue(summary['finished'])
        self.assertEqual(self.states(), {**{self.url + name: 'done' for name in ('', 'a', 'b', 'c', 'd', 'e')},
                                         'http://127.0.0.2:1/elsewhere': 'excluded'})
        self.assertEqual(self.rows('SELECT depth FROM urls WHERE url LIKE ?', '%/d'), [(3,)])
        self.assertEqual(self.rows('SELECT count(*) FROM inbox'), [(0,)])
        self.assertNotIn('inbox', self.crawl(self.url))

    def test_what_others_put_in_is_picked_up_while_it_runs(self):
        command = [ARGIOPE, 'crawl', '--quiet', '--summary', 'json', '-d', str(self.database), '--linger', '1h',
                   '--schedule-interval-sec', '0.05', self.url]
        crawl = self.start(command, stdout=subprocess.PIPE, text=True)
        self.wait_until(lambda: '/' in self.asked, 'the crawl began')
        for name in ('one', 'two'):
            self.put(('INSERT INTO urls (url) VALUES (?)', (self.url + name,)))
            self.wait_until(lambda: '/' + name in self.asked, 'it was fetched')
        crawl.send_signal(signal.SIGINT)
        crawl.communicate(timeout=PATIENCE)
        self.assertEqual(self.states(), {self.url + name: 'done' for name in ('', 'one', 'two')})

    def test_nothing_is_lost_or_twice_when_others_hammer_and_the_crawl_is_killed(self):
        self.crawl(self.url)
        ended = threading.Event()
        written = itertools.count()
        count = 0

        def hammer():
            nonlocal count
            with contextlib.closing(sqlite3.connect(self.database, timeout=60, isolation_level=None)) as connection:
                while not ended.is_set():
                    if count > len(self.asked) + 500:  # however slowly pages are fetched, the last crawl has an end
                        ended.wait(0.01)
                        continue
                    count = next(written)
                    connection.execute('INSERT INTO urls (url) VALUES (?)', (f'{self.url}page-{count}',))
                    connection.executemany('INSERT INTO urls (url) VALUES (?)', [(f'{self.url}page-{count // 2}',)] * 2)

        writer = threading.Thread(target=hammer)
        writer.start()
        command = [ARGIOPE, 'crawl', '--quiet', '-d', str(self.database), '--linger', '1h', '--schedule-interval-sec', '0.01', self.url]
        for kill in range(6):
            before = len(self.asked)
            crawl = self.start(command, stdout=subprocess.DEVNULL)
            self.wait_until(lambda: len(self.asked) > before + 15, 'something was fetched')
            crawl.kill()
            crawl.wait()
        ended.set()
        writer.join()
        self.crawl(self.url)
        expected = {self.url, *(f'{self.url}page-{i}' for i in range(count + 1))}
        urls = [url for url, in self.rows('SELECT url FROM urls')]
        self.assertEqual(len(urls), len(set(urls)))
        self.assertEqual(set(urls), expected)
        self.assertEqual(set(self.states().values()), {'done'})
        self.assertEqual(self.rows('SELECT count(*) FROM inbox'), [(0,)])

    def test_thousands_are_taken_while_a_host_is_slow(self):
        self.crawl(self.url)
        self.put(('INSERT INTO inbox (url) VALUES (?)', *((f'{self.url}page-{i % 7000}',) for i in range(9000))))
        crawl = self.start([ARGIOPE, 'crawl', '--quiet', '-d', str(self.database), '--delay', '1s', '--schedule-interval-sec', '600', self.url])
        self.wait_until(lambda: self.rows('SELECT count(*) FROM inbox') == [(0,)], 'they were taken')
        self.assertIsNone(crawl.poll())
        crawl.send_signal(signal.SIGINT)
        crawl.wait(PATIENCE)
        self.assertEqual(self.rows('SELECT count(*) FROM urls'), [(7001,)])

    def test_any_depth_can_be_followed(self):
        self.crawl(self.url)
        self.put(('INSERT INTO inbox (url, depth) VALUES (?, ?)', (self.url + 'a.xml', 2**62), (self.url + 'b', 'deep'), (self.url + 'c', -7)))
        self.crawl(self.url)
        depths = dict(self.rows('SELECT url, depth FROM urls'))
        self.assertEqual((depths[self.url + 'b'], depths[self.url + 'c']), (0, 0))
        self.assertGreater(depths[self.url + 'from-xml'], depths[self.url + 'a.xml'])

    def test_a_url_that_is_known_comes_as_near_as_it_is_given(self):
        # In a run that has nothing else to fetch.
        self.crawl(self.url + 'doc.xml', '--max-depth', '0')
        self.put(('INSERT INTO inbox (url, depth) VALUES (?, 3)', (self.url + 'waits',)))
        self.crawl(self.url + 'doc.xml', '--max-depth', '0')
        self.assertEqual(self.states(), {self.url + 'doc.xml': 'done', self.url + 'from-xml': 'excluded', self.url + 'waits': 'excluded'})
        self.put(('INSERT INTO inbox (url, depth) VALUES (?, 0)', (self.url + 'waits',)))
        self.crawl(self.url + 'doc.xml', '--max-depth', '0')
        self.assertEqual(self.states()[self.url + 'waits'], 'done')

    def test_a_url_that_waits_comes_as_near_as_it_is_given(self):
        records = self.folder / 'records.jsonl'
        crawl = self.start([ARGIOPE, 'crawl', '--quiet', '-d', str(self.database), '--schedule-interval-sec', '0.05', '--max-depth', '5',
                            '--per-host', '1', '--field', 'depth:integer=page:depth', '--output', str(records), self.url + 'links'])
        self.wait_until(lambda: '/slow' in self.asked, 'the only connection waits')
        self.put(('INSERT INTO inbox (url, depth) VALUES (?, 0)', (self.url + 'waits',)))
        self.wait_until(lambda: self.rows('SELECT count(*) FROM inbox') == [(0,)], 'it was taken')
        self.go_on.set()
        crawl.wait(PATIENCE)
        depths = {record['url']: record['depth'] for record in map(json.loads, records.read_text().splitlines())}
        self.assertEqual(depths, {self.url + 'links': 0, self.url + 'slow': 1, self.url + 'waits': 0})
        self.assertEqual(dict(self.rows('SELECT url, depth FROM urls')), depths)

    def test_an_inbox_that_is_gone_is_an_error_however_far_the_crawl_is(self):
        crawl = self.start([ARGIOPE, 'crawl', '--quiet', '--summary', 'json', '-d', str(self.database), '--linger', '1h',
                            '--schedule-interval-sec', '0.05', self.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.wait_until(lambda: self.database.exists() and '/' in self.asked, 'it was fetched')
        self.put(('DROP TABLE inbox', ()))
        out, errors = crawl.communicate(timeout=PATIENCE)
        self.assertEqual(crawl.returncode, 3, errors)
        self.assertIn('no such table: inbox', errors)
        self.assertIn('"stopped_by":"store"', out)

    def test_xml_pages_are_read_for_links(self):
        summary = self.crawl(self.url + 'doc.xml')
        self.assertEqual(self.states(), {self.url + 'doc.xml': 'done', self.url + 'from-xml': 'done'})
        self.assertEqual(summary['pages'], 1)

    def test_a_database_of_asyncio_crawler_is_taken_over(self):
        foreign = self.folder / 'crawler.db'
        with contextlib.closing(sqlite3.connect(foreign)) as connection, connection:
            connection.execute(FOREIGN_TABLE)
            connection.executemany(
                "INSERT INTO urls (url, ctime, mtime, content_type, status_code, size) VALUES (?, ?, ?, ?, ?, ?)",
                [(self.url, '2024-05-06 07:08:09', '2024-05-06 08:00:00', 'text/html', 200, 1234),
                 (self.url + '#top', '2024-05-06 07:08:09', None, None, None, None),
                 (self.url + 'gone', '2024-05-06 07:08:10', '2024-05-06 08:00:01', 'text/html', 404, None),
                 (self.url + 'busy', '2024-05-06 07:08:10', '2024-05-06 08:00:02', 'text/html', 503, None),
                 (self.url + 'large', '2024-05-06 07:08:10', '2024-05-06 08:00:02', None, -1, None),
                 (self.url + 'waits', '2024-05-06 07:08:11', None, None, None, None),
                 (self.url + 'asked', 'no time', '2024-05-06 08:00:03', None, None, None),
                 ('mailto:me@example.org', '2024-05-06 07:08:11', None, None, None, None),
                 ('', '2024-05-06 07:08:11', None, None, 'x', 'y')])
        before = foreign.read_bytes()
        opened = subprocess.run([ARGIOPE, 'crawl', '-d', foreign, self.url], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(opened.returncode, 3)
        self.assertIn(f'argiope crawl import {foreign} -d NEW.db', opened.stderr)
        for counts in ('2 done, 1 failed, 3 queued; 1 known already, 2 skipped', '0 done, 0 failed, 0 queued; 7 known already, 2 skipped'):
            result = subprocess.run([ARGIOPE, 'crawl', 'import', foreign, '-d', self.database], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f'9 rows of {foreign} into {self.database}: {counts}', result.stdout)
            self.assertIn('mailto:me@example.org', result.stderr)
        self.assertEqual(foreign.read_bytes(), before)
        row = self.rows("SELECT state, status_code, content_type, size, datetime(ctime/1000, 'unixepoch'), "
                        "datetime(mtime/1000, 'unixepoch') FROM urls WHERE url = ?", self.url)
        self.assertEqual(row, [('done', 200, 'text/html', 1234, '2024-05-06 07:08:09', '2024-05-06 08:00:00')])
        self.crawl(self.url)
        self.assertEqual(sorted(path for path in self.asked if path != '/robots.txt'), ['/asked', '/busy', '/large', '/waits'])

    def test_only_a_database_of_asyncio_crawler_is_taken_over(self):
        self.crawl(self.url)
        text = self.folder / 'text'
        text.write_text('no database at all, but long enough to be taken for one at first sight' * 20)
        for path, reason in ((self.database, 'not made by asyncio-crawler'), (text, 'no SQLite database'),
                             (self.folder / 'none', 'cannot be opened'), (self.folder, '')):
            into = self.folder / 'into.db'
            result = subprocess.run([ARGIOPE, 'crawl', 'import', path, '-d', into], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(result.returncode, 3)
            self.assertIn(str(path), result.stderr)
            self.assertIn(reason, result.stderr)
            self.assertFalse(into.exists())

    def test_random_order_is_that_of_its_seed(self):
        pages = [f'/page-{i}' for i in range(60)]
        orders = []
        for seed in (1, 1, 2):
            self.asked.clear()
            self.database = self.folder / f'order-{len(orders)}.db'
            self.crawl(self.url, '--order', 'random', '--seed', seed, '--max-pages', 1, '--per-host', 1)
            self.put(('INSERT INTO urls (url) VALUES (?)', *((self.url[:-1] + page,) for page in pages)))
            self.crawl(self.url, '--order', 'random', '--seed', seed, '--per-host', 1)
            orders.append([path for path in self.asked if path.startswith('/page-')])
        self.assertEqual(sorted(orders[0]), sorted(pages))
        self.assertEqual(orders[0], orders[1])
        self.assertNotEqual(orders[0], orders[2])
        self.assertNotEqual(orders[0], pages)


if __name__ == '__main__':
    unittest.main()
