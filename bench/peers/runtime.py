"""The steps of bench/runtime.cpp on asyncio; prints `name value` lines.  runtime.py [SCALE] [uvloop]"""
import asyncio
import os
import statistics
import struct
import sys
import threading
import time

ROUNDS = 5
SCALE = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
PARKED = 100_000
OTHER_TIMERS = 100_000


def scaled(count):
    return max(1, int(count * SCALE))


async def time_each(operations, run):
    """Nanoseconds for each of `operations` that `run` performs."""
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        await run()
        rounds.append((time.perf_counter_ns() - start) / operations)
    return statistics.median(rounds)


async def yield_often(times):
    for _ in range(times):
        await asyncio.sleep(0)


async def measure_yield(tasks):
    times = scaled(4_000_000) // tasks

    async def run():
        running = [asyncio.create_task(yield_often(times)) for _ in range(tasks)]
        for task in running:
            await task

    return await time_each(times * tasks, run)


async def give(value):
    return value


async def measure_spawn():
    times = scaled(1_000_000)

    async def run():
        for _ in range(times):
            await asyncio.create_task(give(1))

    return await time_each(times, run)


async def measure_nested():
    times = scaled(1_000_000)

    async def run():
        for _ in range(times):
            await give(1)

    return await time_each(times, run)


async def produce(queue, items):
    for i in range(items):
        await queue.put(i)


async def consume(queue, items):
    for _ in range(items):
        await queue.get()
        queue.task_done()


async def measure_queue(maxsize, pairs):
    items = scaled(1_000_000) // pairs

    async def run():
        queue = asyncio.Queue(maxsize)
        tasks = []
        for _ in range(pairs):
            tasks.append(asyncio.create_task(produce(queue, items)))
            tasks.append(asyncio.create_task(consume(queue, items)))
        for task in tasks:
            await task
        await queue.join()

    return await time_each(items * pairs, run)


def spread(i):
    return 60 + i * 7919 % 120_000 / 1000


def nothing():
    pass


async def measure_timers():
    times = scaled(1_000_000)
    loop = asyncio.get_running_loop()
    others = [loop.call_later(spread(i), nothing) for i in range(OTHER_TIMERS)]

    async def run():
        for i in range(times):
            loop.call_later(spread(i), nothing).cancel()
            if i % 1000 == 0:  # a loop sweeps out what was cancelled only when it turns
                await asyncio.sleep(0)

    each = await time_each(times, run)
    for timer in others:
        timer.cancel()
    return each


def resident_bytes():
    with open('/proc/self/statm') as statm:
        return int(statm.read().split()[1]) * os.sysconf('SC_PAGESIZE')


async def park(event):
    await event.wait()


async def measure_memory():
    event = asyncio.Event()
    before = resident_bytes()
    tasks = [asyncio.create_task(park(event)) for _ in range(PARKED)]
    await asyncio.sleep(0)
    after = resident_bytes()
    event.set()
    for task in tasks:
        await task
    return (after - before) / PARKED


STEP = 0.001
EVENTS = 100


def spread_over_steps(i):
    return (3_000 + i * 379 % 2_000) / 1e6


async def wait_beside(hear):
    """How long (ms) what comes from outside waits beside two tasks with steps of 1 ms: the worst but for a twentieth."""
    # The interpreter's lock is handed over every 5 ms by default: that would be measured instead.
    sys.setswitchinterval(0.0001)
    ended = False
    waits = []

    async def compute():
        while not ended:
            until = time.perf_counter() + STEP
            while time.perf_counter() < until:
                pass
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(compute()) for _ in range(2)]
    await hear(waits)
    ended = True
    for task in tasks:
        await task
    return sorted(waits)[len(waits) * 95 // 100]


async def hear_timers(waits):
    for i in range(EVENTS):
        due = time.perf_counter() + spread_over_steps(i)
        await asyncio.sleep(spread_over_steps(i))
        waits.append((time.perf_counter() - due) * 1000)


async def hear_from(waits, tell):
    """`tell` is called with the time, on a thread beside."""
    def work():
        for i in range(EVENTS):
            time.sleep(spread_over_steps(i))
            tell(time.perf_counter())

    thread = threading.Thread(target=work)
    thread.start()
    while len(waits) < EVENTS:
        await asyncio.sleep(0.01)
    thread.join()


async def hear_io(waits):
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)

    def on_readable():
        written, = struct.unpack('d', os.read(read_end, 8))
        waits.append((time.perf_counter() - written) * 1000)

    loop = asyncio.get_running_loop()
    loop.add_reader(read_end, on_readable)
    await hear_from(waits, lambda now: os.write(write_end, struct.pack('d', now)))
    loop.remove_reader(read_end)
    os.close(read_end)
    os.close(write_end)


async def hear_threads(waits):
    loop = asyncio.get_running_loop()

    def called(at):
        waits.append((time.perf_counter() - at) * 1000)

    await hear_from(waits, lambda now: loop.call_soon_threadsafe(called, now))


async def main():
    steps = {
        'memory of a parked task, 100,000 parked': measure_memory(),
        'yield, 1 task': measure_yield(1),
        'yield, 1000 tasks': measure_yield(1000),
        'spawn and join': measure_spawn(),
        'await a nested coroutine': measure_nested(),
        'Queue(1024) 1 to 1, with task_done': measure_queue(1024, 1),
        'Queue(1) 1 to 1': measure_queue(1, 1),
        'Queue(1024) 100 to 100': measure_queue(1024, 100),
        'timers arm and cancel, 100,000 armed': measure_timers(),
        'I/O beside two tasks with steps of 1 ms': wait_beside(hear_io),
        'a timer beside two tasks with steps of 1 ms': wait_beside(hear_timers),
        'a thread beside two tasks with steps of 1 ms': wait_beside(hear_threads),
    }
    for name, step in steps.items():
        print(name, f'{await step:.2f}', flush=True)


if 'uvloop' in sys.argv[2:]:
    import uvloop
    uvloop.install()
asyncio.run(main())
