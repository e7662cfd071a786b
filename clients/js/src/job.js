// Job: what a function knows of the job it runs and may say; and what the end of the function is told as.
import { newJob } from "./client.js";
import { Bury, Retry, Snooze } from "./errors.js";
import { fromBase64, frontOf, isBytes, jsonOf, toBase64 } from "./http.js";
import { delayOfEnd, endOf, shown } from "./time.js";

const MOST_ERROR_LENGTH = 4000;
const MOST_MESSAGE_LENGTH = 250;
const MOST_STACK_LENGTH = 2000; // that is looked through for the place: a stack may be any text

export class Job {
  #controller = new AbortController();
  #onProgress;
  // Of the worker.
  run;
  started = false;
  whyCancelled = "";
  told;
  followUps;

  constructor(lease, now, onProgress) {
    this.record = lease.job;
    this.token = lease.token;
    this.attempt = lease.attempt ?? 1;
    this.takenAt = this.renewedAt = now;
    this.leaseMs = lease.lease_ms ?? 60_000;
    this.#onProgress = onProgress;
  }

  get id() {
    return this.record.id;
  }
  get name() {
    return this.record.name ?? "";
  }
  get queue() {
    return this.record.queue;
  }
  get key() {
    return this.record.key ?? "";
  }
  get function() {
    return this.record.function ?? "";
  }
  get payload() {
    return this.record.payload ?? "";
  }
  get payloadBytes() {
    const exact = this.record.payload_base64;
    return exact === undefined ? new TextEncoder().encode(this.payload) : fromBase64(exact);
  }
  json() {
    return JSON.parse(this.payload);
  }

  get signal() {
    return this.#controller.signal;
  }
  get cancelled() {
    return this.#controller.signal.aborted;
  }

  progress(fraction, message = "") {
    if (!(fraction >= 0 && fraction <= 1)) throw new RangeError(`progress ${fraction}: from 0 to 1`);
    this.told = { progress: Number(fraction), message: frontOf(String(message), MOST_MESSAGE_LENGTH) };
    this.#onProgress();
  }

  followUp(queue, payload, options) {
    (this.followUps ??= []).push(newJob(queue, payload, options));
  }

  // When its lease is to be renewed: three times in its length, and once a second while it tells progress.
  get dueAt() {
    const third = this.leaseMs / 3;
    return this.renewedAt + (this.told === undefined ? third : Math.min(third, 1000));
  }

  // "cancel", "lost" or "stop".
  cancel(why) {
    if (this.cancelled) return;
    this.whyCancelled = why;
    this.#controller.abort(new DOMException(why === "lost" ? "the lease was lost" : "the job is to stop", "AbortError"));
  }
}

// The end of a run, as a settlement in JSON; undefined: it was asked to stop, and has nothing to say. `hear` is told what it threw.
export async function endOfRun(job, hear) {
  try {
    return done(job, await job.run(job));
  } catch (error) {
    if (job.cancelled && isAbort(error)) return undefined;
    hear(error);
    return failed(job, error);
  }
}

// What was thrown may be anything, and so may its members.
function isAbort(error) {
  try {
    return error?.name === "AbortError";
  } catch {
    return false;
  }
}

// Settlements, as JSON.

function done(job, result) {
  if (result === undefined && job.followUps === undefined) return `{"token":${job.token},"outcome":"done"}`;
  const settlement = { token: job.token, outcome: "done", follow_ups: job.followUps };
  if (isBytes(result)) settlement.result_base64 = toBase64(result);
  else if (result !== undefined) settlement.result = typeof result === "string" ? result : jsonOf(result, "a result");
  return jsonOf(settlement, "a result");
}

// Of a function that threw. It throws nothing itself: an end that cannot be made is a failed attempt that says why.
function failed(job, error) {
  return endOf(
    () => settled(job.token, error),
    (why) => retried(job.token, why),
  );
}

function settled(token, error) {
  if (error instanceof Snooze) return released(token, delayOfEnd(error.delayMs));
  if (error instanceof Bury) return jsonOf({ token, outcome: "bury", error: wordsOf(error) }, "a Bury");
  if (error instanceof Retry) {
    const delay_ms = error.delayMs === undefined || error.delayMs === null ? undefined : delayOfEnd(error.delayMs);
    return jsonOf({ token, outcome: "retry", error: wordsOf(error), delay_ms, priority: error.priority }, "a Retry");
  }
  return retried(token, describe(error));
}

const wordsOf = (error) => frontOf(String(error.message), MOST_ERROR_LENGTH);

export function retried(token, why) {
  return jsonOf({ token, outcome: "retry", error: frontOf(why, MOST_ERROR_LENGTH) }, "a failure");
}

export function released(token, delayMs) {
  return JSON.stringify({ token, outcome: "release", delay_ms: delayMs || undefined });
}

// Of a run that was asked to stop and has nothing to say.
export function stopped(job) {
  return job.whyCancelled === "cancel" ? JSON.stringify({ token: job.token, outcome: "cancel" }) : released(job.token);
}

// "TypeError: no such address (mail.js:12:5)".
function describe(error) {
  if (!(error instanceof Error)) return `threw ${shown(error)}`;
  const calls = String(error.stack ?? "").slice(String(error.message).length, String(error.message).length + MOST_STACK_LENGTH);
  const place = /([^/\s(]+:\d+:\d+)\)?$/m.exec(calls)?.[1];
  return `${error.name}: ${error.message}${place ? ` (${place})` : ""}`;
}
