"""How a crawl's bytes come: by proxies of every kind, with certificates of ours, within limits."""
import base64
import http.client
import http.server
import os
import select
import socket
import socketserver
import ssl
import struct
import subprocess
import threading
import unittest
import urllib.parse

from secure_sites import SecureSites
from support import ARGIOPE, EndToEnd, PageHandler


def address_of(host):
    return '127.0.0.1' if host.endswith('localhost') else host


def relay(near, far):
    """Passes on what comes from either, until one ends. One thread: what TLS has unpacked already makes no socket readable."""
    near.setblocking(True)
    while True:
        ready = [near] if getattr(near, 'pending', lambda: 0)() else select.select([near, far], [], [])[0]
        for one in ready:
            data = one.recv(65536)
            if not data:
                return
            (far if one is near else near).sendall(data)


class HttpProxy(http.server.BaseHTTPRequestHandler):
    """Asks the server of a whole URL, one connection for each request, or connects to it; notes what it was asked."""

    protocol_version = 'HTTP/1.1'
    asked = None  # a list, of each server its own
    login = None  # name:password that it wants, where it wants one

    def do_CONNECT(self):
        self.asked.append('CONNECT ' + self.path)
        given = self.headers.get('Proxy-Authorization', '')
        if self.login and given != 'Basic ' + base64.b64encode(self.login.encode()).decode():
            self.send_response(407)
            self.send_header('Proxy-Authenticate', 'Basic realm="proxy"')
            self.send_header('Content-Length', '0')
            return self.end_headers()
        host, _, port = self.path.rpartition(':')
        with socket.create_connection((address_of(host), int(port))) as far:
            self.send_response(200)
            self.end_headers()
            relay(self.connection, far)
        self.close_connection = True

    def do_GET(self):
        self.asked.append(self.path)
        url = urllib.parse.urlsplit(self.path)
        connection = http.client.HTTPConnection(address_of(url.hostname), url.port or 80)
        connection.request('GET', urllib.parse.urlunsplit(('', '', url.path, url.query, '')),
                           headers={name: value for name, value in self.headers.items() if name.lower() != 'host'})
        answer = connection.getresponse()
        body = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ('transfer-encoding', 'content-length', 'connection', 'date', 'server'):
                self.send_header(name, value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        connection.close()

    def log_message(self, *arguments):
        pass


class SocksProxy(socketserver.BaseRequestHandler):
    """RFC 1928, and RFC 1929 where it wants a login: opens connections, and notes to whom."""

    asked = None
    login = None  # (name, password)

    def handle(self):
        _, methods = self.take(2)
        offered = self.take(methods)
        self.request.sendall(b'\x05\x02' if self.login else b'\x05\x00')
        if self.login:
            self.asked.append(f'methods {sorted(offered)}')
            self.take(1)
            given = tuple(self.take(self.take(1)[0]).decode() for _ in range(2))
            self.request.sendall(b'\x01\x00' if given == self.login else b'\x01\x01')
            if given != self.login:
                return
        _, _, _, kind = self.take(4)
        if kind == 3:
            host = self.take(self.take(1)[0]).decode()
        else:
            host = socket.inet_ntop(*((socket.AF_INET, self.take(4)) if kind == 1 else (socket.AF_INET6, self.take(16))))
        port, = struct.unpack('>H', self.take(2))
        self.asked.append(f'{host}:{port}')
        with socket.create_connection((address_of(host), port)) as far:
            self.request.sendall(b'\x05\x00\x00\x01' + bytes(6))
            back = threading.Thread(target=self.pump, args=(far, self.request))
            back.start()
            self.pump(self.request, far)
            back.join()

    def take(self, size):
        data = b''
        while len(data) < size:
            more = self.request.recv(size - len(data))
            if not more:
                raise ConnectionError
            data += more
        return data

    @staticmethod
    def pump(one, other):
        try:
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Threads(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


class Proxies(EndToEnd):
    def setUp(self):
        super().setUp()
        # What the machine has of proxies is none of the tests' business.
        for name in ('http_proxy', 'https_proxy', 'all_proxy', 'no_proxy', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'):
            if name in os.environ:
                self.addCleanup(os.environ.__setitem__, name, os.environ.pop(name))

    def proxy(self, handler):
        """A proxy, and the list of what it is asked."""
        asked = []
        server = Threads(('127.0.0.1', 0), type('Noting', (handler,), {'asked': asked}))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f'127.0.0.1:{server.server_address[1]}', asked

    def pages(self, *arguments):
        """Status by URL of a crawl into a database of its own."""
        self.database.unlink(missing_ok=True)
        summary = self.crawl(*arguments)
        self.assertTrue(summary['finished'])
        return dict(self.rows('SELECT url, status_code FROM urls'))

    def test_a_crawl_by_an_http_proxy_finds_what_a_direct_one_finds(self):
        (url,), log = self.site('--hosts', 1, '--pages', 60, '--features', 'friendly')
        direct = self.pages(url)
        address, asked = self.proxy(HttpProxy)
        log.write_text('')
        self.assertEqual(self.pages(url, '--proxy', f'http://{address}'), direct)
        self.assertGreaterEqual(len(asked), 60)
        self.assertIn(url.rstrip('/') + '/robots.txt', asked)

    def test_socks_looks_names_up_there_or_here(self):
        (url,), _ = self.site('--hosts', 1, '--pages', 20, '--features', 'none')
        port = url.rstrip('/').rsplit(':', 1)[1]
        address, asked = self.proxy(SocksProxy)
        named = f'http://localhost:{port}/'
        self.assertGreaterEqual(len(self.pages(named, '--proxy', f'socks5h://{address}')), 20)
        self.assertEqual(set(asked), {f'localhost:{port}'})
        asked.clear()
        self.assertGreaterEqual(len(self.pages(named, '--proxy', f'socks5://{address}')), 20)
        self.assertEqual(set(asked), {f'127.0.0.1:{port}'})

    def test_hosts_take_proxies_in_turn_and_leave_a_dead_one(self):
        urls, _ = self.site('--hosts', 4, '--pages', 80, '--features', 'none')
        urls = [url.replace('127.0.0.1', f'h{number}.localhost') for number, url in enumerate(urls)]
        direct = self.pages(*urls)
        one, asked_one = self.proxy(HttpProxy)
        two, asked_two = self.proxy(HttpProxy)
        self.assertEqual(self.pages(*urls, '--proxy', one, '--proxy', two, '--proxy', 'http://127.0.0.1:1'), direct)

        def hosts(asked):
            return {urllib.parse.urlsplit(url).netloc for url in asked}
        self.assertTrue(asked_one and asked_two)
        self.assertEqual(hosts(asked_one) | hosts(asked_two), {urllib.parse.urlsplit(url).netloc for url in urls})
        self.assertFalse(hosts(asked_one) & hosts(asked_two), 'a host keeps its proxy')

    def test_the_environment_counts_and_spares_loopback(self):
        (url,), _ = self.site('--hosts', 1, '--pages', 5, '--features', 'none')
        address, asked = self.proxy(HttpProxy)
        os.environ['http_proxy'] = address
        self.addCleanup(os.environ.pop, 'http_proxy')
        self.pages(url)
        self.assertEqual(asked, [])
        self.database.unlink()
        self.crawl('http://example.invalid/', '--max-pages', 1, '--retries', 0, expect=3)
        self.assertIn('http://example.invalid/robots.txt', asked)
        asked.clear()
        self.database.unlink()
        self.crawl('http://example.invalid/', '--retries', 0, '--no-proxy', '*', expect=3)
        self.assertEqual(asked, [])

    def test_names_of_private_networks_are_not_asked_for(self):
        address, asked = self.proxy(HttpProxy)

        class Page(PageHandler):
            def do_GET(self):
                body = b'<a href="http://169.254.169.254/latest">a</a> <a href="http://intranet/">b</a>'
                self.reply(404 if self.path == '/robots.txt' else 200, body)
        port = self.serve(Page).server_address[1]
        url = f'http://127.0.0.1:{port}/'
        self.crawl(url, '--proxy', address, '-w', 'intranet', '-w', '169.254.169.254')
        self.assertEqual(set(asked), {url, url + 'robots.txt'})
        errors = dict(self.rows("SELECT url, error FROM urls WHERE state = 'failed'"))
        self.assertIn('link-local', errors['http://169.254.169.254/latest'])
        self.assertIn('--allow-private', errors['http://intranet/'])

    def test_bad_input_is_a_sentence(self):
        for arguments, words in ((['--proxy', 'gopher://ann:secret@p'], 'scheme "gopher" is not known'),
                                 (['--no-proxy', 'a/b'], '--no-proxy "a/b": neither a host name')):
            result = subprocess.run([ARGIOPE, 'crawl', 'http://127.0.0.1:1/', *arguments], capture_output=True, text=True)
            self.assertEqual(result.returncode, 2)
            self.assertIn(words, result.stderr)
            self.assertNotIn('secret', result.stderr)

    def test_a_proxy_that_wants_a_login_is_told_of(self):
        class Wanting(HttpProxy):
            def do_GET(self):
                self.send_response(407)
                self.send_header('Content-Length', '0')
                self.end_headers()
        address, _ = self.proxy(Wanting)
        result = subprocess.run([ARGIOPE, 'crawl', '--quiet', '-d', str(self.database), 'http://example.invalid/',
                                 '--proxy', f'http://ann:secret@{address}'], capture_output=True, text=True)
        self.assertEqual(result.returncode, 3)
        self.assertIn('wants a name and a password (407)', result.stderr)
        self.assertNotIn('secret', result.stderr)


class SecureProxies(SecureSites):
    """https servers by proxies: by CONNECT, by a proxy that is asked by TLS itself, by SOCKS with a name and a password."""

    proxy, pages = Proxies.proxy, Proxies.pages

    def setUp(self):
        super().setUp()
        (self.url,), _ = self.site_by_tls('--hosts', 1, '--pages', 30, '--features', 'none')
        self.target = self.url.split('/')[2]
        self.direct = self.pages(self.url, '--ca-file', self.authority)
        self.assertEqual(sum(status == 200 for status in self.direct.values()), 30)

    def by(self, proxy, *arguments):
        return self.pages(self.url, '--ca-file', self.authority, '--proxy', proxy, *arguments)

    def complaint(self, proxy):
        """Of a crawl that gets nowhere."""
        self.database.unlink(missing_ok=True)
        result = subprocess.run([ARGIOPE, 'crawl', '--quiet', '-d', str(self.database), self.url, '--ca-file', str(self.authority),
                                 '--retries', '0', '--proxy', proxy], capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 3, result.stdout + result.stderr)
        return result.stderr

    def test_an_http_proxy_is_asked_to_connect_and_sees_no_page(self):
        address, asked = self.proxy(HttpProxy)
        for version in ('1.1', '2'):
            self.assertEqual(self.by(f'http://{address}', '--http', version), self.direct)
            self.assertEqual(set(asked), {f'CONNECT {self.target}'})
            asked.clear()

    def test_it_gets_the_name_and_password_of_its_url(self):
        address, asked = self.proxy(type('Wanting', (HttpProxy,), {'login': 'ann:silk & dew'}))
        self.assertEqual(self.by(f'http://ann:silk%20%26%20dew@{address}'), self.direct)
        told = self.complaint(f'http://ann:guess-me@{address}')
        self.assertIn('wants a name and a password (407)', told)
        self.assertNotIn('guess-me', told)

    def test_a_proxy_may_speak_tls_and_has_to_prove_who_it_is(self):
        asked = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        server = Threads(('127.0.0.1', 0), type('Noting', (HttpProxy,), {'asked': asked}))
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.assertEqual(self.by(f'https://127.0.0.1:{server.server_address[1]}'), self.direct)
        self.assertEqual(set(asked), {f'CONNECT {self.target}'})
        asked.clear()
        self.database.unlink()
        self.crawl(self.url, '--retries', 0, '--proxy', f'https://127.0.0.1:{server.server_address[1]}', expect=3)
        self.assertEqual(asked, [], 'its authority is not trusted')

    def test_socks_takes_a_name_and_a_password(self):
        address, asked = self.proxy(type('Wanting', (SocksProxy,), {'login': ('ann', 'silk & dew')}))
        self.assertEqual(self.by(f'socks5h://ann:silk%20%26%20dew@{address}'), self.direct)
        self.assertIn(self.target, asked)
        asked.clear()
        told = self.complaint(f'socks5://ann:guess-me@{address}')
        self.assertNotIn('guess-me', told)
        self.assertNotIn(self.target, asked)


class ClientCertificates(SecureSites):
    def setUp(self):
        super().setUp()
        self.ours, self.our_key, self.password = (self.folder / name for name in ('ours.pem', 'ours.key', 'password'))
        self.password.write_text('silk & dew\nand a second line\n')
        self.openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-passout', f'file:{self.password}',
                     '-subj', '/CN=ann', '-keyout', self.our_key, '-out', self.folder / 'our-request')
        self.openssl('x509', '-req', '-in', self.folder / 'our-request', '-CA', self.authority, '-CAkey', self.folder / 'ca.key',
                     '-CAcreateserial', '-days', 2, '-out', self.ours)
        root = self.folder / 'www'
        root.mkdir()
        (root / 'index.html').write_text('<title>for ann</title><a href=a.html>a</a>')
        (root / 'a.html').write_text('<title>a</title>')
        self.url, self.log = self.nginx_by_tls(root, f'ssl_client_certificate {self.authority}; ssl_verify_client on;')

    def statuses(self, *arguments, expect=0):
        self.database.unlink(missing_ok=True)
        self.crawl(self.url, '--ca-file', self.authority, '--retries', 0, *arguments, expect=expect)
        return sorted(status for status, in self.rows('SELECT status_code FROM urls WHERE status_code IS NOT NULL'))

    def test_a_server_that_wants_a_certificate_gets_ours_by_either_version(self):
        ours = ('--client-cert', self.ours, '--client-key', self.our_key, '--client-key-password-file', self.password)
        for version in ('1.1', '2'):
            self.assertEqual(self.statuses(*ours, '--http', version), [200, 200])
        self.assertEqual(self.statuses(expect=3), [400], 'nginx says so of who shows none')

    def test_a_password_that_is_missing_or_wrong_is_told_at_the_start(self):
        wrong = self.folder / 'wrong'
        wrong.write_text('guess-me\n')
        for words, sentence in ((('--client-key', self.our_key), 'is a private key that needs a password'),
                                (('--client-key', self.our_key, '--client-key-password-file', wrong), 'is a private key that needs another password')):
            result = subprocess.run([ARGIOPE, 'crawl', self.url, '-d', str(self.database), '--client-cert', str(self.ours), *map(str, words)],
                                    capture_output=True, text=True, timeout=100)
            self.assertEqual(result.returncode, 2)
            self.assertIn(sentence, result.stderr)
            self.assertNotIn('guess-me', result.stderr)

    def test_a_file_without_authorities_is_told_at_the_start(self):
        junk = self.folder / 'junk.pem'
        junk.write_text('no certificate\n')
        result = subprocess.run([ARGIOPE, 'crawl', self.url, '-d', str(self.database), '--ca-file', str(junk)], capture_output=True, text=True, timeout=100)
        self.assertEqual(result.returncode, 2)
        self.assertIn(f'--ca-file: "{junk}": has no certificates in PEM', result.stderr)


class Limits(EndToEnd):
    def test_a_server_that_accepts_and_says_nothing_is_left_when_connecting_has_taken_too_long(self):
        with socket.create_server(('127.0.0.1', 0)) as silent:  # the system accepts; nobody shakes hands
            port = silent.getsockname()[1]
            result = subprocess.run([ARGIOPE, 'crawl', '--quiet', '-d', str(self.database), f'https://127.0.0.1:{port}/', '--retries', '0',
                                     '--connect-timeout', '300ms', '--timeout', '1h'], capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 3)
        self.assertIn('no answer within 0.3 s', result.stderr)

    def test_a_quota_stops_the_run_and_the_next_one_goes_on(self):
        (url,), _ = self.site('--hosts', 1, '--pages', 80, '--features', 'none')
        summary = self.crawl(url, '--quota', '100K')
        self.assertFalse(summary['finished'])
        self.assertEqual(summary['stopped_by'], 'quota')
        self.assertGreaterEqual(summary['bytes'], 100 * 1024)
        self.assertTrue(self.crawl(url)['finished'])
        self.assertEqual(self.rows("SELECT COUNT(*) FROM urls WHERE state <> 'done' AND url LIKE ?", url + '%'), [(0,)])

    def test_a_rate_holds_over_connections_and_threads(self):
        urls, _ = self.site('--hosts', 2, '--pages', 60, '--features', 'none')
        summary = self.crawl(*urls, '--rate-limit', '200K', '--threads', 2, '--timeout', '1s')
        self.assertTrue(summary['finished'])
        self.assertEqual(summary['errors'], 0, 'the wait is not the servers\'')
        self.assertGreater(summary['bytes'], 200 * 1024)
        self.assertGreaterEqual(summary['seconds'], summary['bytes'] / (200 * 1024) - 0.5)


if __name__ == '__main__':
    unittest.main()
