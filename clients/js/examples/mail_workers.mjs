// A mail queue and three workers. Start it as often as you like, on as many machines; Ctrl-C lets the mails under way end.
//
// node mail_workers.mjs           works, three mails at a time
// node mail_workers.mjs ann bob   puts a mail to each of them first, and ends when all is sent
import { setTimeout } from "node:timers/promises";
import { Client, newJob, Retry, Worker } from "../src/index.js";

const names = process.argv.slice(2);
const client = new Client();
await client.queues.set("mail", { key_concurrency: 1, max_attempts: 5 }); // one mail to a customer at a time
await client.putMany(names.map((name) => newJob("mail", { text: "welcome" }, { key: name })));

const worker = new Worker(undefined, { concurrency: 3, untilEmpty: names.length > 0 });
worker.job("mail", async (job) => {
  const { text } = job.json();
  if (!/^[a-z]+$/i.test(job.key)) throw new Retry(3_600_000, `no such address: ${job.key}`);
  await setTimeout(100); // the mail server
  console.log(`sent ${text} to ${job.key}`);
  return { sent_at: new Date() };
});
await worker.run();
