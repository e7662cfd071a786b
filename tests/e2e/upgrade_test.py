"""Stores and crawl databases that an earlier argiope has left are brought up to date, list the same, and go on. The files are in
tests/data/stores, one folder for each day that a format is of."""
import contextlib
import functools
import gzip
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import sys
import tempfile
import unittest

from support import PATIENCE, Commands, lines_of

STORES = pathlib.Path(__file__).resolve().parent.parent / 'data' / 'stores'
sys.path.insert(0, str(STORES))
from make import SITE, UNTIL_GO, WORK, site  # noqa: E402


def on_every(name):
    """The test runs on the file `name` of each folder, and is given what was said of it when it was made."""
    def decorate(test):
        @functools.wraps(test)
        def on_each(self):
            folders = sorted(path.parent for path in STORES.glob('*/said.json'))
            self.assertTrue(folders)
            for made in folders:
                with self.subTest(made=made.name):
                    self.folder = pathlib.Path(tempfile.mkdtemp(prefix='argiope-e2e-'))
                    self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
                    self.database = self.folder / name
                    self.database.write_bytes(gzip.decompress((made / f'{name}.gz').read_bytes()))
                    self.store = f'sqlite:{self.database}'
                    self.around = {'cwd': '/', 'env': {**os.environ, 'RUN_IN': str(self.folder)}}
                    test(self, json.loads((made / 'said.json').read_text()))
        return on_each
    return decorate


class Upgrades(Commands):
    def dump(self):
        """All there is in the file, its format too."""
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            return [*connection.execute('PRAGMA user_version').fetchone(), *connection.iterdump()]

    def assert_still_said(self, now, then, but=()):
        """What is listed now has all that was listed then, but for members that have been renamed."""
        self.assertEqual(len(now), len(then))
        for found, was in zip(now, then):
            self.assertEqual({name: found.get(name) for name in was if name not in but},
                             {name: value for name, value in was.items() if name not in but})


class Jobs(Upgrades):
    def work(self, queue, command):
        lines = self.run_it('job', 'work', '--store', self.store, queue, '--until-empty', '--json', '--', 'sh', '-c', command,
                            **self.around).stdout.splitlines()
        return [json.loads(line) for line in lines]

    @on_every('jobs.db')
    def test_jobs_are_listed_as_they_were(self, said):
        self.assert_still_said(self.json('list', '--limit', '100'), said['jobs'])
        self.assert_still_said(self.json('stats'), said['stats'])
        for name, policy in said['queues'].items():
            self.assert_still_said(self.json('queue', name), [policy])
        before = self.dump()
        self.json('list')
        self.assertEqual(self.dump(), before, 'the second time there is nothing left to do')

    @on_every('jobs.db')
    def test_jobs_go_on(self, _):
        self.work('mail', WORK)
        states = {job['name']: job['state'] for job in self.json('list', '--limit', '100') if 'name' in job}
        self.assertEqual({name: states[name] for name in ('ready0', 'ready5', 'after', 'whatever-happens')},
                         dict.fromkeys(('ready0', 'ready5', 'after', 'whatever-happens'), 'done'))
        self.assertEqual({name: states[name] for name in ('wrong', 'failing', 'called-off', 'new-year', 'held',
                                                          'all-are-done', 'one-of-all')},
                         {'wrong': 'buried', 'failing': 'buried', 'called-off': 'cancelled', 'new-year': 'delayed',
                          'held': 'ready', 'all-are-done': 'delayed', 'one-of-all': 'delayed'})
        self.assertEqual(self.json('show', 'ready3')[0]['result'], 'got ready 3\n')
        # A name is still taken, a batch still waits for its last member, what is buried still runs when it is kicked.
        self.assertEqual(self.job('put', 'mail', 'again', '--id', 'ready0').strip(), 'ready0')
        taken = self.job('put', 'mail', 'other', '--unique', 'greeting').strip()
        self.assertEqual(taken, str(self.json('show', 'new-year')[0]['id']))
        self.job('kick', 'one-of-all', 'wrong')
        self.job('queue', 'held', '--resume')
        self.work('mail', 'true')
        self.work('held', 'true')
        for name in ('one-of-all', 'all-are-done', 'wrong', 'held'):
            self.assertEqual(self.json('show', name)[0]['state'], 'done', name)
        before = self.json('stats')
        self.work('mail', 'true')
        self.assertEqual(self.json('stats'), before, 'nothing runs twice')

    @on_every('jobs.db')
    def test_what_ran_when_its_worker_was_killed_runs_again(self, said):
        self.assertEqual([job['state'] for job in said['jobs'] if job.get('name') == 'long'], ['running'])
        (self.folder / 'go').touch()
        self.work('slow', UNTIL_GO)
        job = self.json('show', 'long')[0]
        self.assertEqual((job['state'], job['result']), ('done', 'went on\n'))
        self.assertEqual((self.folder / 'runs').read_text(), 'began\n')


class Schedules(Upgrades):
    family = 'schedule'

    @on_every('schedules.db')
    def test_schedules_and_their_histories_are_listed_as_they_were(self, said):
        self.assert_still_said(self.json('list'), said['schedules'])
        for name, history in said['histories'].items():
            self.assert_still_said(self.json('history', name), history)
        before = self.dump()
        self.json('list')
        self.assertEqual(self.dump(), before, 'the second time there is nothing left to do')

    @on_every('schedules.db')
    def test_schedules_go_on(self, _):
        (self.folder / 'go').touch()
        with site() as server:
            ended = {}
            process = self.start_command('schedule', 'run', '--json', '--allow-private', stdout=-1, **self.around)
            for line in lines_of(process):
                event = json.loads(line)
                if event['event'] in ('job_executed', 'job_error', 'job_missed'):
                    ended[event['schedule']] = event['event']
                if len(ended) == 3:
                    break
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
        self.assertEqual(ended, dict.fromkeys(('long', 'overdue', 'request'), 'job_executed'))
        self.assertEqual(server.asked, ['/'])
        self.assertEqual((self.folder / 'runs').read_text(), 'began\n', 'it was run again once')
        now = {one['name']: one for one in self.json('list')}
        self.assertEqual([now['often']['runs'], now['overdue']['runs'], now['nightly']['paused_by']], [25, 1, 'ann'])
        self.schedule('resume', 'nightly')
        self.assertIsNotNone(self.json('show', 'nightly')[0]['next'])


class Crawls(Upgrades):
    def urls(self):
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute('SELECT * FROM urls ORDER BY url_id')]

    def format(self):
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            return [*connection.execute('PRAGMA user_version').fetchone(),
                    *connection.execute('SELECT name, sql FROM sqlite_master ORDER BY name')]

    def goes_on(self, server):
        server.asked.clear()
        self.crawl(SITE, '--per-host', '1', '--max-depth', '5')
        return [path for path in server.asked if path != '/robots.txt']

    @on_every('crawl-killed.db')
    def test_a_crawl_that_was_killed_goes_on_where_it_was(self, said):
        was = {row['url']: row for row in said['crawl-killed']}
        done = {url for url, row in was.items() if row['state'] == 'done'}
        self.assertGreater(len(done), 1)
        with site() as server:
            asked = self.goes_on(server)
            self.assertEqual(sorted(asked), sorted(set(asked)), 'no page is asked for twice')
            self.assertFalse({SITE + path[1:] for path in asked} & done)
            now = {row['url']: row for row in self.urls()}
            whole = {SITE, SITE + 'missing', SITE + 'moved', *(f'{SITE}a{a}' for a in range(5)),
                     *(f'{SITE}b{a}{b}' for a in range(5) for b in range(4))}
            self.assertLessEqual(whole, now.keys())
            self.assertEqual({now[url]['state'] for url in whole}, {'done'})
            self.assertEqual(now[SITE + 'private/x']['state'], 'excluded')
            self.assertEqual([now[url]['url_id'] for url in was], [row['url_id'] for row in was.values()])
            self.assertEqual([now[url]['digest'] for url in done], [was[url]['digest'] for url in done])
            self.assertEqual(self.goes_on(server), [], 'and then there is nothing left')

    @on_every('crawl-killed.db')
    def test_what_is_known_of_a_url_is_told_before_anything_else_has_opened_the_database(self, said):
        for row in said['crawl-killed']:
            told = json.loads(self.run_it('explain', row['url'], '-d', self.database, '--json').stdout)
            self.assertEqual((told['url'], told['state']), (row['url'], row['state']))

    @on_every('crawl-ended.db')
    def test_a_crawl_that_had_ended_asks_for_nothing_more_and_is_as_it_was(self, said):
        with site() as server:
            self.assertEqual(self.goes_on(server), [])
            # What robots.txt forbids is asked of it again in every run.
            self.assert_still_said(self.urls(), said['crawl-ended'], but=['mtime'])
            before = self.urls(), self.format()
            self.assertEqual(self.goes_on(server), [])
            self.assert_still_said(self.urls(), before[0], but=['mtime'])
            self.assertEqual(self.format(), before[1], 'the second time there is nothing left to do')
            server.asked.clear()
            self.crawl(SITE, '--per-host', '1', '--max-depth', '5', '--age', '1ms')
            self.assertGreaterEqual(len(server.asked), 28, 'what is old is asked for again')
        now = {row['url']: row for row in self.urls()}
        self.assertEqual(now[SITE + 'b00']['digest'],
                         next(row['digest'] for row in said['crawl-ended'] if row['url'] == SITE + 'b00'))


if __name__ == '__main__':
    unittest.main()
