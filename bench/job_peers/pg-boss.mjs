// pg-boss: insert, and four workers that fetch batches of 1,000 for as long as those come back full.
import { PgBoss } from 'pg-boss';
import { processAll, putAll, report, server } from './common.mjs';

const boss = new PgBoss({ connectionString: server, max: 10, supervise: false, schedule: false });
boss.on('error', (error) => { throw error; });
await boss.start();
await boss.createQueue('bench');

const put = await putAll((count) => boss.insert('bench', Array.from({ length: count }, () => ({ data: {} }))), 1000, 2);

// As autovacuum would have between the two, were they not seconds apart.
const database = boss.getDb();
await database.executeSql('vacuum analyze');

const [processed] = await processAll(
  (count) => boss.work(
    'bench',
    { batchSize: 1000, localConcurrency: 4, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 },
    async (batch) => count(batch.length)),
  async () => {
    const { rows } = await database.executeSql("select from pgboss.job where state < 'completed' limit 1");
    return rows.length === 0;
  });
report(put, processed);
await boss.stop({ graceful: false });
