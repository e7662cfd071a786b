"""The daemon among clients that idle, poll, drip, flood, lie and vanish: they are answered or refused, its memory is bounded,
and others are served meanwhile.

ARGIOPE_HOSTILE says how many there are of each kind: 200 unless told, for a CI; 10000 is what is claimed. Figures are printed.
"""
import contextlib
import json
import os
import pathlib
import re
import resource
import select
import socket
import struct
import subprocess
import threading
import time
import unittest

from daemon import Daemons
from support import ARGIOPE

MANY = int(os.environ.get('ARGIOPE_HOSTILE', 200))
LONGEST_ANSWER = 20  # seconds that a neighbour may wait, on a machine that does much else
MEGABYTE = 1 << 20


def get(path, fields=''):
    return f'GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n'.encode()


def post(path, body, fields=''):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f'POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n{fields}\r\n'.encode() + data


POLL = post('/v1/leases', {'queues': ['idle'], 'wait_ms': 60000})


class Neighbour:
    """A client that behaves: it puts a job, and asks how the daemon is, over and over, and notes how long that took."""

    def __init__(self, daemon, headers=()):
        self.daemon, self.headers = daemon, headers
        self.took, self.wrong = [], []
        self.leaving = threading.Event()
        self.thread = threading.Thread(target=self.live, daemon=True)
        self.thread.start()

    def live(self):
        while not self.leaving.is_set():
            for method, path, body, status in (('POST', '/v1/jobs', {'queue': 'mail'}, 201), ('GET', '/healthz', None, 200)):
                began = time.monotonic()
                try:
                    answer = self.daemon.ask(method, path, body, self.headers)
                    if answer.status != status:
                        self.wrong.append(answer.body)
                except Exception as error:
                    self.wrong.append(error)
                self.took.append(time.monotonic() - began)

    def leave(self):
        self.leaving.set()
        self.thread.join(120)


class Hostile(Daemons):
    def setUp(self):
        super().setUp()
        self.allow(2)  # the daemon keeps some for its other protocol
        self.sockets = []

    def allow(self, times):
        """Descriptors for so many times MANY clients at once, and what is there besides."""
        needed = times * (MANY + 2000)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), max(hard, needed)))
        except (OSError, ValueError):  # only root may allow itself more
            self.skipTest(f'{needed} descriptors are needed, and {hard} allowed')
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))

    def close_all(self):
        for one in self.sockets:
            one.close()
        self.sockets = []

    def serve_both(self, *arguments, connections=MANY + 2000, more=''):
        file = self.file(f'[serve]\nmax_connections = {connections}\n{more}\n')
        daemon = self.daemon(file, '--beanstalkd', '127.0.0.1:0', *arguments)
        self.addCleanup(self.close_all)  # before the daemon is stopped, which would wait for them
        daemon.beanstalkd_port = int(daemon.wait_for(r'beanstalkd at 127\.0\.0\.1:(\d+)')[1])
        daemon.good_token = ()
        return daemon

    def memory(self, daemon, what='VmRSS'):
        """In bytes."""
        status = pathlib.Path(f'/proc/{daemon.process.pid}/status').read_text()
        return 1024 * int(re.search(rf'{what}:\s+(\d+) kB', status)[1])

    def descriptors(self, daemon):
        return len(os.listdir(f'/proc/{daemon.process.pid}/fd'))

    def connect(self, port, data=b''):
        """A client of many: it is kept until the test ends."""
        one = socket.create_connection(('127.0.0.1', port), 60)
        self.sockets.append(one)
        if data:
            one.sendall(data)
        return one

    def tokens(self):
        words = subprocess.run([ARGIOPE, 'token', 'add', '--file', str(self.folder / 'tokens'), '--scope', 'admin', 'boss'],
                               check=True, stdout=subprocess.PIPE, text=True).stdout
        return {'Authorization': 'Bearer ' + re.search(r'argiope_\S+', words)[0]}

    @contextlib.contextmanager
    def harmless(self, daemon, what, most_bytes):
        """What is done here grows the daemon by `most_bytes` at most, and a neighbour is served meanwhile."""
        before, neighbour, began = self.memory(daemon), Neighbour(daemon, daemon.good_token), time.monotonic()
        try:
            yield neighbour
            calls = len(neighbour.took)
            self.wait_until(lambda: len(neighbour.took) >= calls + 4, 'the neighbour is not served', 2 * LONGEST_ANSWER)
        finally:
            neighbour.leave()
        grown = self.memory(daemon, 'VmHWM') - before
        took = sorted(neighbour.took)
        print(f'{what}: {time.monotonic() - began:.1f} s; memory {before / MEGABYTE:.0f} MB and at most '
              f'{grown / MEGABYTE:.1f} MB more; {len(took)} calls of a neighbour, '
              f'p50 {1000 * took[len(took) // 2]:.1f} ms, p99 {1000 * took[len(took) * 99 // 100]:.1f} ms, '
              f'longest {1000 * took[-1]:.0f} ms', flush=True)
        self.assertEqual(neighbour.wrong, [])
        self.assertLess(took[-1], LONGEST_ANSWER)
        self.assertLess(grown, most_bytes)
        self.assertIsNone(daemon.process.poll())

    def rest(self, client, seconds=60):
        """All that comes until the daemon closes; what came before a reset, too."""
        client.settimeout(seconds)
        all_of_it = b''
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            while True:
                piece = client.recv(1 << 16)
                if not piece:
                    break
                all_of_it += piece
        return all_of_it

    def has_ended(self, one):
        one.setblocking(False)
        try:
            while one.recv(1 << 16):
                pass
            return True
        except BlockingIOError:
            return False
        except OSError:
            return True


class Crowds(Hostile):
    def test_idle_connections(self):
        self.idle(lambda daemon: daemon.port, 'HTTP')

    def test_idle_connections_of_beanstalkd(self):
        self.idle(lambda daemon: daemon.beanstalkd_port, 'beanstalkd')

    def idle(self, port_of, protocol):
        daemon = self.serve_both()
        with self.harmless(daemon, f'{MANY} idle {protocol} connections', 16 * MEGABYTE + MANY * 8 * 1024):
            for _ in range(MANY):
                self.connect(port_of(daemon))
            self.wait_until(lambda: self.descriptors(daemon) > MANY, 'not all are let in', 120)

    def test_a_crowd_that_takes_up_all_connections_makes_room_for_others(self):
        many = min(MANY, 1000)
        daemon = self.serve_both(connections=many)
        with self.harmless(daemon, f'{many} idle connections of {many} allowed', 16 * MEGABYTE + many * 16 * 1024) as neighbour:
            for number in range(many + 50):
                # Whoever has waited longest is let go: nobody who comes and is served while so few others come.
                if number % (many // 10) == 0:
                    calls = len(neighbour.took)
                    self.wait_until(lambda: len(neighbour.took) > calls + 1, 'the neighbour is not served', 2 * LONGEST_ANSWER)
                self.connect(daemon.port)

    def test_idle_connections_of_beanstalkd_leave_descriptors_for_http(self):
        few = 400
        daemon = self.daemon('--beanstalkd', '127.0.0.1:0',
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (few, few)))
        self.addCleanup(self.close_all)
        port = int(daemon.wait_for(r'beanstalkd at 127\.0\.0\.1:(\d+)')[1])
        for _ in range(few + 20):
            one = socket.socket()
            one.setblocking(False)  # those that are not accepted wait
            one.connect_ex(('127.0.0.1', port))
            self.sockets.append(one)
        self.wait_until(lambda: self.descriptors(daemon) > 150, 'no crowd has come')
        for _ in range(10):
            daemon.good('POST', '/v1/jobs', {'queue': 'mail'}, status=201)
        self.assertLess(self.descriptors(daemon), few - 50)
        self.assertIn('400 descriptors', ''.join(daemon.log))
        self.assertNotIn('Too many open files', ''.join(daemon.log))

    def test_long_polls(self):
        daemon = self.serve_both()
        with self.harmless(daemon, f'{MANY} long polls', 16 * MEGABYTE + MANY * 24 * 1024):
            for _ in range(MANY):
                self.connect(daemon.port, POLL)
            self.wait_until(lambda: self.waiting(daemon) == MANY, 'not all wait', 120)
            began = time.monotonic()
            daemon.good('POST', '/v1/jobs', {'queue': 'idle'}, status=201)
            self.assertTrue(self.one_is_answered())
            print(f'  a job that is put is leased by one of them after {1000 * (time.monotonic() - began):.1f} ms', flush=True)
        self.close_all()
        self.wait_until(lambda: self.waiting(daemon) == 0, 'polls of those who left wait on', 120)
        self.wait_until(lambda: self.descriptors(daemon) < 100, 'connections of those who left are open', 120)

    def test_reserves_that_wait(self):
        daemon = self.serve_both()
        with self.harmless(daemon, f'{MANY} reserves that wait', 16 * MEGABYTE + MANY * 24 * 1024):
            for _ in range(MANY):
                self.connect(daemon.beanstalkd_port, b'reserve\r\n')
            asks = socket.create_connection(('127.0.0.1', daemon.beanstalkd_port), 60)
            self.addCleanup(asks.close)
            self.wait_until(lambda: self.current_waiting(asks) == MANY, 'not all wait', 120)
            began = time.monotonic()
            asks.sendall(b'put 0 0 60 5\r\nhello\r\n')
            self.assertTrue(self.one_is_answered())
            print(f'  a job that is put is reserved by one of them after {1000 * (time.monotonic() - began):.1f} ms', flush=True)
            self.assertRegex(asks.recv(100), rb'^INSERTED \d+\r\n')
        self.close_all()
        self.wait_until(lambda: self.descriptors(daemon) < 100, 'connections of those who left are open', 120)

    def current_waiting(self, client):
        client.sendall(b'stats\r\n')
        return int(re.search(rb'current-waiting: (\d+)', client.recv(65536))[1])

    def waiting(self, daemon):
        return sum(worker['waiting'] for worker in daemon.good('GET', '/v1/workers')['workers'])

    def one_is_answered(self):
        poll = select.poll()
        for one in self.sockets:
            poll.register(one, select.POLLIN)
        return bool(poll.poll(60_000))

    def test_heads_that_come_slowly(self):
        daemon = self.serve_both()
        with self.harmless(daemon, f'{MANY} heads and commands that come byte by byte', 16 * MEGABYTE + MANY * 8 * 1024):
            head = get('/v1/jobs', 'X-Slow: ' + 'a' * 1000 + '\r\n')
            began = time.monotonic()
            for _ in range(MANY // 2):
                self.connect(daemon.port, head[:20])
                self.connect(daemon.beanstalkd_port, b'put 0 0 60 1000')
            for byte in head[20:25]:
                for one in self.sockets[::2]:
                    with contextlib.suppress(OSError):
                        one.send(bytes([byte]))
            if MANY >= 1000:  # all of them are told in the end that it took too long
                slow = self.sockets[::2]
                self.wait_until(lambda: all(map(self.has_ended, slow)), 'slow ones are waited for', 120)
                print(f'  the last one was let go {time.monotonic() - began:.1f} s after the first came', flush=True)


class Bodies(Hostile):
    GIGABYTE = 1 << 30

    def test_a_gigabyte_that_is_announced_is_refused_before_it_is_sent(self):
        daemon = self.serve_both()
        with self.harmless(daemon, 'a body of 1 GB with its length', 16 * MEGABYTE):
            for path in ('/v1/jobs', '/v1/queues/mail/pause', '/nowhere'):
                answer = self.rest(self.connect(daemon.port, post(path, b'').replace(b'Length: 0', b'Length: 1073741824')))
                self.assertRegex(answer, b'^HTTP/1.1 413 ')
            size = self.GIGABYTE if MANY >= 1000 else 64 * MEGABYTE
            client = self.connect(daemon.beanstalkd_port, b'put 0 0 60 %d\r\n' % size)
            self.send_much(client, size)
            client.sendall(b'\r\nlist-tube-used\r\n')
            self.assertEqual(client.makefile('rb').readline(), b'JOB_TOO_BIG\r\n')

    def send_much(self, client, count):
        piece = b'x' * MEGABYTE
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            for _ in range(count // len(piece)):
                client.sendall(piece)

    def test_a_gigabyte_in_chunks_is_refused_where_it_is_too_much(self):
        daemon = self.serve_both()
        piece = b'100000\r\n' + b'x' * MEGABYTE + b'\r\n'
        with self.harmless(daemon, 'a body of 1 GB in chunks', 160 * MEGABYTE):
            client = self.connect(daemon.port, b'POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
            sent = 0
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                while sent < self.GIGABYTE:
                    client.sendall(piece)
                    sent += MEGABYTE
            self.assertLess(sent, 200 * MEGABYTE)
            print(f'  cut off after {sent // MEGABYTE} MB', flush=True)

    def test_many_large_bodies_at_once_have_a_bound_together(self):
        size, bound = (60, 512) if MANY >= 1000 else (20, 64)
        daemon = self.serve_both(more=f'max_bodies_bytes = {bound * MEGABYTE}')
        count = 3 * bound // size
        with self.harmless(daemon, f'{count} bodies of {size} MB at once, {bound} MB allowed', (3 * bound // 2 + 32) * MEGABYTE):
            head = post('/v1/jobs', b'').replace(b'Length: 0', b'Length: %d' % (size * MEGABYTE))
            clients = [self.connect(daemon.port, head) for _ in range(count)]
            for _ in range(size - 1):
                for client in clients:
                    self.send_much(client, MEGABYTE)
            refused = sum(map(self.is_refused, clients))
            print(f'  {refused} of them were refused', flush=True)
            self.assertGreater(refused, 0)

    def is_refused(self, client):
        client.setblocking(False)
        try:
            return client.recv(4096).startswith(b'HTTP/1.1 503 ')
        except BlockingIOError:
            return False
        except OSError:
            return True  # it went on sending after its answer

    def test_very_many_values_are_refused_before_they_are_parsed(self):
        daemon = self.serve_both()
        bodies = [b'{"jobs":[' + b'{},' * (20 * MEGABYTE - 8) + b'{}]}', b'{"queue":"q","payload":[' + b'1,' * (7 * MEGABYTE) + b'1]}']
        with self.harmless(daemon, 'bodies of millions of values', 192 * MEGABYTE):
            for body in bodies:
                answer = self.rest(self.connect(daemon.port, post('/v1/jobs', body, 'Connection: close\r\n')))
                self.assertRegex(answer, b'^HTTP/1.1 413 ')

    def test_who_has_no_token_fills_no_memory(self):
        tokens = self.tokens()
        daemon = self.serve_both('--tokens', self.folder / 'tokens')
        daemon.good_token = tokens
        with self.harmless(daemon, 'large bodies without a token', 32 * MEGABYTE):
            head = post('/v1/jobs', b'').replace(b'Length: 0', b'Length: %d' % (60 * MEGABYTE))
            for _ in range(16):
                answer = self.rest(self.connect(daemon.port, head))
                self.assertRegex(answer, b'^HTTP/1.1 401 ')


class Liars(Hostile):
    def test_a_flood_of_bad_tokens(self):
        tokens = self.tokens()
        daemon = self.serve_both('--tokens', self.folder / 'tokens')
        daemon.good_token = tokens
        daemon.good('POST', '/v1/jobs', {'queue': 'mail'}, status=201, headers=tokens)
        statuses = {}
        with self.harmless(daemon, f'{MANY} bad tokens', 24 * MEGABYTE):
            clients = [self.connect(daemon.port) for _ in range(8)]
            for number in range(0, MANY, 8):
                for place, client in enumerate(clients):
                    client.sendall(get('/v1/jobs', f'Authorization: Bearer guess-{number}-{place}\r\n'))
            for client in clients:
                client.shutdown(socket.SHUT_WR)
                for status in re.findall(rb'^HTTP/1.1 (\d+)', self.rest(client), re.MULTILINE):
                    statuses[status] = statuses.get(status, 0) + 1
        print(f'  answered: {statuses}', flush=True)
        self.assertLessEqual(set(statuses), {b'401', b'429'})
        self.assertGreater(statuses.get(b'429', 0), 0)
        self.assertLess(statuses[b'401'], 200)

    def test_forged_hosts_and_origins(self):
        daemon = self.serve_both()
        forged = [{'Host': host} for host in ('evil.example', '127.0.0.1.evil.example', 'localhost@evil.example', '[::1].evil',
                                              'evil.example:' + str(daemon.port), 'a' * 5000)]
        forged += [{'Origin': origin} for origin in ('https://evil.example', 'null', 'http://localhost.evil.example',
                                                     f'http://127.0.0.1:{daemon.port}.evil.example', 'http://127.0.0.1:1')]
        forged += [{'Sec-Fetch-Site': site} for site in ('cross-site', 'same-site')]
        with self.harmless(daemon, 'forged hosts and origins', 16 * MEGABYTE):
            for headers in forged:
                answer = daemon.ask('POST', '/v1/jobs', {'queue': 'stolen'}, headers=headers)
                self.assertIn(answer.status, (400, 403), headers)
        self.assertEqual(daemon.ask('GET', '/v1/queues/stolen').status, 404)

    MALFORMED = [
        b'\x00' * 100_000, b'\xff\xfe' * 10_000, b'\r\n' * 50_000, b'GET\r\n\r\n', b'GET / HTTP/9.9\r\n\r\n', b'A' * 200_000,
        b'GET / HTTP/1.1\nHost: a\n\n', b'GET / HTTP/1.1\r\n\r\n', b'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
        b'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n',
        b'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n', b'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 6\r\n\r\nhello!',
        b'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n',
        b'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', b'GET / HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n',
        b'GET / HTTP/1.1\r\nHost: a\r\n' + b'X: y\r\n' * 5000 + b'\r\n',
        b'POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n' + b'[' * 200_000,
        b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' + b'\x00' * 500,
    ]
    MALFORMED_BEANSTALKD = [
        b'\x00' * 100_000, b'A' * 300_000, b'put\r\n' * 20_000, b'put 1 2 3 4 5 6\r\n', b'put 0 0 0 5\r\nhelloworld\r\n' * 100,
        b'put -1 0 0 1\r\n', b'put 99999999999999999999 0 0 1\r\na\r\n', b'delete x\r\n' * 10_000, b'use ' + b'a' * 100_000 + b'\r\n',
        b'watch \xff\xff\r\n', b'reserve-with-timeout -1\r\n', b'\r\n' * 50_000, b'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
    ]

    def test_malformed_pipelines(self):
        daemon = self.serve_both()
        with self.harmless(daemon, 'malformed pipelines', 48 * MEGABYTE):
            for data in self.MALFORMED:
                self.assertRegex(self.talk(daemon.port, data), rb'^(HTTP/1.1 [45]\d\d |$)', data[:60])
            for data in self.MALFORMED_BEANSTALKD:
                self.assertRegex(self.talk(daemon.beanstalkd_port, data),
                                 rb'^(UNKNOWN_COMMAND|BAD_FORMAT|EXPECTED_CRLF|NOT_FOUND|INSERTED|TIMED_OUT|JOB_TOO_BIG|$)', data[:60])

    def talk(self, port, data):
        """Sends all of it as long as the daemon listens; all that it has answered."""
        client = socket.create_connection(('127.0.0.1', port), 60)
        with client:
            with contextlib.suppress(OSError):
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
            return self.rest(client)

    def test_clients_that_take_no_answers(self):
        daemon = self.serve_both()
        count = min(MANY, 500)
        with self.harmless(daemon, f'2 x {count} clients that take no answers', 64 * MEGABYTE + count * 512 * 1024):
            for _ in range(count):
                for port, data in ((daemon.port, get('/v1/openapi.json') * 200),
                                   (daemon.beanstalkd_port, b'stats\r\n' * 2000)):
                    client = socket.socket()
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    self.sockets.append(client)
                    client.connect(('127.0.0.1', port))
                    client.setblocking(False)
                    with contextlib.suppress(BlockingIOError):
                        client.send(data)

    def test_lists_that_nobody_takes(self):
        daemon = self.serve_both()
        daemon.good('POST', '/v1/jobs', {'queue': 'mail'}, status=201)
        daemon.good('POST', '/v1/jobs', {'jobs': [{'queue': 'list', 'payload': 'x' * 100} for _ in range(1000)]}, status=200)
        count = min(MANY, 1000)
        with self.harmless(daemon, f'{count} clients that ask for 20 lists each and take none', 64 * MEGABYTE + count * 2 * MEGABYTE):
            for _ in range(count):
                client = socket.socket()
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.connect(('127.0.0.1', daemon.port))
                client.sendall(get('/v1/jobs?limit=1000') * 20)
                self.sockets.append(client)
            # Those that there is no room for are refused.
            self.wait_until(lambda: self.lists(daemon, '[25]') >= count, 'not all have had their turn', 300)
        print(f'  {self.lists(daemon)} lists were made', flush=True)
        self.assertLessEqual(self.lists(daemon), 3 * count)  # and not 20

    def lists(self, daemon, answered='2'):
        metrics = daemon.ask('GET', '/metrics').body.decode()
        found = re.findall(rf'argiope_http_requests_total\{{route="/v1/jobs",code="{answered}xx"\}} (\d+)', metrics)
        puts = daemon.good('GET', '/v1/queues/mail')['counts']['ready']  # of the neighbour
        return sum(map(int, found)) - puts - 1

    def test_large_answers_that_nobody_takes_have_a_bound_together(self):
        size, bound = 8, 16
        daemon = self.serve_both(more=f'max_answers_bytes = {bound * MEGABYTE}')
        daemon.good('PUT', '/v1/queues/large', {'keep_done_ms': 86400000, 'max_payload_bytes': size * MEGABYTE})
        daemon.good('POST', '/v1/jobs', {'queue': 'large', 'id': 'large'}, status=201)
        token = daemon.good('POST', '/v1/leases', {'queues': ['large']})['leases'][0]['token']
        end = {'token': token, 'outcome': 'done', 'result': 'x' * (size * MEGABYTE)}
        daemon.good('POST', '/v1/leases/settle', {'settlements': [end]})
        for _ in range(4):
            daemon.good('POST', '/v1/jobs', {'queue': 'large', 'payload': 'x' * (size * MEGABYTE)}, status=201)
        requests = [get('/v1/jobs/large/output'), get('/v1/jobs/large'), get('/v1/jobs?payloads&queue=large'),
                    post('/v1/leases', {'queues': ['large'], 'most': 1000})]
        with self.harmless(daemon, '80 clients that take no large answer', (24 * size + bound) * MEGABYTE):
            for request in 20 * requests:
                client = socket.socket()
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.connect(('127.0.0.1', daemon.port))
                client.sendall(request)
                self.sockets.append(client)
            self.wait_until(lambda: self.refused_answers(daemon) > 0, 'none was refused', 120)
            # What could not be sent goes back.
            counts = lambda: daemon.good('GET', '/v1/queues/large')['counts']
            self.wait_until(lambda: counts()['ready'] >= 2, 'leases that nobody has are kept', 120)

    def refused_answers(self, daemon):
        metrics = daemon.ask('GET', '/metrics').body.decode()
        found = re.findall(r'argiope_http_requests_total\{route="/v1/jobs[^"]*",code="5xx"\} (\d+)', metrics)
        return sum(map(int, found))

    def test_half_closed_and_vanishing_clients(self):
        self.allow(3)
        daemon = self.serve_both()
        before = self.descriptors(daemon)
        reset = struct.pack('ii', 1, 0)
        with self.harmless(daemon, f'{MANY} clients that close their half, and {2 * MANY} that vanish', 32 * MEGABYTE + MANY * 4096):
            for _ in range(MANY):
                half = self.connect(daemon.port, get('/healthz'))
                half.shutdown(socket.SHUT_WR)
                cut = self.connect(daemon.port, post('/v1/jobs', {'queue': 'mail'})[:-3])
                gone = self.connect(daemon.beanstalkd_port, b'put 0 0 60 5\r\nhello\r\nreserve\r\nput 0 0 60 50\r\nhel')
                for one in (cut, gone):
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                    one.close()
            answers = [self.rest(one) for one in self.sockets if one.fileno() >= 0]
        self.assertTrue(all(answer.startswith(b'HTTP/1.1 200 ') or not answer for answer in answers))
        self.close_all()
        self.wait_until(lambda: self.descriptors(daemon) <= before + 4, 'connections of those who left are open', 120)
        self.wait_until(lambda: daemon.good('GET', '/v1/queues/default')['counts']['running'] == 0,
                        'what they had reserved was not given back', 120)


if __name__ == '__main__':
    unittest.main()
