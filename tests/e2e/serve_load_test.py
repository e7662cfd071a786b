"""A daemon under mixed load: clients of both protocols that come and go, workers that fail, vanish and are slow, long polls that
are given up, streams of events, lists, commands that the daemon runs, schedules each second, pauses and reloads. Nothing that
was acknowledged is lost and nothing is done twice, what the daemon counts is what its clients count, memory stays flat, and no
descriptor is left when they have gone.

ARGIOPE_LOAD_SECONDS says how long (default 5; 1200 is what is claimed), ARGIOPE_SEED what the clients draw. Each client does a
certain number of its rounds at least, however slow the machine is. Figures are printed."""
import asyncio
import collections
import contextlib
import datetime
import json
import os
import pathlib
import random
import re
import signal
import unittest

from argiope_client import ApiError, AsyncClient, new_job
from beanstalkd_client import put_command
from daemon import Daemons

SECONDS = float(os.environ.get('ARGIOPE_LOAD_SECONDS', 5))
SEED = int(os.environ.get('ARGIOPE_SEED', 20261122))
PATIENCE = 120
MEGABYTE = 1 << 20
LEAST_ROUNDS = 3
# Who changed what, and what repeated changes are answered, is kept up to a bound that days fill and no test of minutes: changes are
# rarer than puts. In seconds.
SELDOM = min(10, SECONDS / 5)
SCHEDULES = ['tick', 'tock']
FILE = '''
[serve]
beanstalkd = "127.0.0.1:0"
new_queue = { keep_done = "2s", keep_cancelled = "2s" }

[[queue]]
name = "mail"
keep_done = "2s"
keep_cancelled = "2s"
lease_time = "5s"
max_lease_expiries = 1000
max_attempts = 1000
retry_first = "50ms"
key_concurrency = 4

[[queue]]
name = "films"
command = ["/bin/sh", "-c", "cat; echo seen >&2"]
workers = 4
keep_done = "1m"

[[queue]]
name = "beans"
keep_done = "2s"

[[queue]]
name = "ticks"
keep_done = "2s"
rate = 1000
burst = 100

[[schedule]]
name = "tick"
trigger = "@every 1s"
coalesce = "all"
most_catch_up = 1000
max_instances = 1000
job = { queue = "ticks", payload = "{name} {planned_at}", fill_in = true }

[[schedule]]
name = "tock"
trigger = "* * * * * *"
coalesce = "all"
most_catch_up = 1000
max_instances = 1000
job = { queue = "ticks", payload = "{name} {planned_at}", fill_in = true }

[[notify]]
name = "ops"
command = ["/bin/sh", "-c", "cat >/dev/null"]
on = ["buried", "expired", "depth"]
depth = 100000
wait = "1s"
interval = "2s"
'''
GONE = (ConnectionError, asyncio.IncompleteReadError)


class Ledger:
    """What was acknowledged as put, and as done. Memory does not grow with the load: what is both is forgotten."""

    def __init__(self):
        self.open = collections.Counter()  # payload: puts less ends
        self.puts, self.ends, self.lost_leases = (collections.Counter() for _ in range(3))  # by queue

    def put(self, queue, name):
        self.puts[queue] += 1
        self._add(name, 1)

    def done(self, queue, name):
        self.ends[queue] += 1
        self._add(name, -1)

    def _add(self, name, number):
        self.open[name] += number
        if self.open[name] == 0:
            del self.open[name]


class Load:
    def __init__(self, test, daemon):
        self.test, self.daemon = test, daemon
        self.chance = random.Random(SEED)
        self.ledger = Ledger()
        self.rounds = collections.Counter()
        self.ticks = collections.Counter()
        self.buried = set()  # that wait for a kick
        self.putting = self.working = True
        self.tasks, self.workers = [], []

    def client(self):
        return AsyncClient(self.daemon.url, retry_for=PATIENCE)

    async def rest(self, longest):
        await asyncio.sleep(self.chance.uniform(0, longest))

    # --- clients that put, look and change, until `putting` ends

    def begin(self):
        for number in range(4):
            self.start(self.put_jobs, f'h{number}')
            self.start(self.put_by_beanstalkd, f'b{number}')
        for number in range(2):
            self.start(self.put_films, f'f{number}')
            self.start(self.give_up_polls, f'p{number}')
            self.start(self.listen, f'l{number}')
        for part in (self.look_around, self.page_through, self.change_queues, self.change_schedules, self.cancel_jobs, self.reload,
                     self.ask_halves):
            self.start(part, part.__name__)
        for number in range(6):
            self.workers.append(asyncio.ensure_future(self.work(f'worker {number}')))
        for number in range(3):
            self.workers.append(asyncio.ensure_future(self.work_by_beanstalkd()))
        self.workers.append(asyncio.ensure_future(self.take_ticks()))
        self.workers.append(asyncio.ensure_future(self.kick_buried()))

    def start(self, part, name):
        self.tasks.append(asyncio.ensure_future(self.repeat(part, name)))

    async def repeat(self, part, name):
        while self.putting or self.rounds[name] < LEAST_ROUNDS:
            await part(name)
            self.rounds[name] += 1

    async def put_jobs(self, name):
        """A client that comes, puts a few batches and single jobs, and leaves."""
        async with self.client() as client:
            for batch in range(8):
                begin = f'{name}-{self.rounds[name]}-{batch}'
                payloads = [f'{begin}-{n} ' + 'x' * self.chance.randrange(400) for n in range(self.chance.randrange(1, 12))]
                jobs = [new_job('mail', text, key=f'k{self.chance.randrange(50)}', priority=self.chance.randrange(3)) for text in payloads]
                if len(jobs) == 1:
                    replies = [await client.put('mail', payloads[0], key='single')]
                else:
                    replies = (await client.put_many(jobs)).replies
                for text, reply in zip(payloads, replies):
                    self.test.assertEqual(reply.outcome, 'added')
                    self.ledger.put('mail', text)
                await self.rest(0.25)

    async def put_by_beanstalkd(self, name):
        connection = await self.beanstalkd()
        await connection.ask('use beans')
        for number in range(20):
            text = f'{name}-{self.rounds[name]}-{number}'
            word, _ = await connection.ask(put_command(text, pri=self.chance.randrange(100), ttr=300))
            self.test.assertEqual(word, 'INSERTED')
            self.ledger.put('beans', text)
            await self.rest(0.08)
        if self.chance.random() < 0.5:  # some take their leave, others are just gone
            connection.send('quit')
        connection.close()

    async def put_films(self, name):
        """Each is run by a command of the daemon, which leaves an output."""
        async with self.client() as client:
            text = f'{name}-{self.rounds[name]} ' + 'é' * self.chance.randrange(3000)
            reply = await client.put('films', text)
            self.ledger.put('films', text)
            job = await self.ended(client, reply.id)
            self.test.assertEqual(job['state'], 'done', job)
            output = await client.jobs.output(reply.id)
            self.test.assertIn(text.encode(), output)
            self.ledger.done('films', text)
        await self.rest(0.8)

    async def ended(self, client, job):
        while True:
            record = await client.jobs.get(job)
            if record['state'] not in ('ready', 'running', 'delayed'):
                return record
            await asyncio.sleep(0.05)

    async def give_up_polls(self, name):
        """Waits for jobs that never come, and leaves before it is told so."""
        async with self.client() as client:
            polls = [asyncio.ensure_future(client.leases.take(['idle'], wait=30, worker=f'{name}-{self.rounds[name] % 100}')) for _ in range(5)]
            await asyncio.wait(polls, timeout=self.chance.uniform(0.05, 0.5))
            for poll in polls:
                poll.cancel()
            await asyncio.wait(polls)
        connection = await self.beanstalkd()
        connection.send('watch idle')
        connection.send('reserve-with-timeout 1000')
        await self.rest(0.5)
        connection.close()

    async def listen(self, name):
        """Follows the events for a while, and takes them up again where it left."""
        last = ''
        for _ in range(2):
            async with self.client() as client:
                stream = client.events(last_event_id=last)
                heard = 0
                async for event in stream:
                    last, heard = event.id, heard + 1
                    if heard >= 60:
                        break
                await stream.aclose()

    async def look_around(self, name):
        async with self.client() as client:
            for ask in (client.counters, client.workers, client.metrics, client.health, client.ready, client.config, client.notify,
                        client.audit_page, client.history, client.queues.list):
                await ask()
                await self.rest(0.1)
            await client.queues.stats('mail')
            await client.history('mail', step=300)
            for schedule in SCHEDULES:
                await client.schedules.history(schedule)
                await client.schedules.explain(schedule)
                await client.schedules.next(schedule)
            await client.simulate(span=60)
            for path in ('/', '/v1/openapi.json'):
                await asyncio.to_thread(self.daemon.ask, 'GET', path)

    async def page_through(self, name):
        async with self.client() as client:
            seen = set()
            async for job in client.jobs.list(queue='mail', limit=100, payloads=True):
                self.test.assertNotIn(job['id'], seen)
                seen.add(job['id'])
                if len(seen) > 2000:
                    break
            for job in list(seen)[:5]:
                with contextlib.suppress(ApiError):  # it may have ended and been forgotten meanwhile
                    await client.jobs.explain(job)
                    await client.jobs.history(job)
            async for _ in client.schedules.list():
                pass
        await self.rest(0.5)

    async def change_queues(self, name):
        """Queues pause and go on, and others come and go."""
        async with self.client() as client:
            await client.queues.pause('mail')
            await self.rest(0.3)
            await client.queues.resume('mail')
            brief = f'brief {self.rounds[name] % 50}'
            await client.queues.set(brief, rate=10, keep_done_ms=100)
            await client.queues.change(brief, weight=3)
            await client.queues.delete(brief)
        await self.rest(SELDOM)

    async def change_schedules(self, name):
        async with self.client() as client:
            brief = f'schedule {self.rounds[name] % 50}'
            await client.schedules.set(brief, {'name': brief, 'trigger': '@every 100ms', 'job': {'queue': 'brief'}})
            await self.rest(0.5)
            await client.schedules.pause(brief)
            await client.schedules.resume(brief)
            await client.schedules.run(brief)
            await client.schedules.delete(brief)
            while True:
                taken = await client.leases.take(['brief'], most=100, worker='brief')
                if not taken.leases:
                    break
                await client.leases.settle([{'token': lease['token'], 'outcome': 'done'} for lease in taken.leases])
        await self.rest(SELDOM)

    async def cancel_jobs(self, name):
        """Puts what it then cancels, moves and erases."""
        async with self.client() as client:
            replies = (await client.put_many([new_job('later', n, delay=1000) for n in range(30)])).replies
            ids = [reply.id for reply in replies]
            await client.jobs.change('set_priority', ids, priority=7)
            await client.jobs.cancel(ids[0])
            await client.jobs.change('cancel', ids[1:10])
            await client.jobs.change('erase', ids[10:])
        await self.rest(SELDOM)

    async def reload(self, name):
        self.daemon.signal(signal.SIGHUP)
        await self.rest(3)

    async def ask_halves(self, name):
        """Begins requests and leaves in their middle."""
        for data in (b'', b'GET /v1/jobs HT', b'POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500000\r\n\r\n' + b'x' * 100_000,
                     b'GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n', b'nonsense\r\n\r\n'):
            _, writer = await asyncio.open_connection('127.0.0.1', self.daemon.port)
            writer.write(data)
            await self.rest(0.2)
            writer.transport.abort()
        connection = await self.beanstalkd()
        connection.send(b'put 0 0 60 50000\r\nhalf')
        await self.rest(0.2)
        connection.close()

    # --- workers, until `working` ends

    async def work(self, name):
        while self.working:
            async with self.client() as client:  # comes anew now and then
                settlements, held = [], {}
                for _ in range(20):
                    taken = await client.leases.take(['mail'], most=16, wait=0.5, worker=name, settle=settlements)
                    self.note(client, taken.settled, held)
                    settlements, held = await self.run_jobs(client, name, taken.leases)
                    if not self.working:
                        break
                if settlements:
                    self.note(client, await client.leases.settle(settlements), held)

    async def run_jobs(self, client, name, leases):
        """Settlements for the jobs, and what there is to note when they have been taken: by token, what was done or buried."""
        settlements, held = [], {}
        if leases and self.chance.random() < 0.02:
            if self.chance.random() < 0.5:
                await client.end_worker(name)
            return settlements, held  # forgotten: their leases run out
        if leases and self.chance.random() < 0.1:
            await client.leases.renew([{'token': lease['token'], 'progress': 0.5, 'message': 'half'} for lease in leases], worker=name)
        for lease in leases:
            settlement, fate = {'token': lease['token'], 'outcome': 'done'}, self.chance.random()
            if fate < 0.05 and self.working:
                settlement.update(outcome='retry', error='no luck ' * 20)
            elif fate < 0.07 and self.working:
                settlement.update(outcome='release', delay_ms=20)
            elif fate < 0.09 and self.working:
                settlement.update(outcome='bury', error='hopeless')
                held[lease['token']] = ('buried', lease['job']['id'])
            else:
                settlement['result'] = 'an output ' * self.chance.randrange(50)
                held[lease['token']] = ('done', lease['job']['payload'])
            settlements.append(settlement)
        await self.rest(0.05)
        return settlements, held

    def note(self, client, replies, held):
        for reply in replies:
            if reply.get('outcome') == 'lease_lost':
                self.ledger.lost_leases['mail'] += 1
                continue
            self.test.assertEqual(reply.get('outcome'), 'ok', reply)
            kind, what = held.get(reply['token'], (None, None))
            if kind == 'done':
                self.ledger.done('mail', what)
            elif kind == 'buried':
                self.buried.add(what)

    async def kick_buried(self):
        async with self.client() as client:
            while self.working or self.buried:
                ids, self.buried = sorted(self.buried), set()
                if ids:
                    replies = await client.jobs.change('kick', ids)
                    self.test.assertEqual([reply.outcome for reply in replies], ['changed'] * len(ids), replies)
                await asyncio.sleep(1)

    async def work_by_beanstalkd(self):
        while self.working:
            connection = await self.beanstalkd()
            await connection.ask('watch beans')
            for _ in range(25):
                reserved = await connection.ask('reserve-with-timeout 0')
                if reserved[0] != 'RESERVED':
                    await asyncio.sleep(0.05)
                    continue
                job, text, fate = reserved[1], reserved[3], self.chance.random()
                if fate < 0.03 and self.working:
                    break  # gone with its job, which others get
                if fate < 0.1:
                    self.test.assertEqual(await connection.ask(f'release {job} 0 0'), ['RELEASED'])
                elif fate < 0.15:
                    self.test.assertEqual(await connection.ask(f'bury {job} 5'), ['BURIED'])
                    self.test.assertEqual(await connection.ask(f'kick-job {job}'), ['KICKED'])
                else:
                    if fate < 0.3:
                        self.test.assertEqual((await connection.ask(f'stats-job {job}'))[0], 'OK')
                        self.test.assertEqual(await connection.ask(f'touch {job}'), ['TOUCHED'])
                    self.test.assertEqual(await connection.ask(f'delete {job}'), ['DELETED'])
                    self.ledger.done('beans', text)
            connection.close()

    async def take_ticks(self):
        async with self.client() as client:
            while self.working:
                taken = await client.leases.take(['ticks'], most=50, wait=0.5, worker='clock')
                for lease in taken.leases:
                    self.ticks[lease['job']['payload']] += 1
                if taken.leases:
                    replies = await client.leases.settle([{'token': lease['token'], 'outcome': 'done'} for lease in taken.leases])
                    self.ledger.lost_leases['ticks'] += sum(reply['outcome'] != 'ok' for reply in replies)

    async def beanstalkd(self):
        return await BeanstalkdConnection.open(self.daemon.beanstalkd_port)


class BeanstalkdConnection:
    @classmethod
    async def open(cls, port):
        self = cls()
        self.reader, self.writer = await asyncio.open_connection('127.0.0.1', port)
        return self

    def send(self, command):
        self.writer.write(command if isinstance(command, bytes) else f'{command}\r\n'.encode())

    async def ask(self, command):
        """The words of the answer; the last one is its data where it has some."""
        self.send(command)
        words = (await self.reader.readuntil(b'\r\n')).decode().split()
        if words[0] in ('RESERVED', 'FOUND', 'OK'):
            words.append((await self.reader.readexactly(int(words[-1]) + 2))[:-2].decode())
        return words

    def close(self):
        self.writer.transport.abort()


class ServeLoad(Daemons):
    def test_memory_stays_flat_and_nothing_is_lost(self):
        asyncio.run(self.load())

    async def load(self):
        self.watched = daemon = await asyncio.to_thread(self.start_daemon)
        self.samples = []
        self.mixed = load = Load(self, daemon)
        await self.mixed.put_films('first')  # what the first command opens for good
        await self.fill_cache(load)
        at_first = self.open_files()
        load.begin()
        await self.watch()
        await self.wind_up()
        await self.until(lambda: self.open_files() == at_first, 'all descriptors were closed')
        self.tell()
        self.check_memory()

    async def fill_cache(self, load):
        """Jobs for next week, more than the store's cache holds (32 MB): it would follow the file until then, in which each
        request with an Idempotency-Key is remembered for a day."""
        next_week = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=7)).isoformat()
        async with load.client() as client:
            for batch in range(40 if SECONDS >= 600 else 1):
                await client.put_many([new_job('archive', f'{batch} {number} ' + 'z' * 1900, due_at=next_week) for number in range(500)])

    def start_daemon(self):
        daemon = self.daemon(self.file(FILE))
        daemon.beanstalkd_port = int(daemon.wait_for(r'beanstalkd at 127\.0\.0\.1:(\d+)')[1])
        daemon.url = f'http://127.0.0.1:{daemon.port}'
        return daemon

    def memory(self):
        status = pathlib.Path(f'/proc/{self.watched.process.pid}/status').read_text()
        return 1024 * int(re.search(r'VmRSS:\s+(\d+) kB', status)[1])

    def open_files(self):
        """What each descriptor of the daemon is."""
        folder = pathlib.Path(f'/proc/{self.watched.process.pid}/fd')
        files = []
        for entry in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                files.append(re.sub(r'\d{3,}', 'N', os.readlink(entry)))
        return sorted(files)

    async def watch(self):
        """Until the time is over: how much memory and how many descriptors the daemon has, each second."""
        loop = asyncio.get_running_loop()
        end = loop.time() + SECONDS
        while loop.time() < end:
            self.samples.append((self.memory(), len(self.open_files()), os.path.getsize(self.folder / 'jobs.db')))
            self.fail_with_clients()
            await asyncio.sleep(min(1, SECONDS / 20))

    def fail_with_clients(self):
        for task in self.mixed.tasks + self.mixed.workers:
            if task.done():
                task.result()
        self.assertIsNone(self.watched.process.poll(), ''.join(self.watched.log[-50:]))
        del self.watched.log[:-200]

    async def until(self, condition, what, patience=PATIENCE):
        for _ in range(patience * 20):
            if condition():
                return
            await asyncio.sleep(0.05)
        self.fail(f'it did not come to it that {what}')

    async def wind_up(self):
        load = self.mixed
        load.putting = False
        await asyncio.wait_for(asyncio.gather(*load.tasks), PATIENCE)
        async with load.client() as client:
            await self.pause_schedules(client)
            await self.drained(client)
            load.working = False
            await asyncio.wait_for(asyncio.gather(*load.workers), PATIENCE)
            await self.drained(client, ('mail', 'beans', 'films', 'ticks'))
            self.check_ledger({queue: await client.queues.stats(queue) for queue in ('mail', 'beans', 'films', 'ticks')})
            for schedule in SCHEDULES:
                self.check_ticks(schedule, await client.schedules.get(schedule))

    async def pause_schedules(self, client):
        """The file names them, so the file has to say it. It is replaced at once: an earlier signal may have the daemon read it now."""
        paused = self.file(FILE.replace('[[schedule]]\n', '[[schedule]]\npaused = true\n'), 'paused.toml')
        paused.replace(self.folder / 'argiope.toml')
        self.watched.signal(signal.SIGHUP)

        async def are_paused():
            while not all([(await client.schedules.get(schedule))['paused'] for schedule in SCHEDULES]):
                await asyncio.sleep(0.05)
        await asyncio.wait_for(are_paused(), PATIENCE)

    async def drained(self, client, queues=('mail', 'beans', 'films')):
        for _ in range(PATIENCE * 10):
            counts = [(await client.queues.get(queue))['counts'] for queue in queues]
            left = sum(count[state] for count in counts for state in ('ready', 'delayed', 'running', 'buried'))
            if left == 0:
                return
            await asyncio.sleep(0.1)
        self.fail(f'left over: {dict(zip(queues, counts))}')

    def check_ledger(self, stats):
        ledger = self.mixed.ledger
        self.assertEqual(ledger.open, {}, 'acknowledged and not done (1), or done twice (-1)')
        for queue in ('mail', 'beans', 'films'):
            totals = stats[queue]['totals']
            self.assertEqual(totals['added'], ledger.puts[queue], queue)
            if queue != 'beans':  # what its clients delete is no end that is counted as done
                self.assertEqual(totals['done'], ledger.ends[queue], queue)
        self.assertEqual(stats['ticks']['totals']['added'], len(self.mixed.ticks))

    def check_ticks(self, schedule, status):
        """Each planned time has had its run."""
        mine = {payload: count for payload, count in self.mixed.ticks.items() if payload.startswith(schedule + ' ')}
        times = sorted(round(datetime.datetime.fromisoformat(payload.split(' ')[1].replace('Z', '+00:00')).timestamp()) for payload in mine)
        self.assertTrue(times)
        self.assertEqual(times, list(range(times[0], times[-1] + 1)), f'{schedule}: a planned time without a run')
        twice = sum(mine.values()) - len(mine)
        self.assertLessEqual(twice, self.mixed.ledger.lost_leases['ticks'], f'{schedule}: run twice')

    def quarter(self, number, what=0):
        """The mean of that part of the time: of the memory, or of the store's file (2)."""
        part = self.samples[len(self.samples) * (number - 1) // 4:len(self.samples) * number // 4]
        return sum(sample[what] for sample in part) / len(part)

    def tell(self):
        load = self.mixed
        print(f'{SECONDS:.0f} s: jobs put {dict(load.ledger.puts)}, leases lost {dict(load.ledger.lost_leases)}, '
              f'planned times {len(load.ticks)}; rounds of clients {dict(load.rounds)}', flush=True)
        print("memory (MB) at first {:.1f}, mean of each quarter {} (of the store's file {}), at last {:.1f}; most descriptors {}, now {}".format(
            self.samples[0][0] / MEGABYTE, [round(self.quarter(n) / MEGABYTE, 1) for n in (1, 2, 3, 4)],
            [round(self.quarter(n, 2) / MEGABYTE, 1) for n in (1, 2, 3, 4)],
            self.memory() / MEGABYTE, max(sample[1] for sample in self.samples), len(self.open_files())), flush=True)

    def check_memory(self):
        self.assertLess(max(sample[0] for sample in self.samples), 300 * MEGABYTE)
        if SECONDS < 600:
            return
        # What is kept for a while has filled up in the first quarter.
        self.assertLess(self.quarter(4), 1.05 * self.quarter(2) + 2 * MEGABYTE)


if __name__ == '__main__':
    unittest.main()
