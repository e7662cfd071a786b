// How many no-op jobs a second one worker process does.
// Usage: node bench/noop_worker.mjs [URL] [JOBS]: puts JOBS into the daemon at URL, and works on them. Without a URL, a
// server that does nothing but lease and settle is used (clients/python/bench/fast_daemon.py), in a process of its own.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Client, newJob, Worker } from "../src/index.js";

const jobs = Number(process.argv[3] ?? 100_000);
let url = process.argv[2];
let daemon;
if (url) {
  const client = new Client(url);
  for (let first = 0; first < jobs; first += 1000) await client.putMany(Array(1000).fill(newJob("noop", "x".repeat(100))));
} else {
  const program = fileURLToPath(new URL("../../python/bench/fast_daemon.py", import.meta.url));
  daemon = spawn("python3", [program, String(jobs)], { stdio: ["ignore", "pipe", "inherit"] });
  [url] = await once(createInterface(daemon.stdout), "line");
}
const worker = new Worker(url, { untilEmpty: true });
worker.job("noop", () => {});
const [began, cpu] = [performance.now(), process.cpuUsage()];
await worker.run();
const seconds = (performance.now() - began) / 1000;
const { user, system } = process.cpuUsage(cpu);
console.log(`${Math.round(jobs / seconds)} jobs/s, ${((user + system) / jobs).toFixed(1)} us CPU a job`, worker.counts);
daemon?.kill();
