"""The daemon among clients that speak TLS and begin no handshake, do not finish it, idle, wait, send half a record, or nonsense:
it lets go of them or serves them, its memory is bounded, and others are served meanwhile.

ARGIOPE_HOSTILE says how many there are of each kind: 100 unless told; 10000 is what is claimed. Figures are printed."""
import collections
import contextlib
import http.client
import json
import os
import re
import socket
import ssl
import struct
import time
import unittest

from daemon import Answer
from serve_hostile_test import Hostile, LONGEST_ANSWER, MEGABYTE, POLL, get
from serve_tls_test import Secured

MANY = int(os.environ.get('ARGIOPE_HOSTILE', 100))
LET_GO_AFTER = 10  # seconds a handshake may take, as the daemon has it


class Handshake:
    """One client's side of TLS, whose bytes the test sends when it likes."""

    def __init__(self, context):
        self.came, self.to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.came, self.to_send, server_hostname='localhost')

    def hello(self):
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self.to_send.read()

    def finish(self, client):
        """From its hello on."""
        while True:
            self.came.write(client.recv(1 << 16))
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                client.sendall(self.to_send.read())
        client.sendall(self.to_send.read())

    def encrypted(self, plain):
        self.tls.write(plain)
        return self.to_send.read()


class HostileTls(Hostile, Secured):
    def serve_tls(self, connections=MANY + 2000):
        tls = f'certificate = "{self.certificate}", key = "{self.key}", beanstalkd = true'
        file = self.file(f'[serve]\nmax_connections = {connections}\nbeanstalkd = "127.0.0.1:0"\ntls = {{ {tls} }}\n')
        daemon = self.daemon('--listen', '127.0.0.1:0', file, listen='')
        self.addCleanup(self.close_all)
        daemon.port = int(daemon.wait_for(r'listening: https://[^ ]*:(\d+)')[1])
        daemon.beanstalkd_port = int(daemon.wait_for(r'beanstalkd at 127\.0\.0\.1:(\d+)')[1])
        daemon.good_token = ()
        self.trusting = self.context()
        daemon.ask = lambda *words, **more: self.ask(daemon, *words, **more)
        daemon.good('POST', '/v1/jobs', {'queue': 'mail'}, status=201)  # what the first one opens is there
        return daemon

    def ask(self, daemon, method, path, body=None, headers=()):
        connection = http.client.HTTPSConnection('127.0.0.1', daemon.port, timeout=60, context=self.trusting)
        try:
            connection.request(method, path, body if body is None else json.dumps(body), dict(headers))
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def handshaken(self, port):
        """A client whose handshake is finished, and its side of it."""
        client = self.connect(port)
        side = Handshake(self.trusting)
        client.sendall(side.hello())
        side.finish(client)
        return client, side

    @contextlib.contextmanager
    def crowd(self, daemon, what, bytes_each):
        """`MANY` clients of a kind, who may cost so much. Where they come slowly, the first may have been let go before the last come."""
        with self.harmless(daemon, f'{MANY} {what}', 16 * MEGABYTE + MANY * bytes_each):
            before, others = self.memory(daemon), self.descriptors(daemon)
            yield
            self.wait_until(lambda: self.descriptors(daemon) - others >= 0.9 * min(MANY, 500), 'few are let in', 120)
            there = self.descriptors(daemon) - others
            each = (self.memory(daemon) - before) / there
            print(f'  {each / 1024:.1f} KB for each of the {there} that are there', flush=True)
            if there > 0.9 * MANY:
                self.assertLess(each, bytes_each)

    def all_let_go(self, daemon, began):
        self.wait_until(lambda: all(map(self.has_ended, self.sockets)), 'unfinished handshakes are waited for', 120)
        self.wait_until(lambda: self.descriptors(daemon) < 100, 'connections of those who were let go are open', 120)
        print(f'  the last one was let go {time.monotonic() - began:.1f} s after the first came', flush=True)


class Handshakes(HostileTls):
    def test_those_that_do_not_begin(self):
        self.unfinished(lambda daemon: daemon.port, b'')

    def test_those_that_do_not_begin_at_beanstalkd(self):
        self.unfinished(lambda daemon: daemon.beanstalkd_port, b'')

    def test_half_a_hello(self):
        self.unfinished(lambda daemon: daemon.port, Handshake(self.context()).hello()[:100])

    def test_a_hello_and_no_more(self):
        self.unfinished(lambda daemon: daemon.port, Handshake(self.context()).hello())

    def test_a_hello_and_no_more_at_beanstalkd(self):
        self.unfinished(lambda daemon: daemon.beanstalkd_port, Handshake(self.context()).hello())

    def unfinished(self, port_of, data):
        daemon = self.serve_tls()
        began = time.monotonic()
        with self.harmless(daemon, f'{MANY} handshakes of which {len(data)} bytes came', 16 * MEGABYTE + MANY * 64 * 1024):
            for _ in range(MANY):
                self.connect(port_of(daemon), data)
            self.all_let_go(daemon, began)

    def test_a_crowd_that_takes_up_all_connections_makes_room_for_others(self):
        many = min(MANY, 1000)
        daemon = self.serve_tls(connections=many)
        with self.harmless(daemon, f'{many} handshakes of {many} connections allowed', 16 * MEGABYTE + many * 64 * 1024) as neighbour:
            for number in range(many + 50):
                # Whoever has waited longest is let go: nobody who comes and is served while so few others come.
                if number % (many // 10) == 0:
                    calls = len(neighbour.took)
                    self.wait_until(lambda: len(neighbour.took) > calls + 1, 'the neighbour is not served', 2 * LONGEST_ANSWER)
                self.connect(daemon.port, Handshake(self.trusting).hello())


class Crowds(HostileTls):
    def test_idle_connections(self):
        self.idle(lambda daemon: daemon.port)

    def test_idle_connections_of_beanstalkd(self):
        self.idle(lambda daemon: daemon.beanstalkd_port)

    def idle(self, port_of):
        daemon = self.serve_tls()
        with self.crowd(daemon, 'idle connections', 40 * 1024):
            crowd = collections.deque()
            for _ in range(MANY):
                crowd.append((time.monotonic(), *self.handshaken(port_of(daemon))))
                if port_of(daemon) == daemon.port:
                    self.keep(crowd)
        self.leave(daemon)

    def keep(self, crowd):
        """The daemon lets go of who has asked for nothing for a minute, and so many handshakes may take longer."""
        while crowd[0][0] < time.monotonic() - 25:
            _, client, side = crowd.popleft()
            client.sendall(side.encrypted(get('/healthz')))
            self.read_answer(lambda: self.decrypted(client, side))
            crowd.append((time.monotonic(), client, side))

    def test_long_polls(self):
        daemon = self.serve_tls()
        with self.crowd(daemon, 'long polls', 64 * 1024):
            for _ in range(MANY):
                client, side = self.handshaken(daemon.port)
                client.sendall(side.encrypted(POLL))
            self.wait_until(lambda: sum(worker['waiting'] for worker in daemon.good('GET', '/v1/workers')['workers']) >= 0.9 * min(MANY, 500),
                            'few wait', 120)
        self.leave(daemon)

    def test_those_that_were_answered_at_length(self):
        daemon = self.serve_tls()
        with self.crowd(daemon, 'connections that idle after an answer of 90 KB', 40 * 1024):
            crowd = collections.deque()
            for _ in range(MANY):
                client, side = self.handshaken(daemon.port)
                client.sendall(side.encrypted(get('/v1/openapi.json')))
                self.read_answer(lambda: self.decrypted(client, side))
                crowd.append((time.monotonic(), client, side))
                self.keep(crowd)
        self.leave(daemon)

    def test_those_that_were_answered_at_length_without_tls(self):
        daemon = self.serve_both()
        with self.crowd(daemon, 'connections without TLS that idle after an answer of 90 KB', 24 * 1024):
            for _ in range(MANY):
                client = self.connect(daemon.port, get('/v1/openapi.json'))
                self.read_answer(lambda: self.received(client))
        self.leave(daemon)

    def decrypted(self, client, side):
        while True:
            try:
                return side.tls.read(1 << 16)
            except ssl.SSLWantReadError:
                side.came.write(self.received(client))

    def received(self, client):
        piece = client.recv(1 << 16)
        self.assertTrue(piece, 'the daemon has closed the connection')
        return piece

    def read_answer(self, more):
        text = b''
        while (head := re.search(rb'Content-Length: (\d+)[\s\S]*?\r\n\r\n', text)) is None or len(text) < head.end() + int(head[1]):
            text += more()

    def leave(self, daemon):
        self.close_all()
        self.wait_until(lambda: self.descriptors(daemon) < 100, 'connections of those who left are open', 120)


class Liars(HostileTls):
    def test_half_a_record(self):
        """Of 16 KB, all but its last byte: it has to be kept."""
        daemon = self.serve_tls()
        with self.crowd(daemon, 'records that lack their end', 96 * 1024):
            # Who has asked for nothing may stay for longer than who has begun to ask: the records come one soon after the other.
            clients = [self.handshaken(daemon.port) for _ in range(MANY)]
            for client, side in clients:
                with contextlib.suppress(OSError):  # with so many it may have been let go
                    client.sendall(side.encrypted(b'POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n' + b'x' * 16000)[:-1])

    def test_bodies_that_stop_in_the_middle(self):
        daemon = self.serve_tls()
        began = time.monotonic()
        with self.harmless(daemon, f'{MANY} bodies that stop', 16 * MEGABYTE + MANY * 160 * 1024):
            for _ in range(MANY):
                client, side = self.handshaken(daemon.port)
                client.sendall(side.encrypted(b'POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000\r\n\r\n' + b'x' * 20000))
            if MANY >= 1000:
                self.all_let_go(daemon, began)

    def test_heads_byte_by_byte(self):
        """Each byte is a record of its own."""
        daemon = self.serve_tls()
        with self.harmless(daemon, f'{MANY} heads of which each byte is a record', 16 * MEGABYTE + MANY * 64 * 1024):
            clients = [self.handshaken(daemon.port) for _ in range(MANY)]
            for byte in get('/v1/jobs')[:20]:
                for client, side in clients:
                    with contextlib.suppress(OSError):
                        client.sendall(side.encrypted(bytes([byte])))

    NONSENSE = [b'\x17\x03\x03\x00\x20' + b'x' * 32, b'\x15\x03\x03\x00\x02\x02\x00', b'\x16\x03\x03\xff\xff' + b'x' * 70_000,
                b'\x14\x03\x03\x00\x01\x01' * 1000, b'\x17\x03\x03\x00\x00' * 1000, b'\x00' * 100_000, b'GET / HTTP/1.1\r\n\r\n']

    def test_nonsense_in_and_after_the_handshake(self):
        daemon = self.serve_tls()
        with self.harmless(daemon, 'nonsense instead of records', 32 * MEGABYTE):
            for data in self.NONSENSE:
                for port in (daemon.port, daemon.beanstalkd_port):
                    for before in (b'', Handshake(self.trusting).hello()):
                        client = self.connect(port, before)
                        self.send_all(client, data)
                        self.rest(client)
                    client, _ = self.handshaken(port)
                    self.send_all(client, data)
                    self.rest(client)

    def send_all(self, client, data):
        with contextlib.suppress(OSError):  # it has been let go
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)

    def test_those_that_vanish(self):
        daemon = self.serve_tls()
        with self.harmless(daemon, f'{2 * MANY} that vanish in the handshake and after it', 32 * MEGABYTE + MANY * 4096):
            for _ in range(MANY):
                half = self.connect(daemon.port, Handshake(self.trusting).hello())
                whole, side = self.handshaken(daemon.port)
                whole.sendall(side.encrypted(POLL))
                for one in (half, whole):
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
                    one.close()
        self.sockets = []
        self.wait_until(lambda: self.descriptors(daemon) < 100, 'connections of those who left are open', 120)


if __name__ == '__main__':
    unittest.main()
