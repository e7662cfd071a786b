"""How many no-op jobs a second one worker process does: functions on threads, and as tasks.

python3 bench/noop_worker.py [URL] [JOBS]: puts JOBS into the daemon at URL, and works on them. Without a URL, a server that
does nothing but lease and settle is used (fast_daemon.py), in a process of its own.
"""
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from argiope import Client, Worker, new_job  # noqa: E402


def measure(name, url, jobs, is_async, concurrency):
    worker = Worker(url, queues=["noop"], until_empty=True, concurrency=concurrency)
    if is_async:

        @worker.job("noop")
        async def noop(job):
            pass

    else:

        @worker.job("noop")
        def noop(job):
            pass

    started, cpu = time.perf_counter(), time.process_time()
    worker.run()
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    print(f"{name:24} {jobs / seconds:10,.0f} jobs/s  {cpu / jobs * 1e6:5.1f} us CPU a job  {worker.counts}", flush=True)


def fake(jobs):
    daemon = subprocess.Popen(
        [sys.executable, pathlib.Path(__file__).with_name("fast_daemon.py"), str(jobs)], stdout=subprocess.PIPE, text=True
    )
    return daemon, daemon.stdout.readline().strip()


def put(url, jobs):
    with Client(url) as client:
        for first in range(0, jobs, 1000):
            client.put_many([new_job("noop", "x" * 100)] * min(1000, jobs - first))


def main(url=None, jobs=100_000):
    for name, is_async, concurrency in [("threads, 1", False, 1), ("threads, 16", False, 16), ("tasks, 16", True, 16)]:
        daemon = None
        if url is None:
            daemon, at = fake(jobs)
        else:
            put(url, jobs)
            at = url
        measure(name, at, jobs, is_async, concurrency)
        if daemon is not None:
            daemon.wait()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] else None, int(sys.argv[2]) if len(sys.argv) > 2 else 100_000)
