"""The examples that serve orders over HTTP: clients that put many at once, a shop that closes, a process that is killed."""
import http.client
import json
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time
import unittest

from support import ARGIOPE, PATIENCE, EndToEnd, lines_of


def example(name):
    return pathlib.Path(ARGIOPE).with_name(f'example_{name}')


class Shop(EndToEnd):
    """`program` is the example."""

    program = None

    def open(self, *arguments, port=0):
        """Starts the program; gives its process and the port it listens at."""
        process = self.start([example(self.program), str(port), *map(str, arguments)], stdout=subprocess.PIPE, text=True,
                             cwd=self.folder)
        line = next(lines_of(process))
        return process, int(re.search(r':(\d+)/', line).group(1))

    def ask(self, port, method, path, body=None):
        """One request on a connection of its own: status, headers, body."""
        connection = http.client.HTTPConnection('127.0.0.1', port, timeout=PATIENCE)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read().decode()
        finally:
            connection.close()

    def curl(self, *arguments):
        if shutil.which('curl') is None:
            self.skipTest('curl is not installed')
        result = subprocess.run(['curl', '-sS', *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def put_orders(self, port, orders, clients, kill_at=None, kill=None):
        """Clients with a connection each, which put `orders` of them in all and come back when they are refused. Gives
        location → order of those acknowledged, and how many were refused. When `kill_at` of them are, calls `kill`,
        after which a connection may break."""
        numbers = iter(range(orders))
        lock = threading.Lock()
        killed = threading.Event()
        acknowledged, refused, troubles = {}, [], []

        def put(connection, number):
            body = f'order {number}'
            customer = 'important' if number % 10 == 0 else 'ann'
            for _ in range(2000):
                connection.request('POST', f'/orders?customer={customer}', body)
                response = connection.getresponse()
                text = response.read()
                if response.status == 202:
                    with lock:
                        acknowledged[response.headers['Location']] = body
                        if len(acknowledged) == kill_at:
                            killed.set()
                            kill()
                    return
                if response.status != 503 or response.headers['Retry-After'] is None:
                    raise AssertionError(f'{response.status} {text}')
                refused.append(number)
                if response.headers['Connection'] == 'close':
                    connection.close()
                time.sleep(0.05)
            raise AssertionError('refused for ever')

        def client():
            connection = http.client.HTTPConnection('127.0.0.1', port, timeout=PATIENCE)
            try:
                while True:
                    with lock:
                        number = next(numbers, None)
                    if number is None:
                        return
                    put(connection, number)
            except (OSError, http.client.HTTPException) as error:
                if not killed.is_set():
                    troubles.append(repr(error))
            except AssertionError as error:
                troubles.append(str(error))
            finally:
                connection.close()

        threads = [threading.Thread(target=client) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(troubles, [])
        return acknowledged, len(refused)

    def assert_done(self, port, acknowledged):
        """All of them, in the end."""
        connection = http.client.HTTPConnection('127.0.0.1', port, timeout=PATIENCE)
        self.addCleanup(connection.close)
        for location, order in acknowledged.items():
            def is_done():
                connection.request('GET', location)
                response = connection.getresponse()
                text = response.read().decode()
                self.assertEqual(response.status, 200, f'{location}: {text}')
                return text.startswith('done') and order in text
            self.wait_until(is_done, f'{location} was not done', PATIENCE)


class OrderService(Shop):
    program = 'order_service'

    def test_a_thousand_orders_by_concurrent_clients_are_all_done(self):
        _, port = self.open()
        acknowledged, _ = self.put_orders(port, 1000, 24)
        self.assertEqual(len(acknowledged), 1000)
        self.assert_done(port, acknowledged)

    def test_when_the_queue_is_full_the_next_is_refused(self):
        _, port = self.open()
        acknowledged, refused = self.put_orders(port, 300, 150)
        self.assertEqual(len(acknowledged), 300)
        self.assertGreater(refused, 0)

    def test_or_waits_where_it_is_told_to(self):
        _, port = self.open('wait')
        acknowledged, refused = self.put_orders(port, 400, 200)
        self.assertEqual((len(acknowledged), refused), (400, 0))
        self.assert_done(port, acknowledged)

    def test_important_customers_are_served_first(self):
        _, port = self.open()
        for _ in range(10):
            ordinary = [self.curl_free(port, f'order {i}') for i in range(80)]
            important = self.curl_free(port, 'mine', 'important')
            while not self.ask(port, 'GET', important)[2].startswith('done'):
                pass
            left = self.ask(port, 'GET', ordinary[-1])[2]
            self.assert_done(port, {ordinary[-1]: 'order 79'})
            if left == 'waiting\n':
                return
        self.fail('important orders were never done before others that came first')

    def curl_free(self, port, body, customer='ann'):
        status, headers, text = self.ask(port, 'POST', f'/orders?customer={customer}', body)
        self.assertEqual(status, 202, text)
        return headers['Location']

    def test_sigterm_closes_the_shop_when_the_orders_are_done(self):
        process, port = self.open()
        acknowledged, _ = self.put_orders(port, 100, 100)
        self.assertEqual(len(acknowledged), 100)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, output), (0, '0 orders were left waiting\n'))
        with self.assertRaises(ConnectionRefusedError):
            self.ask(port, 'POST', '/orders', 'late')

    def test_curl_understands_its_answers(self):
        _, port = self.open()
        url = f'http://127.0.0.1:{port}/orders'
        answer = self.curl('-i', '-d', 'two pizzas', f'{url}?customer=important')
        self.assertRegex(answer, r'^HTTP/1.1 202 Accepted\r?\n')
        location = re.search(r'Location: (\S+)', answer).group(1)
        self.assert_done(port, {location: 'two pizzas'})
        self.assertEqual(self.curl(f'http://127.0.0.1:{port}{location}'), 'done: two pizzas\n')
        self.assertIn('Content-Length: 17', self.curl('-I', f'http://127.0.0.1:{port}{location}'))
        problem = json.loads(self.curl(f'{url}/1000'))
        self.assertEqual((problem['status'], problem['detail']), (404, 'there is no such order'))
        self.assertEqual(self.curl('-o', '/dev/null', '-w', '%{http_code}', f'{url}/none'), '404')
        refused = self.curl('-i', '-X', 'DELETE', url)
        self.assertRegex(refused, r'^HTTP/1.1 405 ')
        self.assertIn('Allow: POST, OPTIONS', refused)
        large = self.folder / 'large'
        large.write_bytes(b'x' * 3_000_000)
        for more in ([], ['-H', 'Transfer-Encoding: chunked'], ['-H', 'Expect: 100-continue'], ['--http1.0']):
            code = self.curl('-o', '/dev/null', '-w', '%{http_code}', *more, '--data-binary', f'@{large}', url)
            self.assertEqual(code, '202', more)
        large.write_bytes(b'x' * 17_000_000)
        code = self.curl('-o', '/dev/null', '-w', '%{http_code}', '--data-binary', f'@{large}', url)
        self.assertEqual(code, '413')


class DurableOrders(Shop):
    program = 'durable_orders'

    def setUp(self):
        super().setUp()
        self.orders = self.folder / 'orders.db'

    def test_a_thousand_orders_by_concurrent_clients_are_all_done(self):
        _, port = self.open(self.orders)
        acknowledged, _ = self.put_orders(port, 1000, 24)
        self.assertEqual(len(acknowledged), 1000)
        self.assert_done(port, acknowledged)

    def test_kill_9_loses_no_order_that_was_acknowledged(self):
        acknowledged = {}
        for round in range(3):
            process, port = self.open(self.orders)
            known, _ = self.put_orders(port, 1000, 16, 300 + 100 * round, process.kill)
            process.wait()
            self.assertLess(len(known), 1000, 'killed too late')
            self.assertFalse(known.keys() & acknowledged.keys(), 'two orders of one number')
            acknowledged |= known
        _, port = self.open(self.orders)
        self.assert_done(port, acknowledged)

    def test_sigterm_ends_what_runs_and_the_next_process_does_the_rest(self):
        process, port = self.open(self.orders)
        acknowledged, _ = self.put_orders(port, 400, 40)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE), 0)
        _, port = self.open(self.orders)
        self.assert_done(port, acknowledged)

    def test_what_is_no_order_is_not_found(self):
        _, port = self.open(self.orders)
        for path in ('/orders/0', '/orders/99', '/orders/x', '/'):
            self.assertEqual(self.ask(port, 'GET', path)[0], 404, path)


class DurableWorker(EndToEnd):
    def test_it_runs_what_the_command_puts_until_it_is_told_to_stop(self):
        worker = self.start([example('durable_worker')], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            cwd=self.folder)
        self.wait_until((self.folder / 'jobs.db').exists, 'the worker did not start')
        for name in ('ann', 'bob'):
            self.assertEqual(subprocess.run([ARGIOPE, 'job', 'put', 'mail', f'to: {name}', '--store', 'sqlite:jobs.db'],
                                            cwd=self.folder, stdout=subprocess.DEVNULL, timeout=PATIENCE).returncode, 0)
        lines = lines_of(worker)
        self.assertEqual({next(lines), next(lines)}, {'to: ann\n', 'to: bob\n'})
        worker.terminate()
        self.assertEqual(worker.wait(PATIENCE), 0)


if __name__ == '__main__':
    unittest.main()
