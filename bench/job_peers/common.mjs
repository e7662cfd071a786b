// What the three programs share. Each is run as `node NAME.mjs JOBS SERVER`, puts all jobs, processes all jobs, and prints
// the seconds of either as one JSON line.
import { setTimeout as sleep } from 'node:timers/promises';

export const jobs = Number(process.argv[2]);
export const server = process.argv[3];

const seconds = () => performance.now() / 1000;

// Puts jobs in batches, `lanes` at once. put(count) → promise, kept when those are acknowledged.
export async function putAll(put, batch, lanes) {
  const began = seconds();
  let left = jobs;
  const lane = async () => {
    while (left > 0) {
      const count = Math.min(batch, left);
      left -= count;
      await put(count);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return seconds() - began;
}

// start() starts workers, which call `count` for each job done. Then waits until nothing is left in the server's records.
export async function processAll(start, nothingLeft) {
  let done = 0;
  let resolveAll;
  const all = new Promise((resolve) => (resolveAll = resolve));
  const count = (n = 1) => {
    done += n;
    if (done >= jobs) resolveAll();
  };
  const began = seconds();
  const running = await start(count);
  await all;
  while (!(await nothingLeft())) await sleep(2);
  const took = seconds() - began;
  if (done !== jobs) throw new Error(`${done} jobs were processed, ${jobs} were put`);
  return [took, running];
}

export function report(put, processed) {
  console.log(JSON.stringify({ put, processed }));
}
