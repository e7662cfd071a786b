// Serves orders, as worker.py does and beside it, in another language. Usage: node worker.mjs
import { linkSync, mkdirSync, unlinkSync, writeFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { Worker } from "argiope";

mkdirSync("receipts", { recursive: true });
const worker = new Worker(undefined, { concurrency: 4 });

worker.job("orders", async (job) => {
  const { customer, item } = job.json();
  await setTimeout(50); // the oven
  // The effect, and the proof of it, in one step: the receipt of this job is there whole, or not at all, and only once.
  const [draft, receipt] = [`receipts/.${job.id}-${job.token}`, `receipts/${job.id}`];
  writeFileSync(draft, `${item} for ${customer}\n`);
  try {
    linkSync(draft, receipt);
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
    console.log(`order ${job.id} was served before`);
    return "was served before";
  } finally {
    unlinkSync(draft);
  }
  console.log(`order ${job.id}: ${item} for ${customer}`);
  return "served by worker.mjs";
});

await worker.run(); // until SIGTERM or Ctrl-C: orders in the oven are served first
