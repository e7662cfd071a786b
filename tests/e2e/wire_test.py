"""How a crawl's bytes come: by proxies of every kind."""
import http.client
import http.server
import os
import socket
import socketserver
import struct
import subprocess
import threading
import unittest
import urllib.parse

from support import ARGIOPE, EndToEnd


def address_of(host):
    return '127.0.0.1' if host.endswith('localhost') else host


class HttpProxy(http.server.BaseHTTPRequestHandler):
    """Asks the server of a whole URL, one connection for each request; notes what it was asked."""

    protocol_version = 'HTTP/1.1'
    asked = None  # a list, of each server its own

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
    """RFC 1928 without a login: opens connections, and notes to whom."""

    asked = None

    def handle(self):
        _, methods = self.take(2)
        self.take(methods)
        self.request.sendall(b'\x05\x00')
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

        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = b'<a href="http://169.254.169.254/latest">a</a> <a href="http://intranet/">b</a>'
                self.send_response(404 if self.path == '/robots.txt' else 200)
                self.send_header('Content-Type', 'text/html')
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass
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


class Limits(EndToEnd):
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
