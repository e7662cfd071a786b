#!/usr/bin/env python3
"""Runs the tests of a preset with ctest, and says more than it does:

* A test that fails runs once more, alone. If it passes then, the line `flaky: NAME` tells of it, and the run goes on; a flaky test is a
  fault of its own. If it fails again, the run fails. Where more than ten fail, none runs again: that is no chance.
* A run that is ended (SIGTERM, Ctrl-C) names the tests that were running.
* Tests that were left out are named with their reasons.

    tools/run-tests.py PRESET [--build BUILD] [--jobs N] [--record FILE] [-- CTEST OPTIONS…]

BUILD is the preset of the build where it has another name than that of the tests. FILE gets a line `PASSED FAILED` and one for each
flaky test, appended. Exit status: 0 when every test passed, at once or alone; else 1."""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MOST_RUN_AGAIN = 10
START = re.compile(r'^ +Start +(\d+): (.+)$')
END = re.compile(r'^ *\d+/\d+ Test +#(\d+): ')
TOTAL = re.compile(r'% tests passed, (\d+) tests? failed out of (\d+)')


class Ctest:
    """One run of ctest, whose output goes through us."""

    def __init__(self, preset, options):
        self.running = {}
        self.failed = self.total = 0
        self.process = subprocess.Popen(['ctest', '--preset', preset, *options], cwd=ROOT, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, start_new_session=True)

    def wait(self):
        for raw in self.process.stdout:
            self.note(raw.decode(errors='replace').rstrip('\n'))  # first, so that who has read a line finds it noted
            sys.stdout.buffer.write(raw)
            sys.stdout.buffer.flush()
        return self.process.wait()

    def note(self, line):
        if match := START.match(line):
            self.running[match[1]] = match[2]
        elif match := END.match(line):
            self.running.pop(match[1], None)
        elif match := TOTAL.search(line):
            self.failed, self.total = int(match[1]), int(match[2])

    def end(self):
        names = ', '.join(self.running.values()) or 'none'
        print(f'\nThe run was ended. Tests that were running: {names}', flush=True)
        os.killpg(self.process.pid, signal.SIGKILL)


def run_ctest(preset, options):
    ctest = Ctest(preset, options)

    def end(*_):
        ctest.end()
        sys.exit(1)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    return ctest.wait(), ctest


def read_failed(folder):
    """Names of the tests that failed in the last run."""
    try:
        with open(os.path.join(folder, 'LastTestsFailed.log'), encoding='utf-8') as file:
            return [line.strip().split(':', 1)[1] for line in file if ':' in line]
    except FileNotFoundError:
        return []


def passes_alone(preset, name):
    print(f'\n{name} failed and runs once more, alone.', flush=True)
    return run_ctest(preset, ['-R', f'^{re.escape(name)}$'])[0] == 0


def tell_left_out(folder):
    subprocess.run([os.path.join(ROOT, 'tools/left-out.sh'), os.path.join(folder, 'LastTest.log')], check=False)


def record(path, passed, failed, flaky):
    if path:
        with open(path, 'a', encoding='utf-8') as file:
            print(passed, failed, file=file)
            file.writelines(f'flaky: {name}\n' for name in flaky)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('preset')
    parser.add_argument('--build')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--record')
    ours, options = sys.argv[1:], []
    if '--' in ours:
        at = ours.index('--')
        ours, options = ours[:at], ours[at + 1:]
    arguments = parser.parse_args(ours)
    folder = os.path.join(ROOT, 'build', arguments.build or arguments.preset, 'Testing/Temporary')
    shutil.rmtree(folder, ignore_errors=True)
    status, run = run_ctest(arguments.preset, ['-j', str(arguments.jobs), *options])
    tell_left_out(folder)
    failed = read_failed(folder) if status else []
    if status and not failed:  # ctest itself has failed.
        record(arguments.record, run.total - run.failed, max(run.failed, 1), [])
        return 1
    flaky = []
    if len(failed) <= MOST_RUN_AGAIN:
        flaky = [name for name in failed if passes_alone(arguments.preset, name)]
    lost = len(failed) - len(flaky)
    record(arguments.record, run.total - lost, lost, flaky)
    for name in failed:
        print(f'flaky: {name} (failed, and passed alone)' if name in flaky else f'failed: {name}', flush=True)
    return 1 if lost else 0


if __name__ == '__main__':
    sys.exit(main())
