"""Instructions a step of the runtime takes, counted by callgrind: the same on every run and however busy the machine.

Two runs of different length are counted; the difference leaves out starting and ending.
"""
import os
import pathlib
import re
import subprocess

from crawl_support import ARGIOPE, installed

SHORT, LONG = 20_000, 120_000
STEPS = {
    'yield': 'yield, 1 task',
    'spawn': 'spawn and join',
    'await': 'await a nested coroutine',
    'put': 'Queue put, room in it',
    'get': 'Queue get, items in it',
    'pass': 'Queue(1) 1 to 1: put, get and task_done',
    'timer': 'timer arm and cancel',
}


def instructions(step, times):
    program = str(pathlib.Path(ARGIOPE).parent / 'bench_runtime')
    done = subprocess.run(['valgrind', '--tool=callgrind', f'--callgrind-out-file={os.devnull}',
                           program, 'only', step, str(times)], stderr=subprocess.PIPE, text=True, check=True)
    return int(re.search(r'Collected : (\d+)', done.stderr)[1])


if __name__ == '__main__' and installed('valgrind'):
    for step, name in STEPS.items():
        each = (instructions(step, LONG) - instructions(step, SHORT)) / (LONG - SHORT)
        print(f'{name:<44} {each:>14.1f} instructions', flush=True)
