// graphile-worker with the settings of worker.graphile.org/docs/performance: 24 jobs at once, a local queue of 500, and
// completions in batches. They differ here in that this is one process.
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import { processAll, putAll, report, server } from './common.mjs';

const logger = new Logger(() => (level, message) => {
  if (level === 'error') console.error(message);
});
const preset = {
  worker: {
    connectionString: server,
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    logger,
  },
};
const utils = await makeWorkerUtils({ preset });
await utils.migrate();

const put = await putAll(
  (count) => utils.addJobs(Array.from({ length: count }, () => ({ identifier: 'noop', payload: {} }))), 1000, 2);

// As autovacuum would have between the two, were they not seconds apart.
const query = (text) => utils.withPgClient((client) => client.query(text));
await query('vacuum analyze graphile_worker._private_jobs');

const [processed, runner] = await processAll(
  (count) => run({ preset, taskList: { noop: async () => count() } }),
  async () => (await query('select from graphile_worker._private_jobs limit 1')).rowCount === 0);
report(put, processed);
await runner.stop();
await utils.release();
