"""Examples in README.md and docs/*.md do what they say, as they are printed.

A comment above a fenced block, which no reader sees, says what to do with it:

    <!-- run -->               run its commands in a folder of their own. With lines that begin with "$ ", these are the
                               commands and the others what they print; without, every line is a command. Each must end
                               with status 0, or, where an error is printed ("argiope: …"), with another.
    <!-- run after -->         in the same folder and shell as the last block of the page
    <!-- run site -->          with a small web on loopback in the place of https://example.org, in saved *.toml and *.py files, too;
                               `argiope project run` may ask private addresses then
    <!-- run daemon -->        with an address of its own in the place of 127.0.0.1:7733, in saved files, too, and our client for Python
    <!-- run files=a,b -->     with programs of these names in the folder
    <!-- run status=1 -->      its last command ends with this status
    <!-- run like -->          what is printed may differ in its numbers
    <!-- save FILE -->         the block is this file, for the blocks that follow it
    <!-- feed COMMAND -->      the block is the standard input of a command, which must end with status 0
    <!-- quotes FILE -->       the block's lines end those of a file that the tests run; "…" leaves lines out
    <!-- whole FILE -->        the block is that file, which the tests compile and run, letter for letter
    <!-- packages -->          one command that installs what packages.txt has under [build], but for what only the command needs
    <!-- shown -->             nothing: it stands for what cannot be run here

A program in Python that works beside a daemon is started once more at the end: whoever tries it does so twice.
A line "…" of what is printed stands for any lines. `argiope schedule run`, `argiope site` and `argiope serve` run until the page's
blocks that belong together end; the commands after a daemon begin when it is well.
A block with a command of ours and no comment is an error, unless it is a synopsis ("[", "…").
"""
import json
import os
import pathlib
import re
import subprocess
import tomllib
import unittest

from support import ARGIOPE, EndToEnd, free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / 'README.md', *sorted((ROOT / 'docs').rglob('*.md'))]
ORIGIN = 'https://example.org'
DAEMON = '127.0.0.1:7733'
# Of what packages.txt has for the build: the command's, and what links quicker.
NOT_THE_LIBRARYS = {'lld-19', 'ninja-build', 'libcli11-dev', 'libtomlplusplus-dev', 'prometheus-cpp-dev'}
STARTED_TWICE = re.compile(r'^python3 [\w/.-]+\.py\b')
SERVES = re.compile(r'^argiope (schedule run|site|serve)(?![\w-])(?!.*(--until-idle|--check))')


class Block:
    def __init__(self, page, line, text, marker):
        self.where = f'{page.relative_to(ROOT)}:{line}'
        self.text = text
        self.verb, _, rest = marker.partition(' ')
        self.rest = rest.strip()
        words = self.rest.split() if self.verb == 'run' else []
        self.after, self.site, self.like, self.daemon = (word in words for word in ('after', 'site', 'like', 'daemon'))
        self.status = next((int(word[7:]) for word in words if word.startswith('status=')), 0)
        self.files = [name for word in words if word.startswith('files=') for name in word[6:].split(',')]

    def commands(self):
        """Pairs of a command and what it prints, None where nothing is said."""
        lines = self.text.split('\n')
        if not any(line.startswith('$ ') for line in lines):
            joined = re.sub(r'\\\n\s*', '', self.text).split('\n')
            return [(line, None) for line in joined if line.strip()]
        found = []
        for line in lines:
            if line.startswith('$ '):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
        return found


def blocks_of(page):
    blocks, marker, start, lines = [], '', None, []
    for number, line in enumerate(page.read_text().split('\n'), 1):
        if start is not None:
            if line.strip().startswith('```'):
                blocks.append(Block(page, start, '\n'.join(lines), marker))
                start, marker = None, ''
            else:
                lines.append(line)
        elif line.strip().startswith('```'):
            start, lines = number, []
        elif found := re.fullmatch(r'<!-- (.*) -->', line.strip()):
            marker = found.group(1)
        elif line.strip():
            marker = ''
    return blocks


def is_like(expected, printed, alike):
    """Whether `printed` is what `expected` says, a line "…" of which stands for any lines."""
    def forms(lines):
        lines = [line.rstrip() for line in lines]
        while lines and not lines[-1]:
            lines.pop()
        return [re.sub(r'\s+', ' ', re.sub(r'\d[\d.,:]*( [kMG]?B\b)?', '0', line)) for line in lines] if alike else lines
    pattern = ''.join('(?:.*\n)*' if line == '…' else re.escape(line + '\n') for line in forms(expected))
    return re.fullmatch(pattern, ''.join(line + '\n' for line in forms(printed))) is not None


def replaced(text, pairs):
    for said, there in pairs:
        text = text.replace(said, there)
    return text


def run_as(name, command):
    """A line of a script that keeps what a command prints, and its status."""
    return f'{{ {command}\n}} >.{name}.out 2>.{name}.err </dev/null; echo $? >.{name}.status'


def stops(serving):
    """Lines of a script that end what serves."""
    return [f'kill -TERM $S{number}; wait $S{number}; echo $? >.{name}.status' for number, name in enumerate(serving)]


class Docs(EndToEnd):
    def environment(self, folder):
        bin_folder = folder / 'build/release/bin'
        bin_folder.mkdir(parents=True)
        (bin_folder / 'argiope').symlink_to(ARGIOPE)
        (folder / 'examples').symlink_to(ROOT / 'examples')
        (folder / 'node_modules').mkdir()
        (folder / 'node_modules/argiope').symlink_to(ROOT / 'clients/js')
        return {**{name: value for name, value in os.environ.items() if not name.startswith('ARGIOPE')},
                'PATH': f'{bin_folder}:{os.environ["PATH"]}', 'TZ': 'UTC', 'HOME': str(folder),
                'PYTHONPATH': str(ROOT / 'clients/python')}

    def replacements(self, blocks):
        """Pairs of what a page names and what is there instead."""
        pairs = []
        if any(block.site for block in blocks):
            pairs.append((ORIGIN, self.site('--hosts', 1, '--pages', 3, '--features', 'none')[0][0].rstrip('/')))
        if any(block.daemon for block in blocks):
            pairs.append((DAEMON, f'127.0.0.1:{free_port()}'))
        return pairs

    def run_script(self, blocks, folder, environment):
        """All blocks in one shell; of each command its status and what it printed."""
        pairs = self.replacements(blocks)
        daemon = dict(pairs).get(DAEMON)
        if daemon:
            environment = {**environment, 'ARGIOPE_URL': f'http://{daemon}'}
        for saved in [*folder.iterdir(), *folder.glob('scripts/*')] if pairs else []:
            if saved.suffix in ('.toml', '.py', '.conf', '.sh'):
                saved.write_text(replaced(saved.read_text(), pairs))
        script, names, serving, second = ['cd ' + str(folder)], [], [], []
        for number, block in enumerate(blocks):
            for name in block.files:
                (folder / name).write_text('#!/bin/sh\necho done\n')
                (folder / name).chmod(0o755)
            for place, (command, _) in enumerate(block.commands()):
                name = f'{number}.{place}'
                names.append(name)
                here = replaced(command, pairs)
                if block.site:
                    here = re.sub(r'^argiope project run\b', r'\g<0> --allow-private', here)
                if not SERVES.match(command):
                    script.append(run_as(name, here))
                    if block.daemon and STARTED_TWICE.match(command):
                        names.append(f'{name}.again')
                        second.append(run_as(names[-1], here))
                    continue
                here = re.sub(r' +#.*$', '', here)
                if command.startswith('argiope serve') and '--listen' not in command:
                    here += f' --listen {daemon}'
                script.append(f'{here} >.{name}.out 2>.{name}.err </dev/null & S{len(serving)}=$!')
                if command.startswith('argiope serve'):
                    script.append(f'until curl -fs http://{daemon}/healthz >/dev/null || ! kill -0 $!; do sleep 0.1; done')
                serving.append(name)
            if not block.daemon:
                script += stops(serving)
                serving = []
        script += second + stops(serving)
        result = subprocess.run(['bash', '-c', '\n'.join(script)], env=environment, capture_output=True, text=True,
                                timeout=300)
        self.assertEqual(result.stderr, '', blocks[0].where + ''.join((folder / f'.{name}.err').read_text() for name in names))
        told = {}
        for name in names:
            texts = [(folder / f'.{name}.{kind}').read_text() for kind in ('out', 'err', 'status')]
            told[name] = [replaced(text, [(there, said) for said, there in pairs]) for text in texts]
        return told

    def run_together(self, blocks, folder):
        environment = self.environment(folder)
        runnable = []
        for block in blocks:
            if block.verb == 'save':
                (folder / block.rest).parent.mkdir(parents=True, exist_ok=True)
                (folder / block.rest).write_text(block.text + '\n')
            elif block.verb == 'feed':
                fed = subprocess.run(['bash', '-c', block.rest], input=block.text + '\n', cwd=folder, env=environment,
                                     capture_output=True, text=True, timeout=60)
                self.assertEqual(fed.returncode, 0, f'{block.where}: {block.rest}\n{fed.stdout}{fed.stderr}')
            else:
                runnable.append(block)
        if not runnable:
            return
        told = self.run_script(runnable, folder, environment)
        for number, block in enumerate(runnable):
            for place, (command, expected) in enumerate(block.commands()):
                out, err, status = told[f'{number}.{place}']
                what = f'{block.where}: {command}\nstatus {status}{out}{err}'
                again = told.get(f'{number}.{place}.again', ('', '', status))
                self.assertEqual(again[2], status, f'{block.where}: {command}, started again\n{again[1]}')
                fails = expected is not None and any(line.startswith('argiope: ') for line in expected)
                if SERVES.match(command):
                    self.assertIn(int(status), (0, 130, 143), what)  # 143: stopped before it listened
                elif block.status and place + 1 == len(block.commands()):
                    self.assertEqual(int(status), block.status, what)
                else:
                    self.assertEqual(int(status) != 0, fails, what)
                if expected is not None:
                    printed = (out + err if fails else out).split('\n')
                    self.assertTrue(is_like(expected, printed, block.like),
                                    f'{what}\n--- the page says:\n' + '\n'.join(expected))

    def check_quote(self, block):
        wanted = [line.strip() for line in block.text.split('\n') if line.strip()]
        there = [line.strip() for line in (ROOT / block.rest).read_text().split('\n') if line.strip()]
        at = 0
        for part in re.split(r'(?:^|\n)(?://\s*)?…(?:\n|$)', '\n'.join(wanted)):
            lines = part.split('\n')
            while at + len(lines) <= len(there) and not all(map(str.endswith, there[at:], lines)):
                at += 1
            self.assertLessEqual(at + len(lines), len(there), f'{block.where}: not in {block.rest}:\n{part}')

    def check_packages(self, block):
        section = (ROOT / 'packages.txt').read_text().partition('[build]\n')[2].partition('\n[')[0]
        wanted = {line.split()[0] for line in section.splitlines() if line.strip()} - NOT_THE_LIBRARYS
        named = block.text.replace('\\\n', ' ').removeprefix('apt-get install ').split()
        self.assertEqual(sorted(named), sorted(wanted), block.where)

    def check_page(self, page):
        groups = []
        for block in blocks_of(page):
            self.assertNotRegex(block.text, r'(?m)^(until|while) .*; do', f'{block.where}: never ends where the daemon is gone; for i in $(seq 120) … && break does')
            if block.verb == 'quotes':
                self.check_quote(block)
            elif block.verb == 'whole':
                self.assertEqual(block.text + '\n', (ROOT / block.rest).read_text(), block.where)
            elif block.verb == 'packages':
                self.check_packages(block)
            elif block.verb in ('run', 'save', 'feed'):
                goes_on = block.after or (groups and groups[-1][-1].verb == 'save')
                if goes_on:
                    groups[-1].append(block)
                else:
                    groups.append([block])
            elif not block.verb:
                is_synopsis = re.search('…|\\[-', block.text)
                said = not is_synopsis and re.search(r'^(\$ )?(build/release/bin/)?argiope [a-z].*$', block.text, re.M)
                self.assertFalse(said, f'{block.where}: nothing says how this example is tested: '
                                        f'{said and said.group(0)}\nSee tests/e2e/docs_test.py')
        for number, group in enumerate(groups):
            folder = self.folder / str(number)
            folder.mkdir()
            with self.subTest(group[0].where):
                self.run_together(group, folder)


class CrawlOptions(EndToEnd):
    """Each option of `argiope crawl` and of what stands below it is in the pages on crawls, and named in a test."""

    BELOW = ('check', 'report', 'export', 'status', 'urls', 'requeue', 'explain', 'diff', 'replay', 'import')
    CRAWL_PAGES = [*sorted((ROOT / 'docs').glob('crawl*.md')), ROOT / 'docs/extraction.md', ROOT / 'docs/from-asyncio-crawler.md']

    def options_of(self, *command):
        """Lists of the names that stand for one option."""
        answer = subprocess.run([ARGIOPE, 'crawl', *command, '--help'], capture_output=True, text=True, check=True)
        found = [names.split(',') for names in re.findall(r'^  ((?:-\w,)?--[\w-]+(?:,--[\w-]+)*)', answer.stdout, re.M)]
        return [names for names in found if '--help' not in names]

    def expect_named(self, names, texts, before, what):
        long = [name for name in names if name.startswith('--')]
        self.assertTrue(any(re.search(before + re.escape(name) + r'(?![\w-])', text) for name in long for text in texts), f'{names}: {what}')

    def test_each_is_in_the_index_of_crawl_md(self):
        index = (ROOT / 'docs/crawl.md').read_text().partition('\n## Every option\n')[2]
        first = [line.split(' | ')[0].replace('\\|', '/') for line in index.splitlines() if line.startswith('| `')]
        for names in self.options_of():
            with self.subTest(names[-1]):
                self.expect_named(names, first, '`', 'no line of the index in docs/crawl.md')
                if names[0].startswith('-') and not names[0].startswith('--'):
                    self.assertTrue(any(f'`{names[0]}`' in line for line in first), f'{names[0]} is not in its line')
        offered = {name for names in self.options_of() for name in names}
        for name in re.findall(r'`(--?[a-zA-Z][\w-]*)', '\n'.join(first)):
            self.assertIn(name, offered, 'docs/crawl.md has an option that there is not')

    def test_each_below_is_described(self):
        texts = [page.read_text() for page in self.CRAWL_PAGES]
        for command in self.BELOW:
            for names in self.options_of(command):
                with self.subTest(f'{command} {names[-1]}'):
                    self.expect_named(names, texts, '', 'in no page on crawls')

    def test_each_is_named_in_a_test(self):
        texts = [file.read_text() for ending in ('py', 'cpp', 'sh') for file in sorted((ROOT / 'tests').rglob(f'*.{ending}'))
                 if file.name != 'docs_test.py']
        for command in ((), *((command,) for command in self.BELOW)):
            for names in self.options_of(*command):
                with self.subTest(f'{" ".join(command)} {names[-1]}'):
                    self.expect_named(names, texts, r'["\' `]', 'no test names it')


class NightlyCrawl(unittest.TestCase):
    def test_a_site_that_is_down_for_an_hour_does_not_cost_the_night(self):
        for name in ('recipes/nightly-crawl.md', 'schedules.md'):
            texts = [block.text for block in blocks_of(ROOT / 'docs' / name) if '"crawl"' in block.text and '[[schedule]]' in block.text]
            self.assertTrue(texts, name)
            for text in texts:
                told = tomllib.loads(text)
                queue = next(queue for queue in told['queue'] if queue['name'] == told['schedule'][0]['job']['queue'])
                self.assertGreater(queue['workers'], 0, f'{name}: without a worker of its own nobody runs its commands')
                minutes = int(queue['retry_first'].removesuffix('m'))
                waits = [min(minutes * 4 ** n, 60) for n in range(queue['max_attempts'] - 1)]
                self.assertGreater(sum(waits) * 3 / 4, 60, f'{name}: a wait is three quarters of itself at least')


class Readme(unittest.TestCase):
    def test_its_schedule_is_the_crawl_and_it_is_short(self):
        blocks = blocks_of(ROOT / 'README.md')
        scheduled = [command for block in blocks for command, _ in block.commands() if command.startswith('argiope schedule add')]
        self.assertEqual(len(scheduled), 1)
        self.assertRegex(scheduled[0], '--cron .* -- argiope crawl https://example.org/ .*--check-links --fail-on-broken')
        self.assertLess(len((ROOT / 'README.md').read_text().splitlines()), 135, 'about 120 lines')
        pictures = (ROOT / 'docs/pictures').iterdir()
        self.assertLess(sum(picture.stat().st_size for picture in pictures), 600_000)


def options_in(text):
    """The long options that a text names in its code spans."""
    spans = re.findall(r'`([^`]*)`', text)
    return [option for span in spans for option in re.findall(r'(?<![\w-])--[a-z][\w-]*\w', span)]


def cells_of(line):
    return [cell.strip() for cell in re.split(r'(?<!\\)\|', line)[1:-1]] if line.startswith('|') else []


class OptionsNamed(unittest.TestCase):
    """Pages name no option that there is not, and none as missing that there is."""

    # Of curl, which scripts of pyspider's may quote, and which is called.
    OTHERS = {'--cacert', '--compressed', '--data-binary', '--data-raw', '--data-urlencode', '--http1', '--http2'}
    MISSING = re.compile(r'\bnot yet\b|\bnot there yet\b|\blater work\b|\bnot supported\b', re.I)

    @classmethod
    def setUpClass(cls):
        cls.offered = {}
        waiting = [()]
        while waiting:
            command = waiting.pop()
            text = subprocess.run([ARGIOPE, *command, '--help'], capture_output=True, text=True, check=True, timeout=300).stdout
            cls.offered[' '.join(command)] = set(re.findall(r'(?<![\w-])--[a-z][\w-]*\w', text))
            below = re.search(r'^Subcommands:\n(.*?)(?:\n\n|\Z)', text, re.S | re.M)
            waiting += [(*command, name) for name in re.findall(r'^  ([a-z][\w-]*)', below.group(1), re.M)] if below else []
        cls.all = set().union(*cls.offered.values())

    def lines(self):
        """Of each line of the pages: the page, where it is, the head of its section, and the line."""
        for page in PAGES:
            head = ''
            for number, line in enumerate(page.read_text().split('\n'), 1):
                head = line if line.startswith('#') else head
                if page.stem not in ('decisions', 'benchmarks'):
                    yield page, f'{page.relative_to(ROOT)}:{number}', head, line

    def test_what_is_named_is_there(self):
        for page, where, _, line in self.lines():
            cells = cells_of(line)
            ours = ' '.join(cells[1:]) if cells and page.stem.startswith('from-') else line  # the first column is another program's
            self.assertLessEqual(set(options_in(ours)), self.all | self.OTHERS, where)

    def commands_in(self, text):
        """Each command of ours in a text: its name, such as "crawl check", and the options that it is given."""
        for found in re.findall(r'(?<![\w./-])argiope((?: [^\n|;&#`]+)?)', text.replace('\\\n', ' ').replace('", "', ' ')):
            words = re.sub(r'"[^"]*"|\'[^\']*\'', 'TEXT', found.partition(' -- ')[0]).split()
            name = []
            while words and ' '.join([*name, words[0]]) in self.offered:
                name.append(words.pop(0))
            if name:
                yield ' '.join(name), {option for word in words for option in options_in(f'`{word}`')}

    def test_commands_are_given_options_that_they_have(self):
        commands = 0
        for page in PAGES:
            if page.stem in ('decisions', 'benchmarks'):
                continue
            text = page.read_text()
            for code in [*(block.text for block in blocks_of(page)), *re.findall(r'`([^`\n]+)`', text)]:
                for name, options in self.commands_in(code):
                    commands += 1
                    self.assertLessEqual(options, self.offered[name], f'{page.relative_to(ROOT)}: argiope {name} has no such option')
        self.assertGreater(commands, 300)

    def test_what_is_named_as_missing_is_not_there(self):
        for page, where, head, line in self.lines():
            cells = cells_of(line)
            if page.stem.startswith('from-') and any(re.match(r'(no|none)(?![\w -])', cell) for cell in cells[1:]):
                command = 'project' if page.stem == 'from-pyspider' else 'crawl'
                there = set().union(*(names for of, names in self.offered.items() if of.split(' ')[0] == command and of != 'crawl export'))
                self.assertFalse(there & set(options_in(cells[0])), f'{where}: argiope {command} has it')
            elif self.MISSING.search(head) or self.MISSING.search(line):
                self.assertFalse(self.all & set(options_in(line)), f'{where}: argiope has it')


class PeersOptions(unittest.TestCase):
    """Each option that another program has, by tests/data/peer_options.json, has a line in the page for those who come from it."""

    @staticmethod
    def names_in(page):
        """What the first cells of a page's tables name; one with "…" in it names all that fit."""
        first = [cells[0] for cells in map(cells_of, page.read_text().split('\n')) if cells]
        spans = [span for cell in first for span in re.findall(r'`([^`]*)`', cell)]
        words = {word for span in spans for word in re.findall(r'[\w…-]+', span)}
        open_ended = [re.compile(re.escape(word).replace('…', '.+')) for word in words if '…' in word and len(word) > 4]
        return spans, words, open_ended

    @staticmethod
    def forms_of(name):
        """`--no-x` and `--x` are one option, and a bean's name begins small where it is configured."""
        return {name, name.replace('--no-', '--', 1), name.replace('--', '--no-', 1), name[0].lower() + name[1:]}

    def test_each_has_a_line(self):
        for stem, programs in json.loads((ROOT / 'tests/data/peer_options.json').read_text()).items():
            spans, words, open_ended = self.names_in(ROOT / 'docs' / f'{stem}.md')
            for program, names in programs.items():
                missing = [name for name in names
                           if not (name in spans or any(span.startswith(name + ' ') for span in spans) or self.forms_of(name) & words
                                   or any(pattern.fullmatch(form) for pattern in open_ended for form in self.forms_of(name)))]
                with self.subTest(f'{stem}: {program}'):
                    self.assertEqual(missing, [])


class TheMap(unittest.TestCase):
    """ARCHITECTURE.md and the sources that it leads to."""
    def setUp(self):
        self.text = (ROOT / 'ARCHITECTURE.md').read_text()
        self.sources = [path for folder in ('src', 'include') for path in (ROOT / folder).rglob('*') if path.suffix in ('.hpp', '.cpp')]

    def test_each_function_that_it_names_is_there(self):
        words = set().union(*(re.findall(r'\w+', path.read_text()) for path in self.sources))
        named = set(re.findall(r'`((?:\w+::)+\w+)`', self.text))
        self.assertGreater(len(named), 100)
        self.assertEqual([name for name in sorted(named) if not set(name.split('::')) <= words], [])

    def test_the_files_of_the_two_walks_are_there_and_are_as_many_as_it_says(self):
        stems = {path.stem for path in self.sources}
        walks = re.findall(r'^\*\*One [^*]+, (\d+):\*\*[^.]*\.(.*?)\n\n', self.text, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(walks), 2)
        for count, files in walks:
            names = re.findall(r'\w+', re.sub(r'`[^`]*`', '', files))
            self.assertEqual((len(names), len(set(names))), (int(count), int(count)))
            self.assertEqual([name for name in names if name not in stems], [])


class HeadersNamed(unittest.TestCase):
    def test_each_that_a_page_includes_is_for_users(self):
        named = {(page.name, header) for page in PAGES
                 for header in re.findall(r'^#include [<"](argiope/[\w/]+\.hpp)[>"]', page.read_text(), re.MULTILINE)}
        self.assertGreater(len(named), 5)
        self.assertEqual([(page, header) for page, header in sorted(named)
                          if '/detail/' in header or not (ROOT / 'include' / header).is_file()], [])


def add_tests():
    for page in PAGES:
        name = 'test_' + re.sub(r'\W', '_', str(page.relative_to(ROOT).with_suffix('')).removeprefix('docs/'))
        setattr(Docs, name, lambda self, page=page: self.check_page(page))


add_tests()

if __name__ == '__main__':
    unittest.main()
