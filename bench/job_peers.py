"""The peers of the durable job queue, in one run: beanstalkd, BullMQ on Redis, graphile-worker and pg-boss on PostgreSQL.

    bench/job_peers.py [--jobs N] [--only NAME] [--data FOLDER] [--argiope PATH]

No-op jobs. A run puts all of them, then processes all of them; the two are timed apart, and neither rate is that of both
at once. `put` ends when the last job was acknowledged, with the durability the row names; `processed` when the last one was
acknowledged as done (beanstalkd) or the peer's own record of it is gone or marked done. Clients run beside their server on
the same machine, one process each, tuned as each project's documentation says for throughput. Medians of ROUNDS rounds;
SCALE multiplies the number of jobs.

Servers are started here, on loopback or a Unix socket, with their data in a temporary folder, and stopped at the end. The
npm packages are those of job_peers/package-lock.json, installed into build/job_peers. A peer that is not installed is left
out, with the reason; one that fails makes the exit code 1.
"""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import pwd
import re
import selectors
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
NPM_FOLDER = HERE.parent / 'build' / 'job_peers'
ROUNDS = int(os.environ.get('ROUNDS', '3'))
SCALE = float(os.environ.get('SCALE', '1'))
CLIENTS = 64
PATIENCE = 600  # seconds for one peer's run

Rates = collections.namedtuple('Rates', 'put processed')  # jobs/s
# run(jobs, folder) → Rates, with its server's data in `folder`
Peer = collections.namedtuple('Peer', 'name durability jobs run')


class Missing(Exception):
    """Why a peer is left out."""


# Servers

def program(name, *more_folders):
    path = shutil.which(name, path=os.pathsep.join([os.environ['PATH'], '/usr/sbin', *map(str, more_folders)]))
    if not path:
        raise Missing(f'{name} is not installed')
    return path


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def server(command, folder, is_ready, stop_signal=signal.SIGTERM, **options):
    """Runs a server while the block runs. In a session of its own: an interrupt is for this script, which stops it."""
    log_path = pathlib.Path(folder) / 'server.log'
    with open(log_path, 'wb') as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                   **options)
    try:
        deadline = time.monotonic() + 60
        while not is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                lines = log_path.read_text(errors='replace').strip().splitlines()
                raise RuntimeError(f'{command[0]} did not start: {lines[-1] if lines else "it said nothing"}')
            time.sleep(0.02)
        yield process
    finally:
        process.send_signal(stop_signal)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(port, request=b'', expected=b''):
    """Whether a server takes connections on the port, and answers the request so."""
    def ask():
        try:
            with socket.create_connection(('127.0.0.1', port), timeout=5) as connection:
                connection.sendall(request)
                return not expected or connection.recv(100).startswith(expected)
        except OSError:
            return False
    return ask


# beanstalkd

class Beanstalk:
    """One connection that keeps up to `window` jobs outstanding. `take` answers what it read and sends what is next."""

    def __init__(self, port, window):
        self.socket = socket.create_connection(('127.0.0.1', port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.window = window
        self.rest = b''

    def send(self, commands):
        if commands:
            self.socket.sendall(commands)

    def read(self, pattern):
        """The complete replies that came."""
        data = self.socket.recv(1 << 18)
        if not data:
            raise RuntimeError('beanstalkd closed the connection')
        data = self.rest + data
        replies = []
        end = 0
        for match in pattern.finditer(data):
            if match.start() != end:
                break
            replies.append(match[1])
            end = match.end()
        self.rest = data[end:]
        if not replies and len(self.rest) > 1000:
            raise RuntimeError(f'beanstalkd answered {self.rest[:60]!r}')
        return replies


PUT = b'put 0 0 600 5\r\nhello\r\n'
RESERVE = b'reserve\r\n'
INSERTED = re.compile(rb'INSERTED (\d+)\r\n')
RESERVED_OR_DELETED = re.compile(rb'(?:RESERVED (\d+) 5\r\nhello|DELETED)\r\n')


def pipeline(connections, jobs, start, pattern, answer):
    """Sends `start` for each job, at most a window of them at once on each connection. `answer(replies)` gives how many
    jobs they finished, and what else to send. Seconds until all jobs are done."""
    unsent = jobs
    left = jobs
    with selectors.DefaultSelector() as selector:
        began = time.monotonic()
        for connection in connections:
            count = min(connection.window, unsent)
            unsent -= count
            connection.send(start * count)
            selector.register(connection.socket, selectors.EVENT_READ, connection)
        while left:
            ready = selector.select(60)
            if not ready:
                raise RuntimeError(f'beanstalkd said nothing for a minute, with {left} jobs left')
            for key, _ in ready:
                connection = key.data
                done, commands = answer(connection.read(pattern))
                left -= done
                count = min(done, unsent)
                unsent -= count
                connection.send(commands + start * count)
        return time.monotonic() - began


def after_reserve(replies):
    ids = [job for job in replies if job]
    return len(replies) - len(ids), b''.join([b'delete %b\r\n' % job for job in ids])


def beanstalkd(options, clients, window):
    def run(jobs, folder):
        port = free_port()
        command = [program('beanstalkd'), '-l', '127.0.0.1', '-p', str(port)]
        if options is not None:
            (folder / 'log').mkdir()
            command += ['-b', str(folder / 'log'), *options]
        if os.geteuid() == 0:
            command += ['-u', 'root']  # else it would become a user who can't write there
        with server(command, folder, answers(port, b'list-tube-used\r\n', b'USING')):
            connections = [Beanstalk(port, window) for _ in range(clients)]
            put = pipeline(connections, jobs, PUT, INSERTED, lambda replies: (len(replies), b''))
            processed = pipeline(connections, jobs, RESERVE, RESERVED_OR_DELETED, after_reserve)
            for connection in connections:
                connection.socket.close()
        return Rates(jobs / put, jobs / processed)
    return run


# What runs on Node

def npm_packages():
    """Installs what package-lock.json lists into build/job_peers, unless it is there. The programs go beside it, because
    Node.js looks for packages from where the program is."""
    lock = (HERE / 'job_peers' / 'package-lock.json').read_bytes()
    NPM_FOLDER.mkdir(parents=True, exist_ok=True)
    for source in (HERE / 'job_peers').iterdir():
        shutil.copy(source, NPM_FOLDER)
    mark = NPM_FOLDER / 'node_modules' / '.installed-for'
    if mark.exists() and mark.read_bytes() == lock:
        return
    npm = program('npm')
    print('# installing npm packages into build/job_peers', flush=True)
    done = subprocess.run([npm, 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], cwd=NPM_FOLDER,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        reason = [line for line in done.stdout.splitlines() if 'error' in line] or ['no reason given']
        raise Missing(f'npm could not install its packages: {reason[0]}')
    mark.write_bytes(lock)


def node(name, jobs, address):
    """One program of job_peers/, with the Node.js that package-lock.json brings: Debian's is too old for two peers."""
    bundled = NPM_FOLDER / 'node_modules' / '.bin' / 'node'
    done = subprocess.run([str(bundled) if bundled.exists() else program('node'), f'{name}.mjs', str(jobs), address],
                          cwd=NPM_FOLDER, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode != 0:
        reason = [line for line in done.stderr.splitlines() if 'Error' in line] or done.stderr.splitlines()[-1:]
        raise RuntimeError(f'{name} failed: {" ".join(reason[:1])}')
    seconds = json.loads(done.stdout.splitlines()[-1])
    return Rates(jobs / seconds['put'], jobs / seconds['processed'])


def bullmq(appendfsync):
    def run(jobs, folder):
        redis = program('redis-server')
        npm_packages()
        port = free_port()
        command = [redis, '--bind', '127.0.0.1', '--port', str(port), '--dir', str(folder), '--save', '',
                   '--appendonly', 'yes', '--appendfsync', appendfsync, '--maxmemory-policy', 'noeviction']
        with server(command, folder, answers(port, b'PING\r\n', b'+PONG')):
            return node('bullmq', jobs, str(port))
    return run


POSTGRESQL_SETTINGS = {
    'listen_addresses': '',
    'fsync': 'on',
    'synchronous_commit': 'on',
    'full_page_writes': 'on',
    'shared_buffers': '512MB',
    'max_wal_size': '4GB',
    'max_connections': '50',
}


def on_postgresql(name):
    def run(jobs, folder):
        versions = sorted(pathlib.Path('/usr/lib/postgresql').glob('*/bin'), key=lambda path: float(path.parent.name))
        postgres = program('postgres', *reversed(versions))
        initdb = program('initdb', *reversed(versions))
        npm_packages()
        # PostgreSQL refuses to run as root.
        user = {}
        if os.geteuid() == 0:
            owner = pwd.getpwnam('postgres')
            user = {'user': owner.pw_uid, 'group': owner.pw_gid, 'extra_groups': []}
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        data = folder / 'data'
        subprocess.run([initdb, '-D', str(data), '-U', 'bench', '-A', 'trust', '-E', 'UTF8', '--locale=C'], check=True,
                       stdout=subprocess.DEVNULL, cwd=folder, **user)
        command = [postgres, '-D', str(data), '-k', str(folder)]
        for setting, value in POSTGRESQL_SETTINGS.items():
            command += ['-c', f'{setting}={value}']

        def is_ready():
            status = data / 'postmaster.pid'
            return status.exists() and 'ready' in status.read_text()

        with server(command, folder, is_ready, signal.SIGINT, cwd=folder, **user):
            return node(name, jobs, f'postgresql://bench@{str(folder).replace("/", "%2F")}/postgres')
    return run


BEANSTALKD = [  # clients, the commands each has outstanding
    (f'{CLIENTS} clients', CLIENTS, 16),
    ('1 client', 1, 1024),
]
PEERS = [
    *[Peer(f'beanstalkd, {how}', durability, jobs, beanstalkd(options, clients, window))
      for durability, jobs, options in (
          ('none', 400_000, None),
          ('log, fsync every 50 ms', 200_000, []),
          ('log, fsync each write', 5_000, ['-f', '0']),
      )
      for how, clients, window in BEANSTALKD],
    Peer('BullMQ on Redis', 'AOF, fsync every second', 100_000, bullmq('everysec')),
    Peer('BullMQ on Redis', 'AOF, fsync each write', 50_000, bullmq('always')),
    Peer('graphile-worker on PostgreSQL', 'fsync each commit', 200_000, on_postgresql('graphile-worker')),
    Peer('pg-boss on PostgreSQL', 'fsync each commit', 100_000, on_postgresql('pg-boss')),
]


def argiope_rows(path, jobs):
    """What the program at `path` measured of Argiope itself, as [(name, value, unit)]; nothing without a path.

    It is run as `PATH --jobs N --clients 64`, and prints a line `NAME VALUE UNIT` for each figure. NAME may have spaces.
    It begins with `put, ` or `processed, ` where the figure stands beside the peers', and goes on with the set-up and the
    durability, such as `put, 64 clients, fdatasync 190000 jobs/s`. Lines that begin with # are passed on.
    """
    if not path:
        return []
    done = subprocess.run([path, '--jobs', str(jobs), '--clients', str(CLIENTS)], stdout=subprocess.PIPE, text=True,
                          check=True, timeout=PATIENCE)
    rows = []
    for line in filter(None, done.stdout.splitlines()):
        if line.startswith('#'):
            print(line)
            continue
        name, value, unit = line.rsplit(maxsplit=2)
        rows.append((name, float(value), unit))
    return rows


# The report

def print_machine(folder):
    """How busy the machine is, and what one thread can at most make durable one by one on this disk: a shared disk was seen
    to do 250 and 4,200 a second within minutes. Rounds that differ in it are not to be compared."""
    with tempfile.TemporaryFile(dir=folder) as file:
        count = 0
        began = time.monotonic()
        while time.monotonic() - began < 1:
            file.write(b'x' * 512)
            file.flush()
            os.fdatasync(file.fileno())
            count += 1
        print(f'# round: fdatasync of 512 appended bytes {count / (time.monotonic() - began):.0f} per s, one after the other; '
              f'load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors', flush=True)


def print_table(workload, unit, argiope, peers):
    """argiope: name → value; peers: (name, durability) → value."""
    if not argiope and not peers:
        return
    for name, value in argiope.items():
        print(f'{workload:<12} {value:>14.2f} {unit:<8}  argiope, {name}')
    for (name, durability), value in peers.items():
        print(f'{workload:<12} {value:>14.2f} {unit:<8}  {name}; {durability}')
    print(json.dumps({'workload': f'durable queue, {workload}', 'argiope': {n: round(v, 4) for n, v in argiope.items()},
                      'unit': unit, 'peers': {'; '.join(key): round(value, 4) for key, value in peers.items()}}))


def main():
    parser = argparse.ArgumentParser(description='The peers of the durable job queue, in one run.')
    parser.add_argument('--jobs', type=int, help='of every run; else what takes each peer a few seconds')
    parser.add_argument('--only', default='', metavar='NAME', help='the peers whose name or durability contains this')
    parser.add_argument('--data', default='/var/tmp', metavar='FOLDER',
                        help="where the temporary folders go: a disk, else syncing costs nothing (%(default)s)")
    parser.add_argument('--argiope', metavar='PATH', help='a program that measures Argiope: see argiope_rows')
    arguments = parser.parse_args()
    # As on an interrupt, so that servers are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))

    print('# all jobs are put, then all are processed; the two are timed apart. No-op jobs')
    rates = {}  # (name, durability) → one Rates a round
    unfit = {}  # (name, durability) → why it is left out from now on
    failed = False
    argiope = {}  # (name, unit) → one figure a round
    for _ in range(ROUNDS):
        print_machine(arguments.data)
        for name, value, unit in argiope_rows(arguments.argiope, arguments.jobs or int(200_000 * SCALE)):
            argiope.setdefault((name, unit), []).append(value)
        for peer in PEERS:
            key = (peer.name, peer.durability)
            if key in unfit or arguments.only.lower() not in '; '.join(key).lower():
                continue
            jobs = arguments.jobs or max(1, int(peer.jobs * SCALE))
            try:
                with tempfile.TemporaryDirectory(prefix='job-peers-', dir=arguments.data) as folder:
                    rates.setdefault(key, []).append(peer.run(jobs, pathlib.Path(folder)))
            except Missing as reason:
                unfit[key] = reason
                print(f'# {"; ".join(key)}: skipped, {reason}', flush=True)
            except (RuntimeError, OSError, subprocess.SubprocessError, KeyError, ValueError) as error:
                unfit[key] = error
                failed = True
                print(f'# {"; ".join(key)}: failed, {error}', flush=True)

    def of_argiope(workload):
        return {name.removeprefix(f'{workload}, '): statistics.median(values)
                for (name, _), values in argiope.items() if name.startswith(f'{workload}, ')}

    medians = {key: Rates(*map(statistics.median, zip(*runs))) for key, runs in rates.items() if runs and key not in unfit}
    for workload in Rates._fields:
        print_table(workload, 'jobs/s', of_argiope(workload),
                    {key: getattr(median, workload) for key, median in medians.items()})
    for (name, unit), values in argiope.items():
        if not name.startswith(('put, ', 'processed, ')):
            print_table(name, unit, {name: statistics.median(values)}, {})
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
