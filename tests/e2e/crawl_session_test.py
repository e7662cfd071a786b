"""Who a crawl is to servers: cookies kept, given and saved, names and passwords, a login, and that none of it is told."""
import base64
import http.client
import http.server
import os
import re
import shutil
import stat
import subprocess
import unittest
import urllib.parse

from support import ARGIOPE, EndToEnd, read_log

NAME, PASSWORD = 'ann', 'silk & dew'
EACH = 6  # numbered pages behind each guard


class Sessions(EndToEnd):
    def run_crawl(self, *arguments, expect=0, environment=None):
        result = subprocess.run([ARGIOPE, 'crawl', '-d', str(self.database), *map(str, arguments)], capture_output=True,
                                text=True, timeout=300, env={**os.environ, **(environment or {})})
        self.assertEqual(result.returncode, expect, result.stdout + result.stderr)
        return result

    def statuses(self, below):
        """Of the URLs whose path begins with `below`: how many of each status."""
        found = {}
        for url, status in self.rows('SELECT url, status_code FROM urls WHERE state != ?', 'excluded'):
            if urllib.parse.urlsplit(url).path.startswith(below):
                found[status] = found.get(status, 0) + 1
        return found

    def guarded_site(self, features):
        (url,), log = self.site('--hosts', 1, '--pages', 5, '--features', features)
        return url, log

    def login(self, url, password='@env:PW'):
        return ['--login', url + 'login', '--login-field', f'name={NAME}', '--login-field', f'password={password}']

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def asked(self, log):
        return [target for _, _, _, target, _ in read_log(log)]

    def test_cookies_are_sent_back_also_those_that_redirects_set(self):
        url, _ = self.guarded_site('cookies')
        self.run_crawl(url)
        self.assertEqual(self.statuses('/cookies/step-'), {200: EACH})
        self.assertEqual(self.database.stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.rows("SELECT status_code FROM urls WHERE url LIKE '%/cookies/'"), [(200,)])
        self.assertEqual(self.rows("SELECT status_code FROM urls WHERE url LIKE '%/cookies/there'"), [(200,)])

    def test_without_cookies_walls_stay(self):
        url, _ = self.guarded_site('cookies')
        self.addCleanup(os.umask, os.umask(0o022))
        self.run_crawl(url, '--no-cookies')
        self.assertEqual(self.statuses('/cookies/step-'), {200: 1, 403: 1})
        self.assertNotEqual(self.database.stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.rows("SELECT count(*) FROM urls WHERE url LIKE '%/cookies/' AND status_code = 200"), [(0,)])

    def test_a_login_is_kept_in_a_file_for_others(self):
        url, log = self.guarded_site('members')
        saved = self.folder / 'cookies.txt'
        saved.write_text('before')
        saved.chmod(0o644)
        result = self.run_crawl(url, *self.login(url), '--save-cookies', saved, environment={'PW': PASSWORD})
        self.assertIn('logged in at', result.stderr)
        self.assertEqual(self.statuses('/members/'), {200: EACH})
        self.assertEqual(stat.S_IMODE(saved.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(self.database.stat().st_mode), 0o600)
        lines = saved.read_text().splitlines()
        self.assertEqual(lines[0], '# Netscape HTTP Cookie File')
        session = next(line for line in lines if '\tsession\t' in line).split('\t')
        self.assertEqual(session[:4], ['#HttpOnly_127.0.0.1', 'FALSE', '/', 'FALSE'])
        # In a database of its own, and in curl's words.
        self.database = self.folder / 'other.db'
        self.run_crawl(url, '--load-cookies', saved)
        self.assertEqual(self.statuses('/members/'), {200: EACH})
        self.assertEqual(stat.S_IMODE(self.database.stat().st_mode), 0o600)
        self.assertNotIn('/logout', self.asked(log))

    def curl(self, *arguments):
        """What curl gets: the status."""
        if shutil.which('curl') is None:
            self.skipTest('curl is not installed')
        result = subprocess.run(['curl', '--silent', '--show-error', '--output', '/dev/null', '--write-out', '%{http_code}', '--noproxy', '*',
                                 *map(str, arguments)], capture_output=True, text=True, timeout=100)
        self.assertEqual((result.returncode, result.stderr), (0, ''))
        return int(result.stdout)

    def test_curl_reads_the_cookies_that_are_saved_and_writes_those_that_are_loaded(self):
        url, _ = self.guarded_site('members')
        saved, jar = self.folder / 'saved.txt', self.folder / 'jar.txt'
        self.run_crawl(url, *self.login(url, PASSWORD), '--save-cookies', saved)
        self.assertEqual(self.curl('--cookie', saved, url + 'members/1'), 200)
        self.assertNotEqual(self.curl(url + 'members/1'), 200)
        self.curl('--cookie-jar', jar, '--cookie', jar, '--location', url + 'login')  # the form, and what it is sent with
        page = subprocess.run(['curl', '--silent', '--noproxy', '*', '--cookie', str(jar), '--cookie-jar', str(jar), url + 'login'],
                              capture_output=True, text=True, timeout=100).stdout
        hidden = [f'{name}={value}' for name, value in re.findall(r'<input type="?hidden"? name="?([^" >]+)"? value="?([^" >]*)', page)]
        self.curl('--cookie-jar', jar, '--cookie', jar, '--data-urlencode', f'name={NAME}', '--data-urlencode', f'password={PASSWORD}',
                  *(word for field in hidden for word in ('--data-urlencode', field)), url + 'login')
        self.database = self.folder / 'other.db'
        self.run_crawl(url, '--load-cookies', jar)
        self.assertEqual(self.statuses('/members/'), {200: EACH})

    def test_curl_answers_the_digest_that_a_crawl_answers(self):
        url, _ = self.guarded_site('digest')

        class Narrow(http.server.BaseHTTPRequestHandler):
            """The site without its challenge of an algorithm that nobody has: curl gives up where that is the first."""

            def do_GET(self):
                asked = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc)
                asked.request('GET', self.path, headers={name: self.headers[name] for name in ('Authorization',) if name in self.headers})
                answer = asked.getresponse()
                body = answer.read()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() in ('www-authenticate', 'content-type', 'content-length') and 'SHA-512-257' not in value:
                        self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
                asked.close()

            def log_message(self, *_):
                pass
        narrow = f'http://127.0.0.1:{self.serve(Narrow).server_port}/'
        self.assertEqual(self.curl('--digest', '--user', f'{NAME}:{PASSWORD}', narrow + 'digest/1'), 200)
        self.assertEqual(self.curl('--digest', '--user', f'{NAME}:guess-me', narrow + 'digest/1'), 401)
        self.run_crawl(narrow, '--user', f'{NAME}:{PASSWORD}')
        self.assertEqual(self.statuses('/digest/'), {200: EACH})

    def test_links_that_log_out_are_left_out_until_they_are_named(self):
        url, log = self.guarded_site('members')
        self.run_crawl(url, *self.login(url, PASSWORD))
        self.assertEqual(self.rows("SELECT state, reason FROM urls WHERE url LIKE '%/logout'"), [('excluded', 'logout')])
        summary = self.crawl(url, '--requeue', 'all')
        self.assertEqual(summary['left_out'], {'logout': 1})
        self.assertEqual(self.statuses('/members/'), {200: EACH})
        self.assertNotIn('/logout', self.asked(log))
        result = self.run_crawl(url, *self.login(url, PASSWORD), '--include', '/**', '--include', '/logout', '--requeue', 'all')
        self.assertEqual(self.asked(log).count('/logout'), 1)
        self.assertIn('has ended the login', result.stderr)

    def test_a_login_that_fails_ends_the_run_with_a_sentence(self):
        url, log = self.guarded_site('members')
        result = self.run_crawl(url, *self.login(url, 'guess-me'), expect=3)
        self.assertIn(f'argiope: --login: login at {url}login: ', result.stderr)
        self.assertIn('asks for it again', result.stderr)
        self.assertNotIn('guess-me', result.stderr + result.stdout)
        self.assertNotIn('/', self.asked(log), 'nothing is crawled as a stranger')
        result = self.run_crawl(url, '--login', url, '--login-field', 'name=x', expect=3)
        self.assertIn('has no form', result.stderr)
        result = self.run_crawl(url, *self.login(url, PASSWORD), '--login-check', 'Welcome back', expect=3)
        self.assertIn('does not have the text "Welcome back"', result.stderr)
        result = self.run_crawl(url, *self.login(url, PASSWORD), '--login-check', 'cookie:sid', expect=3)
        self.assertIn('there is no cookie "sid"', result.stderr)
        self.run_crawl(url, *self.login(url, PASSWORD), '--login-check', 'For some', '--login-check', 'cookie:session')

    def test_servers_that_ask_for_a_name_get_it(self):
        url, log = self.guarded_site('basic,digest')
        self.run_crawl(url)
        self.assertEqual((self.statuses('/basic/'), self.statuses('/digest/')), ({401: 1}, {401: 1}))
        host = urllib.parse.urlsplit(url).netloc
        netrc = self.file('netrc', f'machine 127.0.0.1 login {NAME} password "{PASSWORD}"\n')
        home = self.folder / 'home'
        home.mkdir()
        (home / '.netrc').write_text(f'default login {NAME} password "{PASSWORD}"\n')
        in_url = url.replace('://', f'://{NAME}:{urllib.parse.quote(PASSWORD)}@')
        for words, environment in [
                ([url, '--user', f'{NAME}:{PASSWORD}'], {}),
                ([url, '--user', f'{host}={NAME}:@env:PW'], {'PW': PASSWORD}),
                ([url, '--user', f'{NAME}:@{self.file("pw", PASSWORD)}'], {}),
                ([url, '--netrc-file', netrc], {}),
                ([url, '--netrc'], {'HOME': str(home)}),
                ([in_url], {})]:
            with self.subTest(words=words[1:]):
                self.database.unlink()
                self.run_crawl(*words, environment=environment)
                self.assertEqual((self.statuses('/basic/'), self.statuses('/digest/')), ({200: EACH}, {200: EACH}))
                self.assertEqual(stat.S_IMODE(self.database.stat().st_mode), 0o600)

    def test_a_crawl_that_shows_servers_a_secret_has_a_database_for_its_owner_alone(self):
        self.addCleanup(os.umask, os.umask(0o022))
        url, _ = self.guarded_site('basic')
        host = urllib.parse.urlsplit(url).netloc
        config = self.file('crawl.toml', f'[[host]]\nmatch = ["{host}"]\nheaders = {{ "X-Api-Key" = "k" }}\n')
        for words, mode in [
                ([], 0o644), (['--header', 'Accept-Language: de'], 0o644), (['--header', 'Cookie: a=b'], 0o600),
                (['--header', 'x-authorization: x'], 0o600), (['--header-for', '*', 'X-Auth-Token: x'], 0o600),
                (['--config', config], 0o600)]:
            with self.subTest(words=words):
                self.database.unlink(missing_ok=True)
                self.run_crawl(url, *words)
                self.assertEqual(stat.S_IMODE(self.database.stat().st_mode), mode)

    def test_a_wrong_password_is_told_and_not_tried_again(self):
        url, log = self.guarded_site('basic')
        result = self.run_crawl(url, '--user', f'{NAME}:guess-me')
        self.assertIn('are not taken; nothing is sent with them any more', result.stderr)
        self.assertNotIn('guess-me', result.stderr + result.stdout)
        self.assertEqual(self.asked(log).count('/basic/1'), 2)

    def test_a_name_goes_to_no_other_server(self):
        fields = []

        class Asking(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                fields.append((self.headers.get('Authorization'), self.headers.get('Cookie')))
                self.send_response(404 if self.path == '/robots.txt' else 401)
                self.send_header('WWW-Authenticate', 'Basic realm="x"')
                self.send_header('Content-Length', '0')
                self.end_headers()

            def log_message(self, *arguments):
                pass

        other = self.serve(Asking)
        url, _ = self.guarded_site('members')
        page = self.folder / 'seeds'
        page.write_text(f'{url}\nhttp://127.0.0.1:{other.server_address[1]}/\n')
        self.run_crawl('-i', page, *self.login(url, PASSWORD), '--user', f'{urllib.parse.urlsplit(url).netloc}={NAME}:{PASSWORD}')
        self.assertTrue(fields)
        self.assertEqual({authorization for authorization, _ in fields}, {None})
        # Cookies know no ports (RFC 6265, 8.5): what a host sets all its servers get.

    def test_secrets_are_told_nowhere(self):
        url, _ = self.guarded_site('guarded')
        kept = self.folder / 'kept'
        kept.mkdir()
        self.database = kept / 'crawl.db'
        result = self.run_crawl(url, *self.login(url), '--user', f'{NAME}:@env:PW', '--debug', '--warc', kept / 'site.warc',
                                '--export', kept / 'all.csv', '--check-links', '--check-output', kept / 'links.json', '--html',
                                kept / 'report.html', '--summary', 'json', environment={'PW': PASSWORD})
        self.assertEqual(self.statuses('/members/'), {200: EACH})
        self.assertEqual(self.statuses('/digest/'), {200: EACH})
        secrets = [PASSWORD, urllib.parse.quote(PASSWORD), urllib.parse.quote_plus(PASSWORD),
                   base64.b64encode(f'{NAME}:{PASSWORD}'.encode()).decode()]
        texts = {'output': (result.stdout + result.stderr).encode()}
        texts.update((path.name, path.read_bytes()) for path in kept.iterdir())
        self.assertGreaterEqual(set(texts), {'crawl.db', 'site.warc', 'all.csv', 'links.json', 'report.html'})
        for name, text in texts.items():
            for secret in secrets:
                self.assertNotIn(secret.encode(), text, name)
        archive = texts['site.warc'].decode('utf-8', 'replace')
        self.assertIn('\r\nAuthorization: (left out)\r\n', archive)
        self.assertIn('\r\nCookie: (left out)\r\n', archive)
        self.assertNotIn('response="', archive.split('WARC-Type: response')[0])

    def test_a_login_is_refused_where_nobody_is_asked(self):
        url, _ = self.guarded_site('none')
        archive = self.folder / 'site.warc'
        self.run_crawl(url, '--warc', archive)
        result = subprocess.run([ARGIOPE, 'crawl', 'replay', str(archive), *self.login(url, 'x')], capture_output=True, text=True)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn('--login: there is nobody to log in to', result.stderr)

    def test_bad_input_is_a_sentence(self):
        for words, sentence in [
                (['--user', 'secret'], 'argiope: --user: write NAME:PASSWORD or HOST=NAME:PASSWORD'),
                (['--load-cookies', '/no/where'], 'argiope: --load-cookies /no/where: No such file or directory'),
                (['--netrc-file', '/no/where'], 'argiope: --netrc-file /no/where: No such file or directory'),
                (['--login', 'http://a.test/'], 'argiope: --login: nothing is filled in'),
                (['--no-cookies', '--login', 'http://a.test/'], '--no-cookies'),
                (['--login-field', 'a=secret'], '--login-field requires --login')]:
            with self.subTest(words=words):
                result = self.run_crawl('http://127.0.0.1:9/', *words, expect=2)
                self.assertIn(sentence, result.stderr)
                self.assertNotIn('secret', result.stderr)
        self.assertFalse(self.database.exists())


if __name__ == '__main__':
    unittest.main()
