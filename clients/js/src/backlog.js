// What is left of a worker's queues, for one that ends when nothing is. The rule is that of `argiope job work --until-empty`
// (docs/jobs-command.md).
import { sendBy } from "./client.js";
import { path, query } from "./http.js";

const MOST_DELAYED_LOOKED_AT = 10_000;
const PAGE = 1000;

// {isLeft}: jobs run, are ready, or are retries that are due within `lingerMs`; {dueLater, nextDue}: where none is left, how many wait
// for a time of their own, and the first of these times. Queues that are paused have nothing but what runs.
// Errors: of the client, and what `signal` was aborted with.
export async function lookForBacklog(client, queues, lingerMs, signal) {
  const later = [];
  for (const name of queues) {
    const queue = await queueOf(client, name, signal);
    const delayed = queue.hasDelayed && !queue.isLeft ? await delayedIn(client, name, signal) : [];
    const isAwaited = ({ due, isRetry }) => due <= queue.now || (isRetry && due <= queue.now + lingerMs);
    if (queue.isLeft || delayed.some(isAwaited)) return { isLeft: true, dueLater: 0 };
    later.push(...delayed.map(({ due }) => due));
  }
  return { isLeft: false, dueLater: later.length, nextDue: later.reduce((first, due) => Math.min(first, due), Infinity) };
}

// One that is not there has nothing: nothing has been put into it yet.
async function queueOf(client, name, signal) {
  try {
    return await sendBy(client, "GET", path("queues", name), { read: readQueue, signal });
  } catch (error) {
    if (error.status === 404) return { isLeft: false, hasDelayed: false };
    throw error;
  }
}

// `now`: by the daemon's clock, where its answer says so.
async function readQueue(response) {
  const { counts, config } = await response.json();
  const date = response.headers.get("date");
  const isPaused = config.paused || config.rate === 0;
  const isLeft = counts.running > 0 || (counts.ready > 0 && !isPaused);
  return { isLeft, hasDelayed: counts.delayed > 0 && !isPaused, now: date ? Date.parse(date) : Date.now() };
}

// The delayed jobs of a queue that wait for their time, some thousands at most.
async function delayedIn(client, queue, signal) {
  const found = [];
  let after;
  do {
    const answer = await sendBy(client, "GET", "/v1/jobs" + query({ queue, state: "delayed", after, limit: PAGE }), { read: readDelayed, signal });
    found.push(...answer.delayed);
    after = answer.next;
  } while (after !== undefined && found.length < MOST_DELAYED_LOOKED_AT);
  return found;
}

async function readDelayed(response) {
  const { jobs, next } = await response.json();
  const delayed = jobs.filter((job) => job.pending === 0).map((job) => ({ due: Date.parse(job.due_at), isRetry: job.attempts > 0 }));
  return { delayed, next: next ?? undefined };
}
