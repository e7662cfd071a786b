"""examples/order-service, whole, by the commands of its README: a shop in Python, workers in Python and JavaScript, and the
daemon between them. Each of them is killed in the middle; no order is lost, or served twice unnoticed."""
import concurrent.futures
import http.client
import json
import os
import pathlib
import queue
import re
import shlex
import shutil
import subprocess
import threading
import time
import unittest
import urllib.parse

from daemon import Daemon, Daemons
from support import ARGIOPE, PATIENCE, free_port, lines_of

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / 'examples/order-service'
DAEMON, SHOP, *WORKERS, CURL = re.search(r'```\n(.*?)\n```', (EXAMPLE / 'README.md').read_text(), re.S)[1].splitlines()
CUSTOMERS = 6  # at once
WAVE = 60  # orders
EARLY = 20  # of a wave


class Worker:
    """One life of a worker. What it says goes to `said`, too."""

    def __init__(self, test, command):
        self.process = subprocess.Popen(shlex.split(command), cwd=test.folder, env=test.environment(), text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.lines = []
        self.reader = threading.Thread(target=self.read, args=[test.said])
        self.reader.start()
        test.addCleanup(self.kill)

    def read(self, said):
        with self.process.stdout as out:
            for line in out:
                self.lines.append(line.strip())
                said.put(line)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()

    def has_name(self, name):
        """Names are "host:pid:…"."""
        return name.split(':')[-2] == str(self.process.pid)


class OrderService(Daemons):
    def setUp(self):
        super().setUp()
        if shutil.which('node') is None:
            self.skipTest('node is not installed')
        for file in EXAMPLE.iterdir():
            (self.folder / file.name).symlink_to(file)
        self.url, self.shop_port, self.port = None, free_port(), free_port()
        self.said = queue.Queue()
        self.workers = []
        self.is_open = threading.Event()  # daemon and shop are there
        self.start_daemon()
        self.start_shop()
        self.is_open.set()

    # The five commands, at ports of their own.

    def environment(self):
        return {**os.environ, 'PATH': f'{os.path.dirname(ARGIOPE)}:{os.environ["PATH"]}', 'PYTHONDONTWRITEBYTECODE': '1',
                **({'ARGIOPE_URL': self.url} if self.url else {})}

    def start_daemon(self):
        words = [*shlex.split(DAEMON), '--listen', f'127.0.0.1:{self.port}']
        self.running = Daemon(self, subprocess.Popen(words, cwd=self.folder, env=self.environment(), stderr=subprocess.PIPE,
                                                     text=True))
        self.running.port = self.port = int(self.running.wait_for(r'listening: http://[^ ]*:(\d+)')[1])
        self.url = f'http://127.0.0.1:{self.port}'

    def start_shop(self):
        self.shop = self.start([*shlex.split(SHOP), str(self.shop_port)], cwd=self.folder, env=self.environment(),
                               stdout=subprocess.PIPE, text=True)
        self.shop_port = int(re.search(r':(\d+)/', next(lines_of(self.shop)))[1])

    def start_workers(self, *commands):
        started = [Worker(self, command) for command in commands or WORKERS]
        self.workers += started
        return started

    def kill_and_start(self, process, start):
        """kill -9, while customers and workers go on."""
        self.is_open.clear()
        process.kill()
        process.wait()
        start()
        self.is_open.set()

    def kill_daemon(self):
        self.kill_and_start(self.running.process, self.start_daemon)

    def kill_shop(self):
        self.kill_and_start(self.shop, self.start_shop)

    def kill_workers(self, workers):
        """kill -9; and what they had leased goes to others at once, not when the lease time is over."""
        for worker in workers:
            worker.kill()
        for name in [known['name'] for known in self.running.good('GET', '/v1/workers')['workers']]:
            if any(worker.has_name(name) for worker in workers):
                self.running.good('DELETE', f'/v1/workers/{urllib.parse.quote(name)}')

    # Customers.

    def ask(self, method, path, body=None, headers=()):
        connection = http.client.HTTPConnection('127.0.0.1', self.shop_port, timeout=PATIENCE)
        try:
            connection.request(method, path, body and json.dumps(body), dict(headers))
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def put(self, number, customer='eve'):
        """Puts an order until it is acknowledged; gives its id."""
        give_up_at = time.monotonic() + PATIENCE
        while time.monotonic() < give_up_at:
            self.is_open.wait(PATIENCE)
            try:
                status, answer = self.ask('POST', '/order', {'customer': customer, 'item': f'pizza {number}'},
                                          {'Idempotency-Key': f'order {number}'})
            except (OSError, http.client.HTTPException):
                continue  # the shop was killed
            if status != 503:
                self.assertEqual(status, 202, answer)
                return answer['order']
        raise AssertionError(f'order {number} was never acknowledged')

    def put_wave(self, numbers, early=lambda: None):
        """Puts orders from several customers at once, and does `early` when some of them are acknowledged."""
        with concurrent.futures.ThreadPoolExecutor(CUSTOMERS) as customers:
            puts = {customers.submit(self.put, number): number for number in numbers}
            for count, put in enumerate(concurrent.futures.as_completed(puts), 1):
                self.orders[puts[put]] = put.result()
                if count == EARLY:
                    early()

    # What came of the orders.

    def hear(self, lines):
        """Waits until workers have said that many lines more."""
        for _ in range(lines):
            self.said.get(timeout=PATIENCE)

    def result_when_done(self, order):
        self.wait_until(lambda: self.ask('GET', f'/order/{order}')[1]['state'] == 'done', f'order {order} was not done',
                        PATIENCE)
        return self.ask('GET', f'/order/{order}')[1]['result']

    def receipts(self):
        found = self.folder.glob('receipts/[0-9]*')
        return {int(path.name): path.read_text() for path in found}

    def test_the_readme_says_what_happens(self):
        worker, = self.start_workers(WORKERS[0])
        curl = shlex.split(CURL.replace('127.0.0.1:8080', f'127.0.0.1:{self.shop_port}'))
        told = subprocess.run(curl, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(told.stdout, '{"order": 1}\n', told.stderr)
        self.hear(1)
        self.assertEqual(worker.lines, ['order 1: pizza for ann'])
        self.assertEqual(self.receipts(), {1: 'pizza for ann\n'})
        self.assertEqual(self.result_when_done(1), 'served by worker.py')

    def test_what_is_no_order_is_refused(self):
        for body in (None, 7, {'customer': 'ann'}, {'customer': 7, 'item': 'pizza'}, {'customer': [], 'item': 'pizza'}):
            self.assertEqual(self.ask('POST', '/order', body)[0], 400, body)
        self.assertEqual((self.ask('GET', '/order/99')[0], self.ask('GET', '/order/x')[0]), (404, 400))

    def test_orders_are_answered_before_they_are_served_and_important_customers_come_first(self):
        for number in range(20):
            self.put(number)
        self.put(20, 'ann')
        self.put(21, 'bob')
        leases = self.running.good('POST', '/v1/leases', {'queues': ['orders'], 'most': 100, 'worker': 'w'})['leases']
        customers = [json.loads(lease['job']['payload'])['customer'] for lease in leases]
        self.assertEqual(customers, ['ann', 'bob', *['eve'] * 20])
        self.assertEqual([lease['job']['id'] for lease in leases], [21, 22, *range(1, 21)])

    def test_a_second_delivery_is_noticed_in_either_language(self):
        for number, command in enumerate(WORKERS):
            with self.subTest(command):
                order = self.put(number)
                # One that dies when the order is served and the daemon does not know.
                self.running.good('POST', '/v1/leases', {'queues': ['orders'], 'worker': 'w'})
                (self.folder / 'receipts').mkdir(exist_ok=True)
                (self.folder / 'receipts' / str(order)).write_text('by the first')
                self.assertEqual(self.running.good('DELETE', '/v1/workers/w'), {'ended': 1})
                worker, = self.start_workers(command)
                self.assertEqual(self.result_when_done(order), 'was served before')
                worker.process.terminate()
                self.assertEqual(worker.process.wait(PATIENCE), 0)
                worker.reader.join()
                self.assertEqual(worker.lines, [f'order {order} was served before'])
                self.assertEqual(self.receipts()[order], 'by the first')

    def test_whatever_is_killed_no_order_is_lost_or_served_twice_unnoticed(self):
        self.orders = {}  # number → id
        first = self.start_workers()
        self.wait_until(lambda: [known['waiting'] for known in self.running.good('GET', '/v1/workers')['workers']] == [True] * len(first),
                        'not all workers wait for orders')
        self.put_wave(range(WAVE), early=self.kill_daemon)
        self.put_wave(range(WAVE, 2 * WAVE), early=self.kill_shop)
        self.kill_workers(first)
        self.said = queue.Queue()
        self.put_wave(range(2 * WAVE, 3 * WAVE))  # nobody serves them yet
        second = self.start_workers()
        self.hear(EARLY)
        self.kill_daemon()
        self.hear(EARLY)
        self.kill_workers(second)
        self.start_workers()
        self.check_the_orders(3 * WAVE)

    def check_the_orders(self, count):
        self.wait_until(lambda: self.running.good('GET', '/v1/queues/orders')['counts']['done'] == count,
                        'some orders were not done', PATIENCE)
        self.assertEqual(sorted(self.orders), list(range(count)))
        self.assertEqual(len(set(self.orders.values())), count, 'two orders have one id')
        self.assertEqual(self.receipts(), {order: f'pizza {number} for eve\n' for number, order in self.orders.items()})
        results = {self.result_when_done(order) for order in self.orders.values()}
        self.assertLessEqual(results, {'served by worker.py', 'served by worker.mjs', 'was served before'})
        self.assertLessEqual({'served by worker.py', 'served by worker.mjs'}, results, 'one language did nothing')
        for worker in self.workers:
            worker.kill()
        served = [line for worker in self.workers for line in worker.lines if line.endswith(' for eve')]
        self.assertEqual(len(served), len(set(served)), 'an order was served twice')
        for number, order in self.orders.items():
            self.assertEqual(self.put(number), order, 'the same key was another order')


if __name__ == '__main__':
    unittest.main()
