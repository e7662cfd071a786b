"""What is there under many URLs: sessions, tracking parameters, copies, aliases and traps, left out by options of the command, told in
its report, its summary and its database, and taken up by a run without them."""
import csv
import subprocess
import unittest
import urllib.parse

from support import ARGIOPE, EndToEnd, read_log

DOCUMENTS = 12  # of the synthetic web's copies


class CrawlDuplicates(EndToEnd):
    def fetched(self, log):
        return [target for _, _, method, target, _ in read_log(log) if method == 'GET' and target != '/robots.txt']

    def report(self, *arguments):
        result = subprocess.run([ARGIOPE, 'crawl', '-d', str(self.database), *map(str, arguments)], capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def test_sessions_and_campaigns_are_stripped_by_a_list(self):
        urls, log = self.site('--hosts', 1, '--pages', 5, '--features', 'copies,sessions')
        summary = self.crawl(urls[0], '--strip-parameters', 'tracking,sessions', '--strip-parameters', 'visit', '--threads', 2)
        self.assertTrue(summary['finished'])
        fetched = self.fetched(log)
        self.assertEqual(len(fetched), len(set(fetched)))
        for kind in 'page', 'item':
            self.assertEqual(sorted(target for target in fetched if target.startswith(f'/sessions/{kind}')),
                             sorted(f'/sessions/{kind}-{i}' for i in range(45)))
        self.assertFalse([target for target in fetched if 'utm_' in target or 'visit' in target])
        self.assertEqual(summary['left_out']['parameter'], DOCUMENTS + 2 * 45)
        self.assertGreater(summary['excluded']['parameter'], summary['left_out']['parameter'])
        stored = [url for url, in self.rows("SELECT url FROM urls WHERE reason = 'parameter' AND url LIKE '%utm%'")]
        self.assertEqual(len(stored), DOCUMENTS)
        again = self.crawl(urls[0], '--strip-parameters', 'sessions,visit')
        self.assertEqual(again['fetched'], DOCUMENTS, 'campaigns are followed now')
        self.assertEqual(set(again['left_out']), {'parameter'})

    def test_a_parameter_is_learned_and_kept_and_told(self):
        urls, log = self.site('--hosts', 1, '--pages', 1, '--features', 'sessions')
        arguments = [urls[0], '--strip-parameters', 'sessions', '--learn-parameters']
        summary = self.crawl(*arguments, '--max-pages', 3000)
        self.assertTrue(summary['finished'])
        learned, = summary['learned_parameters']
        self.assertEqual((learned['site'] + '/', learned['name'], learned['pages']), (urls[0], 'visit', 20))
        self.assertGreater(learned['stripped'], 0)
        self.assertEqual(self.rows("SELECT text FROM notes WHERE name LIKE 'parameter/%'"), [('learned',)])
        self.assertLessEqual({f'/sessions/item-{i}' for i in range(45)}, {target.split('?')[0] for target in self.fetched(log)})
        told = self.report(*arguments)
        self.assertIn('learned: visit of', told)
        self.assertGreater(self.crawl(*arguments, '--keep-parameters', 'visit', '--max-pages', 5)['fetched'], 0)

    def test_traps_are_told_by_their_shape(self):
        urls, log = self.site('--hosts', 1, '--pages', 30, '--features', 'traps')
        arguments = [urls[0], '--traps', 20, '--max-segment-repeats', 1000, '--max-url-length', 60000]
        summary = self.crawl(*arguments, '--max-pages', 2000)
        self.assertEqual((summary['finished'], summary['complete']), (True, False))
        shapes = {trap['shape'].removeprefix(urls[0]): trap for trap in summary['traps']}
        self.assertEqual(set(shapes), {'traps/calendar/#-#', 'traps/folder/sub/', 'traps/filter?colour'})
        for trap in shapes.values():
            self.assertIn(urllib.parse.urlsplit(trap['example']).path.split('/')[1], 'traps')
            self.assertGreaterEqual(trap['left_out'], 1)
        self.assertEqual(summary['left_out']['trap'], 3)
        self.assertEqual(len([target for target in self.fetched(log) if not target.startswith('/traps')]), 30)
        self.assertIn('trap: ', self.report(*arguments))
        widened = self.crawl(urls[0], '--max-pages', 20)
        self.assertEqual(widened['fetched'], 20, 'without the option it goes on')

    def test_copies_and_aliases_are_fetched_and_not_followed(self):
        urls, _ = self.site('--hosts', 1, '--pages', 1, '--features', 'copies')
        plain = self.crawl(urls[0])
        self.assertEqual((plain['pages'], plain['left_out']), (2 + DOCUMENTS * 9, {}))
        self.database = self.folder / 'left.db'
        summary = self.crawl(urls[0], '--skip-duplicates', 'near', '--canonical')
        self.assertEqual((summary['left_out']['duplicate'], summary['left_out']['alias']), (2 * DOCUMENTS, DOCUMENTS))
        self.assertIn(summary['left_out']['near_duplicate'], range(18, 37))
        pairs = self.rows("SELECT url, same_as FROM duplicates WHERE reason = 'duplicate' ORDER BY url")
        for copy, original in pairs:
            # Whichever came first.
            self.assertEqual(*(url.split('?')[0].rsplit('/', 1)[1] for url in (copy, original)))
        aliases = dict(self.rows("SELECT url, same_as FROM duplicates WHERE reason = 'alias'"))
        self.assertEqual(aliases, {f'{urls[0]}copies/view-{i}?sort=price': f'{urls[0]}copies/doc-{i}' for i in range(DOCUMENTS)})
        self.assertIn('pages have the content of others; a run without --skip-duplicates', self.report(urls[0], '--skip-duplicates', 'near', '--canonical'))
        again = self.crawl(urls[0])
        self.assertEqual((again['left_out'], again['urls']), ({}, plain['urls']))

    def test_near_duplicates_and_canonical_urls_are_reported(self):
        urls, _ = self.site('--hosts', 1, '--pages', 1, '--features', 'copies')
        page, table = self.folder / 'report.html', self.folder / 'duplicates.csv'
        self.crawl(urls[0], '--near-duplicates', '--html', page)
        html = page.read_text()
        self.assertIn('Nearly the same words at several URLs', html)
        self.assertNotIn('lead astray', html)
        subprocess.run([ARGIOPE, 'crawl', 'export', self.database, '--what', 'duplicates', '-o', table], check=True, timeout=60)
        with open(table, newline='') as file:
            lines = list(csv.DictReader(file))
        self.assertEqual(len([line for line in lines if line['kind'] == 'exact']), 2 * DOCUMENTS)
        near = [line for line in lines if line['kind'] == 'near']
        self.assertIn(len(near), range(18, 37))
        for line in near:
            number = line['url'].rsplit('/near-', 1)[1].split('-')[0]
            self.assertEqual(line['of'].split('?')[0].rsplit('-', 1 if 'doc' in line['of'] else 2)[1], number)
            self.assertIn(int(line['distance']), range(4))
        # As near as the crawl has taken pages for the same.
        self.crawl(urls[0], '--near-duplicates', '--near-distance', 0)
        subprocess.run([ARGIOPE, 'crawl', 'export', self.database, '--what', 'duplicates', '-o', table], check=True, timeout=60)
        with open(table, newline='') as file:
            nearest = [line['distance'] for line in csv.DictReader(file) if line['kind'] == 'near']
        self.assertLess(len(nearest), len(near))
        self.assertLessEqual(set(nearest), {'0'})

    def test_canonical_urls_that_lead_astray_are_told(self):
        root = self.folder / 'www'
        root.mkdir()
        names = {'a': 'http://elsewhere.invalid/', 'b': 'gone.html', 'c': 'd.html', 'd': 'c.html', 'e': 'noindex.html', 'f': 'index.html', 'g': 'unlinked.html'}
        (root / 'index.html').write_text(''.join(f'<a href={name}.html>x</a>' for name in names) + '<a href=gone.html>x</a>')
        (root / 'noindex.html').write_text('<meta name=robots content=noindex>')
        for name, canonical in names.items():
            (root / f'{name}.html').write_text(f'<link rel=canonical href="{canonical}">{name}')
        url, _ = self.nginx(root)
        table = self.folder / 'duplicates.csv'
        self.crawl(url + 'index.html', '--html', self.folder / 'report.html', '--exclude', '/unlinked.html')
        subprocess.run([ARGIOPE, 'crawl', 'export', self.database, '--what', 'duplicates', '-o', table], check=True, timeout=60)
        with open(table, newline='') as file:
            told = {line['url'].rsplit('/', 1)[1]: line['what'] for line in csv.DictReader(file) if line['kind'] == 'canonical'}
        self.assertEqual(told, {'a.html': 'is on another host', 'b.html': 'answers with 404', 'c.html': 'names another as canonical',
                                'd.html': 'names another as canonical', 'e.html': 'asks not to be indexed', 'g.html': 'is excluded: exclude'})
        self.assertIn('lead astray', (self.folder / 'report.html').read_text())

    def test_bad_input_is_told_in_a_sentence(self):
        for arguments, culprit in ((['--strip-parameters', 'a=b'], '--strip-parameters "a=b"'), (['--keep-parameters', 'x y'], '--keep-parameters "x y"'),
                                   (['--skip-duplicates', 'all'], 'skip-duplicates'), (['--traps', 1], 'traps'), (['--near-distance', 8], 'near-distance')):
            result = subprocess.run([ARGIOPE, 'crawl', 'http://127.0.0.1/', *map(str, arguments)], capture_output=True, text=True, timeout=60, cwd=self.folder)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(culprit, result.stderr)


if __name__ == '__main__':
    unittest.main()
