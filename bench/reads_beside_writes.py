"""Puts by HTTP while other clients of the daemon read without end: what looks for a key that no job has, what explains
the last of many jobs, pages of jobs, queues, counters and metrics.

    bench/reads_beside_writes.py [--argiope FILE] [--jobs N] [--loops N] [--seconds S] [--data FOLDER]

One client puts one job at a time into a queue of its own; before and beside each kind of loop. The store holds --jobs
others. Client and daemon share the machine. Exit code 1 where puts keep less than 80 % of their rate, or their p99 is above
10 ms.
"""
import argparse
import http.client
import pathlib
import sys
import tempfile
import threading
import time

from job_peers import answers, free_port, print_machine, server

HERE = pathlib.Path(__file__).resolve().parent
LEAST_SHARE, MOST_P99_MS = 0.8, 10.0
AT_ONCE = 10_000


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection('127.0.0.1', port, timeout=300)

    def ask(self, method, path, body=None, kind='application/json'):
        self.connection.request(method, path, body, {'Content-Type': kind})
        response = self.connection.getresponse()
        return response.status, response.read()


def fill(port, jobs):
    client = Client(port)
    for first in range(0, jobs, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, jobs))
        lines = ''.join(f'{{"queue":"large","key":"k{number}"}}\n' for number in numbers)
        status, answer = client.ask('POST', '/v1/jobs', lines.encode(), 'application/x-ndjson')
        if status != 200:
            raise RuntimeError(answer)


def puts(port, seconds):
    """How many a second, and their p50 and p99 in milliseconds."""
    client, took, end = Client(port), [], time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        client.ask('POST', '/v1/jobs', b'{"queue":"small"}')
        took.append(1000 * (time.monotonic() - began))
    took.sort()
    return len(took) / seconds, took[len(took) // 2], took[len(took) * 99 // 100]


def beside(port, path, loops, seconds):
    over, answered = threading.Event(), []

    def read():
        client = Client(port)
        while not over.is_set():
            client.ask('GET', path)
            answered.append(path)

    threads = [threading.Thread(target=read) for _ in range(loops)]
    for thread in threads:
        thread.start()
    try:
        return puts(port, seconds), len(answered) / seconds
    finally:
        over.set()
        for thread in threads:
            thread.join()


def main():
    parser = argparse.ArgumentParser(description='Puts beside clients that read without end.')
    parser.add_argument('--argiope', type=pathlib.Path, default=HERE.parent / 'build' / 'release' / 'bin' / 'argiope')
    parser.add_argument('--jobs', type=int, default=500_000, help='that the store holds besides (%(default)s)')
    parser.add_argument('--loops', type=int, default=8, help='clients that read (%(default)s)')
    parser.add_argument('--seconds', type=float, default=4, help='of each load (%(default)s)')
    parser.add_argument('--data', default='/var/tmp', metavar='FOLDER', help='where the store is: a disk (%(default)s)')
    arguments = parser.parse_args()
    paths = ['/v1/jobs?key=none', f'/v1/jobs/{arguments.jobs}/explain', '/v1/jobs?limit=1000', '/v1/jobs?state=buried',
             '/v1/queues', '/v1/counters', '/metrics']
    print_machine(arguments.data)
    good = True
    with tempfile.TemporaryDirectory(prefix='reads-beside-writes-', dir=arguments.data) as folder:
        port = free_port()
        command = [arguments.argiope, 'serve', '--store', f'sqlite:{folder}/jobs.db', '--listen', f'127.0.0.1:{port}']
        with server(command, folder, answers(port)):
            fill(port, arguments.jobs)
            for path in paths:
                rate, p50, p99 = puts(port, arguments.seconds)
                (beside_rate, beside_p50, beside_p99), reads = beside(port, path, arguments.loops, arguments.seconds)
                good = good and beside_rate >= LEAST_SHARE * rate and beside_p99 <= MOST_P99_MS
                print(f'{path}: alone {rate:,.0f} puts/s, {p50:.2f} / {p99:.2f} ms; beside {arguments.loops} loops '
                      f'{beside_rate:,.0f} ({beside_rate / rate:.0%}), {beside_p50:.2f} / {beside_p99:.2f} ms, '
                      f'{reads:,.0f} reads/s', flush=True)
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
