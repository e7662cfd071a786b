"""What commands write to: a plain file is replaced and keeps its owner and mode, a link is followed, anything else stays what it is."""
import os
import re
import shutil
import stat
import subprocess
import threading
import unittest

from support import ARGIOPE, PATIENCE, Commands, EndToEnd, PageHandler

CONFIGURATION = '''
[[queue]]
name = "q"
[[schedule]]
name = "s"
trigger = { type = "interval", every = "1h" }
job = { queue = "q", function = "f" }
'''


NOBODY = 65534  # the user of Debian that owns nothing


class Pages(PageHandler):
    """A page with a link that works and one that is broken."""

    def do_GET(self):
        known = {'/': '<title>t</title><h1>a</h1><a href=/b>b</a><a href=/gone>gone</a>', '/b': '<h1>b</h1>'}
        self.reply(200 if self.path in known else 404, known.get(self.path, '').encode())


class OddFiles(EndToEnd):
    """Each command that writes a file, with each kind of thing that its name may be of."""

    def setUp(self):
        super().setUp()
        self.url = f'http://127.0.0.1:{self.serve(Pages).server_port}/'
        self.configuration = self.folder / 'argiope.toml'
        self.configuration.write_text(CONFIGURATION)

    def run_it(self, *arguments, **options):
        return subprocess.run([ARGIOPE, *map(str, arguments)], capture_output=True, timeout=PATIENCE, **options)

    def writers(self):
        """(what writes, the ending of the file's name, its arguments up to that name)"""
        self.crawl(self.url, '--check-links')
        store = f'sqlite:{self.folder / "jobs.db"}'
        added = self.run_it('schedule', 'add', 's', '--every', '1h', '--queue', 'q', '--store', store)
        self.assertEqual(added.returncode, 0, added.stderr)
        again = ['crawl', self.url, '-d', self.folder / 'again.db', '--age', '0', '--quiet']
        for ending in ('sarif', 'xml', 'json', 'csv', 'txt'):
            yield ending, [*again, '--check-output']
        yield 'html', [*again, '--html']
        yield 'xml', [*again, '--sitemap-out']
        yield 'xml.gz', [*again, '--sitemap-out']
        yield 'csv', [*again, '--export']
        yield 'jsonl', [*again, '--check-links', '--export-broken']
        yield 'txt', [*again, '--save-cookies']
        yield 'json', ['crawl', 'check', self.database, '-o']
        yield 'html', ['crawl', 'report', self.database, '-o']
        yield 'csv', ['crawl', 'export', self.database, '-o']
        yield 'dot', ['crawl', 'export', self.database, '--format', 'dot', '-o']
        yield 'graphml', ['crawl', 'export', self.database, '--format', 'graphml', '-o']
        yield 'xml', ['crawl', 'export', self.database, '--format', 'sitemap', '-o']
        yield 'txt', ['crawl', 'diff', self.database, '-o']
        yield 'html', ['simulate', self.configuration, '--for', '1d', '--quiet', '--html']
        yield 'jsonl', ['schedule', 'export', '--store', store]

    def with_records(self, path):
        """Records of a new crawl."""
        self.database.unlink(missing_ok=True)
        self.crawl(self.url, '--field', 't=css:h1', '--output', path)

    def test_a_database_that_cannot_be_is_refused_before_anything_is_made(self):
        note, long_note = self.folder / 'note.txt', self.folder / 'long.txt'
        note.write_text('a')  # SQLite takes what is smaller than a page for an empty database
        long_note.write_text('a' * 5000)
        there = {entry.name for entry in self.folder.iterdir()}
        outputs = ['--warc', 'w', '--save', 'm', '--output', 'o.jsonl', '--field', 't=css:h1']
        for database in ('no/x.db', '.', note, long_note):
            refused = self.run_it('crawl', self.url, '-d', database, *outputs, cwd=self.folder)
            self.assertEqual(refused.returncode, 3, refused.stderr)
            self.assertEqual({entry.name for entry in self.folder.iterdir()}, there, database)
        for command in (['job', 'put', 'q', 'x', '--store', f'sqlite:{note}'], ['project', 'run', '-d', note]):
            self.assertNotEqual(self.run_it(*command, cwd=self.folder).returncode, 0, command)
        self.assertEqual((note.read_text(), len(long_note.read_text())), ('a', 5000))

    def test_a_database_is_the_file_that_its_name_says(self):
        for name in ('file:x.db', 'file:y.db?mode=memory'):
            crawled = self.run_it('crawl', self.url, '-d', name, '--quiet', cwd=self.folder)
            self.assertEqual(crawled.returncode, 0, crawled.stderr)
            self.assertGreater((self.folder / name).stat().st_size, 0)
            self.assertEqual(self.run_it('job', 'put', 'q', 'x', '--store', f'sqlite:jobs-{name}', cwd=self.folder).returncode, 0)
        self.assertFalse((self.folder / 'x.db').exists())
        self.assertFalse((self.folder / 'y.db').exists())

    def test_a_device_stays_a_device(self):
        if os.geteuid() != 0:
            self.skipTest('only root makes devices')
        for number, (ending, arguments) in enumerate(self.writers()):
            path = self.folder / f'null-{number}.{ending}'
            os.mknod(path, stat.S_IFCHR | 0o666, os.stat('/dev/null').st_rdev)
            with self.subTest(arguments):
                result = self.run_it(*arguments, path)
                self.assertLessEqual(result.returncode, 1, result.stderr)
                self.assertTrue(stat.S_ISCHR(path.lstat().st_mode))
                self.assertEqual(list(self.folder.glob(f'null-{number}*')), [path])

    def test_a_link_is_followed_and_its_file_keeps_its_mode(self):
        for number, (ending, arguments) in enumerate(self.writers()):
            is_secret = '--save-cookies' in arguments
            real, path = self.folder / f'real-{number}.{ending}', self.folder / f'link-{number}.{ending}'
            real.write_text('old')
            real.chmod(0o640)
            path.symlink_to(real.name)
            with self.subTest(arguments):
                result = self.run_it(*arguments, path)
                self.assertLessEqual(result.returncode, 1, result.stderr)
                self.assertTrue(path.is_symlink())
                self.assertNotIn(real.read_bytes(), (b'', b'old'))
                self.assertEqual(stat.S_IMODE(real.stat().st_mode), 0o600 if is_secret else 0o640)

    def test_a_pipe_is_read_at_its_other_end(self):
        for number, (ending, arguments) in enumerate(self.writers()):
            path = self.folder / f'pipe-{number}.{ending}'
            os.mkfifo(path)
            got = []
            reader = threading.Thread(target=lambda path=path, got=got: got.append(path.read_bytes()), daemon=True)
            reader.start()
            with self.subTest(arguments):
                result = self.run_it(*arguments, path)
                self.assertLessEqual(result.returncode, 1, result.stderr)
                reader.join(PATIENCE)
                self.assertTrue(got and got[0])
                self.assertTrue(stat.S_ISFIFO(path.lstat().st_mode))

    def test_standard_output_by_its_names_is_written_to(self):
        for number, (ending, arguments) in enumerate(self.writers()):
            link = self.folder / f'out-{number}.{ending}'
            link.symlink_to('/dev/stdout')
            names = [link] if ending != 'jsonl' else ['/dev/stdout', '/dev/fd/1', '/proc/self/fd/1', link]
            if '--export-broken' in arguments or '--export' in arguments:
                names = [link]
            for name in names:
                out = self.folder / f'captured-{number}'
                out.write_text('before\n')
                with self.subTest(arguments, name=name), open(out, 'a') as stream:
                    result = subprocess.run([ARGIOPE, *map(str, arguments), str(name)], stdout=stream, stderr=subprocess.PIPE,
                                            timeout=PATIENCE)
                    self.assertLessEqual(result.returncode, 1, result.stderr)
                    self.assertTrue(out.read_bytes().startswith(b'before\n'))
                    self.assertGreater(len(out.read_bytes()), len(b'before\n'))

    def test_records_go_through_pipes_links_and_descriptors(self):
        real, link, pipe = self.folder / 'real.jsonl', self.folder / 'link.jsonl', self.folder / 'pipe.jsonl'
        link.symlink_to(real.name)
        self.with_records(link)
        self.assertTrue(link.is_symlink())
        self.assertEqual(len(real.read_text().splitlines()), 2)
        os.mkfifo(pipe)
        got = []
        reader = threading.Thread(target=lambda: got.append(pipe.read_text()), daemon=True)
        reader.start()
        self.with_records(pipe)
        reader.join(PATIENCE)
        self.assertEqual(len(got[0].splitlines()), 2)
        read_end, write_end = os.pipe()
        self.database.unlink()
        with open(read_end) as reading:
            subprocess.run([ARGIOPE, 'crawl', self.url, '-d', self.database, '--quiet', '--field', 't=css:h1',
                            '--output', f'/dev/fd/{write_end}'], pass_fds=[write_end], check=True, timeout=PATIENCE)
            os.close(write_end)
            self.assertEqual(len(reading.readlines()), 2)

    def test_a_database_or_an_archive_is_no_pipe(self):
        for name, arguments in (('db', ['-d', self.folder / 'db']), ('w.cdxj', ['--warc', self.folder / 'w']),
                                ('v.warc.gz', ['--warc', self.folder / 'v'])):
            os.mkfifo(self.folder / name)
            os.chmod(self.folder / name, 0o640)
            result = self.run_it('crawl', self.url, '--quiet', *arguments, cwd=self.folder)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertTrue(stat.S_ISFIFO((self.folder / name).lstat().st_mode))
            self.assertEqual(stat.S_IMODE((self.folder / name).lstat().st_mode), 0o640)
            self.assertEqual(list(self.folder.glob('db-*')), [])

    def test_a_folder_that_is_not_there_is_found_out_at_the_start(self):
        asked = []

        class Counting(Pages):
            def do_GET(self):
                asked.append(self.path)
                super().do_GET()
        url = f'http://127.0.0.1:{self.serve(Counting).server_port}/'
        link = self.folder / 'dangling'
        link.symlink_to('not/there')
        for option, name in (('--html', 'r.html'), ('--sitemap-out', 's.xml'), ('--check-output', 'k.json'), ('--export', 'e.csv'),
                             ('--export-broken', 'b.csv'), ('--save-cookies', 'c.txt'), ('--warc', 'w'),
                             ('--field=h=css:h1', None)):
            missing = self.folder / 'no' / 'such' / (name or 'o.jsonl')
            arguments = [option, missing] if name else [option, '--output', missing]
            result = self.run_it('crawl', url, '-d', self.folder / 'c.db', '--quiet', *arguments)
            self.assertEqual(result.returncode, 3, (option, result.stderr))
            self.assertIn(b'No such file', result.stderr)
        result = self.run_it('crawl', url, '-d', self.folder / 'c.db', '--quiet', '--html', link)
        self.assertEqual(result.returncode, 3)
        self.assertEqual(asked, [])

    @unittest.skipUnless(os.geteuid() == 0, 'only root becomes another')
    def test_what_another_may_not_write_is_found_out_at_the_start(self):
        asked = []

        class Counting(Pages):
            def do_GET(self):
                asked.append(self.path)
                super().do_GET()
        url = f'http://127.0.0.1:{self.serve(Counting).server_port}/'
        self.crawl(self.url, '--check-links')
        self.folder.chmod(0o755)
        own, locked = self.folder / 'own', self.folder / 'locked'
        for folder, mode in ((own, 0o777), (locked, 0o555)):
            folder.mkdir()
            folder.chmod(mode)
        (own / 'jar').write_text('')
        (own / 'jar').chmod(0o666)
        (own / 'argiope.toml').write_text(CONFIGURATION)
        (own / 'serve.toml').write_text(f'[serve]\nlisten = "127.0.0.1:0"\nstore = "sqlite:{own}/jobs.db"\naudit = "{locked}/audit"\n')
        # Where the program lies, others may be kept out.
        program = shutil.copy(ARGIOPE, own / 'argiope')
        shutil.copy(self.database, own / 'known.db')
        (own / 'known.db').chmod(0o666)
        crawl = ['crawl', url, '-d', own / 'c.db', '--quiet']
        for why, place, arguments in (
                ('Operation not permitted', own / 'jar', [*crawl, '--save-cookies', own / 'jar']),
                ('Permission denied', locked, [*crawl, '--save-cookies', locked / 'jar']),
                ('Permission denied', locked, [*crawl, '--save', locked / 'site']),
                ('Permission denied', locked / 'a', [*crawl, '--save', locked / 'a/b/site']),
                ('Permission denied', locked, [*crawl, '--save', locked]),
                ('Permission denied', locked, [*crawl, '--warc', locked / 'w']),
                ('Permission denied', locked, [*crawl, '--field', 't=css:h1', '--output', locked / 'o.jsonl']),
                ('Permission denied', locked, [*crawl, '--html', locked / 'r.html']),
                ('Permission denied', locked, [*crawl, '--check-output', locked / 'k.json']),
                ('Permission denied', locked, ['crawl', url, '-d', locked / 'c.db', '--quiet']),
                ('Permission denied', locked, ['crawl', 'export', own / 'known.db', '-o', locked / 'e.csv']),
                ('Permission denied', locked, ['crawl', 'report', own / 'known.db', '-o', locked / 'e.html']),
                ('Permission denied', locked, ['simulate', own / 'argiope.toml', '--for', '1d', '--html', locked / 's.html']),
                ('Permission denied', locked, ['job', 'put', 'q', 'x', '--store', f'sqlite:{locked}/jobs.db']),
                ('Permission denied', locked, ['serve', '--store', f'sqlite:{locked}/jobs.db', '--listen', '127.0.0.1:0']),
                ('Permission denied', locked, ['serve', own / 'serve.toml'])):
            with self.subTest(arguments):
                result = subprocess.run([program, *map(str, arguments)], capture_output=True, timeout=PATIENCE, user=NOBODY,
                                        group=NOBODY, cwd=own)
                said = result.stderr.decode()
                self.assertIn(result.returncode, (1, 2, 3), said)
                self.assertIn(why, said)
                self.assertIn(str(place), said)
                self.assertNotIn('No such file', said)
        self.assertEqual(asked, [])
        self.assertEqual(list(locked.iterdir()), [])

    def refused(self, *arguments, **options):
        """What a command says that ends before it has changed anything."""
        before = {path: path.read_bytes() for path in self.folder.rglob('*') if path.is_file()}
        result = self.run_it(*arguments, cwd=self.folder, **options)
        self.assertIn(result.returncode, (2, 3), (arguments, result.stderr))
        after = {path: path.read_bytes() for path in self.folder.rglob('*') if path.is_file()}
        self.assertEqual(after, before, arguments)
        return result.stderr.decode()

    def test_two_outputs_to_one_file_are_a_mistake(self):
        link = self.folder / 'same.jsonl'
        link.symlink_to('out.jsonl')
        out = self.folder / 'out.jsonl'
        for arguments in (['--export', out, '--field', 'h=css:h1', '--output', link], ['--export', link, '--export-broken', out],
                          ['--html', self.folder / 'c.db'], ['--html', 'sub/../c.db']):
            (self.folder / 'sub').mkdir(exist_ok=True)
            said = self.refused('crawl', self.url, '-d', self.folder / 'c.db', '--quiet', *arguments)
            self.assertIn('names the same file', said)

    def test_no_output_takes_the_place_of_an_input_a_database_or_an_archive(self):
        self.crawl(self.url, '--check-links', '--warc', self.folder / 'w', '--warc-size', '1M', '--save', self.folder / 'site')
        database, store = self.database.name, 'jobs.db'
        self.run_it('schedule', 'add', 's', '--every', '1h', '--queue', 'q', '--store', store, cwd=self.folder)
        os.link(self.database, self.folder / 'hard.db')
        (self.folder / 'linked.db').symlink_to(database)
        os.link(self.folder / 'site/.argiope-mirror/index', self.folder / 'log')
        for name in ('seeds.csv', 'jar', 'netrc'):
            (self.folder / name).write_text('')
        (self.folder / 'seeds.csv').write_text(self.url)
        (self.folder / 'secret').write_text('dew\n')
        (self.folder / 'hosts.toml').write_text('[crawl]\nmax_depth = 3\n')
        (self.folder / 'rules.toml').write_text('[[rule]]\nfields = { h = "css:h1" }\n')
        again = ['crawl', self.url, '-d', 'again.db', '--quiet']
        record = ['--field', 'h=css:h1', '--output']
        for named, other, arguments in (
                ('--output', 'DB', ['crawl', 'report', database, '-o', database]),
                ('--output', 'DB', ['crawl', 'check', database, '-o', 'hard.db', '--format', 'json']),
                ('--output', 'DB', ['crawl', 'diff', database, '-o', 'linked.db']),
                ('--output', 'DB', ['crawl', 'export', database, '-o', f'./{database}']),
                ('--output', 'DB', ['crawl', 'export', database, '--format', 'sitemap', '-o', f'{database}-wal']),
                ('--html', 'FILE', ['simulate', 'argiope.toml', '--html', 'argiope.toml']),
                ('--html', '--store', ['simulate', '--store', f'sqlite:{store}', '--html', store]),
                ('FILE', '--store', ['schedule', 'export', store, '--store', store]),
                ('FILE', '--store', ['schedule', 'export', f'{store}-shm', '--store', f'sqlite:{store}']),
                ('--html', 'FILE', ['crawl', 'replay', 'w.warc.gz', '--html', 'w.warc.gz']),
                ('--export', '--input-file', ['crawl', '-i', 'seeds.csv', '-d', 'again.db', '--export', 'seeds.csv']),
                *[('--output', '--db', [*again, *record, f'again.db{end}']) for end in ('', '-wal', '-shm', '-journal')],
                *[('--html', '--warc', [*again, '--warc', 'w', '--html', name])
                  for name in ('w.warc.gz', 'w.cdxj', 'w-00001.warc.gz', 'w-00077.warc.gz')],
                ('--db', '--warc', ['crawl', self.url, '-d', 'n.cdxj', '--warc', 'n']),
                ('--output', '--warc', [*again, '--warc', 'n', *record, 'n.warc.gz']),
                ('--html', '--sitemap-out', [*again, '--sitemap-out', 'm.xml.gz', '--html', 'm-12.xml.gz']),
                ('--html', '--save', [*again, '--save', 'site', '--html', 'site/.argiope-mirror/index']),
                ('--html', '--save', [*again, '--save', 'site', '--html', 'log']),
                ('--html', '--save', [*again, '--save', 'site', '--html', next((self.folder / 'site').glob('[!.]*')) / 'b.html']),
                ('--html', '--config', [*again, '--config', 'hosts.toml', '--html', 'hosts.toml']),
                ('--html', '--extract', [*again, '--extract', 'rules.toml', '--html', 'rules.toml']),
                ('--html', '--load-cookies', [*again, '--load-cookies', 'jar', '--html', 'jar']),
                ('--html', '--netrc-file', [*again, '--netrc-file', 'netrc', '--html', 'netrc']),
                ('--html', '--user', [*again, '--user', 'ann:@secret', '--html', 'secret']),
                ('--save-cookies', '--login-field', [*again, '--login', self.url, '--login-field', 'word=@secret',
                                                     '--save-cookies', 'secret'])):
            with self.subTest(arguments):
                said = self.refused(*arguments)
                self.assertIn(f'{named} ', said)
                self.assertIn(f'{other}', said)

    def test_standard_output_is_an_output_too(self):
        self.crawl(self.url, '--check-links')
        for arguments, name in ((['crawl', 'report', self.database], self.database), (['crawl', 'diff', self.database, '-o', 'x'], 'x')):
            (self.folder / 'x').touch()
            with open(self.folder / name, 'ab') as stream:
                before = (self.folder / name).read_bytes()
                result = subprocess.run([ARGIOPE, *map(str, arguments)], stdout=stream, stderr=subprocess.PIPE, cwd=self.folder,
                                        timeout=PATIENCE)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(b'standard output', result.stderr)
            self.assertEqual((self.folder / name).read_bytes(), before)

    def test_a_jar_of_cookies_is_renewed_and_a_device_has_many_uses(self):
        jar = self.folder / 'jar'
        jar.write_text('')
        for arguments in (['--load-cookies', jar, '--save-cookies', jar], ['--html', '/dev/stdout', '--sitemap-out', '-']):
            result = self.run_it('crawl', self.url, '-d', self.folder / 'again.db', '--age', '0', '--quiet', *arguments)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_project_keeps_its_files_apart(self):
        (self.folder / 'shop.toml').write_text(
            f'[project]\nname = "shop"\nstart = "{self.url}"\n[[rule]]\nname = "front"\nmatch = "/"\nretries = 0\n'
            '[rule.fields]\ntitle = "css:h1"\n[[sink]]\nfile = "sold.jsonl"\n')
        os.link(self.folder / 'shop.toml', self.folder / 'shop.json')
        for name, other in (('shop.json', 'FILE'), ('sold.jsonl', 'sink'), ('p.csv', '--db')):
            said = self.refused('project', 'run', 'shop.toml', '--once', '-d', 'p.csv', '--results', name)
            for part in ('--results', other, 'names the same file'):
                self.assertIn(part, said)
        ran = self.run_it('project', 'run', 'shop.toml', '--once', '-d', 'p.db', '--quiet', cwd=self.folder)
        self.assertLessEqual(ran.returncode, 1, ran.stderr)
        self.assertIn('--output p.db', self.refused('project', 'results', 'shop', '-d', 'p.db', '-o', 'p.db'))


def move_away(path):
    path.rename(f'{path}.old')


def replace(path):
    move_away(path)
    path.touch()


class Gone(EndToEnd):
    """Files that are moved away or replaced while a crawl writes them."""

    def test_a_crawl_whose_output_or_archive_goes_ends_with_an_error(self):
        for what, name in (('output', 'o.jsonl'), ('warc', 'w.warc.gz'), ('warc', 'w.cdxj')):
            for replaced in (False, True):
                with self.subTest(name, replaced=replaced):
                    said = self.crawl_disturbed(what, self.folder / f'{what}-{replaced}-{name}', replace if replaced else move_away)
                    self.assertIn('replaced by another file' if replaced else 'deleted', said)

    def test_a_crawl_whose_output_archive_or_mirror_is_cut_ends_with_an_error(self):
        for what, name in (('output', 'o.jsonl'), ('warc', 'w.warc.gz'), ('warc', 'w.cdxj'),
                           ('save', '.argiope-mirror/index'), ('save', '.argiope-mirror/pages-1')):
            with self.subTest(name):
                target = self.folder / f'cut-{what}' / name
                if what != 'save':
                    target = self.folder / f'cut-{name}'
                said = self.crawl_disturbed(what, target, lambda path: os.truncate(path, 0))
                self.assertIn('another program cut it', said)
                self.assertIn(target.name, said)
                shutil.rmtree(self.folder / f'cut-{what}', ignore_errors=True)

    def test_nothing_is_written_behind_the_place_where_another_program_has_cut_the_records(self):
        target = self.folder / 'half.jsonl'
        said = self.crawl_disturbed('output', target, lambda path: os.truncate(path, 20))
        self.assertIn('another program cut it', said)
        self.assertEqual(target.stat().st_size, 20)

    def crawl_disturbed(self, what, target, disturb):
        """What a crawl says while whose second page `disturb` does something to the file that it writes."""
        asked, let_go = threading.Event(), threading.Event()

        class Held(PageHandler):
            def do_GET(self):
                if self.path == '/b':
                    asked.set()
                    let_go.wait(PATIENCE)
                self.reply(200 if self.path in ('/', '/b') else 404, b'<h1>a</h1><a href=/b>b</a>')
        url = f'http://127.0.0.1:{self.serve(Held).server_port}/'
        self.addCleanup(let_go.set)
        stem = re.sub(r'\.(warc\.gz|cdxj)$', '', str(target))
        arguments = {'output': ['--field', 'h=css:h1', '--output', target], 'warc': ['--warc', stem],
                     'save': ['--save', target.parent.parent]}[what]
        database = self.folder / f'{target.name}.db'
        process = self.start([ARGIOPE, 'crawl', url, '-d', database, '--quiet', *map(str, arguments)], stderr=subprocess.PIPE, text=True)
        self.assertTrue(asked.wait(PATIENCE))
        self.wait_until(lambda: target.exists() and (disturb in (replace, move_away) or target.stat().st_size > 0))
        disturb(target)
        let_go.set()
        _, said = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 3, said)
        return said


class StandardOutput(Commands):
    """What cannot be printed is a failure, whatever the command."""

    def commands(self):
        url = f'http://127.0.0.1:{self.serve(Pages).server_port}/'
        self.crawl(url)
        self.job('put', 'q', 'x')
        self.schedule('add', 's', '--every', '1h', '--queue', 'q')
        configuration = self.folder / 'argiope.toml'
        configuration.write_text(CONFIGURATION)
        at = ['--store', self.store]
        yield from (['job', 'list', *at], ['job', 'list', '--json', *at], ['job', 'stats', *at], ['job', 'show', '1', *at],
                    ['job', 'explain', '1', *at], ['job', 'put', 'q', 'y', *at], ['schedule', 'list', *at], ['schedule', 'show', 's', *at],
                    ['schedule', 'export', *at], ['next', '@daily'], ['next', '@daily', '--json'],
                    ['simulate', configuration, '--for', '1d', '--quiet'], ['explain', 's', *at],
                    ['token', 'add', 'ci', '--file', self.folder / 't.jsonl'], ['token', 'list', '--file', self.folder / 't.jsonl'],
                    ['--help'], ['--version'], ['crawl', '--help'], ['job', 'put', '--help'],
                    ['crawl', 'status', self.database], ['crawl', 'urls', self.database], ['crawl', 'export', self.database],
                    ['crawl', 'diff', self.database], ['crawl', 'explain', url, self.database],
                    ['crawl', url, '-d', self.database, '--age', '0', '--quiet', '--summary', 'json'])

    def test_on_a_full_disk_every_command_says_that_it_failed(self):
        if not os.path.exists('/dev/full'):
            self.skipTest('there is no /dev/full')
        for arguments in self.commands():
            with self.subTest(arguments), open('/dev/full', 'w') as full:
                good = subprocess.run([ARGIOPE, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE)
                if 'add' in arguments:
                    subprocess.run([ARGIOPE, 'token', 'remove', 'ci', *map(str, arguments[3:])], capture_output=True, timeout=PATIENCE)
                if not good.stdout:
                    self.fail(f'nothing was printed: {good.stderr}')
                result = subprocess.run([ARGIOPE, *map(str, arguments)], stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
                self.assertEqual(result.returncode, 3, result.stderr)
                told = [line for line in result.stderr.splitlines() if not line.startswith('This is shown once.')]
                self.assertEqual(len(told), 1, result.stderr)
                self.assertRegex(told[0], 'standard output|No space left on device')

    def test_without_standard_output_nothing_else_gets_what_is_printed(self):
        self.job('put', 'q', 'x')
        before = self.json('list')
        for closed in ('>&-', '<&- >&-', '<&- >&- 2>&-'):
            script = f'"{ARGIOPE}" job list --json --store "{self.store}" {closed}'
            result = subprocess.run(['bash', '-c', script], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(result.returncode, 3, result.stderr)
        self.assertEqual(self.json('list'), before)

    def test_a_full_standard_error_ends_no_command_by_a_crash(self):
        with open('/dev/full', 'w') as full:
            for arguments in (['frobnicate'], ['next', '@daily'], ['next', 'never'], ['job', 'show', '9', '--store', self.store]):
                result = subprocess.run([ARGIOPE, *arguments], stdout=subprocess.DEVNULL, stderr=full, timeout=PATIENCE)
                self.assertIn(result.returncode, [0] if arguments[-1] == '@daily' else [2, 3], arguments)


if __name__ == '__main__':
    unittest.main()
