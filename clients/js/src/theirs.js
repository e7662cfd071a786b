// What other queues and schedulers call our options: a program that comes from there is answered with our words.

const ATTEMPTS = "max_attempts, which counts the first one too";
const POLICY = "the queue's retry policy (queues.set)";
const LIMITS = "the queue's limits (queues.set)";
const KEEPING = "keep_done_ms of the queue (queues.set)";
const SCHEDULE = "schedules.add";

// BullMQ, Bee-Queue, Agenda, pg-boss, Celery's clients.
export const OF_A_JOB = {
  args: "payload",
  attempts: ATTEMPTS,
  backoff: POLICY,
  countdown: "delay_ms",
  cron: SCHEDULE,
  data: "payload",
  delay: "delay_ms",
  delayMs: "delay_ms",
  dueAt: "due_at",
  eta: "due_at",
  expireInSeconds: "lease_time_ms",
  expires: "misfire_grace of a schedule, or cancel() the job",
  jobId: "id",
  leaseTimeMs: "lease_time_ms",
  lifo: "priority",
  limiter: LIMITS,
  maxAttempts: ATTEMPTS,
  maxRetries: ATTEMPTS,
  max_retries: ATTEMPTS,
  misfire_grace_time: "misfire_grace of a schedule",
  name: "id",
  parent: "waits_for in the other job, or followUp() in the function",
  removeOnComplete: KEEPING,
  removeOnFail: KEEPING,
  repeat: SCHEDULE,
  retries: ATTEMPTS,
  retryBackoff: POLICY,
  retryDelay: POLICY,
  retryLimit: ATTEMPTS,
  runAt: "due_at",
  run_date: "due_at",
  singletonKey: "unique",
  startAfter: "due_at, or delay_ms",
  timeout: "lease_time_ms",
  ttl: "lease_time_ms",
  waitsFor: "waits_for",
};

const TRIGGER = "the trigger, which comes second";
const ONCE = 'the trigger, which comes second, as in {"type": "at", "time": "2026-12-24T06:00:00Z"}';
const IN_TRIGGER = (name) => `the trigger, as in {"type": "cron", "expression": "30 3 * * *", "${name}": …}`;

// BullMQ, Agenda, node-cron, node-schedule, pg-boss.
export const OF_A_SCHEDULE = {
  args: "payload",
  attempts: ATTEMPTS,
  backoff: POLICY,
  conflict_policy: 'conflict: "replace", "keep" or "fail"',
  countdown: ONCE,
  cron: TRIGGER,
  data: "payload",
  delay: ONCE,
  due_at: ONCE,
  endDate: IN_TRIGGER("end"),
  eta: ONCE,
  executor: "queue",
  every: TRIGGER,
  id: "the name, which comes first",
  jobId: "the name, which comes first",
  limit: "max_runs",
  maxAttempts: ATTEMPTS,
  maxRuns: "max_runs",
  max_jitter: IN_TRIGGER("jitter"),
  max_retries: ATTEMPTS,
  max_running_jobs: "max_instances",
  misfireGrace: "misfire_grace",
  misfire_grace_time: 'misfire_grace: "60s"',
  name: "the name, which comes first",
  pattern: TRIGGER,
  repeat: TRIGGER,
  replaceExisting: 'conflict: "replace"',
  replace_existing: 'conflict: "replace"',
  retryDelay: POLICY,
  retryLimit: ATTEMPTS,
  rule: TRIGGER,
  runAt: ONCE,
  run_date: ONCE,
  start: IN_TRIGGER("start"),
  startDate: IN_TRIGGER("start"),
  timeZone: IN_TRIGGER("zone"),
  timezone: IN_TRIGGER("zone"),
  tz: IN_TRIGGER("zone"),
  zone: IN_TRIGGER("zone"),
};

const OF_KEYS = "key_rate or key_concurrency, with the key of each job";

// BullMQ, Bee-Queue, Agenda, pg-boss, Celery: of a queue's configuration.
export const OF_A_QUEUE = {
  attempts: ATTEMPTS,
  backoff: "retry_first_ms and retry_factor",
  default_retry_delay: "retry_first_ms",
  groupConcurrency: OF_KEYS,
  group: OF_KEYS,
  keepDone: "keep_done_ms",
  leaseTime: "lease_time_ms",
  limiter: "rate, starts a second over all workers",
  lockDuration: "lease_time_ms",
  maxAttempts: ATTEMPTS,
  maxConcurrency: "concurrency",
  maxRetries: ATTEMPTS,
  max_instances: "concurrency",
  max_retries: ATTEMPTS,
  rateLimit: "rate, starts a second over all workers",
  rate_limit: "rate, starts a second over all workers",
  removeOnComplete: "keep_done_ms",
  removeOnFail: "keep_buried_ms",
  retries: ATTEMPTS,
  retryBackoff: "retry_first_ms and retry_factor",
  retryDelay: "retry_first_ms",
  retryLimit: ATTEMPTS,
  timeout: "lease_time_ms",
  visibilityTimeout: "lease_time_ms",
};

// Errors: TypeError, which says what an option of theirs is called here.
export function refuseTheirs(what, options, words) {
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(words, name)) throw new TypeError(`${what} has no option ${JSON.stringify(name)}; use ${words[name]}`);
  }
}

// Errors: TypeError for a function where a name belongs: other queues are given the function itself.
export function refuseFunction(value, named) {
  if (typeof value === "function") throw new TypeError(`that is a function: write the name of ${named}; worker.job("name", run) has the function`);
}
