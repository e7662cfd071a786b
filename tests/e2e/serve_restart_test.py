"""Restarts of the daemon under load, its sockets inherited: 64 clients put and 16 lease, by both protocols. No connection is
refused, no acknowledged job lost, and what a worker has leased over HTTP it renews and settles after the restart as if there
had been none. A beanstalkd client's connection ends, and what it has reserved is ready again. ARGIOPE_RESTARTS says how
often; the long variant: 20."""
import asyncio
import collections
import os
import random
import unittest

from argiope_client import AsyncClient, Unreachable
from beanstalkd_client import put_command
from daemon import Daemons

RESTARTS = int(os.environ.get('ARGIOPE_RESTARTS', 3))
SEED = int(os.environ.get('ARGIOPE_SEED', 20261122))
HTTP_PUTTERS, FRESH_PUTTERS, BEANSTALKD_PUTTERS = 36, 12, 16  # those in the middle connect anew for each put
HTTP_LEASERS, BEANSTALKD_LEASERS = 12, 4
PATIENCE = 60


class WatchedClient(AsyncClient):
    """Keeps what happened to its connections."""

    def __init__(self, load):
        super().__init__(load.url, retry_for=PATIENCE)
        self.load = load

    async def _connect(self, loop):
        try:
            return await super()._connect(loop)
        except Unreachable as error:
            self.load.refused.append(error)
            raise

    async def _exchange(self, request, timeout):
        try:
            return await super()._exchange(request, timeout)
        except Unreachable as error:
            self.load.counts['HTTP requests cut off'] += error.sent
            raise


class BeanstalkdConnection:
    """Errors: ConnectionError, IncompleteReadError."""

    @classmethod
    async def open(cls, load):
        self = cls()
        try:
            self.reader, self.writer = await asyncio.open_connection('127.0.0.1', load.beanstalkd_port)
        except OSError as error:
            load.refused.append(error)
            raise
        return self

    async def ask(self, command):
        """The words of the answer. A body is read, and left out."""
        self.writer.write(command if isinstance(command, bytes) else f'{command}\r\n'.encode())
        words = (await self.reader.readuntil(b'\r\n')).decode().split()
        if words[0] == 'RESERVED':
            await self.reader.readexactly(int(words[2]) + 2)
        return words

    def close(self):
        self.writer.close()


CUT = (ConnectionError, asyncio.IncompleteReadError)


class Load:
    """The clients, and what they were told."""

    def __init__(self, url, beanstalkd_port, seed):
        self.url, self.beanstalkd_port, self.chance = url, beanstalkd_port, random.Random(seed)
        self.refused, self.lost = [], []
        self.acknowledged = {}  # id: payload
        self.counts = collections.Counter()
        self.no_more_puts = self.no_more_leases = False
        self.let_go = asyncio.Event()  # while it is not set, nobody settles
        self.let_go.set()
        # leaser: tokens, or ids where it is a beanstalkd client; those whose settling has begun are not held.
        self.held = {}

    def begin(self):
        putters = [self.put_over_http(f'h{n}') for n in range(HTTP_PUTTERS)]
        putters += [self.put_over_http(f'f{n}', fresh=True) for n in range(FRESH_PUTTERS)]
        putters += [self.put_by_beanstalkd(f'b{n}') for n in range(BEANSTALKD_PUTTERS)]
        leasers = [self.lease_over_http(f'worker {n}') for n in range(HTTP_LEASERS)]
        leasers += [self.lease_by_beanstalkd(f'reserver {n}') for n in range(BEANSTALKD_LEASERS)]
        self.putters = [asyncio.ensure_future(one) for one in putters]
        self.leasers = [asyncio.ensure_future(one) for one in leasers]

    async def rest(self):
        await asyncio.sleep(self.chance.uniform(0, 0.06))

    async def put_over_http(self, name, fresh=False):
        client, number = WatchedClient(self), 0
        while not self.no_more_puts:
            number += 1
            reply = await client.put('ledger', f'{name}-{number}')
            self.acknowledged[reply.id] = f'{name}-{number}'
            if fresh:
                await client.close()
                client = WatchedClient(self)
            await self.rest()
        await client.close()

    async def put_by_beanstalkd(self, name):
        connection, number = None, 0
        while not self.no_more_puts:
            number += 1
            try:
                if connection is None:
                    connection = await BeanstalkdConnection.open(self)
                    await connection.ask('use ledger')
                word, job = await connection.ask(put_command(f'{name}-{number}'))
                assert word == 'INSERTED', word
                self.acknowledged[int(job)] = f'{name}-{number}'
            except CUT:
                self.counts['beanstalkd puts cut off'] += 1
                if connection is not None:
                    connection.close()
                connection = None
            await self.rest()
        if connection is not None:
            connection.close()

    async def lease_over_http(self, name):
        client = WatchedClient(self)
        while not self.no_more_leases:
            try:
                taken = await client.leases.take(['ledger'], most=32, wait=1, worker=name)
            except Unreachable:
                continue
            self.held[name] = tokens = [lease['token'] for lease in taken.leases]
            if not tokens:
                continue
            await self.rest()
            while not self.let_go.is_set():
                self.note_lost(name, await client.leases.renew(tokens, worker=name))
                await asyncio.sleep(0.1)
            self.held[name] = []
            settled = await client.leases.settle([{'token': token, 'outcome': 'done'} for token in tokens])
            self.note_lost(name, settled)
            self.counts['settled over HTTP'] += len(settled)
        await client.close()

    def note_lost(self, name, replies):
        self.lost += [(name, reply) for reply in replies if reply.get('lease_lost') or reply.get('outcome', 'ok') != 'ok']

    async def lease_by_beanstalkd(self, name):
        while not self.no_more_leases:
            connection = await BeanstalkdConnection.open(self)
            try:
                await connection.ask('watch ledger')
                while not self.no_more_leases:
                    await self.reserve_and_delete(name, connection)
            except CUT:
                self.counts['beanstalkd connections lost'] += 1
                await self.let_go.wait()
            connection.close()

    async def reserve_and_delete(self, name, connection):
        reserved = [await connection.ask('reserve-with-timeout 0') for _ in range(4)]
        self.held[name] = ids = [int(words[1]) for words in reserved if words[0] == 'RESERVED']
        await self.rest()
        if ids:
            await self.let_go.wait()
        self.held[name] = []
        for job in ids:
            if await connection.ask(f'delete {job}') != ['DELETED']:
                self.lost.append((name, job))
            self.counts['deleted by beanstalkd'] += 1


class ServeRestart(Daemons):
    def test_restarts_refuse_nobody_and_lose_neither_jobs_nor_leases(self):
        asyncio.run(self.restart_under_load())

    async def restart_under_load(self):
        self.sockets = {'http': self.listening(), 'beanstalkd': self.listening()}
        self.daemon = await asyncio.to_thread(self.supervised, self.sockets)
        port = self.daemon.port
        # Longer than the test: no lease runs out, and one that was lost is seen.
        await asyncio.to_thread(self.daemon.good, 'PUT', '/v1/queues/ledger',
                                {'lease_time_ms': 3_600_000, 'keep_done_ms': 86_400_000})
        self.load = load = Load(f'http://127.0.0.1:{port}', self.sockets['beanstalkd'].getsockname()[1], SEED)
        load.begin()
        for restart in range(RESTARTS):
            await self.progress()
            await self.restart(hold=restart % 2 == 0)
        await self.progress()
        await self.wind_up()
        print(f'{RESTARTS} restarts, {len(load.acknowledged)} jobs acknowledged, {dict(load.counts)}', flush=True)
        self.assertEqual(load.refused, [])
        self.assertEqual(load.lost, [])

    async def progress(self):
        before = len(self.load.acknowledged)
        await self.until(lambda: len(self.load.acknowledged) > before + 300, 'puts went on')

    async def restart(self, hold):
        """`hold`: each worker has leases meanwhile; else it comes in the middle of whatever they do."""
        load = self.load
        if hold:
            load.let_go.clear()
            await self.until(lambda: sum(map(bool, load.held.values())) == HTTP_LEASERS + BEANSTALKD_LEASERS, 'all held leases')
        self.daemon.process.terminate()
        await asyncio.to_thread(self.daemon.ended)
        self.daemon = await asyncio.to_thread(self.supervised, self.sockets)
        if hold:
            held = [tokens for name, tokens in load.held.items() if name.startswith('worker')]
            load.counts['leases held over a restart'] += sum(map(len, held))
            await asyncio.to_thread(self.look_at_reserved)
            load.let_go.set()

    def look_at_reserved(self):
        """What beanstalkd clients had reserved is ready again, and was not blamed."""
        for name, held in self.load.held.items():
            for job in held if name.startswith('reserver') else []:
                record = self.daemon.good('GET', f'/v1/jobs/{job}')
                self.assertEqual((record['state'], record['attempts'], record['expiries']), ('ready', 0, 0), record)
                self.load.counts['reserved jobs given back'] += 1

    async def wind_up(self):
        load = self.load
        load.no_more_puts = True
        await asyncio.wait_for(asyncio.gather(*load.putters), PATIENCE)

        def counts():
            return self.daemon.good('GET', '/v1/queues/ledger')['counts']
        for _ in range(600):
            now = await asyncio.to_thread(counts)
            if now['ready'] + now['delayed'] + now['running'] == 0:
                break
            await asyncio.sleep(0.1)
        left = [now['ready'], now['delayed'], now['running'], now['buried']]
        self.assertEqual(left, [0, 0, 0, 0], 'left over, or leased by nobody')
        load.no_more_leases = True
        await asyncio.wait_for(asyncio.gather(*load.leasers), PATIENCE)
        async with AsyncClient(load.url) as client:
            done = {job['id']: job['payload'] async for job in client.jobs.list(queue='ledger', state='done', payloads=True)}
        lost = {job: name for job, name in load.acknowledged.items() if done.get(job) != name}
        self.assertEqual(lost, {}, 'acknowledged, and lost')
        self.assertEqual(len(set(done.values())), len(done), 'put twice')

    async def until(self, condition, what):
        for _ in range(PATIENCE * 100):
            for task in self.load.putters + self.load.leasers:
                if task.done():
                    task.result()
            if condition():
                return
            await asyncio.sleep(0.01)
        self.fail(f'it did not come to it that {what}')


if __name__ == '__main__':
    unittest.main()
