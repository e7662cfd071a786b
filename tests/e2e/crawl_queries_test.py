"""argiope crawl status, urls, requeue and explain: while a crawl runs, and at rest."""
import collections
import json
import signal
import sqlite3
import subprocess
import unittest

from support import ARGIOPE, EndToEnd, read_log


class CrawlQueries(EndToEnd):
    def ask(self, *arguments, expect=0):
        result = subprocess.run([ARGIOPE, 'crawl', *map(str, arguments)], capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, expect, result.stdout + result.stderr)
        return result

    def json(self, command, *arguments):
        return json.loads(self.ask(command, self.database, '--json', *arguments).stdout)

    def urls(self, *arguments):
        return [json.loads(line) for line in self.ask('urls', self.database, '--json', *arguments).stdout.splitlines()]

    def crawled(self, *arguments):
        urls, _ = self.site('--hosts', 2, '--pages', 60, '--seed', 5)
        self.crawl(urls[0], *arguments)
        return urls

    def test_a_crawl_at_rest(self):
        self.crawled('--max-depth', 3)
        status = self.json('status')
        self.assertFalse(status['running'])
        states = dict(self.rows('SELECT state, count(*) FROM urls GROUP BY state'))
        self.assertEqual({state: status[state] for state in ('queued', 'done', 'failed', 'excluded')},
                         {state: states.get(state, 0) for state in ('queued', 'done', 'failed', 'excluded')})
        self.assertEqual(sum(states.values()), status['urls'])
        self.assertEqual(status['reasons'], dict(self.rows('SELECT reason, count(*) FROM urls WHERE reason IS NOT NULL GROUP BY reason')))
        self.assertEqual(status['status'], {str(code): count for code, count in self.rows(
            'SELECT status_code, count(*) FROM urls WHERE status_code IS NOT NULL GROUP BY status_code')})
        text = self.ask('status', self.database).stdout
        self.assertIn('no crawl runs on it', text)
        self.assertIn('http://', text)

    def test_as_many_hosts_are_listed_as_are_asked_for(self):
        urls, _ = self.site('--hosts', 3, '--pages', 10, '--features', 'none')
        self.crawl(*urls)
        status = self.json('status', '--top', 2)
        self.assertEqual((len(status['hosts']), status['host_count']), (2, 3))
        self.assertEqual(self.json('status', '--top', 0)['hosts'], [])
        self.assertIn('… and 2 hosts more; --top N shows more', self.ask('status', self.database, '--top', 1).stdout)

    def test_urls_are_picked_as_sql_would(self):
        urls = self.crawled('--max-depth', 3)
        host = urls[0].rstrip('/')
        for arguments, where in [
            ((), '1'),
            (('--state', 'excluded'), "state = 'excluded'"),
            (('--state', 'done,failed'), "state IN ('done', 'failed')"),
            (('--reason', 'robots', '--reason', 'off_scope'), "reason IN ('robots', 'off_scope')"),
            (('--reason', 'none'), 'reason IS NULL'),
            (('--status', '404'), 'status_code = 404'),
            (('--status', '3xx,404'), 'status_code BETWEEN 300 AND 399 OR status_code = 404'),
            (('--status', '400-499'), 'status_code BETWEEN 400 AND 499'),
            (('--host', host), f"url LIKE '{host}/%'"),
            (('--match', '/docs/**/page-1*'), "url GLOB '*/docs/*/page-1*'"),
            (('--type', 'text/html'), "content_type LIKE 'text/html%'"),
            (('--min-size', '4K'), 'size >= 4096 AND status_code IS NOT NULL'),
            (('--max-size', '1K'), 'size <= 1024 AND status_code IS NOT NULL'),
            (('--broken',), "state = 'failed' OR status_code >= 400"),
            (('--depth', '2..3'), 'depth BETWEEN 2 AND 3'),
            (('--depth', '1'), 'depth = 1'),
            (('--fetched-since', '1h'), 'mtime > 0'),
            (('--fetched-before', '1h'), '0'),
        ]:
            wanted = [url for url, in self.rows(f'SELECT url FROM urls WHERE {where} ORDER BY url_id')]
            self.assertEqual([record['url'] for record in self.urls(*arguments)], wanted, arguments)
        all_ids = [record['url_id'] for record in self.urls()]
        page = self.urls('--limit', 10)
        self.assertEqual([record['url_id'] for record in page], all_ids[:10])
        self.assertEqual([record['url_id'] for record in self.urls('--limit', 10, '--after', page[-1]['url_id'])], all_ids[10:20])
        largest = self.urls('--sort', 'size', '--limit', 5)
        self.assertEqual([record['size'] for record in largest],
                         [size for size, in self.rows('SELECT size FROM urls WHERE size IS NOT NULL ORDER BY size DESC LIMIT 5')])
        plain = self.ask('urls', self.database, '--only-urls', '--status', '404').stdout.split()
        self.assertEqual(plain, [record['url'] for record in self.urls('--status', '404')])
        self.assertIn('url_id', self.ask('urls', self.database, '--limit', 1).stdout)

    def test_bad_usage_is_a_sentence(self):
        self.crawled('--max-depth', 0)
        for arguments, sentence in [
            (('urls', '--status', 'many'), '--status'), (('urls', '--host', 'a/b'), '--host'), (('urls', '--match', 're:('), '--match'),
            (('urls', '--type', 'html'), '--type'), (('urls', '--min-size', 'x'), '--min-size'), (('urls', '--depth', 'x'), '--depth'),
            (('urls', '--fetched-since', 'soon'), '--fetched-since'), (('urls', '--sort', 'size'), '--limit'),
            (('urls', '--state', 'odd'), '--state'), (('requeue',), 'requeue: say which URLs'), (('explain', 'nowhere'), 'nowhere'),
            (('explain', 'http://nowhere.example/'), 'not in database'),
            (('urls', '--limit', '-1'), '--limit: "-1": a whole number, 0 or more'), (('urls', '--after', '-1'), '--after: "-1": a whole number'),
            (('requeue', '--all', '--limit', '-1'), '--limit: "-1": a whole number, 0 or more'), (('status', '--top', '-1'), '--top: "-1"'),
        ]:
            result = self.ask(*arguments, '--db', self.database, expect=2)
            self.assertIn(sentence, result.stderr)
            self.assertEqual(result.stdout, '')

    def test_a_file_of_an_earlier_version_is_brought_up_to_date(self):
        self.crawled('--max-depth', 1)
        urls = self.json('status')['urls']
        with sqlite3.connect(self.database) as connection:
            newest = connection.execute('PRAGMA user_version').fetchone()[0]
            # As the first version had it.
            connection.executescript('''
                DROP VIEW pages; CREATE TABLE old AS SELECT url_id, url, ctime, mtime, state, due, depth, priority, status_code,
                  content_type, size, attempts, referrer, redirect_to, etag, last_modified, digest, error FROM urls;''')
            for (name, kind) in connection.execute("SELECT name, type FROM sqlite_master WHERE name NOT LIKE 'sqlite%' AND name != 'old' "
                                                   "AND type IN ('view', 'trigger')").fetchall():
                connection.execute(f'DROP {kind} {name}')
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' "
                                              "AND name != 'old'").fetchall():
                connection.execute(f'DROP TABLE {name}')
            connection.executescript('''
                CREATE TABLE urls (url_id INTEGER PRIMARY KEY, url TEXT NOT NULL, ctime INTEGER NOT NULL, mtime INTEGER,
                  state TEXT NOT NULL DEFAULT 'queued', due INTEGER, depth INTEGER NOT NULL DEFAULT 0,
                  priority INTEGER NOT NULL DEFAULT 0, status_code INTEGER, content_type TEXT, size INTEGER,
                  attempts INTEGER NOT NULL DEFAULT 0, referrer INTEGER, redirect_to TEXT, etag TEXT, last_modified TEXT,
                  digest TEXT, error TEXT);
                INSERT INTO urls SELECT * FROM old; DROP TABLE old; CREATE VIEW pages AS SELECT * FROM urls; PRAGMA user_version = 1;''')
        connection.close()
        self.assertEqual(self.json('status')['urls'], urls)
        self.assertEqual(self.rows('PRAGMA user_version'), [(newest,)])

    def test_what_is_no_crawl_is_left_alone(self):
        foreign = self.folder / 'foreign.db'
        with sqlite3.connect(foreign) as connection:
            connection.execute('CREATE TABLE t (x)')
        connection.close()
        text = self.folder / 'text.db'
        text.write_text('no database')
        empty = self.folder / 'empty.db'
        empty.touch()
        before = {file: file.read_bytes() for file in (foreign, text, empty)}
        for file in (foreign, text, empty, self.folder / 'missing.db'):
            for arguments in (('status',), ('urls',), ('requeue', '--all'), ('explain', 'http://a.test/')):
                result = self.ask(*arguments, '--db', file, expect=3)
                self.assertIn(file.name, result.stderr)
        self.assertEqual({file: file.read_bytes() for file in before}, before)
        self.assertFalse((self.folder / 'missing.db').exists())

    def test_requeued_urls_are_fetched_by_the_next_run_and_no_others(self):
        urls, _ = self.site('--hosts', 1, '--pages', 40, '--seed', 3)
        self.crawl(urls[0])
        pages = [record['url'] for record in self.urls('--match', '/docs/**/page-1*', '--status', '200')]
        self.assertGreater(len(pages), 3)
        dry = json.loads(self.ask('requeue', self.database, '--match', '/docs/**/page-1*', '--status', '200', '--dry-run', '--json').stdout)
        self.assertEqual(dry, {'requeued': len(pages), 'waiting': 0, 'left': 0, 'dry_run': True, 'by_running_crawl': False})
        self.assertEqual(self.rows("SELECT count(*) FROM urls WHERE state = 'queued'"), [(0,)])
        done = self.ask('requeue', self.database, '--match', '/docs/**/page-1*', '--status', '200').stdout
        self.assertIn(f'{len(pages)} URLs will be fetched again', done)
        self.assertEqual(self.rows("SELECT count(*) FROM urls WHERE state = 'queued'"), [(len(pages),)])
        failed = self.rows("SELECT count(*) FROM urls WHERE state = 'failed'")[0][0]
        self.assertEqual(self.crawl(urls[0])['fetched'] - failed, len(pages))
        self.assertEqual(self.rows("SELECT count(*) FROM urls WHERE state = 'queued'"), [(0,)])
        # What options keep out stays out.
        left = json.loads(self.ask('requeue', self.database, '--reason', 'off_scope', '--json').stdout)
        self.assertEqual(left['requeued'], 0)
        self.assertGreater(left['left'], 0)

    def test_while_a_crawl_runs(self):
        urls, _ = self.site('--hosts', 1, '--pages', 4000, '--seed', 2)  # more than it fetches before it is stopped
        crawl = self.start([ARGIOPE, 'crawl', urls[0], '-d', str(self.database), '--delay', '100ms', '--quiet'])
        self.wait_until(lambda: self.database.exists() and self.rows_or_none("SELECT count(*) FROM urls WHERE state = 'done'") > 3)
        status = self.json('status')
        self.assertTrue(status['running'])
        self.assertGreater(status['queued'], 0)
        self.assertGreater(status['done'], 2)
        self.assertEqual(status['hosts'][0]['queued'], status['queued'])
        self.assertTrue(status['oldest_waiting'])
        waiting = self.urls('--state', 'queued')[-1]['url']
        why = json.loads(self.ask('explain', waiting, self.database, '--json').stdout)
        self.assertEqual((why['state'], why['running']), ('queued', True))
        self.assertIn('waits to be fetched', self.ask('explain', waiting, self.database).stdout)
        self.assertGreater(json.loads(self.ask('requeue', self.database, '--state', 'done', '--dry-run', '--json').stdout)['requeued'], 2)
        crawl.send_signal(signal.SIGINT)
        self.assertEqual(crawl.wait(60), 130)
        self.assertFalse(self.json('status')['running'])

    def requeue(self, *arguments):
        return json.loads(self.ask('requeue', self.database, '--json', *arguments).stdout)

    def test_a_crawl_that_runs_fetches_again_what_is_requeued(self):
        urls, log = self.site('--hosts', 1, '--pages', 40, '--seed', 3)

        def asked():
            return collections.Counter(target for _, _, method, target, _ in read_log(log) if method == 'GET')
        crawl = self.start([ARGIOPE, 'crawl', urls[0], '-d', str(self.database), '--quiet', '--summary', 'json', '--linger', '100s',
                            '--schedule-interval-sec', '0.05'], stdout=subprocess.PIPE, text=True)
        self.wait_until(lambda: self.database.exists() and (self.rows_or_none("SELECT count(*) FROM urls WHERE state = 'done'") > 30
                                                            and self.rows_or_none("SELECT count(*) FROM urls WHERE state = 'queued'") == 0))
        known = self.rows('SELECT url_id, url, state, reason, status_code, digest FROM urls')
        picked = ['--match', '/docs/**/page-1*', '--status', '200']
        pages = [record['url'].removeprefix(urls[0].rstrip('/')) for record in self.urls(*picked)]
        before = asked()
        self.assertEqual(self.requeue(*picked), {'requeued': len(pages), 'waiting': 0, 'left': 0, 'dry_run': False, 'by_running_crawl': True})
        self.assertIn('the crawl that runs', self.ask('requeue', self.database, *picked, '--limit', 1).stdout)
        self.wait_until(lambda: all(asked()[page] > before[page] for page in pages))
        with sqlite3.connect(self.database, timeout=60) as connection:  # as nobody should
            connection.executemany('INSERT INTO inbox (url, again) VALUES (?, ?)',
                                   [(urls[0], 2), (urls[0], 10**12), (urls[0], -1), ('no url', 1), (urls[0], 'x')])
        connection.close()
        self.wait_until(lambda: self.rows('SELECT count(*) FROM inbox') == [(0,)]
                        and self.rows("SELECT count(*) FROM urls WHERE state = 'queued'") == [(0,)])
        crawl.send_signal(signal.SIGINT)
        out, _ = crawl.communicate(timeout=30)
        inbox = json.loads(out.splitlines()[-1])['inbox']
        self.assertIn(inbox['taken'] + inbox['known'], (len(pages) + 1, len(pages) + 2))  # the one of --limit may have waited already
        self.assertGreaterEqual(inbox['taken'], len(pages))
        self.assertEqual(inbox['skipped'], 4)
        self.assertEqual(self.rows('SELECT url_id, url, state, reason, status_code, digest FROM urls'), known)
        others = {target: count for target, count in asked().items() if target not in pages}
        self.assertEqual(others, {target: count for target, count in before.items() if target not in pages})

    def test_what_a_crawl_was_to_fetch_again_when_it_was_killed_is_fetched_by_the_next(self):
        urls, log = self.site('--hosts', 1, '--pages', 30, '--seed', 3)
        self.crawl(urls[0])
        crawl = self.start([ARGIOPE, 'crawl', urls[0], '-d', str(self.database), '--quiet', '--age', '0', '--delay', '1h',
                            '--schedule-interval-sec', '600'])
        seen = len(read_log(log))
        self.wait_until(lambda: len(read_log(log)) > seen)
        # While it asks all of them, nothing but what it has asked already is to be asked for.
        requeued = self.requeue('--status', '200')
        self.assertGreater(requeued['requeued'], 10)
        crawl.kill()
        crawl.wait()
        self.assertEqual(self.rows('SELECT count(*) FROM inbox'), [(requeued['requeued'],)])
        fetched = self.rows("SELECT count(*) FROM urls WHERE status_code = 200")[0][0]
        summary = self.crawl(urls[0])
        self.assertGreaterEqual(summary['fetched'], fetched)
        self.assertTrue(summary['finished'])
        self.assertEqual(self.rows("SELECT count(*) FROM urls WHERE state = 'queued'"), [(0,)])

    def test_a_crawl_that_goes_on_leaves_a_requeue_to_its_age(self):
        urls, _ = self.site('--hosts', 1, '--pages', 20, '--seed', 3)
        crawl = self.start([ARGIOPE, 'crawl', urls[0], '-d', str(self.database), '--quiet', '--summary', 'json', '--age', '1h', '--forever',
                            '--schedule-interval-sec', '0.05'], stdout=subprocess.PIPE, text=True)
        self.wait_until(lambda: self.database.exists() and self.rows_or_none("SELECT count(*) FROM urls WHERE state = 'done'") > 15)
        requeued = self.requeue('--status', '200')
        self.assertTrue(requeued['by_running_crawl'])
        self.wait_until(lambda: self.rows('SELECT count(*) FROM inbox') == [(0,)])
        crawl.send_signal(signal.SIGINT)
        out, _ = crawl.communicate(timeout=30)
        self.assertEqual(json.loads(out.splitlines()[-1])['inbox'], {'taken': 0, 'known': requeued['requeued'], 'left_out': 0, 'skipped': 0})

    def rows_or_none(self, query):
        try:
            return self.rows(query)[0][0]
        except sqlite3.OperationalError:
            return -1

    def test_explain_says_how_a_page_was_found_and_who_links_to_it(self):
        urls = self.crawled('--max-depth', 3, '--links')
        deep = self.rows("SELECT u.url, r.url FROM urls u JOIN urls r ON r.url_id = u.referrer WHERE u.depth = 3 AND u.status_code = 200")[0]
        why = json.loads(self.ask('explain', deep[0], self.database, '--json').stdout)
        self.assertEqual(why['way'][0]['url'], urls[0])
        self.assertEqual(why['way'][-1]['url'], deep[0])
        self.assertEqual(why['referrer'], deep[1])
        self.assertTrue(why['whole_way'])
        self.assertIn(deep[1], [page['url'] for page in why['linked_from']])
        self.assertGreater(why['linked_from'][0]['line'], 0)
        self.assertIn('the way there, 3 links from a seed', self.ask('explain', deep[0], self.database).stdout)
        excluded = self.rows("SELECT url FROM urls WHERE reason = 'robots'")[0][0]
        self.assertIn('robots.txt forbids it', self.ask('explain', excluded, self.database).stdout)
        self.assertIn('--no-robots', self.ask('explain', excluded, self.database).stdout)
        redirect, target = self.rows("SELECT url, redirect_to FROM urls WHERE redirect_to IS NOT NULL")[0]
        self.assertEqual(json.loads(self.ask('explain', redirect, self.database, '--json').stdout)['leads_to'][0], target)
        # The other command says the same.
        same = subprocess.run([ARGIOPE, 'explain', deep[0], '-d', str(self.database), '--json'], capture_output=True, text=True, timeout=60)
        self.assertEqual(json.loads(same.stdout), why)

    def test_what_cannot_be_said_is_an_error(self):
        urls = self.crawled('--max-depth', 1)
        for arguments in (['status'], ['status', '--json'], ['urls'], ['explain', urls[0]], ['requeue', '--all', '--dry-run'], ['diff'], ['check']):
            with open('/dev/full', 'w') as full:
                result = subprocess.run([ARGIOPE, 'crawl', arguments[0], *arguments[1:], str(self.database)], stdout=full, stderr=subprocess.PIPE,
                                        text=True, timeout=60)
            self.assertEqual(result.returncode, 3, arguments)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    def test_nobody_has_to_read_all(self):
        self.crawled()
        reader = subprocess.Popen([ARGIOPE, 'crawl', 'urls', str(self.database)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn('url_id', reader.stdout.readline())
        reader.stdout.close()
        self.assertEqual(reader.stderr.read(), '')
        reader.stderr.close()
        self.assertIn(reader.wait(30), (0, -signal.SIGPIPE))


if __name__ == '__main__':
    unittest.main()
