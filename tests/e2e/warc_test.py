"""Archives: written while it crawls, read by an independent reader, killed and gone on with, crawled again without the net."""
import collections
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import unittest

from support import ARGIOPE, EndToEnd, read_log

HERE = pathlib.Path(__file__).parent
WARCIO = HERE.parent.parent / 'dashboard' / 'tests' / 'node_modules' / 'warcio'
KILLS = int(os.environ.get('ARGIOPE_KILLS', '4'))


class Warc(EndToEnd):
    def setUp(self):
        super().setUp()
        self.archive = self.folder / 'site'

    def read(self, *files):
        """What the independent reader finds: records, and lines of the index that it would make."""
        if shutil.which('node') is None:
            self.skipTest('node is not installed')
        if not WARCIO.is_dir():
            self.skipTest('no warcio (tools/install-dashboard.sh tests)')
        result = subprocess.run(['node', str(HERE / 'read_warc.mjs'), str(WARCIO), *map(str, files)],
                                capture_output=True, text=True, timeout=300)
        self.assertEqual((result.returncode, result.stderr), (0, ''))
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        return [line for line in lines if 'index' not in line], [line['index'] for line in lines if 'index' in line]

    def replay(self, *arguments):
        """Runs `argiope crawl replay` to its end; gives the summary."""
        result = subprocess.run([ARGIOPE, 'crawl', 'replay', '--quiet', '--summary', 'json', '-d', str(self.database),
                                 *map(str, arguments)], capture_output=True, text=True, timeout=100)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return json.loads(result.stdout.splitlines()[-1])

    def files(self):
        return sorted(self.folder.glob('site*.warc*'))

    def index(self):
        """Our index, in its order: (key, timestamp, members)."""
        lines = (self.folder / 'site.cdxj').read_text().splitlines()
        self.assertEqual(lines, sorted(lines, key=str.encode), 'it is not in order')
        return [(*line.split(' ', 2)[:2], json.loads(line.split(' ', 2)[2])) for line in lines]

    def expect_sound(self, records):
        """Digests agree, each request has its response, each revisit an original, and nothing is between the records. Of a
        packed response there is the payload's digest alone."""
        ids = {}
        at = collections.defaultdict(int)
        for record in records:
            self.assertEqual(record['offset'], at[record['file']])
            at[record['file']] = record['end']
            of_payload_alone = record['type'] == 'response' and record['file'].endswith('.gz')
            self.assertEqual(record['hasBlock'], not of_payload_alone, f'block digest: {record}')
            self.assertTrue(record['block'] or of_payload_alone, f'block digest: {record}')
            self.assertTrue(record.get('payload', True), f'payload digest: {record}')
            self.assertNotIn(record['id'], ids)
            ids[record['id']] = record
        for file, end in at.items():
            self.assertEqual(end, (self.folder / file).stat().st_size)
        for record in records:
            if record['type'] == 'request':
                self.assertEqual(ids[record['concurrent']]['url'], record['url'])
            if record['type'] == 'revisit':
                original = ids[record['refersTo']]
                self.assertEqual(original['type'], 'response')
                self.assertEqual((original['url'], original['date'], original['digest']),
                                 (record['refersToUrl'], record['refersToDate'], record['digest']))

    def expect_same_index(self, theirs):
        ours = {(entry['filename'], entry['offset']): (key, time, entry) for key, time, entry in self.index()}
        self.assertEqual(len(ours), len(theirs))
        for entry in theirs:
            key, timestamp, line = ours[entry['filename'], str(entry['offset'])]
            entry['length'] += 0 if entry['filename'].endswith('.gz') else 4
            for member in ('url', 'mime', 'status', 'digest', 'length'):
                self.assertEqual(line[member], str(entry.get(member) or 'unk'), (member, line))
            self.assertEqual(timestamp, entry['timestamp'])
            if '%' not in entry['url'] and not entry['url'].endswith('/'):  # its keys are simpler
                self.assertEqual(key, entry['urlkey'])

    def test_an_independent_reader_reads_all_that_was_crawled(self):
        urls, log = self.site('--hosts', 2, '--pages', 300, '--features',
                              'robots,redirects,broken,flaky,compressed,encodings,resources,duplicates')
        self.crawl('--warc', self.archive, *urls)
        records, index = self.read(*self.files())
        self.expect_sound(records)
        self.expect_same_index(index)
        self.assertEqual(records[0]['type'], 'warcinfo')
        for url in urls:
            self.assertIn(f'argiope-seed: {url}\r\n', records[0]['text'])
        answers = [record for record in records if record['type'] in ('response', 'revisit')]
        self.assertGreater(sum(record['type'] == 'revisit' for record in answers), 0, 'duplicates')
        # Each request that the site has seen is there, with the status that it had.
        hosts = {url.rstrip('/'): number for number, url in enumerate(urls)}
        seen = collections.Counter((host, target, status) for _, host, _, target, status in read_log(log))
        kept = collections.Counter()
        for record in answers:
            site, _, path = record['url'].partition('/')[2].lstrip('/').partition('/')
            kept[hosts['http://' + site], '/' + path, record['status']] += 1
        for host in range(len(urls)):  # a server that is slow at first is asked for robots.txt twice, and answers only once
            self.assertEqual(kept[host, '/robots.txt', 200], 1)
            seen[host, '/robots.txt', 200] = min(seen[host, '/robots.txt', 200], 1)
        self.assertEqual(kept, seen)
        # And what is in them is what the crawl has seen; of a revisit that is its original.
        sizes = {record['id']: record['contentSize'] for record in answers}
        known = dict(self.rows("SELECT url, size FROM urls WHERE state = 'done' AND status_code = 200"))
        compared = 0
        for record in answers:
            coding = dict((name.lower(), value) for name, value in record['headers']).get('content-encoding')
            if record['url'] not in known or record['status'] != 200 or coding == 'zstd':  # it knows no zstd
                continue
            compared += 1
            self.assertEqual(sizes[record.get('refersTo') or record['id']], known[record['url']], record)
        self.assertGreater(compared, 300)

    def test_files_follow_one_another_by_size(self):
        urls, _ = self.site('--pages', 400)
        self.crawl('--warc', self.archive, '--warc-size', '100K', *urls)
        files = self.files()
        self.assertEqual([file.name for file in files], [f'site-{i:05}.warc.gz' for i in range(1, len(files) + 1)])
        self.assertGreater(len(files), 2)
        for file in files[:-1]:
            self.assertLess(abs(file.stat().st_size - 100 * 1024), 50 * 1024)
        records, index = self.read(*files)
        self.expect_sound(records)
        self.expect_same_index(index)
        self.assertEqual(sum(record['type'] == 'warcinfo' for record in records), len(files))

    def test_another_run_adds_what_has_changed_and_refers_to_what_has_not(self):
        urls, _ = self.site('--pages', 100, '--features', '')
        self.crawl('--warc', f'{self.archive}.warc', *urls)
        first = (self.folder / 'site.warc').read_bytes()
        self.crawl('--warc', f'{self.archive}.warc', '--requeue', 'all', *urls)
        self.assertTrue((self.folder / 'site.warc').read_bytes().startswith(first))
        self.assertLess((self.folder / 'site.warc').stat().st_size, 1.7 * len(first))
        records, index = self.read(self.folder / 'site.warc')
        self.expect_sound(records)
        self.expect_same_index(index)
        self.assertGreaterEqual(sum(record['type'] == 'revisit' for record in records), 100)

    def test_a_crawl_of_the_archive_finds_the_same(self):
        urls, log = self.site('--hosts', 2, '--pages', 200, '--features', 'robots,redirects,broken,compressed,encodings')
        self.crawl('--warc', self.archive, *urls)
        asked = log.read_text()
        columns = 'url, state, reason, status_code, size, digest, redirect_to'
        found = self.rows(f'SELECT {columns} FROM urls ORDER BY url')
        self.database = self.folder / 'replayed.db'
        summary = self.replay(*self.files())
        self.assertTrue(summary['finished'])
        self.assertEqual(self.rows(f'SELECT {columns} FROM urls ORDER BY url'), found)
        self.assertEqual(log.read_text(), asked, 'it has asked the site')
        # Other rules, tried on what was fetched before.
        self.database = self.folder / 'shallow.db'
        self.replay(*self.files(), '--url', urls[0], '--max-depth', '1')
        self.assertLess(self.rows("SELECT count(*) FROM urls WHERE state = 'done'")[0][0], len(found))

    def test_kill_again_and_again_loses_and_tears_nothing(self):
        chance = random.Random(42)
        pages = max(1000, 400 * KILLS)  # of each host: more than all runs can fetch at this rate before they are killed
        urls, log = self.site('--hosts', 2, '--pages', pages, '--features', 'redirects,compressed')
        command = [ARGIOPE, 'crawl', '--quiet', '-d', str(self.database), '--warc', str(self.archive),
                   '--warc-size', '300K', '--rate', '2000', *urls]
        kills, more = 0, []
        for _ in range(10 * KILLS):
            process, was_killed = self.kill_at_work(command + more, log, chance.uniform(0.0, 0.15), stderr=subprocess.PIPE, text=True)
            for line in process.stderr.read().splitlines():
                self.assertIn('was not written whole', line)
            if not was_killed:  # it had ended: from then on each run fetches all of it again
                self.assertEqual(process.returncode, 0)
                more = ['--requeue', 'all']
                continue
            kills += 1
            if kills == KILLS:
                break
            if kills % max(2, KILLS // 5) == 0:  # what was killed so far is whole for a reader once a run has cut the end
                self.crawl('--warc', self.archive, '--warc-size', '300K', '--max-pages', 1, *urls)
                self.expect_sound(self.read(*self.files())[0])
        self.crawl('--warc', self.archive, '--warc-size', '300K', *urls)
        print(f'{kills} kills')
        self.assertEqual(kills, KILLS, 'too many runs had ended before they were killed')
        records, index = self.read(*self.files())
        self.expect_sound(records)
        self.expect_same_index(index)
        there = {record['url'] for record in records if record['type'] in ('response', 'revisit')}
        done = {url for url, in self.rows("SELECT url FROM urls WHERE state = 'done'")}
        self.assertGreaterEqual(len(done), 2 * pages)
        self.assertEqual(done - there, set(), 'a page counts as fetched and is not in the archive')

    def test_a_full_disk_ends_the_crawl_which_goes_on_when_there_is_room(self):
        urls, _ = self.site('--pages', 2000, '--features', '')
        command = [ARGIOPE, 'crawl', '--summary', 'json', '-d', str(self.database), '--warc', f'{self.archive}.warc', *urls]

        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))

        result = subprocess.run(command, capture_output=True, text=True, timeout=100, preexec_fn=small_files)
        self.assertEqual(result.returncode, 3, result.stdout)
        self.assertIn('site.warc: cannot be written: File too large; what was archived before is whole', result.stderr)
        self.assertIn('run the same command again to go on', result.stderr)
        self.assertFalse(json.loads(result.stdout.splitlines()[-1])['finished'])
        self.crawl('--warc', f'{self.archive}.warc', *urls)
        records, _ = self.read(self.folder / 'site.warc')
        self.expect_sound(records)
        there = {record['url'] for record in records if record['type'] in ('response', 'revisit')}
        self.assertEqual({url for url, in self.rows("SELECT url FROM urls WHERE state = 'done'")} - there, set())

    def test_what_cannot_be_an_archive_is_refused_in_a_sentence(self):
        foreign = self.folder / 'mine.warc.gz'
        foreign.write_text('my notes')
        for arguments, status, culprit in (
                (['--warc', str(foreign)], 3, 'no WARC file; it is left as it is; --warc names another file'),
                (['--warc', str(self.folder / 'no/site')], 3, 'cannot be opened for writing: No such file or directory'),
                (['--warc', f'{self.folder}/'], 2, 'it names no file'),
                (['--warc-size', '1G'], 2, '--warc-size requires --warc'),
                (['--warc', 'x', '--warc-size', '0'], 2, '"0": at least 64K bytes'),
                (['replay'], 2, 'FILE is required'),
                (['--quiet', 'replay', str(foreign)], 2, 'write --quiet behind replay'),
                (['replay', str(foreign)], 3, 'no WARC file'),
                (['replay', str(self.folder / 'absent.warc.gz')], 3, 'absent.warc.gz: No such file')):
            crawl = [] if 'replay' in arguments else ['-d', str(self.database), 'http://127.0.0.1:9/']
            result = subprocess.run([ARGIOPE, 'crawl', *crawl, *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual(result.returncode, status, result.stdout + result.stderr)
            self.assertIn(culprit, result.stderr)
        self.assertEqual(foreign.read_text(), 'my notes')


if __name__ == '__main__':
    unittest.main()
