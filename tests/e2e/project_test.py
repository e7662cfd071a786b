"""argiope project check and try: a project's file, what its rules match of known pages, and what it makes of one page."""
import contextlib
import http.server
import json
import sqlite3
import subprocess
import unittest

from support import ARGIOPE, EndToEnd

SHOP = '''
[project]
name = "shop"
start = "{start}"
every = "1d"

[[rule]]
name = "docs"
match = "/docs/**"
follow = ["/docs/**"]
age = "1h"
auto_recrawl = true
fields = {{ title = "css:h1" }}

[[rule]]
name = "front"
match = "{start}"
'''

TRY = '''
[project]
name = "try"
start = "{origin}/list"

[[rule]]
name = "item"
match = "/item/*"
follow = "/item/*"
age = "1d"
[rule.fields]
title = "css:h1"
price = {{ css = ".p", type = "number" }}

[[rule]]
name = "list"
match = "/list"
each = "css:li"
fields = {{ name = "css:a" }}
'''
SCRIPT = '''
from argiope.processor import BaseHandler

class Handler(BaseHandler):
    def on_start(self):
        self.crawl("{origin}/item/1", callback=self.item)

    def item(self, response):
        print("seen")
        return {{"title": response.doc("h1").text()}}
'''
PAGES = {
    '/robots.txt': 'User-agent: *\nDisallow: /item/secret\n',
    '/list': '<ul><li><a href=/item/1>One</a><li><a href=/item/2>Two</a></ul><a href=/about>About</a><a href=http://other.test/>Other</a>',
    '/item/1': '<h1>Lamp</h1><b class=p>12.50</b><a href=/item/2>more</a><a href=/item/2#x>again</a><a href=/list rel=nofollow>up</a>',
    '/item/3': '<h1>Chair</h1><b class=p>free</b>',
}


class Projects(EndToEnd):
    def project(self, *arguments, expect=0):
        result = subprocess.run([ARGIOPE, 'project', *map(str, arguments)], capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, expect, result.stdout + result.stderr)
        return result

    def file(self, text, name='shop.toml'):
        path = self.folder / name
        path.write_text(text)
        return path

    def test_a_file_that_is_right(self):
        path = self.file(SHOP.format(start='http://shop.test/'))
        said = self.project('check', path).stdout
        self.assertIn('project shop, 2 rules', said)
        self.assertIn('/docs/**', said)
        self.assertIn('by itself', said)
        found = json.loads(self.project('check', path, '--json').stdout)
        self.assertEqual(found, {'project': 'shop', 'rules': [
            {'name': 'docs', 'match': ['/docs/**'], 'fields': ['title']},
            {'name': 'front', 'match': ['http://shop.test/'], 'fields': []}]})

    def test_a_file_that_is_wrong_is_told_with_its_line(self):
        for text, said in [
            (SHOP.format(start='http://shop.test/').replace('age =', 'aeg ='),
             ':11: rule[0]: member "aeg": a rule has none; did you mean "age"?'),
            ('[project]\nname = "a"\nstart = "http://a.test/x"\n[[rule]]\nname = "r"\nmatch = "/y"',
             ':3: project.start "http://a.test/x": no rule matches it'),
            ('[project', ':1: '),
        ]:
            path = self.file(text)
            self.assertIn(f'argiope: {path}{said}', self.project('check', path, expect=2).stderr)
        self.assertIn('No such file', self.project('check', self.folder / 'none.toml', expect=2).stderr)
        self.assertIn('FILE', self.project('check', expect=2).stderr)

    def test_a_script_in_the_place_of_the_file_is_answered_with_a_file_that_names_it(self):
        script = self.file('def broken(:', 'shop.py')
        for command in (['check', script], ['try', script, 'http://a.test/'], ['run', script, '--once']):
            said = self.project(*command, '-d', self.folder / 'pages.db', expect=2).stderr
            self.assertIn('this is a script; a project is a TOML file that names it:\n[project]\nname = "shop"\nprocessor = [', said)
        self.file(said.partition('names it:\n')[2])
        self.assertIn('project shop, 0 rules', self.project('check', self.folder / 'shop.toml').stdout)

    def test_what_the_rules_match_of_a_crawl(self):
        urls, _ = self.site('--hosts', 2, '--pages', 60, '--seed', 5)
        self.crawl(urls[0], '--max-depth', 3, '--check-links')
        path = self.file(SHOP.format(start=urls[0]))
        found = json.loads(self.project('check', path, '-d', self.database, '--json').stdout)
        count = lambda where: self.rows(f'SELECT count(*) FROM urls WHERE {where}')[0][0]
        pages = {rule['name']: rule['pages'] for rule in found['rules']}
        self.assertEqual(found['known'], count("reason IS NULL OR reason NOT IN ('asset', 'requisite', 'sitemap')"))
        self.assertEqual(pages['docs'], count("url GLOB 'http://127.0.0.1:*/docs/*'"))
        self.assertEqual(pages['front'], count(f"url = '{urls[0]}'"))
        self.assertGreater(found['off_scope']['pages'] + found['no_rule']['pages'], 0)
        self.assertEqual(found['known'], sum(pages.values()) + found['no_rule']['pages'] + found['off_scope']['pages'])
        for rule in found['rules']:
            self.assertEqual(len(rule['examples']), min(3, rule['pages']))
        said = self.project('check', path, '-d', self.database).stdout
        self.assertIn('PAGES', said)
        self.assertIn(f'{found["known"]} URLs known', said)
        self.assertIn('no such', self.project('check', path, '-d', self.folder / 'none.db', expect=3).stderr.lower())

    def shop(self):
        asked = []

        class Shop(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                body = PAGES.get(self.path.removeprefix('http://203.0.113.7'), '').encode()  # to a proxy, or not
                self.send_response(200 if body else 302 if self.path == '/item/old' else 404)
                if self.path == '/item/old':
                    self.send_header('Location', '/item/3')
                self.send_header('Content-Type', 'text/plain' if self.path == '/robots.txt' else 'text/html')
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        origin = f'http://127.0.0.1:{self.serve(Shop).server_port}'
        return origin, self.file(TRY.format(origin=origin)), asked

    def tried(self, *arguments, expect=0):
        return json.loads(self.project('try', *arguments, '--json', expect=expect).stdout)

    def test_try_says_what_would_become_of_a_page_and_stores_nothing(self):
        origin, path, asked = self.shop()
        before = sorted(self.folder.iterdir())
        found = self.tried(path, f'{origin}/item/1#top')
        self.assertEqual(sorted(self.folder.iterdir()), before)
        self.assertEqual(asked, ['/robots.txt', '/item/1'])
        self.assertEqual({key: found[key] for key in ('url', 'place', 'rule', 'verdict', 'reason', 'status', 'records', 'troubles')},
                         {'url': f'{origin}/item/1', 'place': 'page', 'rule': 'item', 'verdict': 'add', 'reason': 'new', 'status': 200,
                          'records': [{'title': 'Lamp', 'price': 12.5}], 'troubles': []})
        self.assertEqual([(link['url'], link['times'], link['followed'], link.get('rule'), link['place']) for link in found['links']],
                         [(f'{origin}/item/2', 2, True, 'item', 'page'), (f'{origin}/list', 1, False, 'list', 'page')])
        listed = self.tried(path, f'{origin}/list')
        self.assertEqual(listed['records'], [{'name': 'One'}, {'name': 'Two'}])
        self.assertEqual([link['place'] for link in listed['links']], ['page', 'page', 'no_rule', 'off_scope'])
        said = self.project('try', path, f'{origin}/item/1').stdout
        for words in ('rule item; asked for it would be: new', 'answered 200', 'title: "Lamp"', 'price: 12.5', '2 links, 1 of them followed',
                      'not followed: nofollow'):
            self.assertIn(words, said)

    def test_try_follows_redirects_and_tells_what_went_wrong(self):
        origin, path, asked = self.shop()
        found = self.tried(path, f'{origin}/item/old')
        self.assertEqual((found['leads_to'], found['records'], found['rule']), (f'{origin}/item/3', [{'title': 'Chair', 'price': None}], 'item'))
        self.assertEqual([trouble['field'] for trouble in found['troubles']], ['price'])
        self.assertEqual(self.tried(path, f'{origin}/item/none', expect=1)['status'], 404)
        self.assertEqual(self.tried(path, f'{origin}/item/secret', expect=1)['error'], 'robots.txt forbids it')
        self.assertNotIn('/item/secret', asked)
        self.assertEqual(self.tried(path, f'{origin}/about', expect=1)['place'], 'no_rule')
        self.assertIn('not fetched: ', self.project('try', path, 'http://127.0.0.1:1/item/1', expect=1).stdout)
        self.assertIn('URL "x:y"', self.project('try', path, 'x:y', expect=2).stderr)

    def test_try_reaches_private_addresses_when_it_may(self):
        origin, _, asked = self.shop()
        path = self.file(TRY.format(origin='http://203.0.113.7'))  # no start opens this machine's own addresses
        through = ['http://203.0.113.7/item/1', '--page', json.dumps({'request': {'proxy': origin, 'robots': False}})]
        self.assertIn('--allow-private', self.tried(path, *through, expect=1)['error'])
        self.assertNotIn('http://203.0.113.7/item/1', asked)
        self.assertEqual(self.tried(path, *through, '--allow-private')['status'], 200)
        self.assertIn('http://203.0.113.7/item/1', asked)

    def test_try_asks_as_the_rule_of_the_page_says(self):
        seen = []

        class Members(http.server.BaseHTTPRequestHandler):
            def answer(self):
                length = int(self.headers.get('Content-Length') or 0)
                seen.append((self.command, self.path, self.headers.get('X-Who'), self.headers.get('Cookie'), self.rfile.read(length).decode()))
                body = b'<h1>Members</h1><a href=/open>open</a>' if self.path != '/robots.txt' else b''
                self.send_response(200 if body else 404)
                self.send_header('Content-Type', 'text/html')
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = answer

            def log_message(self, *_):
                pass

        origin = f'http://127.0.0.1:{self.serve(Members).server_port}'
        path = self.file(f'''
[project]
name = "members"
start = "{origin}/"
[[rule]]
name = "closed"
match = "/closed"
fields = {{ title = "css:h1" }}
[rule.request]
method = "POST"
body = "a=b"
cookies = {{ lang = "en" }}
headers = {{ X-Who = "geheim" }}
[[rule]]
name = "open"
''')
        before = sorted(self.folder.iterdir())
        said = self.project('check', path)
        self.assertNotIn('geheim', said.stdout + said.stderr)
        found = self.tried(path, f'{origin}/closed')
        self.assertEqual((found['status'], found['rule'], found['records']), (200, 'closed', [{'title': 'Members'}]))
        self.assertEqual([(link['url'], link['followed'], link['rule']) for link in found['links']], [(f'{origin}/open', True, 'open')])
        self.tried(path, f'{origin}/open')
        self.assertEqual(sorted(self.folder.iterdir()), before)
        self.assertEqual([request for request in seen if request[1] != '/robots.txt'],
                         [('POST', '/closed', 'geheim', 'lang=en', 'a=b'), ('GET', '/open', None, None, '')])
        # What is said of this page alone goes before its rule.
        self.tried(path, f'{origin}/closed', '--page', '{"request": {"headers": {"X-Who": "me"}, "body": "c=d"}}')
        self.assertEqual(seen[-1], ('POST', '/closed', 'me', 'lang=en', 'c=d'))
        said = self.tried(path, f'{origin}/closed', '--page', '{"rule": "open", "name": "another"}')
        self.assertEqual((said['rule'], said['results']), ('open', []))
        for page in ('{', '[]', '{"request": {"method": "SHOUT"}}', '{"url": "http://a.test/"}', '{"cancel": true}'):
            self.assertIn('--page', self.project('try', path, f'{origin}/closed', '--page', page, expect=2).stderr)
        wrong = self.file(path.read_text().replace('X-Who = "geheim"', 'X-Who = ["geheim"]'), 'wrong.toml')
        said = self.project('check', wrong, expect=2).stderr
        self.assertIn('wrong.toml:13: rule[0].request.headers.X-Who: a string without control characters is wanted', said)
        self.assertNotIn('geheim', said)
        broken = self.file(path.read_text().replace('method =', 'metod ='), 'broken.toml')
        self.assertIn('broken.toml:10: rule[0].request: member "metod": a request has none; did you mean "method"?',
                      self.project('check', broken, expect=2).stderr)

    def test_try_runs_the_script_of_a_project(self):
        origin, _, asked = self.shop()
        self.folder.chmod(0o755)  # started by root, a script runs as a user without rights
        path = self.file('[project]\nname = "script"\nprocessor = ["python3", "-m", "argiope.processor", "shop.py"]\n', 'script.toml')
        script = self.file(SCRIPT.format(origin=origin), 'shop.py')
        before = sorted(self.folder.iterdir())
        start = self.tried(path, 'data:,on_start', '--sandbox', 'basic')
        self.assertEqual([(lead['url'], lead['rule'], lead['is_followed']) for lead in start['follows']], [(f'{origin}/item/1', 'item', True)])
        item = self.tried(path, f'{origin}/item/1', '--rule', 'item', '--sandbox', 'basic')
        self.assertEqual(item['results'], [{'part': '', 'value': {'title': 'Lamp'}}])
        said = self.project('try', path, f'{origin}/item/1', '--rule', 'item', '--sandbox', 'basic').stdout
        for words in ('rule item; asked for it would be: new', 'answered 200', '1 result', '{"title":"Lamp"}', 'print: seen'):
            self.assertIn(words, said)
        self.assertEqual(asked, ['/robots.txt', '/item/1'] * 2)
        self.assertEqual([path for path in sorted(self.folder.iterdir()) if path.name != '__pycache__'], before)
        # Of the same project in a database nothing is started.
        pages = self.folder / 'pages.db'
        self.project('run', path, '--once', '--quiet', '-d', pages, '--sandbox', 'basic', '--delay', '0', '--allow-private')
        with sqlite3.connect(pages) as connection:
            connection.execute('UPDATE versions SET text = ?', (json.dumps({'project': {'name': 'script', 'processor': ['sh', '-c', 'echo "started once more" >&2']}}),))
        connection.close()
        again = self.tried(path, f'{origin}/item/1', '--rule', 'item', '--sandbox', 'basic', '-d', pages)
        self.assertEqual((again['becomes'], again['results']), ('fresh for ever', item['results']))
        self.assertNotIn('once more', json.dumps(again))
        script.write_text('def broken(:\n')
        self.assertIn('not fetched: its script cannot run', self.project('try', path, f'{origin}/item/1', '--sandbox', 'basic', expect=1).stdout)

    def test_check_misses_a_script_that_is_not_there(self):
        path = self.file('[project]\nname = "script"\nprocessor = ["python3", "-m", "argiope.processor", "scripts/shop.py"]\n', 'script.toml')
        said = self.project('check', path, expect=2).stderr
        self.assertIn(f'script.toml: processor: there is no file "scripts/shop.py" in {self.folder}', said)
        (self.folder / 'scripts').mkdir()
        (self.folder / 'scripts' / 'shop.py').write_text('')
        self.assertIn('project script, 0 rules', self.project('check', path).stdout)
        # From whatever folder it is asked.
        result = subprocess.run([ARGIOPE, 'project', 'check', 'script.toml'], cwd=self.folder, capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_try_knows_what_a_crawl_knows(self):
        origin, path, _ = self.shop()
        self.crawl(f'{origin}/list')
        found = self.tried(path, f'{origin}/list', '-d', self.database)
        self.assertEqual((found['verdict'], found['reason'], found['until']), ('drop', 'fresh', None))
        links = {link['url']: link for link in found['links']}
        self.assertEqual(links[f'{origin}/item/1']['reason'], 'fresh')
        self.assertTrue(links[f'{origin}/item/1']['until'])

    def test_check_and_try_know_what_projects_know(self):
        origin, path, _ = self.shop()
        pages = self.folder / 'pages.db'
        other = self.file(path.read_text().replace('"try"', '"other"').replace('/list"', '/item/1"', 1), 'other.toml')
        for file in (path, other):
            self.project('run', file, '--once', '--quiet', '-d', pages, '--delay', '0', expect=1)  # /item/2 is not there
        found = json.loads(self.project('check', path, '-d', pages, '--json').stdout)
        self.assertEqual((found['known'], {rule['name']: rule['pages'] for rule in found['rules']}), (3, {'item': 2, 'list': 1}))
        self.assertIn('3 URLs known to project try of ', self.project('check', path, '-d', pages).stdout)
        new = self.file(path.read_text().replace('"try"', '"new"'), 'new.toml')
        said = self.project('check', new, '-d', pages).stdout
        self.assertIn('5 URLs known to the projects of ', said)
        known = self.tried(path, f'{origin}/item/1', '-d', pages)
        self.assertEqual((known['verdict'], known['reason']), ('drop', 'fresh'))
        self.assertEqual({link['url']: link['reason'] for link in known['links']}, {f'{origin}/item/2': 'resting', f'{origin}/list': 'fresh'})
        neither = self.file('', 'neither.db')
        with contextlib.closing(sqlite3.connect(neither)) as connection:
            connection.execute('CREATE TABLE t (x)')
        for command in (['check', path], ['try', path, f'{origin}/item/1']):
            self.assertIn('not made by argiope', self.project(*command, '-d', neither, expect=3).stderr)

    def test_try_of_a_script_knows_what_its_project_knows(self):
        origin, _, _ = self.shop()
        self.folder.chmod(0o755)  # started by root, a script runs as a user without rights
        path = self.file('[project]\nname = "script"\nprocessor = ["python3", "-m", "argiope.processor", "shop.py"]\n', 'script.toml')
        self.file(SCRIPT.format(origin=origin), 'shop.py')
        pages = self.folder / 'pages.db'
        self.project('run', path, '--once', '--quiet', '-d', pages, '--sandbox', 'basic', '--allow-private')
        before = pages.read_bytes()
        start = self.tried(path, 'data:,on_start', '--sandbox', 'basic', '-d', pages)
        self.assertEqual([(lead['url'], lead['becomes']) for lead in start['follows']], [(f'{origin}/item/1', 'fresh for ever')])
        self.assertEqual(pages.read_bytes(), before)


if __name__ == '__main__':
    unittest.main()
