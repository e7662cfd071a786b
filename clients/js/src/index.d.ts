// The contract of Argiope's client. Spans are milliseconds in names that end in Ms or _ms; times are Dates, or strings as RFC
// 3339. Any call may throw Unreachable, and ApiError for what the daemon refuses ("unauthorized", "forbidden", and 503 among
// them).

export class ArgiopeError extends Error {}

// No answer came: the connection was refused or lost, or the answer took too long.
export class Unreachable extends ArgiopeError {
  // Whether the daemon may have got the request and done what it asks.
  readonly sent: boolean;
}

// The daemon refused.
export class ApiError extends ArgiopeError {
  // The word of docs/http-api.md: "invalid_input", "not_found", "wrong_state", "conflict", "queue_full" …
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  // Where in the request: a JSON pointer, or the name of a parameter of the query or of a header.
  readonly errors: { pointer?: string; parameter?: string; header?: string; detail: string }[];
  readonly requestId?: string;
  // When to try again, of a full queue and of a daemon that is about to stop.
  readonly retryAfterMs?: number;
}

// Thrown by a job's function: it failed and is tried again after `delayMs`, or, without one, when the queue's policy says. The
// last attempt buries it in either case.
export class Retry extends Error {
  constructor(delayMs?: number | bigint, why?: string, options?: { priority?: number });
}

// Thrown by a job's function: it is hopeless. The job stays, buried, until it is kicked or erased.
export class Bury extends Error {}

// Thrown by a job's function: not a failure; run it again after `delayMs`. This run counts as no attempt.
export class Snooze extends Error {
  constructor(delayMs: number | bigint);
}

// By id, or by name.
export type JobRef = number | string;
// Milliseconds since 1970, as of Date.now(), are a time, too; so is an object that has them in itself: Temporal's Instant and
// ZonedDateTime, and dates of other packages, whose valueOf() gives them.
export type When = Date | string | number | bigint | { epochMilliseconds: number } | { valueOf(): number };
export type JobState = "delayed" | "ready" | "running" | "done" | "cancelled" | "buried";

// A string is its text, bytes are those bytes, anything else is kept as JSON, which Job.json() reads; undefined: none.
export type Payload = unknown;

// The members of a new job, of which all but the queue may be missing (docs/jobs.md).
export interface JobOptions {
  id?: JobRef; // your own number or name: a second put of it changes nothing
  key?: string; // what it is aimed at: limits also hold per key
  unique?: string; // the only one of that name in its queue that has not ended
  unique_policy?: "keep" | "replace" | "merge";
  run_again?: boolean;
  priority?: number; // higher first
  due_at?: When;
  delay_ms?: number; // instead of due_at
  function?: string; // what a worker is to call; default: what it has for the queue
  max_attempts?: number;
  lease_time_ms?: number;
  waits_for?: JobRef[]; // jobs that have to end first
  if_failed?: "cancel" | "run"; // when one of those fails
  batch?: JobRef; // the completion that waits for this job, too
}
export interface NewJob extends JobOptions {
  queue: string;
  payload?: unknown;
  payload_base64?: string;
}

// A new job as the API wants it, for putMany() and completions.
export function newJob(queue: string, payload?: Payload, options?: JobOptions): NewJob;

// A job as the API tells it.
export interface JobRecord {
  id: number;
  name?: string;
  queue: string;
  state: JobState;
  key: string;
  priority: number;
  function?: string;
  payload: string;
  payload_base64?: string;
  attempts: number;
  result: string;
  result_base64?: string;
  error: string;
  worker: string;
  [member: string]: unknown;
}

export interface PutReply {
  id: number;
  outcome: "added" | "kept" | "changed" | "run_again" | "cancelled";
}
// One of many: what became of it, or why it was refused.
export type Reply<R> = R | { id?: number; error: ApiError };
export interface PutReplies {
  replies: Reply<PutReply>[]; // in the order of the jobs
  completion?: Reply<PutReply>;
}
export interface PutOptions {
  // A put whose answer is lost is sent again with the same key and never puts twice. One of your own is kept for 24 hours; "":
  // none, and then it is not sent again.
  idempotencyKey?: string;
}
export interface ChangeReply {
  id: number;
  outcome: "changed" | "asked";
}
export interface JobFilter {
  queue?: string;
  state?: JobState;
  key?: string;
  word?: string; // only jobs that have it in payload, result, name, key, function, unique name, worker or error
  order?: "oldest" | "newest"; // by id: oldest first, unless told
  payloads?: boolean; // whole payloads and results; page() has none unless it is true, list() has them unless it is false
  beginnings?: boolean; // the first 200 bytes of payloads instead
  own?: boolean; // false: without the daemon's own queues
  limit?: number; // of a page: 100 unless told, 1,000 at most
}
export interface Lease {
  job: JobRecord;
  token: number;
  attempt: number; // from 1
  until: string;
  lease_ms: number;
}
export interface Settlement {
  token: number;
  outcome: "done" | "retry" | "bury" | "cancel" | "release";
  result?: unknown;
  result_base64?: string;
  error?: string;
  delay_ms?: number;
  priority?: number;
  follow_ups?: NewJob[];
}
export interface Settled {
  token: number;
  outcome?: "ok" | "lease_lost";
  follow_ups?: { id: number; outcome: string }[];
  error?: { type: string; detail: string };
}
export interface Renewed {
  token: number;
  until?: string;
  lease_ms?: number;
  cancel?: boolean; // stop the job
  lease_lost?: true;
}
export interface Event {
  // "job", "schedule", "queue", "worker", "counters"; "reset": events were missed, so look anew.
  kind: string;
  data: any;
  id: string;
}
type Answer = Record<string, any>;

export interface ClientOptions {
  token?: string; // default: ARGIOPE_TOKEN
  timeoutMs?: number; // for an answer, besides what the daemon was asked to wait: more than 0; 30,000
  // How long a call is sent again when the daemon cannot be reached or answers 503; default: as timeoutMs, 30,000 at most. Sent again are
  // calls that did not reach it, and those that do nothing twice: reads, PUT, DELETE, and what has an idempotency key, as all POSTs have
  // that put or change something, but for queues.kick and schedules.run. A Retry-After of the daemon is heeded, up to a minute.
  retryForMs?: number;
  // Is told, once, that the daemon is away while calls are sent again, that it answers again, and that a schedule names no zone. Default:
  // console.warn.
  log?: (message: string) => void;
  fetch?: typeof fetch;
}

// Asks a daemon. `url`: default ARGIOPE_URL, or http://127.0.0.1:7733. TypeError for what is no address of http or https, and for a token
// or key that no request can have in its head.
export class Client {
  constructor(url?: string, options?: ClientOptions);
  readonly url: string;

  // Puts a job; resolves when it is saved. Errors: invalid_input, queue_full, too_large, idempotency_mismatch.
  // TypeError for a payload, delay or time that makes no request: a delay that is none, and, in all calls, a value that JSON cannot say and
  // would lose in silence (NaN, Map, Promise, functions, bigints …); it names the value. A member that is undefined is left out.
  put(queue: string, payload?: Payload, options?: JobOptions & PutOptions): Promise<PutReply>;
  // Up to 10,000 in one request. `atomic`: all or none; the first that is refused is thrown. `completion`: a job that waits for
  // all the others. TypeError for one that makes no request: it is named, as "jobs[3]", and none is put.
  putMany(jobs: Iterable<NewJob>, options?: PutOptions & { atomic?: boolean; completion?: NewJob }): Promise<PutReplies>;
  // Jobs that are JSON already, one a line: a text, or lines.
  putLines(lines: string | Iterable<string>, options?: PutOptions): Promise<PutReplies>;

  readonly jobs: {
    get(job: JobRef): Promise<JobRecord>;
    // All of them, with payloads and results unless told otherwise, read page by page as they are iterated.
    list(filter?: JobFilter): AsyncGenerator<JobRecord>;
    // Payloads and results are empty unless `payloads` is true; a page then ends when it has some megabytes of them. With `word` it may have
    // few jobs, or none, and a next.
    page(filter?: JobFilter & { after?: number | string }): Promise<{ jobs: JobRecord[]; next: number | string | null }>;
    // Cancels what waits; a job that runs is asked to stop ("asked"). Errors: not_found, wrong_state.
    cancel(job: JobRef, why?: string): Promise<ChangeReply>;
    // Makes a buried or delayed job ready now. Errors: not_found, wrong_state.
    kick(job: JobRef): Promise<ChangeReply>;
    // Forgets it, whatever it was. Errors: not_found; wrong_state while it runs.
    erase(job: JobRef): Promise<void>;
    setPriority(job: JobRef, priority: number): Promise<ChangeReply>;
    setDue(job: JobRef, when: { dueAt?: When; delayMs?: number }): Promise<ChangeReply>;
    // Up to 10,000.
    change(
      change: "cancel" | "kick" | "erase" | "set_priority" | "set_due",
      ids: number[],
      options?: { why?: string; priority?: number; dueAt?: When },
    ): Promise<Reply<ChangeReply>[]>;
    // Why it does not run now: `reason`, `until`, `ahead`, `sentence` …
    explain(job: JobRef): Promise<Answer>;
    // Its last 20 attempts that did not end well.
    history(job: JobRef): Promise<Answer[]>;
    // Its result as it is. Errors: not_found, also where there is none.
    output(job: JobRef): Promise<Uint8Array>;
  };

  readonly queues: {
    // By name: of very many the first 1,000, or those behind the name `after`.
    list(page?: { after?: string; limit?: number }): Promise<Answer[]>;
    get(queue: string): Promise<Answer>;
    // Gives it this configuration (docs/configuration.md, `[[queue]]`), as the setup of a program does once. What is left out gets its
    // default, also where the queue is there: one that a put made keeps its done jobs for a day, and keeps none after a set() without
    // `keep_done`. change() leaves what it does not name. Makes it if need be.
    set(queue: string, config: Answer): Promise<Answer>;
    // Changes these members, and leaves the others. Errors: not_found, locked.
    change(queue: string, config: Answer): Promise<Answer>;
    // Errors: not_found; wrong_state where jobs are in it.
    delete(queue: string): Promise<void>;
    pause(queue: string, until?: When): Promise<Answer>;
    resume(queue: string): Promise<Answer>;
    // Makes up to `limit` (1,000) buried jobs ready, or, where there are none, delayed ones; gives how many. When its
    // answer is lost, it is not sent again: that could be a second kick.
    kick(queue: string, limit?: number): Promise<number>;
    stats(queue: string): Promise<Answer>;
  };

  // For programs that are no Worker.
  readonly leases: {
    // Leases up to `most` (1) jobs, and settles others in the same request. While there is none, it waits up to `waitMs`
    // (60,000 at most). Aborting gives back what it would have got. One that settles nothing has a key: where its answer is lost
    // it is sent again, and given the same leases. `cancel`: tokens of the worker's jobs that are to stop.
    take(
      queues: string | string[],
      options?: {
        most?: number;
        waitMs?: number;
        worker?: string;
        settle?: Settlement[];
        signal?: AbortSignal;
        idempotencyKey?: string;
      },
    ): Promise<{ leases: Lease[]; settled: Settled[]; cancel?: number[] }>;
    // Makes leases last their full time from now. Tokens, or {token, progress, message}.
    renew(leases: (number | { token: number; progress?: number; message?: string })[], worker?: string): Promise<Renewed[]>;
    // Says how up to 10,000 runs ended. Sending one again does nothing twice.
    settle(settlements: Settlement[]): Promise<Settled[]>;
  };

  readonly schedules: {
    list(): AsyncGenerator<Answer>;
    page(filter?: { after?: number | string; limit?: number }): Promise<{ schedules: Answer[]; next: number | string | null }>;
    // {name, trigger, job …} (docs/schedules.md). `conflict`: what to do where there is one of that name: "fail", "keep" it, or "replace"
    // it, as a program does that declares its schedules at each start. Times of day are UTC where the trigger names no zone, which the
    // client's `log` is told; {type: "cron", expression: "30 3 * * *", zone: "Europe/Berlin"} or "TZ=Europe/Berlin 30 3 * * *" names one.
    // Errors: invalid_input, conflict; TypeError for both forms at once.
    add(schedule: Answer, options?: { conflict?: "fail" | "replace" | "keep" }): Promise<Answer>;
    // By its name, a trigger (docs/cron.md) and its jobs' queue, here or in `job`: add("nightly", "30 3 * * *", { queue: "mail" }). Other
    // members are the schedule's. Errors: invalid_input, conflict; TypeError without a trigger or queue, and for options of other schedulers.
    add(
      name: string,
      trigger: string | Answer,
      options: {
        queue?: string;
        payload?: Payload;
        function?: string;
        key?: string;
        priority?: number;
        max_attempts?: number;
        conflict?: "fail" | "replace" | "keep";
        [member: string]: unknown;
      },
    ): Promise<Answer>;
    get(schedule: JobRef): Promise<Answer>;
    // Adds or replaces it.
    set(name: string, schedule: Answer): Promise<Answer>;
    // Changes these members; a new trigger begins now.
    change(schedule: JobRef, members: Answer): Promise<Answer>;
    // Its jobs stay.
    delete(schedule: JobRef): Promise<void>;
    pause(schedule: JobRef, by?: string): Promise<Answer>;
    resume(schedule: JobRef, from?: "now" | "where_it_was"): Promise<Answer>;
    // Puts its job now; gives the job's id. When its answer is lost, it is not sent again: that could be a second run.
    run(schedule: JobRef): Promise<number>;
    history(schedule: JobRef, limit?: number): Promise<Answer[]>;
    explain(schedule: JobRef): Promise<Answer>;
    output(schedule: JobRef): Promise<Uint8Array>;
    next(schedule: JobRef, count?: number): Promise<Answer[]>;
    nextTimes(trigger: unknown, count?: number, options?: { after?: When }): Promise<Answer[]>;
  };

  // Crawls that go on (docs/projects.md).
  readonly projects: {
    // With what they are doing and their counts.
    list(): Promise<Answer[]>;
    // With its definition, history of visits, rounds, alarms, rules, coverage of fields and sinks.
    get(project: string): Promise<Answer>;
    // Makes it, or a new version: the members of its file, or {source: TOML, script, note}. Errors: invalid_input, conflict, locked.
    set(project: string, definition: Answer): Promise<Answer>;
    // What is beside its file: status, rate, burst (null: as the file says), group.
    change(project: string, members: Answer): Promise<Answer>;
    // For 24 hours it can be restored.
    delete(project: string): Promise<void>;
    restore(project: string): Promise<Answer>;
    // Begins a round; while one is under way, its starts belong to that.
    start(project: string): Promise<Answer>;
    // Ends a pause after failures.
    resume(project: string): Promise<Answer>;
    // Newest first; version() has the texts.
    versions(project: string, limit?: number): Promise<Answer[]>;
    version(project: string, number: number): Promise<Answer>;
    // Makes a new version that is as an old one was.
    rollBack(project: string, number: number): Promise<Answer>;
    pages(
      project: string,
      // `filter`: text in the URL or name.
      filter?: { state?: string; rule?: string; filter?: string; after?: number; limit?: number },
    ): Promise<{ pages: Answer[]; next: number | null }>;
    // One page, by its name, with all that is known of it.
    page(project: string, page: string): Promise<Answer>;
    // A page ("A page" in docs/processors.md), or {pages: […]}; what becomes of each.
    ask(project: string, page: Answer): Promise<Answer>;
    // Anything that JSON has, to its script. `url`: what its result is called. Gives the name of its page. Errors: invalid_input where the
    // script takes no messages.
    sendMessage(project: string, message: unknown, options?: { url?: string }): Promise<string>;
    // Visits a page as a project would, stored or a draft in TOML, and gives what came of it; nothing is stored. That it cannot be
    // fetched or read is in its error and failure. `page`, as ask() has it, takes the place of url, rule and data; `response` is the id of an
    // answer's response, which is read again, and nothing is fetched. Errors: invalid_input, not_found (it is kept no more), too_many.
    tryPage(page: {
      url?: string;
      page?: Answer;
      response?: string | null;
      project?: string;
      source?: string;
      script?: string | null;
      rule?: string | null;
      data?: unknown;
      save?: unknown;
    }): Promise<Answer>;
    // Why a page is not visited now, and when it will be.
    explain(project: string, page: string): Promise<Answer>;
    // Visits that ended lately, newest first.
    recent(project: string): Promise<Answer[]>;
    // `page`: of the page of that name.
    results(
      project: string,
      filter?: { rule?: string; page?: string; after?: string; limit?: number },
    ): Promise<{ results: Answer[]; columns: string[]; next: string | null }>;
    // All results as one text; "array": one JSON array.
    export(project: string, format?: "jsonl" | "csv" | "array", filter?: { rule?: string }): Promise<Uint8Array>;
    // What became of results, in its order; with order "newest" what came last is first, and `before` takes its next.
    feed(
      project: string,
      filter?: { after?: number; order?: "oldest" | "newest"; before?: number; limit?: number },
    ): Promise<{ feed: Answer[]; next: number | null }>;
  };

  // What happens, as it happens, until the iteration is left or `signal` aborted. A stream that breaks is taken up where it
  // broke, for as long as it takes. Errors: refusals; an unreachable daemon is waited for.
  events(options?: {
    kinds?: string | string[];
    queue?: string;
    lastEventId?: string;
    signal?: AbortSignal;
  }): AsyncGenerator<Event>;
  counters(): Promise<Answer>;
  workers(): Promise<Answer[]>;
  workersPage(filter?: { after?: string; limit?: number }): Promise<Answer>;
  // Ends a worker's leases now, as if it had died; gives how many.
  endWorker(worker: string): Promise<number>;
  // Hosts that projects have pages at: what each is doing, and why. `filter`: a piece of the site. May be fewer than `limit`, or none,
  // and still a next.
  hosts(filter?: {
    filter?: string;
    doing?: "ready" | "busy" | "waiting" | "resting";
    project?: string;
    after?: number;
    limit?: number;
  }): Promise<{ hosts: Answer[]; next: number | null }>;
  // Why nothing is asked of a host now, and when something will be. `site`: "https://shop.example", or a URL of it.
  explainHost(site: string): Promise<Answer>;
  config(): Promise<Answer>;
  notify(): Promise<Answer[]>;
  testNotify(name: string): Promise<number>;
  history(filter?: { queue?: string; from?: When; to?: When; step?: 10 | 300 }): Promise<Answer>;
  simulate(changes?: Answer): Promise<Answer>;
  auditPage(filter?: { after?: number | string; limit?: number }): Promise<Answer>;
  version(): Promise<Answer>;
  metrics(): Promise<string>;
  health(): Promise<Answer>;
  ready(): Promise<Answer>;
}

// What a function knows of the job it runs. It ends with the run. It cannot be changed, but for `record`, which changes nothing else; it may
// be frozen, and structuredClone() has its record, token and attempt.
export class Job {
  private constructor();
  readonly id: number;
  readonly name: string;
  readonly queue: string;
  readonly key: string;
  readonly function: string;
  readonly payload: string; // what was put as JSON is that JSON's text: see json()
  readonly payloadBytes: Uint8Array;
  readonly attempt: number; // from 1
  readonly token: number; // larger than all before it: a target may refuse smaller ones than it has seen
  readonly record: JobRecord;
  // Aborted when the run is to stop: the job was cancelled, its lease was lost, or the worker's time to end is over.
  readonly signal: AbortSignal;
  readonly cancelled: boolean;
  // The payload's value. Errors: SyntaxError.
  json(): any;
  // How far it is, from 0 to 1. It is told soon, at most once a second; the last one counts. Of `message`, the first 250
  // characters, and no half of one. What the daemon refuses is not told, and harms no lease. Errors: RangeError, which fails the run.
  progress(fraction: number, message?: string): void;
  // Puts a job in the same transaction that settles this one as done. One that cannot be put makes this run a failed attempt.
  followUp(queue: string, payload?: Payload, options?: JobOptions): void;
}

// What it returns is the result: strings and bytes as they are, anything else as JSON, undefined: none. What it throws is a
// failed attempt, and the queue's policy says when it is tried again; Retry, Bury and Snooze say more. An AbortError after
// `signal` was aborted says that it has stopped.
export type JobFunction = (job: Job) => unknown | Promise<unknown>;

export interface WorkerOptions {
  token?: string;
  client?: Client; // instead of one of its own; with retryForMs: 0
  queues?: string | string[]; // default: those that have a function of their name
  concurrency?: number | bigint; // functions that run at once, a whole number: 16
  name?: string; // no two workers may share one; default "host:pid:…"
  prefetch?: number; // jobs leased beyond those that run; default: as many as take 50 ms
  drainLimitMs?: number; // what stop() gives to what runs: 10,000
  // run() ends when none of the queues' jobs is ready or running, here or at another worker, and none that has failed is due again within
  // `lingerMs` (60,000). It waits for rates and limits, but not for jobs that were put with a later time, nor for queues that are paused
  // or have a rate of 0.
  untilEmpty?: boolean;
  lingerMs?: number;
  signals?: boolean; // run() stops at SIGTERM and SIGINT, at once at the second: true
  // Is told that the worker has begun, of each failed attempt with its stack, and of a daemon that is away. Default: console.warn.
  log?: (message: string) => void;
}

// Runs the functions that jobs name, or, where they name none, those of their queues' names.
//
// Leases:  are renewed three times in their length while the function runs. A function that blocks the event loop for as long
//          as a lease stops that.
// Cancel:  a job that is cancelled, or whose lease is lost, aborts `job.signal`. The daemon is asked each time a lease is
//          renewed.
// Daemon:  one that cannot be reached or restarts is waited for. Functions run on, and their ends are kept and sent until the
//          daemon has answered; an end that comes twice, or too late, does nothing.
// Process: a promise that a function leaves alone, and that rejects, ends the process, as Node does with any; its jobs run again when their
//          leases end.
// Waiting: what it has leased and not begun within a second is given back, for another worker.
export class Worker {
  constructor(url?: string, options?: WorkerOptions);
  readonly name: string;
  readonly counts: { done: number; failed: number; released: number; cancelled: number; lost: number };
  // Runs jobs that name `name`, or, naming none, are in the queue of that name.
  job(name: string, run: JobFunction): this;
  // Runs jobs that name nothing known; `queues` has to be given then.
  default(run: JobFunction): this;
  // Works until stop(), or, with untilEmpty, until there is nothing left. May be called again when it has ended.
  // Errors: refusals to lease, after what runs has ended.
  run(): Promise<void>;
  // Takes no more jobs, gives back those that have not begun, and lets the others end within the drain limit; those that do
  // not, or all with `atOnce`, are aborted and given back. Before run(), it makes that end at once.
  stop(options?: { atOnce?: boolean }): void;
}
