"""What `argiope crawl --field` and `--extract` take from pages: the same as parsel on real pages, each page once whatever kills the
crawl, and a sentence for what cannot be."""
import collections
import csv
import io
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import unittest
import urllib.parse

from support import ARGIOPE, SYSTEM_PYTHON, EndToEnd

ORACLE = pathlib.Path(__file__).with_name('parsel_oracle.py')
PAGES = int(os.environ.get('ARGIOPE_EXTRACTED_PAGES', '200'))
SELECTORS = [
    ('css', text) for text in (
        'h1', 'h1::text', 'title', 'a::attr(href)', 'section > p', 'div > p::text', 'li:first-child',
        'li:last-child a::attr(href)', 'p:nth-of-type(3)', 'dl dt + dd', 'h2 ~ p', '[id^=std]', 'a[href$=".html"]',
        'a[href*=cpp]', 'a:not([href])', '[class~=headerlink]', 'pre, code', 'ul li:nth-last-child(2)',
        'a.reference.internal::attr(href)', 'span:contains("std")', 'td:nth-child(2)', 'tr:nth-of-type(2) td',
        'meta[name]::attr(content)', 'link[rel=next]::attr(href)', 'a[title="cpp/language"]', 'em, strong',
        'div.body p:first-of-type', 'h2:only-of-type', 'script', 'tt, code.xref')
] + [
    ('xpath', text) for text in (
        '//h1', '//a/@href', '//p[a]/text()', '//div[contains(@class,"t-")]/p[1]', '//a[starts-with(@href,"http")]/@href',
        '//li[last()]', '//*[@id]/@id', '//dt/following-sibling::dd[1]', '//pre//text()', '//a[not(@class)]',
        '//h2|//h3', '//section[./h2]/h2', '//td[position()=2]', '//p/ancestor::div[1]/@id', '//comment()',
        '//a[re:test(@href, "^[a-z]+\\.html$")]/@href', '//*[has-class("headerlink")]/@href')
]
# libxml2, on which parsel stands, does not read HTML by the standard: it keeps a p open where a table ends it, an a where another
# begins, and the line end behind <pre>. And a field has at most 10,000 values. Of all pages of both trees 34 of 231,005 differ.
MOST_DIFFERENT = 0.002
# Many more, on fewer pages. Left out are those that find the whole document (libxml2 has other white space around `head` and `body`)
# and what libxml2 makes of a table: no tbody. Some find large parts of a page, so that one such place is in many lists.
MORE_SELECTORS = [(kind, text) for kind, texts in json.loads((ORACLE.parents[1] / 'data' / 'selectors.json').read_text()).items()
                  for text in texts]
MORE_PAGES = min(PAGES, 60 if 'ARGIOPE_EXTRACTED_PAGES' in os.environ else 15)
MOST_OF_MORE_DIFFERENT = 0.004


def records_of(text):
    return [json.loads(line) for line in text.splitlines()]


def with_text(values):
    """Extraction has no values that are only white space."""
    return [value for value in values if value.strip(' \t\r\n\f')]


def first_difference(ours, theirs):
    """Where two lists part: how long they are, and the first values that are not the same, cut short."""
    at = next((number for number, (one, other) in enumerate(zip(ours, theirs)) if one != other), min(len(ours), len(theirs)))
    return f'{len(ours)} and {len(theirs)} values, the {at + 1}. are {ours[at:at + 1]!r:.150} and {theirs[at:at + 1]!r:.150}'


class Extraction(EndToEnd):
    def run_crawl(self, *arguments, expect=0):
        result = subprocess.run([ARGIOPE, 'crawl', '-d', str(self.database), *map(str, arguments)], capture_output=True,
                                text=True, timeout=300)
        self.assertEqual(result.returncode, expect, result.stdout + result.stderr)
        return result

    # --- beside parsel

    def test_finds_what_parsel_finds_on_real_pages(self):
        found_nothing = self.compare_with_parsel(SELECTORS, PAGES, MOST_DIFFERENT)
        self.assertLess(len(found_nothing), 6, f'these found nothing: {found_nothing}')

    def test_finds_what_parsel_finds_by_more_selectors(self):
        self.compare_with_parsel(MORE_SELECTORS, MORE_PAGES, MOST_OF_MORE_DIFFERENT)

    def compare_with_parsel(self, selectors, pages, most_different):
        """Fails where more lists differ than may; gives the selectors that found nothing on any page."""
        if subprocess.run([SYSTEM_PYTHON, '-c', 'import parsel'], capture_output=True).returncode != 0:
            self.skipTest('python3-parsel is not installed')
        root = self.documentation()
        url, _ = self.nginx(root)
        fields = []
        for number, (kind, text) in enumerate(selectors):
            fields += ['--field', f's{number}:raw[]={kind}:{text}']
        output = self.folder / 'found.jsonl'
        self.crawl(url, '--max-pages', pages, '--output', output, *fields)
        records = [record for record in records_of(output.read_text()) if record['url'] != url]
        self.assertGreater(len(records), min(pages, 4000) / 2)
        files = [str(root / urllib.parse.unquote(record['url'][len(url):].split('?')[0])) for record in records]
        asked = json.dumps({'selectors': selectors, 'files': files})
        answer = subprocess.run([SYSTEM_PYTHON, str(ORACLE)], input=asked, capture_output=True, text=True)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        compared, different, empty = 0, collections.Counter(), set(range(len(selectors)))
        for record, line in zip(records, answer.stdout.splitlines(), strict=True):
            for number, theirs in enumerate(json.loads(line)):
                ours = record[f's{number}'] or []
                compared += 1
                if with_text(theirs) != ours:
                    different[selectors[number][1]] += 1
                    if 'ARGIOPE_EXTRACTED_PAGES' in os.environ:
                        print(f'{record["url"][len(url):]}: {selectors[number][1]}: {first_difference(ours, with_text(theirs))}')
                if ours:
                    empty.discard(number)
        print(f'{compared} comparisons, {sum(different.values())} differ: {dict(different)}')
        self.assertLessEqual(sum(different.values()), compared * most_different)
        self.assertLessEqual(max(different.values(), default=0), len(records) * 0.1)
        return [selectors[number] for number in sorted(empty)]

    # --- over crashes

    def test_a_crawl_that_is_killed_again_and_again_writes_each_page_once(self):
        chance = random.Random(99)
        # More than 25 runs of at most 0.15 s can fetch at this latency.
        urls, log = self.site('--hosts', 2, '--pages', 3000, '--latency-ms', 10, '--features', 'redirects,broken')
        output = self.folder / 'killed.jsonl'
        table = self.folder / 'killed.csv'
        for target in (output, table):
            self.database = self.folder / f'{target.name}.db'
            command = [ARGIOPE, 'crawl', '--quiet', '-d', str(self.database), '--per-host', '8', '--output', str(target),
                       '--field', 'title=page:title', '--field', 'links[]=css:a::attr(href)', *urls]
            kills = 0
            for _ in range(250):
                process, interrupted = self.kill_at_work(command, log, chance.uniform(0.0, 0.15))
                kills += interrupted
                if kills == 25:
                    break
                if not interrupted:  # it had ended: once more from the beginning
                    self.assertEqual(process.returncode, 0)
                    for file in self.folder.glob(f'{target.name}*'):
                        file.unlink()
            summary = self.crawl('--per-host', 8, '--output', target, '--field', 'title=page:title', '--field',
                                 'links[]=css:a::attr(href)', *urls)
            self.assertTrue(summary['finished'])
            text = target.read_text()
            if target is table:
                pages = [row['url'] for row in csv.DictReader(io.StringIO(text, newline=''))]
            else:
                pages = [record['url'] for record in records_of(text)]
            done = {row[0] for row in self.rows(
                "SELECT url FROM urls WHERE status_code = 200 AND content_type LIKE 'text/html%'")}
            again = [page for page, count in collections.Counter(pages).items() if count > 1]
            print(f'{target.name}: {kills} kills, {len(pages)} records')
            self.assertEqual(kills, 25, 'too many runs had ended before they were killed')
            self.assertEqual(again, [], 'a page was written twice')
            self.assertEqual(done - set(pages), set(), 'a page was lost')
            self.assertEqual(set(pages) - done, set())

    def test_a_page_of_many_records_has_them_all_whenever_the_crawl_is_killed(self):
        chance = random.Random(7)
        urls, log = self.site('--hosts', 1, '--pages', 1000, '--latency-ms', 5)
        rules = self.folder / 'links.toml'
        rules.write_text('[[rule]]\nname = "links"\neach = "xpath://a"\n[rule.fields]\nto = "xpath:@href"\ntext = "xpath:string()"\n')
        arguments = ['--sync', 'off', '--per-host', 8, '--extract', rules, '--output']
        whole = self.folder / 'whole.jsonl'
        self.database = self.folder / 'whole.db'
        self.crawl(*arguments, whole, *urls)
        expected = collections.Counter(record['url'] for record in records_of(whole.read_text()))
        self.assertGreater(sum(expected.values()), 3 * len(expected))
        output = self.folder / 'killed.jsonl'
        self.database = self.folder / 'killed.db'
        command = [ARGIOPE, 'crawl', '--quiet', '-d', str(self.database), *map(str, arguments), str(output), *urls]
        kills = 0
        for _ in range(30):
            kills += self.kill_at_work(command, log, chance.uniform(0.0, 0.05))[1]
        self.assertGreater(kills, 3)
        # And what is behind the last commit in a worse state than a kill leaves it: torn anywhere, or with holes.
        noted = json.loads(self.rows("SELECT text FROM notes WHERE name LIKE 'records/%'")[0][0])['size']
        with output.open('r+b') as file:
            size = file.seek(0, 2)
            file.truncate(noted + (size - noted) // 2)
            file.seek(noted + (size - noted) // 2)
            file.write(bytes(100))
        self.crawl(*arguments, output, *urls)
        self.assertEqual(collections.Counter(record['url'] for record in records_of(output.read_text())), expected)

    def test_a_later_run_adds_what_is_new_and_nothing_else(self):
        urls, _ = self.site('--hosts', 1, '--pages', 50)
        output = self.folder / 'a.jsonl'
        arguments = ['--output', output, '--field', 'title=page:title', *urls]
        self.crawl('--max-pages', 20, *arguments)
        first = output.read_text()
        self.crawl(*arguments)
        whole = output.read_text()
        self.assertTrue(whole.startswith(first))
        summary = self.crawl(*arguments)
        self.assertEqual(output.read_text(), whole, 'nothing was due')
        self.assertEqual(summary['extraction']['records'], 0)
        self.crawl('--requeue', 'all', *arguments)
        self.assertEqual(len(output.read_text().splitlines()), 2 * len(whole.splitlines()), 'what is fetched again is new')

    # --- what it writes

    def page(self, body, content_type='text/html; charset=utf-8'):
        (self.folder / 'www').mkdir(exist_ok=True)
        (self.folder / 'www' / 'index.html').write_text(body)
        return self.nginx(self.folder / 'www')[0]

    def test_records_go_to_standard_output_and_words_to_standard_error(self):
        url = self.page('<h1>Ä "x"</h1><p class=price>1.234,50 €</p>')
        result = self.run_crawl('--field', 'title=css:h1', '--field', 'price:number=css:.price', url)
        record, = records_of(result.stdout)
        self.assertEqual(record['title'], 'Ä "x"')
        self.assertEqual(record['price'], 1234.5)
        self.assertEqual(record['url'], url)
        self.assertRegex(record['fetched_at'], r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$')
        self.assertIn('Extracted 1 record from 1 page', result.stderr)

    def test_rules_in_a_file_make_a_table(self):
        url = self.page('<div class=item><h2>One, "1"</h2><b>5</b></div><div class=item><h2>Two</h2><b>free</b></div>')
        rules = self.folder / 'rules.toml'
        rules.write_text('''
            [[rule]]
            name = "item"
            match = ["re:.*"]
            each = "css:.item"
            [rule.fields]
            name = "css:h2"
            price = { css = "b", type = "integer" }
            ''')
        table = self.folder / 'items.csv'
        result = self.run_crawl('--extract', rules, '--output', table, url)
        rows = list(csv.DictReader(io.StringIO(table.read_text(), newline='')))
        self.assertEqual([(row['name'], row['price']) for row in rows], [('One, "1"', '5'), ('Two', '')])
        self.assertIn('price: 1 value of no use; the first: "free": there is no whole number in it', result.stdout)
        self.assertIn(f'Extracted 2 records from 1 page to {table}', result.stdout)

    def test_the_format_may_be_named_and_threads_change_nothing(self):
        urls, _ = self.site('--pages', 80)
        found = {}
        for threads in (1, 3):
            self.database, output = self.folder / f'{threads}.db', self.folder / f'{threads}.records'
            self.crawl(urls[0], '--output', output, '--output-format', 'csv', '--extract-threads', threads, '--field', 'title=page:title')
            rows = list(csv.DictReader(io.StringIO(output.read_text(), newline='')))
            found[threads] = {row['url']: row['title'] for row in rows}
            self.assertEqual(len(rows), len(found[threads]))
        self.assertEqual(found[1], found[3])
        self.assertGreaterEqual(len(found[1]), 80)

    def test_what_is_wrong_is_told_before_anything_is_fetched(self):
        (self.folder / 'bad.toml').write_text('[[rule]]\nname = "x"\n[rule.fields]\na = "css:h1 >"\n')
        (self.folder / 'notes.jsonl').write_text('my notes\n')
        for arguments, status, sentence in [
                (['--field', 'a'], 2, '--field "a": write it as NAME=css:SELECTOR'),
                (['--field', 'a=css:h1 >'], 2, '--field: field "a": css "h1 >": a selector is missing behind the combinator'),
                (['--extract', self.folder / 'bad.toml'], 2, 'bad.toml:4: rule "x": field "a": css "h1 >"'),
                (['--extract', self.folder / 'none.toml'], 2, 'none.toml: No such file'),
                (['--extract', self.folder / 'bad.toml', '--field', 'a=css:h1'], 2, '--extract '),
                (['--field', 'a=css:h1', '--summary', 'json'], 2, '--output names a file'),
                (['--field', 'a=css:h1', '--output', self.folder / 'notes.jsonl'], 3, 'no crawl has written it'),
                (['--field', 'a=css:h1', '--output', '/nowhere/a.jsonl'], 3, 'No such file'),
                (['--field', 'a=css:h1', '--output', '/dev/full'], 3, 'No space left')]:
            self.database = self.folder / 'new.db'
            self.database.unlink(missing_ok=True)
            result = self.run_crawl(*arguments, self.page('<h1>x</h1>') if '/dev/full' in arguments else 'http://127.0.0.1:9/',
                                    expect=status)
            self.assertIn(sentence, result.stderr)
        self.assertEqual((self.folder / 'notes.jsonl').read_text(), 'my notes\n')

    def test_a_crawl_whose_records_nobody_reads_can_be_ended_and_loses_none(self):
        url = self.page('<h1>' + 'x' * 500_000 + '</h1>')
        words = [ARGIOPE, 'crawl', '-d', str(self.database), url, '--field', 'a=css:h1', '--output', '-', '--threads', '1']
        crawl = self.start(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(crawl.stdout.read(1), b'{')  # the rest is more than a pipe holds
        self.wait_until(lambda: crawl.send_signal(signal.SIGINT) or crawl.poll() is not None)
        self.assertNotEqual(crawl.returncode, 0)
        self.assertEqual(len(records_of(self.run_crawl(*words[4:]).stdout)), 1)

    def test_hostile_pages_are_counted_and_fail_nothing(self):
        (self.folder / 'www').mkdir()
        pages = {'deep': '<div>' * 100_000, 'attributes': '<p ' + ' '.join(f'a{i}=1' for i in range(50_000)) + '>x',
                 'tables': '<table>' * 20_000, 'tags': '<b>' * 50_000, 'good': '<h1>good</h1>'}
        for name, body in pages.items():
            (self.folder / 'www' / f'{name}.html').write_text(body)
        links = ''.join(f'<a href={name}.html>x</a>' for name in pages)
        url = self.page(f'<h1>start</h1>{links}')
        output = self.folder / 'a.jsonl'
        summary = self.crawl('--output', output, '--field', 'h=css:h1', '--field', 't=readable:text', '--field',
                             'x=xpath://p/following::b', url)
        self.assertEqual(sorted(record['h'] for record in records_of(output.read_text()) if record['h']), ['good', 'start'])
        self.assertEqual(summary['extraction']['refused'], 2)
        self.assertLess(summary['peak_rss_mb'], 400)


if __name__ == '__main__':
    unittest.main()
