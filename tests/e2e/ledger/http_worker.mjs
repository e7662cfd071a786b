// Works on the queue `ledger` over HTTP, with the client's Worker.
import { appendFileSync } from "node:fs";
import { Client, Worker } from "../../../clients/js/src/index.js";

const { LIFE, LEDGER } = process.env;
const note = (...words) => appendFileSync(LEDGER, `${process.hrtime.bigint()} ${LIFE} ${words.join(" ")}\n`);

// When each job that it has was asked for, at the latest: its lease does not begin before. What is asked again, because its answer was
// lost, has the key that it had.
const askedAt = new Map(); // token -> nanoseconds
const keys = new Map();
const client = new Client(undefined, { retryForMs: 0 }); // as a worker makes it
const { leases } = client;
const take = leases.take.bind(leases);
leases.take = async (queues, options) => {
  const { idempotencyKey: key } = options;
  const at = keys.get(key) ?? process.hrtime.bigint();
  if (key) keys.set(key, at);
  const answer = await take(queues, options);
  keys.delete(key);
  for (const { token } of answer.leases) askedAt.set(token, at);
  return answer;
};

const worker = new Worker(undefined, { client, concurrency: 8, log: () => {} });
worker.job("ledger", async (job) => {
  note("start", job.id, askedAt.get(job.token));
  askedAt.delete(job.token);
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 5));
  note("end", job.id);
  return LIFE;
});
await worker.run();
