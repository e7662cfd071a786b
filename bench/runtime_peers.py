"""bench_runtime beside asyncio, uvloop, tokio and Go: the same steps, one thread each, run in turn.

Medians over ROUNDS runs of every program, each of which prints medians of its own. The peers are built in a temporary
folder from Debian's packages, and nothing is downloaded; one that is not installed is left out.
"""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile

from crawl_support import ARGIOPE, installed, report

HERE = pathlib.Path(__file__).parent / 'peers'
ROUNDS = int(os.environ.get('ROUNDS', '3'))
SCALE = float(os.environ.get('SCALE', '1'))
# Debian's own interpreter and compilers before others on the machine: its libraries are for them.
ENVIRONMENT = os.environ | {'PATH': '/usr/bin:' + os.environ['PATH']}


def succeeds(name, command, **options):
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options)
    if done.returncode != 0:
        reason = (done.stderr.strip() or 'no reason given').splitlines()
        print(f'# {name} is left out: {next((line for line in reason if "error" in line.lower()), reason[-1])}')
    return done.returncode == 0


def peers(folder):
    """Name → the command that prints `name value` lines."""
    commands = {}
    # A tenth of the steps, because each takes ten to a hundred times as long. A step costs the same in a longer run,
    # except a timer's: that costs a fifth more, as there is more to sweep.
    asyncio = ['python3', str(HERE / 'runtime.py'), str(SCALE / 10)]
    commands['asyncio'] = asyncio
    if succeeds('uvloop', ['python3', '-c', 'import uvloop'], env=ENVIRONMENT):
        commands['uvloop'] = asyncio + ['uvloop']
    home = ENVIRONMENT | {'HOME': str(folder), 'CARGO_HOME': str(folder / 'cargo'), 'GOCACHE': str(folder / 'go'),
                          'GOPROXY': 'off', 'GOFLAGS': ''}
    if installed('go'):
        program = str(folder / 'runtime-go')
        if succeeds('Go', ['go', 'build', '-o', program, str(HERE / 'runtime.go')], env=home):
            commands['Go'] = [program, str(SCALE)]
    if installed('cargo'):
        source = folder / 'tokio'
        shutil.copytree(HERE / 'tokio', source)
        if succeeds('tokio', ['cargo', 'build', '--release', '--offline', '--quiet'], env=home, cwd=source):
            commands['tokio'] = [str(source / 'target/release/runtime-tokio'), str(SCALE)]
    return commands


def output(command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=ENVIRONMENT).stdout.splitlines()


def main():
    figures = {}  # workload → runtime → one figure a run
    units = {}

    def note(workload, runtime, value):
        figures.setdefault(workload, {}).setdefault(runtime, []).append(float(value))

    with tempfile.TemporaryDirectory() as folder:
        commands = peers(pathlib.Path(folder))
        for _ in range(ROUNDS):
            for line in output([str(pathlib.Path(ARGIOPE).parent / 'bench_runtime'), str(SCALE)]):
                if line.startswith('{'):
                    row = json.loads(line)
                    units[row['workload']] = row['unit']
                    for runtime, value in {'argiope': row['argiope'], **row['peers']}.items():
                        note(row['workload'], runtime, value)
            for runtime, command in commands.items():
                for line in output(command):
                    workload, value = line.rsplit(maxsplit=1)
                    note(workload, runtime, value)
    for workload, unit in units.items():
        medians = {runtime: statistics.median(values) for runtime, values in figures[workload].items()}
        report(workload, unit, medians.pop('argiope'), medians)


if __name__ == '__main__':
    main()
