// Works on the queue `ledger` over HTTP, with the client's Worker.
import { appendFileSync } from "node:fs";
import { Worker } from "../../../clients/js/src/index.js";

const { LIFE, LEDGER } = process.env;
const note = (...words) => appendFileSync(LEDGER, `${process.hrtime.bigint()} ${LIFE} ${words.join(" ")}\n`);

const worker = new Worker(undefined, { concurrency: 8, log: () => {} });
worker.job("ledger", async (job) => {
  note("start", job.id);
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 5));
  note("end", job.id);
  return LIFE;
});
await worker.run();
