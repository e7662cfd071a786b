"""Which URLs belong to a crawl: parts of real documentation trees by patterns, paths, names and depth, in random combinations,
held to walks over the graph that an independent crawl has found; and what the command says of lists, types and ports."""
import collections
import fnmatch
import itertools
import os
import random
import re
import subprocess
import unittest
import urllib.parse

from support import ARGIOPE, WALK_ORACLE, EndToEnd, read_log


def alternatives(pattern):
    """The patterns without braces that one with braces stands for."""
    inner = re.search(r'\{([^{}]*)\}', pattern)
    if not inner:
        return [pattern]
    before, after = pattern[:inner.start()], pattern[inner.end():]
    return [each for word in inner.group(1).split(',') for each in alternatives(before + word + after)]


def segments_fit(pattern, path):
    """Whether lists of segments fit, "**" standing for any number of them."""
    if not pattern:
        return not path
    if pattern[0] == '**':
        if len(pattern) == 1:
            return bool(path)
        return any(segments_fit(pattern[1:], path[skipped:]) for skipped in range(len(path) + 1))
    return bool(path) and fnmatch.fnmatchcase(path[0], pattern[0]) and segments_fit(pattern[1:], path[1:])


def fits(pattern, url):
    if pattern.startswith('re:'):
        return re.search(pattern[3:], url) is not None
    plain = url.split('?')[0]
    for one in alternatives(pattern):
        if '/' not in one:
            if fnmatch.fnmatchcase(plain, one):
                return True
        elif segments_fit(one.split('/')[1:], urllib.parse.urlsplit(plain).path.split('/')[1:]):
            return True
    return False


def has_extension(path):
    """Whether the name ends as files do: letters and digits behind a dot, at least one a letter."""
    return re.search(r'[^/]\.(?=[0-9]*[a-z])[a-z0-9]{1,8}$', path, re.I) is not None


class Part:
    """Some of the options that say which URLs belong to a crawl, and what they mean."""

    def __init__(self, chance, graph, root):
        folders = sorted({urllib.parse.urlsplit(url).path.rsplit('/', 1)[0] + '/' for url in graph.pages})
        words = ['--order', chance.choice(['bfs', 'dfs', 'priority', 'random']), '--threads', chance.randint(1, 3)]
        patterns = [chance.choice(folders) + '**', chance.choice(folders) + '*', '/**/*' + chance.choice('aeiou') + '*.html',
                    '*.html', f'*{chance.choice("bcdfg")}*', '/{cppreference,python}/**', f'/python/*/[{chance.choice("a-m n-z".split())}]*',
                    're:/[a-m][^/]*$', 're:(?i)INDEX', '/python/**/*.html']
        self.include = chance.sample(patterns, chance.choice([0, 0, 0, 2, 3, 4]))
        self.exclude = chance.sample(patterns, chance.choice([0, 0, 1, 2]))
        self.prefixes = [chance.choice(['/python/', '/cpp', chance.choice(folders)])] if chance.random() < 0.25 else []
        self.no_parent = chance.random() < 0.2
        self.rejected = ['html'] if chance.random() < 0.05 else []
        self.depth = chance.choice([None, None, 0, 1, 2, 3, 5])
        self.accepted = chance.choice([['html', 'php'], ['html'], ['txt']]) if chance.random() < 0.2 else []
        self.seeds = [root] if chance.random() < 0.6 else chance.sample(sorted(graph.pages), chance.randint(1, 2))
        for option, values in (('--include', self.include), ('--exclude', self.exclude), ('--path-prefix', self.prefixes),
                               ('--reject-ext', self.rejected), ('--accept-ext', self.accepted)):
            words += itertools.chain.from_iterable((option, value) for value in values)
        words += ['--no-parent'] * self.no_parent
        words += ['--max-depth', self.depth] if self.depth is not None else []
        words += ['-q', 50] if chance.random() < 0.3 else []
        self.arguments = [*self.seeds, *words]
        self.folders = {seed.split('?')[0].rsplit('/', 1)[0] + '/' for seed in self.seeds}

    def takes(self, url):
        path = urllib.parse.urlsplit(url).path
        return (not any(fits(pattern, url) for pattern in self.exclude)
                and (not self.include or any(fits(pattern, url) for pattern in self.include))
                and (not self.prefixes or any(path.startswith(prefix) for prefix in self.prefixes))
                and not any(path.endswith('.' + extension) for extension in self.rejected)
                and (not self.accepted or not has_extension(path) or any(path.endswith('.' + extension) for extension in self.accepted))
                and (not self.no_parent or any(url.startswith(folder) for folder in self.folders)))


class Graph:
    """What the oracle says of a site, and walks of parts of it."""

    def __init__(self, url):
        self.pages, self.redirects, self.links = set(), set(), collections.defaultdict(list)
        walk = subprocess.run([WALK_ORACLE, '--graph', url], capture_output=True, text=True, timeout=600, check=True)
        for line in walk.stdout.splitlines():
            kind, _, found = line.partition(' ')
            if kind == 'link':
                self.links[at].append(found)
                continue
            at = found
            {'page': self.pages, 'redirect': self.redirects}.get(kind, set()).add(at)

    def walk(self, part):
        """The pages of the part: breadth first, redirects at the depth of what leads to them. What seeds redirect to is a seed."""
        seeds = set()
        for seed in part.seeds:
            while seed not in seeds:
                seeds.add(seed)
                part.folders.add(seed.split('?')[0].rsplit('/', 1)[0] + '/')
                seed = self.links[seed][0] if seed in self.redirects else seed
        depths = {seed: 0 for seed in seeds}
        queue = collections.deque(seeds)
        while queue:
            at = queue.popleft()
            step = 0 if at in self.redirects else 1
            for link in self.links[at]:
                depth = depths[at] + step
                known = link in depths and depths[link] <= depth
                if known or not (link in self.pages or link in self.redirects) or (part.depth is not None and depth > part.depth):
                    continue
                if part.takes(link):
                    depths[link] = depth
                    queue.append(link) if step else queue.appendleft(link)
        return {url for url in depths if url in self.pages}


class CrawlScope(EndToEnd):
    def pages(self):
        return {row[0] for row in self.rows("SELECT url FROM urls WHERE status_code = 200 AND content_type LIKE 'text/html%'")}

    def test_random_parts_of_real_trees_are_what_an_independent_walk_finds_and_so_is_the_whole_afterwards(self):
        root, _ = self.nginx(self.documentation())
        graph = Graph(root)
        self.expect_both_trees(graph.pages)
        first = int(os.environ.get('ARGIOPE_SCOPE_FIRST_SEED', 1))
        sizes = []
        for number in range(first, first + int(os.environ.get('ARGIOPE_SCOPE_SEEDS', 10))):
            chance = random.Random(number)
            part = Part(chance, graph, root)
            with self.subTest(ARGIOPE_SCOPE_FIRST_SEED=number, arguments=part.arguments):
                self.database = self.folder / f'{number}.db'
                summary = self.crawl(*part.arguments)
                theirs = graph.walk(part)
                self.assertTrue(summary['finished'])
                ours = self.pages()
                sizes.append(len(ours))
                self.assertEqual(sorted(ours - theirs), [], 'fetched and not found by the walk')
                self.assertEqual(sorted(theirs - ours), [], 'found by the walk and not fetched')
                if number % 4 == 0:
                    self.crawl(root)
                    self.assertEqual(self.pages(), graph.pages, 'a wider run took up what was left out')
                self.database.unlink()
        print(f'pages of the parts: {sizes}')

    def test_a_list_of_urls_is_crawled_and_its_bad_lines_are_told(self):
        urls, _ = self.site('--hosts', 2, '--pages', 20, '--by-address', '--features', 'none')
        seeds = self.folder / 'seeds.txt'
        seeds.write_text(f'# both hosts\n{urls[0]}\n\nmailto:ann@example.org\n{urls[1]}\n')
        result = subprocess.run([ARGIOPE, 'crawl', '-i', seeds, '--quiet', '-d', self.database], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f'{seeds}:4: URL "mailto:ann@example.org"', result.stderr)
        self.assertEqual(len(self.pages()), 40)
        self.database.unlink()
        result = subprocess.run([ARGIOPE, 'crawl', '-', '--quiet', '-d', self.database], input=seeds.read_text(), capture_output=True,
                                text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('standard input:4: ', result.stderr)
        self.assertEqual(len(self.pages()), 40)
        self.database.unlink()
        seeds.write_text('# none\n')
        self.crawl('-i', seeds, expect=2)
        self.crawl('-i', self.folder / 'missing.txt', expect=2)

    def test_a_large_file_of_another_type_is_not_fetched_whole(self):
        root = self.folder / 'www'
        root.mkdir()
        (root / 'index.html').write_text('<a href=film.mp4>a</a> <a href=download>b</a> <a href=film.html>c</a> <a href=small.png>d</a>')
        (root / 'film.html').write_text('<title>About the film</title>')
        (root / 'small.png').write_bytes(b'\x89PNG\r\n\x1a\n' + bytes(1000))
        for name in ('film.mp4', 'download'):
            with open(root / name, 'wb') as file:
                file.truncate(50_000_000)
        url, log = self.nginx(root)
        summary = self.crawl(url, '--accept-type', 'text/html', '-s', 100_000)
        self.assertEqual((summary['pages'], summary['left_out']), (2, {'content_type': 3}))
        self.assertLess(summary['bytes'], 2_000_000)
        rows = dict(self.rows("SELECT replace(url, ?, ''), size FROM urls WHERE reason = 'content_type'", url))
        self.assertEqual(rows, {'film.mp4': 50_000_000, 'download': 50_000_000, 'small.png': 1008})
        wider = self.crawl(url, '--accept-type', 'image/*')
        self.assertEqual((wider['fetched'], wider['left_out']), (1, {'content_type': 2}))

    def test_a_crawl_that_has_fetched_many_files_says_what_leaves_them_out(self):
        root = self.folder / 'www'
        root.mkdir()
        (root / 'index.html').write_text(''.join(f'<a href={n}.bin>{n}</a>' for n in range(12)))
        for number in range(12):
            (root / f'{number}.bin').write_bytes(bytes(100))
        url, log = self.nginx(root)
        said = 'files    12 of the responses are no pages, and were fetched whole; --accept-type text/html fetches pages alone'
        for more, is_said in (([], True), (['--accept-type', 'application/octet-stream'], False), (['--warc', self.folder / 'w'], False)):
            result = subprocess.run([ARGIOPE, 'crawl', url, '-d', ':memory:', *map(str, more)], capture_output=True, text=True, timeout=60)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(said in result.stdout, is_said, result.stdout)

    def test_what_is_left_out_is_said_by_its_option_and_bad_input_is_a_sentence(self):
        urls, log = self.site('--hosts', 1, '--pages', 60, '--features', 'resources,none')
        summary = self.crawl(urls[0], '--reject-ext', 'pdf,png,css', '--exclude', '/**/*7*')
        self.assertEqual(set(summary['left_out']), {'extension', 'exclude'})
        self.assertEqual(set(summary['left_out']), set(summary['excluded']), 'one counts URLs, the other links')
        self.assertFalse([target for _, _, _, target, _ in read_log(log) if target.endswith(('.pdf', '.png', '.css')) or '7' in target])
        self.assertEqual(self.crawl(urls[0])['left_out'], {})
        for arguments, culprit in ((['--exclude', '/[a'], '--exclude: pattern "/[a": [ without ]'),
                                   (['--include', 're:('], '--include: pattern "re:(": missing )'),
                                   (['--path-prefix', 'docs'], '--path-prefix "docs": a path begins with /'),
                                   (['--accept-type', 'pdf'], 'application/pdf'), (['--reject-ext', '*'], '--reject-ext "*"'),
                                   (['--port', '0'], '--port')):
            result = subprocess.run([ARGIOPE, 'crawl', urls[0], *arguments, '-d', self.database], capture_output=True, text=True, timeout=60)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(culprit, result.stderr)


if __name__ == '__main__':
    unittest.main()
