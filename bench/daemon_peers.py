"""The daemon beside its peers, in one run: beanstalkd, NATS JetStream, RabbitMQ, Redis, and plain HTTP servers.

    bench/daemon_peers.py [--bin FOLDER] [--only NAME] [--data FOLDER] [--seconds S]

Jobs of 100 bytes, which nobody does anything with. The load is bench_load, one process on the same machine; each load ends
after --seconds or JOBS jobs, whichever comes first. What each server has synced when it answers is part of its name. Medians
of ROUNDS rounds. Beside a rate stands the server's processor time a job, which other work on the machine changes less.

Servers are started here, on loopback, with their data in a temporary folder, and stopped at the end. One that is not
installed is left out, with the reason; one that fails makes the exit code 1.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile

from job_peers import Missing, answers, free_port, print_machine, program, server

HERE = pathlib.Path(__file__).resolve().parent
ROUNDS = int(os.environ.get('ROUNDS', '2'))
JOBS = 1_000_000
CLOCK_TICKS = os.sysconf('SC_CLK_TCK')

BEANSTALKD_16 = 'put, 64 connections x 16'
BEANSTALKD_1 = 'put, 64 connections x 1'
WORKED = 'reserve + delete, 8 connections x 64'
HTTP_PUT = 'HTTP put, one a request, 64 connections'
HTTP_PUT_1000 = 'HTTP put, 1,000 a request, 4 connections'
HTTP_WORKED = 'HTTP lease + settle by 256, 4 connections'
OPEN = 'open loop, 5,000 puts/s'
POLLERS = '1,000 idle pollers, 200 puts/s'
PYTHON = 'Python worker, no-op jobs, one process'
REACH = {
    BEANSTALKD_16: '350,000', BEANSTALKD_1: '95,000', WORKED: '180,000', HTTP_PUT: '75,000', HTTP_PUT_1000: '400,000',
    HTTP_WORKED: '200,000', PYTHON: '15,000',
}


class Table:
    """What was measured: (workload, unit) → server → one figure a round, in the order in which they came."""

    def __init__(self):
        self.rows = {}

    def add(self, workload, unit, name, value):
        self.rows.setdefault((workload, unit), {}).setdefault(name, []).append(value)

    def show(self):
        for (workload, unit), servers in self.rows.items():
            medians = {name: statistics.median(values) for name, values in servers.items()}
            ours = {name: value for name, value in medians.items() if name.startswith('argiope')}
            peers = {name: value for name, value in medians.items() if name not in ours}
            digits = 0 if unit == 'jobs/s' else 2
            words = [f'{name} {value:,.{digits}f}' for name, value in [*ours.items(), *peers.items()]]
            reach = f'  (reach {REACH[workload]})' if unit == 'jobs/s' and workload in REACH else ''
            print(f'{workload:<44} {unit:<10}  ' + ' | '.join(words) + reach)
            print(json.dumps({'workload': workload, 'unit': unit, 'argiope': {n: round(v, 4) for n, v in ours.items()},
                              'peers': {n: round(v, 4) for n, v in peers.items()}}))


class Loads:
    """Runs bench_load against one server and writes down what it says."""

    def __init__(self, table, arguments, name, process):
        self.table, self.arguments, self.name, self.process = table, arguments, name, process

    def run(self, *words):
        command = [str(self.arguments.bin / 'bench_load'), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f'{" ".join(map(str, words))}: {done.stderr.strip()[:300]}')
        return json.loads(done.stdout)

    def rate(self, workload, action, protocol, port, connections, in_flight, jobs=JOBS, batch=1, note=True):
        """Jobs that were done."""
        cpu = self.cpu()
        got = self.run(action, protocol, port, '--connections', connections, '--in-flight', in_flight, '--jobs', jobs,
                       '--batch', batch, '--seconds', self.arguments.seconds)
        cpu = self.cpu() - cpu
        if note and got['jobs']:
            self.table.add(workload, 'jobs/s', self.name, got['jobs'] / got['seconds'])
            self.table.add(workload, 'CPU us/job', self.name, cpu / got['jobs'] * 1e6)
        return got['jobs']

    def latency(self, what, protocol, port, connections, waiters, rate):
        got = self.run('open', protocol, port, '--connections', connections, '--waiters', waiters, '--rate', rate,
                       '--seconds', self.arguments.seconds)
        for name, figures in (('put', got['put_ms']), ('put -> waiting worker', got['came_ms'])):
            for part, value in zip(('p50', 'p99'), figures):
                self.table.add(f'{what}, {name}, {part}', 'ms', self.name, value)

    def cpu(self):
        """Seconds of processor time the server has used, with the processes of its session that it started."""
        ticks = 0
        for path in pathlib.Path('/proc').glob('[0-9]*/stat'):
            with contextlib.suppress(OSError):
                fields = path.read_text().rsplit(')', 1)[1].split()
                if self.process.pid in (int(path.parent.name), int(fields[3])):
                    ticks += int(fields[11]) + int(fields[12])
        return ticks / CLOCK_TICKS


# The servers

def argiope(table, arguments, folder):
    command = [str(arguments.bin / 'argiope'), 'serve', '--store', f'sqlite:{folder}/jobs.db', '--listen', '127.0.0.1:0',
               '--beanstalkd', '127.0.0.1:0']
    log = folder / 'server.log'

    def listens():
        return len(re.findall(r'listening: \S+', log.read_text())) == 2

    with server(command, folder, listens) as process:
        text = log.read_text()
        http = int(re.search(r'listening: http://127\.0\.0\.1:(\d+)', text)[1])
        bean = int(re.search(r'listening: beanstalkd at 127\.0\.0\.1:(\d+)', text)[1])
        loads = Loads(table, arguments, 'argiope', process)
        put = loads.rate(BEANSTALKD_1, 'put', 'beanstalkd', bean, 64, 1)
        put += loads.rate(BEANSTALKD_16, 'put', 'beanstalkd', bean, 64, 16)
        loads.rate(WORKED, 'work', 'beanstalkd', bean, 8, 64, jobs=put)
        put = loads.rate(HTTP_PUT, 'put', 'http', http, 64, 1)
        put += loads.rate(HTTP_PUT_1000, 'put', 'http', http, 4, 1, batch=1000)
        loads.rate(HTTP_WORKED, 'work', 'http', http, 4, 256, jobs=put)
    # With an empty store: what waits there would be had before what is put.
    (folder / 'waiting').mkdir()
    command[3] = f'sqlite:{folder}/waiting/jobs.db'
    log.write_text('')
    with server(command, folder, listens) as process:
        text = log.read_text()
        http = int(re.search(r'listening: http://127\.0\.0\.1:(\d+)', text)[1])
        bean = int(re.search(r'listening: beanstalkd at 127\.0\.0\.1:(\d+)', text)[1])
        for name, protocol, port in (('argiope', 'beanstalkd', bean), ('argiope, HTTP', 'http', http)):
            loads = Loads(table, arguments, name, process)
            loads.latency(OPEN, protocol, port, 16, 16, 5000)
            loads.latency(POLLERS, protocol, port, 4, 1000, 200)
        python_worker(table, f'http://127.0.0.1:{http}', arguments.jobs)


def python_worker(table, url, jobs):
    script = HERE.parent / 'clients' / 'python' / 'bench' / 'noop_worker.py'
    done = subprocess.run([sys.executable, str(script), url, str(jobs)], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f'the Python worker failed: {done.stderr.strip()[-300:]}')
    for line in done.stdout.splitlines():
        found = re.match(r'(\S.*?\S)\s+([\d,]+) jobs/s', line)
        table.add(PYTHON, 'jobs/s', f'argiope, {found[1]}', int(found[2].replace(',', '')))


def beanstalkd(name, options):
    def run(table, arguments, folder):
        port = free_port()
        command = [program('beanstalkd'), '-l', '127.0.0.1', '-p', str(port)]
        if options is not None:
            command += ['-b', str(folder), *options]
        if os.geteuid() == 0:
            command += ['-u', 'root']  # else it would become a user who can't write there
        with server(command, folder, answers(port, b'list-tube-used\r\n', b'USING')) as process:
            loads = Loads(table, arguments, name, process)
            put = loads.rate(BEANSTALKD_1, 'put', 'beanstalkd', port, 64, 1)
            put += loads.rate(BEANSTALKD_16, 'put', 'beanstalkd', port, 64, 16)
            if loads.rate(WORKED, 'work', 'beanstalkd', port, 8, 64, jobs=put) < put:
                return  # what waits would be had before what is put
            loads.latency(OPEN, 'beanstalkd', port, 16, 16, 5000)
            loads.latency(POLLERS, 'beanstalkd', port, 4, 1000, 200)
    return run


def redis(table, arguments, folder):
    port = free_port()
    command = [program('redis-server'), '--bind', '127.0.0.1', '--port', str(port), '--dir', str(folder), '--save', '',
               '--appendonly', 'yes', '--appendfsync', 'always', '--maxmemory-policy', 'noeviction']
    with server(command, folder, answers(port, b'PING\r\n', b'+PONG')) as process:
        loads = Loads(table, arguments, 'Redis list, synced', process)
        loads.rate(BEANSTALKD_1, 'put', 'redis', port, 64, 1)
        loads.rate(BEANSTALKD_16, 'put', 'redis', port, 64, 16)
        say(port, b'DEL bench\r\n', b':')
        loads.latency(OPEN, 'redis', port, 16, 16, 5000)
        loads.latency(POLLERS, 'redis', port, 4, 1000, 200)
        say(port, b'DEL bench\r\nXGROUP CREATE bench workers 0 MKSTREAM\r\n', b'+OK')
        loads = Loads(table, arguments, 'Redis stream, synced', process)
        loads.rate(BEANSTALKD_1, 'put', 'redis-stream', port, 64, 1)
        put = loads.rate(BEANSTALKD_16, 'put', 'redis-stream', port, 64, 16)
        loads.rate(WORKED, 'work', 'redis-stream', port, 8, 64, jobs=put)


def nats(table, arguments, folder):
    port = free_port()
    command = [program('nats-server'), '-a', '127.0.0.1', '-p', str(port), '-js', '-sd', str(folder)]
    with server(command, folder, answers(port, b'', b'INFO')) as process:
        stream = {'name': 'BENCH', 'subjects': ['bench'], 'retention': 'workqueue', 'storage': 'file'}
        consumer = {'stream_name': 'BENCH', 'config': {'durable_name': 'workers', 'ack_policy': 'explicit',
                                                       'max_ack_pending': 100_000}}
        words = b'CONNECT {"verbose":false}\r\nSUB r 1\r\n'
        for subject, body in (('STREAM.CREATE.BENCH', stream), ('CONSUMER.DURABLE.CREATE.BENCH.workers', consumer)):
            text = json.dumps(body).encode()
            words += b'PUB $JS.API.%b r %d\r\n%b\r\n' % (subject.encode(), len(text), text)
        say(port, words, b'consumer_create_response')
        loads = Loads(table, arguments, 'NATS, never synced', process)
        put = loads.rate(BEANSTALKD_1, 'put', 'nats', port, 64, 1)
        put += loads.rate(BEANSTALKD_16, 'put', 'nats', port, 64, 16)
        loads.rate(WORKED, 'work', 'nats', port, 8, 64, jobs=put // 64 * 64)


def rabbitmq(table, arguments, folder):
    scripts = pathlib.Path('/usr/lib/rabbitmq/bin')  # those in the PATH change the user
    path = program('rabbitmq-server', scripts)
    if (scripts / 'rabbitmq-server').exists():
        path = str(scripts / 'rabbitmq-server')
    port, names = free_port(), free_port()
    environment = dict(
        os.environ, HOME=str(folder), RABBITMQ_NODENAME='bench@localhost', RABBITMQ_MNESIA_BASE=str(folder / 'data'),
        RABBITMQ_LOG_BASE=str(folder / 'log'), RABBITMQ_NODE_IP_ADDRESS='127.0.0.1', RABBITMQ_NODE_PORT=str(port),
        RABBITMQ_DIST_PORT=str(free_port()), RABBITMQ_CONFIG_FILE=str(folder / 'none'),
        RABBITMQ_ENABLED_PLUGINS_FILE=str(folder / 'plugins'), ERL_EPMD_PORT=str(names), ERL_EPMD_ADDRESS='127.0.0.1',
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}')
    # Its register of names would outlive it.
    with server([program('epmd'), '-port', str(names), '-address', '127.0.0.1'], folder, answers(names), env=environment):
        with server([path], folder, answers(port, b'AMQP\0\0\x09\x01', b'\x01'), env=environment) as process:
            loads = Loads(table, arguments, 'RabbitMQ quorum, synced', process)
            put = loads.rate(BEANSTALKD_1, 'put', 'rabbitmq', port, 64, 1)
            put += loads.rate(BEANSTALKD_16, 'put', 'rabbitmq', port, 64, 16)
            loads.rate(WORKED, 'work', 'rabbitmq', port, 8, 64, jobs=put)


def http_echo(name):
    """What HTTP alone costs: a server that gives the request's body back and keeps nothing."""
    def run(table, arguments, folder):
        path = arguments.bin / 'bench_http_server'
        if not path.exists():
            raise Missing(f'{path} is not built')
        with subprocess.Popen([str(path), '--serve', name], stdout=subprocess.PIPE) as process:
            try:
                port = process.stdout.read(2)
                if len(port) < 2:
                    raise Missing('it does not start')
                loads = Loads(table, arguments, f'{name} echo', process)
                loads.rate(HTTP_PUT, 'put', 'http', int.from_bytes(port, 'little'), 64, 1)
            finally:
                process.kill()
    return run


def say(port, words, expected):
    """Sends `words`, and reads until `expected` has come."""
    with socket.create_connection(('127.0.0.1', port), timeout=10) as connection:
        connection.sendall(words)
        got = b''
        while expected not in got:
            more = connection.recv(65536)
            if not more:
                raise RuntimeError(f'port {port} answered {got[-200:]!r}')
            got += more


SERVERS = {
    'argiope': argiope,
    'beanstalkd, no log': beanstalkd('beanstalkd, no log', None),
    'beanstalkd, synced': beanstalkd('beanstalkd, synced', ['-f0']),
    'Redis': redis,
    'NATS': nats,
    'RabbitMQ': rabbitmq,
    'Beast echo': http_echo('Beast'),
    'node echo': http_echo('node'),
}


def main():
    parser = argparse.ArgumentParser(description='The daemon beside its peers, in one run.')
    parser.add_argument('--bin', type=pathlib.Path, default=HERE.parent / 'build' / 'release' / 'bin', metavar='FOLDER',
                        help='where argiope and bench_load are')
    parser.add_argument('--only', default='', metavar='NAME', help='the servers whose name contains this')
    parser.add_argument('--data', default='/var/tmp', metavar='FOLDER',
                        help="where the temporary folders go: a disk, else syncing costs nothing (%(default)s)")
    parser.add_argument('--seconds', type=float, default=2.5, help='of each load (%(default)s)')
    parser.add_argument('--jobs', type=int, default=30_000, help='of the Python worker (%(default)s)')
    arguments = parser.parse_args()
    # As on an interrupt, so that servers are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    table, unfit, failed = Table(), set(), False
    for _ in range(ROUNDS):
        print_machine(arguments.data)
        for name, run in SERVERS.items():
            if name in unfit or arguments.only.lower() not in name.lower():
                continue
            try:
                with tempfile.TemporaryDirectory(prefix='daemon-peers-', dir=arguments.data) as folder:
                    run(table, arguments, pathlib.Path(folder))
            except Missing as reason:
                unfit.add(name)
                print(f'# {name}: skipped, {reason}', flush=True)
            except (RuntimeError, OSError, subprocess.SubprocessError, KeyError, ValueError) as error:
                unfit.add(name)
                failed = True
                print(f'# {name}: failed, {error}', flush=True)
    table.show()
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
