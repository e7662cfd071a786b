"""What the crawl benchmarks share: measuring whole commands, and printing as bench/report.hpp does."""
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'tests' / 'e2e'))

ARGIOPE = os.path.abspath(os.environ.get('ARGIOPE', 'build/release/bin/argiope'))
ROUNDS = int(os.environ.get('ROUNDS', '5'))


def peak_mb(pid):
    """The most memory the program of a running process has had; None once it has ended. wait4's figure would not do: it
    counts the process before exec, which was this interpreter."""
    try:
        for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines():
            if line.startswith('VmHWM:'):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return None


def measure(command, **options):
    """Seconds, processor seconds and peak MB of one run of a whole command, and what it printed."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **options)
    output = []
    reader = threading.Thread(target=lambda: output.append(process.stdout.read()))
    reader.start()
    mb = 0
    while reader.is_alive():
        mb = peak_mb(process.pid) or mb
        reader.join(0.02)
    process.stdout.close()
    _, _, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - start
    process.returncode = 0
    return {'seconds': seconds, 'cpu': usage.ru_utime + usage.ru_stime, 'mb': mb, 'output': output[0]}


def median(runs, key):
    return statistics.median(run[key] for run in runs)


def report(workload, unit, argiope, peers):
    print(f'{workload:<44} {argiope:>14.2f} {unit:<10}' + ''.join(f'  {name} {value:.2f}' for name, value in peers.items()))
    print(json.dumps({'workload': workload, 'argiope': round(argiope, 4), 'unit': unit,
                      'peers': {name: round(value, 4) for name, value in peers.items()}}))


def compare(workload, pages, runs_by_name):
    """runs_by_name: crawler → runs, each with `pages`. Argiope must be among them."""
    figures = {name: {'pages/s': statistics.median(run['pages'] / run['seconds'] for run in runs),
                      'CPU s': median(runs, 'cpu'), 'MB': median(runs, 'mb')} for name, runs in runs_by_name.items()}
    for unit in ('pages/s', 'CPU s', 'MB'):
        report(f'{workload}, {pages} pages', unit, figures['argiope'][unit],
               {name: figure[unit] for name, figure in figures.items() if name != 'argiope'})


def installed(program):
    if shutil.which(program):
        return True
    print(f'# {program} is not installed: left out')
    return False
