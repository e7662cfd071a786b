"""A server that only leases no-op jobs and takes their settlements, as fast as Python can: answers made beforehand.

python3 bench/fast_daemon.py [JOBS]: prints its URL, hands out JOBS jobs, then says how many were settled, and ends.
"""
import asyncio
import json
import re
import sys

RECORD = {
    "id": 1,
    "queue": "noop",
    "state": "running",
    "key": "",
    "priority": 0,
    "due_at": "2026-11-22T08:00:00Z",
    "payload": "x" * 100,
    "attempts": 1,
    "max_attempts": 0,
    "expiries": 0,
    "pending": 0,
    "if_failed": "cancel",
    "created_at": "2026-11-22T08:00:00Z",
    "ended_at": None,
    "result": "",
    "error": "",
    "worker": "w",
    "lease_until": "2026-11-22T08:01:00Z",
}
TEXT = json.dumps(RECORD, separators=(",", ":"))


class Daemon(asyncio.Protocol):
    left = settled = token = 0
    ended = None

    def connection_made(self, transport):
        self.transport, self.buffer = transport, b""

    def data_received(self, data):
        self.buffer += data
        while True:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            length = int(re.search(rb"(?i)content-length: (\d+)", self.buffer[:end]).group(1))
            if len(self.buffer) < end + 4 + length:
                return
            head, body = self.buffer[:end], self.buffer[end + 4 : end + 4 + length]
            self.buffer = self.buffer[end + 4 + length :]
            self.answer(head, body)

    def answer(self, head, body):
        tokens = re.findall(rb'\{"token":(\d+),"outcome"', body)
        Daemon.settled += len(tokens)
        replies = "[" + ",".join(f'{{"token":{int(token)},"outcome":"ok"}}' for token in tokens) + "]"
        if b"/leases/settle" in head:
            text = f'{{"replies":{replies}}}'
        else:
            most = min(int(re.search(rb'"most":(\d+)', body).group(1)), Daemon.left)
            first = Daemon.token + 1
            Daemon.token, Daemon.left = Daemon.token + most, Daemon.left - most
            leases = ",".join(
                f'{{"job":{TEXT},"token":{token},"attempt":1,"until":"2026-11-22T08:01:00Z","lease_ms":60000}}'
                for token in range(first, first + most)
            )
            text = f'{{"leases":[{leases}],"settled":{replies}}}'
        self.transport.write(
            f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()
        )
        if Daemon.left == 0 and Daemon.settled >= Daemon.token:
            Daemon.ended.set()


async def main(jobs):
    Daemon.left, Daemon.ended = jobs, asyncio.Event()
    server = await asyncio.get_running_loop().create_server(Daemon, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await Daemon.ended.wait()
    print(f"settled {Daemon.settled}", flush=True)
    await asyncio.sleep(0.5)


asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
