"""Projects in `argiope serve`: a file of the configuration, the API, and what outlives the daemon."""
import csv
import http.server
import io
import json
import os
import signal
import socket
import subprocess
import unittest

from daemon import Daemons
from support import ARGIOPE, PATIENCE

SHOP = '''
[project]
name = "shop"
start = "{start}"

[[rule]]
name = "docs"
match = "/docs/**"
age = "1d"
fields = {{ title = "css:title" }}

[[rule]]
name = "front"
match = "{start}"
'''
SCRIPT = '''
from argiope.processor import BaseHandler

class Handler(BaseHandler):
    def on_start(self):
        self.crawl("{start}", callback=self.page)

    def page(self, response):
        return {{"word": "{word}"}}
'''
SCRIPTED = '[project]\nname = "script"\nprocessor = ["python3", "-m", "argiope.processor", "shop.py"]\n'


class ServedProjects(Daemons):
    def setUp(self):
        super().setUp()
        (self.folder / 'conf').mkdir()

    def shop(self, start, name='shop.toml'):
        (self.folder / 'conf' / name).write_text(SHOP.format(start=start))

    def configuration(self, text='[[project]]\nfile = "shop.toml"\n'):
        return self.file(text, 'conf/argiope.toml')

    def finished(self, daemon, name='shop', rounds=1):
        def is_over():
            project = daemon.good('GET', f'/v1/projects/{name}')
            return project['round'] is None and len(project['rounds']) == rounds
        self.wait_until(is_over, 'the round did not end')
        return daemon.good('GET', f'/v1/projects/{name}')

    def results(self, daemon, name='shop'):
        found, after = [], None
        while True:
            page = daemon.good('GET', f'/v1/projects/{name}/results?limit=7' + (f'&after={after}' if after else ''))
            found += page['results']
            after = page['next']
            if after is None:
                return found

    def test_a_file_of_the_configuration_is_visited_and_outlives_the_daemon(self):
        urls, _ = self.site('--hosts', 1, '--pages', 20)
        self.shop(urls[0])
        daemon = self.daemon(self.configuration())
        shown = self.finished(daemon)
        self.assertEqual((shown['locked'], shown['status'], shown['version']), (True, 'RUNNING', 1))
        self.assertIn('[project]', shown['source'])
        self.assertTrue((self.folder / 'pages.db').exists())
        results = self.results(daemon)
        self.assertEqual(len(results), shown['results'])
        self.assertGreater(len(results), 7)
        self.assertTrue(all('title' in result['value'] for result in results))

        lines = daemon.ask('GET', '/v1/projects/shop/results?format=jsonl').body
        self.assertEqual(len(lines.splitlines()), len(results))
        table = list(csv.reader(io.StringIO(daemon.ask('GET', '/v1/projects/shop/results?format=csv').body.decode())))
        self.assertEqual(table[0], ['url', 'part', 'title'])
        self.assertEqual(len(table), len(results) + 1)
        self.assertEqual(json.loads(daemon.ask('GET', '/v1/projects/shop/results?format=array').body), [json.loads(line) for line in lines.splitlines()])
        feed = daemon.good('GET', '/v1/projects/shop/feed?limit=1000')['feed']
        self.assertEqual(len(feed), len(results))
        newest = daemon.good('GET', '/v1/projects/shop/feed?order=newest&limit=1000')
        self.assertEqual((newest['feed'], newest['next']), (feed[::-1], None))

        page = results[0]['page']
        self.assertEqual(daemon.good('GET', f'/v1/projects/shop/pages/explain?page={page}')['reason'], 'fresh')
        self.assertEqual(daemon.good('GET', f'/v1/projects/shop/results?page={page}')['results'], results[:1])
        known = daemon.good('GET', f'/v1/projects/shop/pages/one?page={page}')
        self.assertEqual((known['state'], known['rule'], known['status_code']), ('done', 'docs', 200))
        daemon.good('PATCH', '/v1/projects/shop', {'status': 'STOP'})
        self.assertEqual(daemon.good('GET', '/v1/projects/shop')['doing'], 'stopped')
        self.assertEqual(daemon.ask('POST', '/v1/projects/shop/start').status, 409)
        self.assertEqual(daemon.ask('DELETE', '/v1/projects/shop').status, 409)

        daemon.signal(signal.SIGTERM)
        daemon.ended()
        daemon = self.daemon(self.configuration())
        again = daemon.good('GET', '/v1/projects/shop')
        self.assertEqual((again['status'], again['version'], again['results']), ('STOP', 1, len(results)))
        daemon.good('PATCH', '/v1/projects/shop', {'status': 'RUNNING'})
        daemon.good('POST', '/v1/projects/shop/start')
        self.finished(daemon, rounds=2)
        asked = daemon.good('POST', '/v1/projects/shop/pages', {'pages': [{'url': page, 'force': True}, {'url': 'no'}]})['replies']
        self.assertEqual(asked[0]['verdict'], 'again')
        self.assertEqual(asked[1]['error']['status'], 400)
        self.wait_until(lambda: daemon.good('GET', '/v1/projects/shop/recent')['visits'][0]['page'] == page)

    def command(self, *arguments, expect=0, token=''):
        result = subprocess.run([ARGIOPE, 'project', *map(str, arguments)], capture_output=True, text=True, timeout=300, cwd=self.folder,
                                env={**os.environ, 'ARGIOPE_TOKEN': token})
        self.assertEqual(result.returncode, expect, result.stdout + result.stderr)
        return result

    def test_commands_reach_its_projects_and_say_what_they_say_of_the_file(self):
        urls, _ = self.site('--hosts', 1, '--pages', 12)
        daemon = self.daemon('--pages', self.folder / 'pages.db', '--allow-private')
        where = ['--store', f'http://127.0.0.1:{daemon.port}']
        daemon.good('PUT', '/v1/projects/shop', {'source': SHOP.format(start=urls[0])}, status=201)
        daemon.good('POST', '/v1/projects/shop/start')
        self.finished(daemon)
        page = self.results(daemon)[0]['page']
        looks = [('status', 'shop', '--json'), ('status', '--json'), ('status',), ('results', 'shop'), ('results', 'shop', '--format', 'csv'),
                 ('results', 'shop', '--rule', 'front'), ('explain', 'shop', page, '--json'), ('explain', 'shop', page),
                 ('explain', 'shop', 'http://elsewhere.test/', '--json'), ('versions', 'shop'), ('versions', 'shop', '--json'),
                 ('versions', 'shop', '--show', 1), ('versions', 'shop', '--diff', 1, 2)]

        # What changes is there at once.
        self.assertEqual(self.command('stop', 'shop', *where).stdout, 'shop is STOP.\n')
        self.assertEqual(daemon.good('GET', '/v1/projects/shop')['status'], 'STOP')
        self.assertEqual(self.command('start', 'shop', *where).stdout, 'shop is RUNNING.\n')
        self.assertIn('fresh until', self.command('ask', 'shop', page, *where).stdout)
        asked = json.loads(self.command('ask', 'shop', page, '--force', '--json', *where).stdout)
        self.assertEqual((asked['page'], asked['verdict'], asked['reason']), (page, 'again', 'forced'))
        self.assertEqual(self.command('resume', 'shop', *where).stdout, 'shop is not paused.\n')
        self.assertIn('takes no messages', self.command('message', 'shop', '7', *where, expect=2).stderr)
        self.wait_until(lambda: daemon.good('GET', '/v1/projects/shop')['round'] is None and daemon.good('GET', '/v1/projects/shop/recent')['visits'][0]['page'] == page)
        self.assertIn('Deleted shop. Until ', self.command('delete', 'shop', *where).stdout)
        gone = json.loads(self.command('status', '--json', *where).stdout)['projects']
        self.assertEqual([(one['name'], one['doing'], one['deleted_at'] is None) for one in gone], [('shop', 'deleted', False)])
        self.assertIn('shop', self.command('explain', 'shop', page, *where, expect=2).stderr)
        self.assertIn('is back', self.command('restore', 'shop', *where).stdout)
        daemon.good('PUT', '/v1/projects/shop', {'source': SHOP.format(start=urls[0]).replace('age = "1d"', 'age = "2d"')})
        self.assertIn('2 is the newest version already', self.command('versions', 'shop', '--roll-back', 2, *where, expect=2).stderr)
        self.assertIn('version 3 is as version 1 was. It is in force.', self.command('versions', 'shop', '--roll-back', 1, *where).stdout)
        self.assertEqual(daemon.good('GET', '/v1/projects/shop')['version'], 3)
        self.assertIn('version 9', self.command('versions', 'shop', '--show', 9, *where, expect=2).stderr)
        self.assertIn('nothere', self.command('versions', 'nothere', *where, expect=2).stderr)

        # What is said of the file is the same, but for who has it and what only the daemon knows.
        told = [self.command(*look, *where).stdout for look in looks]
        self.command('results', 'shop', '-o', 'told.csv', *where)
        self.assertGreater(len(told[3].splitlines()), 3)
        daemon.signal(signal.SIGTERM)
        daemon.ended()
        stored = [self.command(*look).stdout for look in looks]
        for i in (0, 1):
            (one,), (other,) = json.loads(told[i])['projects'], json.loads(stored[i])['projects']
            self.assertEqual(list(one), list(other))
            self.assertEqual([list(each) for each in one['counters'].values()], [list(each) for each in other['counters'].values()])
            same = ('name', 'group', 'status', 'trouble', 'rate', 'burst', 'weight', 'pages', 'results', 'version', 'round', 'made_at', 'deleted_at')
            self.assertEqual({name: one[name] for name in same}, {name: other[name] for name in same})
            self.assertEqual(one['counters']['success']['all'], other['counters']['success']['all'])
            self.assertEqual((one['doing'], json.loads(told[i])['owner']), ('waiting', where[1]))
        self.assertEqual(told[2].splitlines()[0].split(), stored[2].splitlines()[0].split())
        self.assertEqual(told[3:6], stored[3:6])
        self.assertEqual((self.folder / 'told.csv').read_text(), told[4])
        one, other = json.loads(told[6]), json.loads(stored[6])
        self.assertEqual(list(one), list(other))
        self.assertEqual((one['reason'], one['state'], one['status_code'], one['rule']), ('fresh', 'done', 200, other['rule']))
        self.assertEqual([line.split(':')[0] for line in told[7].splitlines()[2:]], [line.split(':')[0] for line in stored[7].splitlines()[2:]])
        self.assertEqual(json.loads(told[8]), json.loads(stored[8]))
        self.assertEqual(told[9:], stored[9:])
        self.assertEqual([(one['version'], one['note']) for one in json.loads(told[10])['versions']][0], (3, 'back to 1'))
        self.assertEqual(told[11], SHOP.format(start=urls[0]))
        self.assertIn('+age = "2d"', told[12])

    def test_a_command_that_reaches_no_daemon_says_so(self):
        words = subprocess.run([ARGIOPE, 'token', 'add', '--file', self.folder / 'tokens', '--scope', 'read', 'looker'], capture_output=True, text=True, check=True).stdout
        token = words.split()[0]
        daemon = self.daemon('--pages', self.folder / 'pages.db', '--tokens', self.folder / 'tokens')
        where = ['--store', f'http://127.0.0.1:{daemon.port}']
        self.assertIn('ARGIOPE_TOKEN', self.command('status', *where, expect=2).stderr)
        self.assertEqual(json.loads(self.command('status', '--json', *where, token=token).stdout)['projects'], [])
        self.assertIn('shop', self.command('status', 'shop', *where, token=token, expect=2).stderr)
        self.assertIn('read', self.command('stop', 'shop', *where, token=token, expect=2).stderr)
        self.assertIn('"sqlite:x": a daemon, http://HOST:7733', self.command('status', '--store', 'sqlite:x', expect=2).stderr)
        self.assertIn('--db', self.command('status', '-d', 'pages.db', *where, expect=2).stderr)
        for arguments, words in ((('run', 'shop.toml'), 'argiope serve'), (('check', 'shop.toml'), 'reads the file itself'),
                                 (('try', 'shop.toml', 'http://a.test/'), 'debug page')):
            self.assertIn(words, self.command(*arguments, *where, expect=2).stderr)
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            self.assertIn('127.0.0.1', self.command('status', '--store', f'http://127.0.0.1:{free.getsockname()[1]}', expect=3).stderr)

    def test_the_files_are_read_again_all_or_none(self):
        urls, _ = self.site('--hosts', 2, '--pages', 3)
        self.shop(urls[0])
        file = self.configuration()
        daemon = self.daemon(file)
        self.finished(daemon)
        (self.folder / 'conf' / 'shop.toml').write_text(SHOP.format(start=urls[0]).replace('age = "1d"', 'age = "soon"'))
        daemon.signal(signal.SIGHUP)
        daemon.wait_for(r'stays as it was: .*shop\.toml:\d+: rule\[0\]\.age')
        self.assertEqual(daemon.good('GET', '/v1/projects/shop')['version'], 1)
        self.shop(urls[0])
        (self.folder / 'conf' / 'shop.toml').write_text(SHOP.format(start=urls[0]).replace('1d', '2d'))
        (self.folder / 'conf' / 'second.toml').write_text(SHOP.format(start=urls[1]).replace('"shop"', '"second"'))
        file.write_text('[[project]]\nfile = "shop.toml"\n[[project]]\nfile = "second.toml"\n')
        daemon.signal(signal.SIGHUP)
        daemon.wait_for('was read again')
        self.assertEqual(daemon.good('GET', '/v1/projects/shop')['version'], 2)
        self.finished(daemon, 'second')
        audited = daemon.good('GET', '/v1/audit')['entries'][-1]
        self.assertEqual(json.loads(audited['request'])['projects'], {'added': ['second.toml'], 'changed': ['shop.toml']})
        file.write_text('[[project]]\nfile = "shop.toml"\n')
        daemon.signal(signal.SIGHUP)
        daemon.wait_for('was read again')
        self.wait_until(lambda: not daemon.good('GET', '/v1/projects/second')['locked'])
        self.assertEqual(daemon.ask('DELETE', '/v1/projects/second').status, 204)
        self.assertEqual([one['name'] for one in daemon.good('GET', '/v1/projects')['projects']], ['shop'])

    def test_projects_are_visited_as_the_configuration_says(self):
        asked = []

        class Shop(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append((self.path, self.headers.get('User-Agent'), self.headers.get('X-Who')))
                body = b'<title>Shop</title>'
                self.send_response(200 if self.path != '/robots.txt' else 404)
                self.send_header('Content-Type', 'text/html')
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.shop(f'http://127.0.0.1:{self.serve(Shop).server_port}/')
        named = '[[project]]\nfile = "shop.toml"\n'
        told = named + '[projects]\nuser_agent = "file"\nno_robots = true\nworkers = 3\n[[projects.host]]\nmatch = "127.0.0.1"\nrate = 100\nheaders = { X-Who = "ops" }\n'
        file = self.configuration(told)
        daemon = self.daemon(file)
        self.finished(daemon)
        self.assertEqual(asked, [('/', 'file', 'ops')])
        file.write_text(told.replace('ops', 'others'))
        daemon.signal(signal.SIGHUP)
        daemon.wait_for(r'needs a restart, and stays as it was: \[projects\]')
        daemon.signal(signal.SIGTERM)
        daemon.ended()
        given = self.daemon(file, '--user-agent', 'given')
        self.assertEqual(given.ask('POST', '/v1/projects/shop/start', {}).status, 200)
        self.finished(given, rounds=2)
        self.assertEqual(asked[1:], [('/', 'given', 'others')], 'the option counts more')
        for wrong, words in (('rat = 5', 'argiope.toml:4: member "rat": [projects] has none; argiope project run --help has all options'), ('once = true', ':4: member "once": [projects] has none'),
                             ('workers = 0', ':4: projects.workers: '), ('[[projects.host]]\nrate = 1', ':4: projects: host[0]: a host needs match')):
            file.write_text(named + '[projects]\n' * (not wrong.startswith('[')) + '\n' * wrong.startswith('[') + wrong + '\n')
            self.refused('--store', 'memory:', file, culprit=words)

    def test_projects_by_the_api(self):
        urls, _ = self.site('--hosts', 1, '--pages', 3)
        daemon = self.daemon('--pages', 'mine.db', '--allow-private')
        source = SHOP.format(start=urls[0])
        made = daemon.good('PUT', '/v1/projects/shop', {'source': source, 'note': 'first'}, status=201)
        self.assertEqual(made['source'], source)
        wrong = daemon.ask('PUT', '/v1/projects/shop', {'source': source.replace('age', 'aeg')})
        self.assertEqual(wrong.status, 400)
        self.assertIn('source:9: rule[0]: member "aeg"', wrong.json['detail'])
        daemon.good('POST', '/v1/projects/shop/start')
        self.assertGreater(self.finished(daemon)['results'], 0)
        self.assertEqual(daemon.good('PUT', '/v1/projects/shop', {'source': source.replace('1d', '2d')})['version'], 2)
        self.assertEqual(daemon.good('POST', '/v1/projects/shop/roll-back', {'version': 1})['source'], source)
        notes = [version['note'] for version in daemon.good('GET', '/v1/projects/shop/versions')['versions']]
        self.assertEqual(notes, ['back to 1', 'by local', 'first'])
        daemon.process.kill()
        daemon.process.wait()
        self.assertEqual(self.daemon('--pages', 'mine.db').good('GET', '/v1/projects/shop')['version'], 3)

    def test_a_script_comes_with_its_file(self):
        urls, _ = self.site('--hosts', 1, '--pages', 3)
        self.folder.chmod(0o755)  # started by root, a script runs as a user without rights
        daemon = self.daemon('--pages', 'mine.db', '--allow-private', '--sandbox', 'basic')
        def put(word):
            script = SCRIPT.format(start=urls[0], word=word)
            return daemon.ask('PUT', '/v1/projects/script', {'source': SCRIPTED, 'script': script}).json
        self.assertIn('class Handler', put('one')['script'])
        kept = self.folder / 'mine.db-scripts' / 'script' / 'shop.py'
        self.assertIn('"one"', kept.read_text())
        daemon.good('POST', '/v1/projects/script/start')
        self.assertGreater(self.finished(daemon, 'script')['results'], 0)
        self.assertEqual(self.results(daemon, 'script')[0]['value'], {'word': 'one'})
        self.assertEqual(put('two')['version'], 2)
        self.assertIn('"two"', kept.read_text())
        daemon.good('POST', '/v1/projects/script/roll-back', {'version': 1})
        self.assertIn('"one"', kept.read_text())
        wrong = daemon.ask('PUT', '/v1/projects/script', {'source': SCRIPTED.replace('shop.py', '../shop.py'), 'script': 'pass'})
        self.assertEqual(wrong.status, 400)
        self.assertIn('processor names no file', wrong.json['detail'])

    def test_a_script_that_is_changed_on_disk_makes_a_version(self):
        urls, _ = self.site('--hosts', 1, '--pages', 3)
        self.folder.chmod(0o755)  # started by root, a script runs as a user without rights
        (self.folder / 'conf').chmod(0o755)
        text = SCRIPT.format(start=urls[0], word='one')
        (self.folder / 'conf' / 'shop.py').write_text(text)
        (self.folder / 'conf' / 'script.toml').write_text(SCRIPTED)
        configuration = self.configuration('[[project]]\nfile = "script.toml"\n')
        daemon = self.daemon(configuration, '--sandbox', 'basic', '--allow-private')
        self.finished(daemon, 'script')
        self.assertEqual([one['value'] for one in self.results(daemon, 'script')], [{'word': 'one'}])
        new = self.folder / 'conf' / 'new.py'
        new.write_text(text.replace('one', 'three'))
        new.replace(self.folder / 'conf' / 'shop.py')  # at once: half of it would be a version, too
        self.wait_until(lambda: daemon.good('GET', '/v1/projects/script')['version'] == 2, 'no version was made of it')
        newest, first = daemon.good('GET', '/v1/projects/script/versions')['versions']
        self.assertEqual((newest['note'], newest['script_bytes'] - first['script_bytes']), ('the script has changed', 2))
        self.assertIn('"three"', daemon.good('GET', '/v1/projects/script/versions/2')['script'])
        daemon.good('POST', '/v1/projects/script/pages', {'url': urls[0], 'rule': 'page', 'force': True, 'request': {'etag': False, 'last_modified': False}})
        self.wait_until(lambda: [one['value'] for one in self.results(daemon, 'script')] == [{'word': 'three'}], 'it was not read by the new script')
        daemon.signal(signal.SIGTERM)
        daemon.ended()
        daemon = self.daemon(configuration, '--sandbox', 'basic', '--allow-private')
        self.assertEqual(daemon.good('GET', '/v1/projects/script')['version'], 2)

    def test_a_script_is_told_of_debug_and_of_being_tried(self):
        self.folder.chmod(0o755)
        daemon = self.daemon('--pages', 'mine.db', '--allow-private', '--sandbox', 'basic')
        script = ('from argiope.processor import BaseHandler\n\nclass Handler(BaseHandler):\n    def on_start(self):\n'
                  '        self.crawl("data:,page", callback=self.page, force_update=True)\n    def page(self, response):\n'
                  '        return [self.__env__["debug"], self.is_debugger()]\n')
        daemon.good('PUT', '/v1/projects/script', {'source': SCRIPTED, 'script': script}, status=201)
        def said():
            daemon.good('POST', '/v1/projects/script/pages', {'url': 'data:,page', 'rule': 'page', 'force': True})
            found = self.results(daemon, 'script')
            return found[0]['value'] if found else None
        self.wait_until(lambda: said() == [False, False], 'it was not told what it is')
        daemon.good('PATCH', '/v1/projects/script', {'status': 'DEBUG'})
        self.wait_until(lambda: said() == [True, False], 'it was not told of DEBUG')
        daemon.good('PATCH', '/v1/projects/script', {'status': 'RUNNING'})
        self.wait_until(lambda: said() == [False, False], 'it was not told of RUNNING')
        tried = daemon.good('POST', '/v1/projects/try', {'project': 'script', 'url': 'data:,page', 'rule': 'page'})
        self.assertEqual(tried['results'][0]['value'], [True, True])
        self.assertEqual(daemon.good('GET', '/v1/projects/script')['version'], 1)

    def test_a_follow_is_tried_whole_and_what_came_is_read_again(self):
        asked = []
        class Site(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                text = self.rfile.read(int(self.headers['Content-Length'])).decode()
                asked.append((self.path, self.headers['X-Shop'], self.headers['Cookie'], text))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'found')
            def log_message(self, *_):
                pass
        server = f'http://127.0.0.1:{self.serve(Site).server_port}'
        self.folder.chmod(0o755)
        daemon = self.daemon('--pages', 'mine.db', '--allow-private', '--sandbox', 'basic')
        script = ('from argiope.processor import BaseHandler\n\nclass Handler(BaseHandler):\n    def on_start(self):\n'
                  f'        self.crawl("{server}/search", callback=self.page, method="POST", data={{{{"q": "lamp"}}}}, headers={{{{"X-Shop": "one"}}}},\n'
                  '                   cookies={{"a": "b"}}, save={{"n": 1}}, robots_txt=False)\n    def page(self, response):\n'
                  '        return [response.text, response.save["n"], "{word}"]\n')
        def tried(word, **more):
            return daemon.good('POST', '/v1/projects/try', {'source': SCRIPTED, 'script': script.format(word=word), **more})
        follow = tried('one', url='data:,on_start')['follows'][0]
        self.assertEqual(follow['page']['request']['method'], 'POST')
        page = tried('one', page=follow['page'])
        self.assertEqual(page['results'][0]['value'], ['found', 1, 'one'], page)
        self.assertEqual(asked, [('/search', 'one', 'a=b', 'q=lamp')])
        again = tried('two', page=follow['page'], response=page['response']['id'])
        self.assertEqual((again['results'][0]['value'], again['response']['is_reused']), (['found', 1, 'two'], True))
        self.assertEqual(len(asked), 1)

    def test_a_page_is_tried_with_a_script_before_anything_is_kept(self):
        urls, log = self.site('--hosts', 1, '--pages', 3)
        self.folder.chmod(0o755)  # started by root, a script runs as a user without rights
        daemon = self.daemon('--pages', 'mine.db', '--allow-private', '--sandbox', 'basic')
        scripts = self.folder / 'mine.db-scripts'
        def tried(script, url, **more):
            asked = {'source': SCRIPTED, 'script': script.format(start=urls[0], word='one'), 'url': url, **more}
            return daemon.good('POST', '/v1/projects/try', asked)
        start = tried(SCRIPT, 'data:,on_start')
        self.assertEqual((start['rule'], start['failure'], start['error']), ('on_start', None, None))
        self.assertEqual([(lead['url'], lead['rule'], lead['becomes']) for lead in start['follows']], [(urls[0], 'page', 'new')])
        page = tried(SCRIPT, start['follows'][0]['url'], rule='page')
        self.assertEqual(page['results'], [{'part': '', 'value': {'word': 'one'}}])
        self.assertEqual(page['status'], 200)
        self.assertIn('<html', page['body'].lower())

        wrong = tried(SCRIPT.replace('return {{', 'print("before"); return no or {{'), urls[0], rule='page')
        self.assertEqual(wrong['failure']['kind'], 'NameError')
        self.assertIn('in page', wrong['failure']['trace'])
        self.assertIn('before', [line['text'].strip() for line in wrong['logs']])
        self.assertEqual(wrong['results'], [])
        broken = tried('import nothing_of_that_name\n', urls[0], rule='page')
        self.assertIn('nothing_of_that_name', broken['failure']['text'] + broken['failure']['trace'])
        self.assertEqual(broken['error'], 'its script cannot run')

        self.assertEqual(daemon.good('GET', '/v1/projects')['projects'], [])
        self.wait_until(lambda: list(scripts.iterdir()) == [], 'the folders of tries are still there')
        daemon.good('PUT', '/v1/projects/script', {'source': SCRIPTED, 'script': SCRIPT.format(start=urls[0], word='kept')}, status=201)
        kept = daemon.good('POST', '/v1/projects/try', {'project': 'script', 'url': urls[0], 'rule': 'page'})
        self.assertEqual(kept['results'][0]['value'], {'word': 'kept'})

    def test_the_script_of_a_try_ends_with_who_has_asked_for_it(self):
        self.folder.chmod(0o755)
        daemon = self.daemon('--pages', 'mine.db', '--allow-private', '--sandbox', 'basic')
        folders = self.folder / 'mine.db-scripts'
        script = SCRIPT.format(start='http://127.0.0.1:9/', word='') + '\nwhile True: pass\n'
        body = json.dumps({'source': SCRIPTED, 'script': script, 'url': 'data:,on_start'}).encode()
        with socket.create_connection(('127.0.0.1', daemon.port)) as asking:
            asking.sendall(b'POST /v1/projects/try HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' % len(body) + body)
            self.wait_until(lambda: folders.exists() and list(folders.iterdir()), 'the script did not begin')
        self.wait_until(lambda: list(folders.iterdir()) == [], 'the script went on')

    def test_what_came_by_the_api_gets_only_the_secrets_that_lie_ready_for_it(self):
        self.folder.chmod(0o755)
        daemon = self.daemon('--pages', 'mine.db', '--allow-private', '--sandbox', 'basic')
        script = ('import os\nfrom argiope.processor import BaseHandler\n\nclass Handler(BaseHandler):\n    def on_start(self):\n'
                  '        self.crawl("data:,page", callback=self.page)\n    def page(self, response):\n'
                  '        return {"key": os.environ["HOME_KEY"], "length": len(os.environ["HOME_KEY"])}\n')
        source = SCRIPTED + 'secrets = ["HOME_KEY"]\n'
        made = daemon.good('PUT', '/v1/projects/script', {'source': source, 'script': script}, status=201)
        place = self.folder / 'mine.db-secrets' / 'script' / 'HOME_KEY'
        self.assertIn(str(place), made['trouble'])
        place.parent.mkdir(parents=True)
        place.write_text('correct horse battery')
        place.chmod(0o600)
        daemon.good('PUT', '/v1/projects/script', {'source': source, 'script': script})
        daemon.good('POST', '/v1/projects/script/start')
        self.finished(daemon, 'script')
        self.assertEqual([one['value'] for one in self.results(daemon, 'script')], [{'key': '***', 'length': 21}])
        self.assertNotIn('correct horse', json.dumps(daemon.good('GET', '/v1/projects/script')))
        # No file that it names.
        filed = SCRIPTED + '[project.secrets]\nHOME_KEY = "/etc/hostname"\n'
        self.assertIn('names its secrets alone', daemon.good('PUT', '/v1/projects/script', {'source': filed, 'script': script})['trouble'])

    def test_what_runs_is_the_script_that_the_newest_version_has(self):
        self.folder.chmod(0o755)
        daemon = self.daemon('--pages', 'mine.db', '--sandbox', 'basic')
        script = SCRIPT.format(start='http://127.0.0.1:9/', word='one')
        daemon.good('PUT', '/v1/projects/script', {'source': SCRIPTED, 'script': script}, status=201)
        kept = self.folder / 'mine.db-scripts' / 'script' / 'shop.py'
        # As a kill between the file and its version leaves it.
        daemon.process.kill()
        daemon.process.wait()
        kept.write_text('of no version')
        daemon = self.daemon('--pages', 'mine.db', '--sandbox', 'basic')
        self.assertEqual(kept.read_text(), script)
        self.assertEqual(daemon.good('GET', '/v1/projects/script')['version'], 1)

    def test_the_configurations_folder_is_not_for_the_api_when_it_names_the_project_no_more(self):
        urls, _ = self.site('--hosts', 1, '--pages', 3)
        self.shop(urls[0])
        file = self.configuration()
        daemon = self.daemon('--pages', 'mine.db', '--allow-private', file)
        self.finished(daemon)
        file.write_text('')
        daemon.signal(signal.SIGHUP)
        daemon.wait_for('was read again')
        source = SHOP.format(start=urls[0]) + '[[sink]]\nfile = "shop.jsonl"\n'
        daemon.good('PUT', '/v1/projects/shop', {'source': source})
        written = self.folder / 'mine.db-results' / 'shop' / 'shop.jsonl'
        self.wait_until(lambda: written.exists() and written.read_text().endswith('\n'), 'the sink wrote nothing there')
        self.assertFalse((self.folder / 'conf' / 'shop.jsonl').exists())

    def test_toml_without_an_end_does_not_end_the_daemon(self):
        daemon = self.daemon('--pages', 'mine.db')
        deep = 'a.' * 400_000 + 'a'
        for source in (f'{deep} = 1\n', f'[{deep}]\n'):
            for method, path in (('PUT', '/v1/projects/shop'), ('POST', '/v1/projects/try')):
                answer = daemon.ask(method, path, {'source': source, **({'url': 'data:,on_start'} if method == 'POST' else {})})
                self.assertEqual(answer.status, 400)
                self.assertIn('nested deeper than', answer.json['detail'])

    def test_webhooks_at_private_addresses_are_not_for_the_api(self):
        asked = []
        class Hook(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                asked.append(self.path)
                self.rfile.read(int(self.headers['Content-Length']))
                content = b'{"type":"described","protocol":1}\n'
                self.send_response(200)
                self.send_header('Content-Length', str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            def log_message(self, *_):
                pass
        hook = f'http://127.0.0.1:{self.serve(Hook).server_port}/'
        text = '[project]\nname = "hooked"\nstart = "{0}"\nprocessor = {{ webhook = "{0}{1}" }}\n'
        # The configuration's own, which also starts there, so that pages may be at that address.
        (self.folder / 'conf' / 'shop.toml').write_text(text.format(hook, 'mine'))
        daemon = self.daemon('--pages', 'mine.db', self.configuration())
        self.wait_until(lambda: asked, 'the webhook of the configuration was not asked')
        self.assertEqual(daemon.good('GET', '/v1/projects/hooked')['trouble'], '')
        daemon.good('PUT', '/v1/projects/other', {'source': text.format(hook, 'theirs').replace('hooked', 'other')}, status=201)
        self.wait_until(lambda: daemon.good('GET', '/v1/projects/other')['trouble'], 'nothing is told')
        self.assertIn('--allow-private', daemon.good('GET', '/v1/projects/other')['trouble'])
        self.assertEqual(set(asked), {'/mine'})

    def test_private_addresses_are_not_for_the_api(self):
        urls, log = self.site('--hosts', 1, '--pages', 3)
        daemon = self.daemon('--pages', 'mine.db')
        daemon.good('PUT', '/v1/projects/shop', {'source': SHOP.format(start=urls[0])}, status=201)
        daemon.good('POST', '/v1/projects/shop/start')
        self.wait_until(lambda: daemon.good('GET', '/v1/projects/shop/recent')['visits'])
        self.assertIn('--allow-private', daemon.good('GET', '/v1/projects/shop/recent')['visits'][0]['error'])
        tried = daemon.good('POST', '/v1/projects/try', {'project': 'shop', 'url': urls[0]})
        self.assertIn('--allow-private', tried['error'])
        other = daemon.good('POST', '/v1/projects/try', {'source': SHOP.format(start=urls[0]).replace('"shop"', '"draft"'), 'url': urls[0]})
        self.assertIn('--allow-private', other['error'])
        self.assertEqual(log.read_text(), '')

    def test_a_database_that_cannot_be_used_is_named(self):
        (self.folder / 'notes.txt').write_text('This is no database, however long it is. ' * 100)
        self.refused('--store', 'memory:', '--listen', '127.0.0.1:0', '--pages', 'notes.txt', status=3, culprit='notes.txt')
        self.daemon('--pages', 'mine.db')
        self.refused('--store', 'memory:', '--listen', '127.0.0.1:0', '--pages', 'mine.db', status=3, culprit='mine.db')

    def test_a_file_that_is_wrong_is_told_at_the_start(self):
        self.refused('--store', 'memory:', self.configuration(), culprit='shop.toml')
        self.shop('http://shop.test/')
        self.refused('--store', 'memory:', self.configuration('[[project]]\nfiles = "shop.toml"\n'), culprit='member "files"')
        self.refused('--store', 'memory:', self.configuration('[[project]]\n'), culprit='a project needs a file')

    def test_without_projects_there_are_none(self):
        daemon = self.daemon()
        self.assertEqual(daemon.ask('GET', '/v1/projects').status, 404)
        self.assertFalse((self.folder / 'pages.db').exists())


if __name__ == '__main__':
    unittest.main()
