"""APScheduler 3 (Debian's python3-apscheduler) on the work of bench_schedule, in the same run.

    bench/schedule_peers.py [--memory N] [--sqlite N] [--seconds S] [--argiope PATH]

Interval schedules whose times are spread evenly over the interval, so that 10,000 are due in each second. APScheduler runs
its AsyncIOScheduler with its memory job store, and with SQLAlchemyJobStore on SQLite in a file, both as its documentation
shows them; its jobs call a function that notes how late it is. N is smaller for APScheduler where a run would take too
long; rates and bytes are for each schedule. Each side runs in a process of its own, one after the other.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = '/usr/bin/python3'  # the one that Debian's packages are for


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument('--memory', type=int, default=1_000_000)
    parser.add_argument('--sqlite', type=int, default=100_000)
    parser.add_argument('--peer-memory', type=int, default=100_000)
    parser.add_argument('--peer-sqlite', type=int, default=1_000)
    parser.add_argument('--seconds', type=float, default=10)
    parser.add_argument('--argiope', default=str(HERE.parent / 'build/release/bin/bench_schedule'))
    parser.add_argument('--as-peer', action='store_true', help=argparse.SUPPRESS)
    return parser.parse_args()


# --- APScheduler, in a process of its own

def resident():
    with open('/proc/self/statm') as statm:
        return int(statm.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


def quantile(values, q):
    values = sorted(values)
    return values[int(q * (len(values) - 1))] if values else float('nan')


LATE = []


def note(planned_every, phase):
    now = time.time()
    LATE.append(((now - phase) % planned_every) * 1000)


def nothing():
    pass


def peer(options):
    import asyncio
    import datetime

    from apscheduler.events import EVENT_JOB_SUBMITTED
    from apscheduler.executors.debug import DebugExecutor
    from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
    from apscheduler.schedulers.asyncio import AsyncIOScheduler
    from apscheduler.triggers.date import DateTrigger
    from apscheduler.triggers.interval import IntervalTrigger

    utc = datetime.timezone.utc
    results = {}

    def new(**more):
        # The executor that only calls the function.
        return AsyncIOScheduler(timezone=utc, executors={'default': DebugExecutor()}, **more)

    async def memory():
        count = options.peer_memory
        per_second = 10_000
        interval = count / per_second
        before = resident()
        scheduler = new()
        begin = time.time() + 15 + count / 20_000
        triggers = [IntervalTrigger(seconds=interval, timezone=utc,
                                    start_date=datetime.datetime.fromtimestamp(begin + i / per_second, utc))
                    for i in range(count)]
        scheduler.start(paused=True)
        start = time.perf_counter()
        for i, trigger in enumerate(triggers):
            scheduler.add_job(note, trigger, args=(interval, begin + i / per_second), misfire_grace_time=None,
                              max_instances=1_000_000, id=f'schedule {i}')
        results['memory: add'] = count / (time.perf_counter() - start)
        results['memory: resident'] = (resident() - before) / count
        await asyncio.sleep(max(0, begin - time.time()))
        scheduler.resume()
        await asyncio.sleep(1)
        LATE.clear()
        start = time.perf_counter()
        await asyncio.sleep(options.seconds)
        results['memory: fired meanwhile'] = len(LATE) / (time.perf_counter() - start)
        results['memory: lateness, run and settled, p50'] = quantile(LATE, 0.5)
        results['memory: lateness, run and settled, p99'] = quantile(LATE, 0.99)
        scheduler.shutdown(wait=False)

    async def all_due(name, count, **more):
        scheduler = new(**more)
        when = datetime.datetime.now(utc)
        scheduler.start(paused=True)
        start = time.perf_counter()
        for i in range(count):
            scheduler.add_job(nothing, DateTrigger(when), misfire_grace_time=None, id=f'schedule {i}')
        added = count / (time.perf_counter() - start)
        fired = 0
        done = asyncio.Event()

        def submitted(_):
            nonlocal fired
            fired += 1
            if fired == count:
                done.set()

        scheduler.add_listener(submitted, EVENT_JOB_SUBMITTED)
        start = time.perf_counter()
        scheduler.resume()
        await done.wait()
        results[f'{name}: fire, all due'] = count / (time.perf_counter() - start)
        scheduler.shutdown(wait=False)
        return added

    async def sqlite():
        with tempfile.TemporaryDirectory(dir='/var/tmp') as folder:
            url = f'sqlite:///{folder}/jobs.db'
            results['SQLite: add'] = await all_due('SQLite', options.peer_sqlite,
                                                   jobstores={'default': SQLAlchemyJobStore(url=url)})
            scheduler = new(jobstores={'default': SQLAlchemyJobStore(url=url)})
            trigger = IntervalTrigger(days=1, timezone=utc)
            scheduler.start(paused=True)
            for i in range(options.peer_sqlite):
                scheduler.add_job(nothing, trigger, id=f'schedule {i}')
            scheduler.shutdown(wait=False)
            scheduler = new(jobstores={'default': SQLAlchemyJobStore(url=url)})
            start = time.perf_counter()
            scheduler.start()
            await asyncio.sleep(0)
            results['SQLite: start'] = time.perf_counter() - start
            scheduler.shutdown(wait=False)

    async def everything():
        await memory()
        await all_due('memory', min(options.peer_memory, 20_000))
        await sqlite()

    asyncio.run(everything())
    print(json.dumps(results))


# --- both, side by side

def main():
    options = arguments()
    if options.as_peer:
        peer(options)
        return
    if subprocess.run([PYTHON, '-c', 'import apscheduler, sqlalchemy'], capture_output=True).returncode != 0:
        sys.exit('schedule_peers: python3-apscheduler and python3-sqlalchemy are not installed')
    ours = subprocess.run([options.argiope, '--memory', str(options.memory), '--sqlite', str(options.sqlite),
                           '--seconds', str(options.seconds)], capture_output=True, text=True, check=True).stdout
    theirs = subprocess.run([PYTHON, __file__, '--as-peer', '--peer-memory', str(options.peer_memory),
                             '--peer-sqlite', str(options.peer_sqlite), '--seconds', str(options.seconds)],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    peers = json.loads(theirs.splitlines()[-1])
    print(f'{"":44} {"argiope":>14} {"APScheduler 3":>14}')
    for line in ours.splitlines():
        name, value, unit = line.rsplit(' ', 2)
        other = peers.get(name)
        print(f'{name:44} {float(value):14,.2f} {"-" if other is None else format(other, "14,.2f"):>14} {unit}')
        print(json.dumps({'workload': name, 'argiope': float(value), 'unit': unit,
                          'peers': {} if other is None else {'APScheduler 3.9': other}}))


main()
