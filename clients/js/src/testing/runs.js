// Runs of handlers without a daemon. A run goes through the code of the worker (job.js), which makes its end as the settlement that the
// daemon would be sent; here that is only read.
import { newJob } from "../client.js";
import { fromBase64, jsonOf } from "../http.js";
import { endOfRun, Run, runOf, stopped } from "../job.js";

// The daemon's words for how a run ends, and those for what has become of the run.
const OUTCOMES = { done: "done", retry: "retry", bury: "buried", release: "snoozed", cancel: "cancelled" };

const progressOf = new WeakMap(); // of a job that was made here

export function makeJob(queue, payload, { attempt = 1, record = {}, ...options } = {}) {
  const given = JSON.parse(jsonOf(newJob(queue, payload, options), "a job"));
  const { payload: text = "", payload_base64, ...members } = given;
  const told = { id: 1, state: "running", key: "", priority: 0, attempts: attempt, ...members };
  if (typeof told.id === "string") Object.assign(told, { id: 1, name: told.id });
  const run = new Run({ job: { ...told, ...payloadOf(text, payload_base64), ...record }, token: 1, attempt }, 0, () => {
    progressOf.get(run.job).push(run.told);
  });
  progressOf.set(run.job, []);
  return run.job;
}

// Its text, as the daemon tells it, and the exact bytes where they are no text.
function payloadOf(value, base64) {
  if (base64 === undefined) return { payload: typeof value === "string" ? value : JSON.stringify(value) };
  const exact = fromBase64(base64);
  try {
    return { payload: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(exact) };
  } catch {
    return { payload: new TextDecoder("utf-8", { ignoreBOM: true }).decode(exact), payload_base64: base64 };
  }
}

export function cancelJob(job) {
  runOf(job).cancel("cancel");
}

export async function runHandler(handler, job) {
  let exception;
  const run = runOf(job);
  run.function = handler;
  run.started = true;
  const end = await endOfRun(run, (error) => (exception = error));
  const told = JSON.parse(end ?? stopped(run));
  return {
    outcome: OUTCOMES[told.outcome],
    result: told.result_base64 === undefined ? told.result : fromBase64(told.result_base64),
    followUps: told.follow_ups ?? [],
    delayMs: told.outcome === "release" ? (told.delay_ms ?? 0) : told.delay_ms,
    priority: told.priority,
    error: told.error ?? "",
    exception,
    progress: progressOf.get(job) ?? [],
  };
}
