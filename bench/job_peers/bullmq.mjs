// BullMQ: addBulk, and one worker of 100 jobs at once (docs.bullmq.io recommends 100 to 300 for jobs that only wait).
import { Queue, Worker } from 'bullmq';
import { processAll, putAll, report, server } from './common.mjs';

const connection = { host: '127.0.0.1', port: Number(server), maxRetriesPerRequest: null };
const queue = new Queue('bench', { connection });
await queue.waitUntilReady();

const forgotten = { removeOnComplete: true, removeOnFail: true };
const put = await putAll(
  (count) => queue.addBulk(Array.from({ length: count }, () => ({ name: 'noop', data: {}, opts: forgotten }))), 500, 2);

const [processed, worker] = await processAll(
  async (count) => {
    const worker = new Worker('bench', async () => {}, { connection, concurrency: 100 });
    worker.on('completed', () => count());
    worker.on('error', (error) => { throw error; });
    return worker;
  },
  async () => Object.values(await queue.getJobCounts('active', 'wait', 'paused', 'delayed', 'failed')).every((n) => n === 0));
report(put, processed);
await worker.close();
await queue.close();
