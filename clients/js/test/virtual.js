// Tests of hours that take milliseconds: a clock that jumps to the next timer when nothing else is to be done, and a daemon in
// memory that leases, renews and settles as docs/http-api.md says.
import { Client, Worker } from "../src/index.js";

export class VirtualTime {
  #now = 1000;
  #timers = new Map();
  #last = 0;

  now = () => this.#now;
  setTimeout = (run, ms) => {
    this.#timers.set(++this.#last, { at: this.#now + ms, run });
    return this.#last;
  };
  clearTimeout = (timer) => this.#timers.delete(timer);
  sleep = (ms) => new Promise((resolve) => this.setTimeout(resolve, ms));

  // Lets everything happen until `test` has ended.
  async run(test) {
    let ended = false;
    const running = test.finally(() => (ended = true));
    running.catch(() => {});
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      if (ended) return running;
      this.#jump();
    }
  }

  #jump() {
    let next;
    for (const [id, timer] of this.#timers) if (next === undefined || timer.at < next.at) next = { id, ...timer };
    if (next === undefined) throw new Error("everything waits, and nothing will happen");
    this.#timers.delete(next.id);
    this.#now = Math.max(this.#now, next.at);
    next.run();
  }
}

const BAD = { type: "urn:argiope:problem:invalid_input", detail: "a whole number" };
const OUTCOMES = new Set(["done", "retry", "bury", "cancel", "release"]);

export class FakeDaemon {
  jobs = new Map();
  refusesParts = false; // true: a malformed settlement is refused by itself; else the whole request is
  refusesProgress; // with this message
  running = new Map(); // token: {job, until, leaseMs}
  requests = []; // [method, path, body]
  faults = []; // "drop" the answer, "refuse" before anything, or [path, fault]; a number is a status
  settled = [];
  isDown = false;
  config = {}; // of every queue
  #token = 0;
  #keys = new Map();
  #waiting = new Set();

  constructor(time) {
    this.time = time;
  }

  put(queue, payload = "", more = {}) {
    const id = this.jobs.size + 1;
    const job = { id, queue, payload, state: "ready", attempts: 0, due: this.time.now(), lease_time_ms: 60_000 };
    this.jobs.set(id, { ...job, ...more });
    this.#change();
    return id;
  }

  states() {
    return [...this.jobs.values()].map((job) => job.state);
  }

  goDown() {
    this.isDown = true;
    this.#change();
  }

  // What a Client uses as its fetch.
  fetch = async (url, { method, body, headers, signal }) => {
    await this.time.sleep(1);
    const { pathname, searchParams } = new URL(url);
    const fault = this.#nextFault(pathname);
    if (this.isDown || fault === "refuse") throw lost("ECONNREFUSED");
    if (fault instanceof Response) return fault;
    if (typeof fault === "number") return answer(fault, { type: `urn:argiope:problem:of_${fault}`, status: fault });
    const result = await this.#once(headers["Idempotency-Key"], method, pathname, body ? JSON.parse(body) : Object.fromEntries(searchParams), signal);
    if (this.isDown || fault === "drop") throw lost("ECONNRESET");
    await this.time.sleep(1);
    return result;
  };

  #nextFault(path) {
    if (this.faults.length === 0 || (Array.isArray(this.faults[0]) && this.faults[0][0] !== path)) return undefined;
    const fault = this.faults.shift();
    return Array.isArray(fault) ? fault[1] : fault;
  }

  // As done before, where the request has the same key; one that was given no leases is a new one.
  async #once(key, method, path, given, signal) {
    const before = this.#keys.get(key);
    if (before) return before;
    const result = await this.#answer(method, path, given, signal);
    if (key && (await result.json()).leases?.length > 0) this.#keys.set(key, result);
    return result;
  }

  async #answer(method, path, given, signal) {
    this.requests.push([method, path, given]);
    if (path === "/v1/leases/settle") return this.#settle(given.settlements, "replies");
    if (method === "GET" && path.startsWith("/v1/queues/")) return this.#queue(path.slice("/v1/queues/".length));
    if (method === "GET") return answer(200, this.#delayed(given), this.time.now());
    if (method === "DELETE") return answer(200, { ended: 0 });
    if (method === "PATCH" && given.leases.some(({ message }) => message && message === this.refusesProgress)) return answer(400, { ...BAD, status: 400 });
    if (method === "PATCH") return answer(200, { leases: given.leases.map((lease) => this.#renew(lease)) });
    const refused = this.#check(given.settle ?? []);
    if (refused) return refused;
    const settled = (given.settle ?? []).map((settlement) => this.#end(settlement));
    return answer(200, { leases: await this.#lease(given, signal), settled });
  }

  #queue(name) {
    const jobs = [...this.jobs.values()].filter((job) => job.queue === name);
    if (jobs.length === 0) return answer(404, { type: "urn:argiope:problem:not_found", status: 404 });
    const isDelayed = (job) => job.state === "ready" && job.due > this.time.now();
    const delayed = jobs.filter(isDelayed).length;
    const [ready, running] = ["ready", "running"].map((state) => jobs.filter((job) => job.state === state).length);
    const config = { paused: false, rate: "unlimited", ...this.config };
    return answer(200, { config, counts: { ready: ready - delayed, delayed, running } }, this.time.now());
  }

  #delayed({ queue, state, after = 0, limit }) {
    const found = [...this.jobs.values()].filter(
      (job) => job.queue === queue && state === "delayed" && job.state === "ready" && job.due > this.time.now() && job.id > after,
    );
    const jobs = found.slice(0, limit).map((job) => ({ ...job, pending: 0, due_at: new Date(job.due).toISOString() }));
    return { jobs, next: found.length > limit ? jobs.at(-1).id : null };
  }

  async #lease({ queues, most, wait_ms: waitMs, worker }, signal) {
    const giveUpAt = this.time.now() + waitMs;
    for (;;) {
      this.#expire();
      const ready = [...this.jobs.values()].filter(
        (job) => queues.includes(job.queue) && job.state === "ready" && job.due <= this.time.now(),
      );
      const left = giveUpAt - this.time.now();
      if (ready.length > 0 || left <= 0 || this.isDown) return ready.slice(0, most).map((job) => this.#start(job, worker));
      await this.#waitForChange(left, signal);
    }
  }

  #start(job, worker) {
    const token = ++this.#token;
    Object.assign(job, { state: "running", worker, attempts: job.attempts + 1 });
    this.running.set(token, { job, until: this.time.now() + job.lease_time_ms });
    return { job: { ...job }, token, attempt: job.attempts, lease_ms: job.lease_time_ms };
  }

  #expire() {
    for (const [token, { job, until }] of this.running) {
      if (until > this.time.now()) continue;
      this.running.delete(token);
      job.state = "ready";
    }
  }

  #waitForChange(ms, signal) {
    return new Promise((resolve, reject) => {
      const timer = this.time.setTimeout(resolve, ms);
      this.#waiting.add(resolve);
      signal.addEventListener("abort", () => {
        this.time.clearTimeout(timer);
        reject(signal.reason);
      });
    });
  }

  #change() {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  #renew({ token, progress, message }) {
    this.#expire();
    const run = this.running.get(token);
    if (run === undefined) return { token, lease_lost: true };
    run.until = this.time.now() + run.job.lease_time_ms;
    Object.assign(run.job, { progress, message });
    return { token, lease_ms: run.job.lease_time_ms, cancel: run.job.cancel ?? false };
  }

  #check(settlements) {
    if (this.refusesParts) return undefined;
    for (const settlement of settlements) {
      if (isBad(settlement)) return answer(400, { ...BAD, status: 400 });
    }
    return undefined;
  }

  #settle(settlements, member) {
    return this.#check(settlements) ?? answer(200, { [member]: settlements.map((settlement) => this.#end(settlement)) });
  }

  #end(settlement) {
    this.#expire();
    const { token, outcome } = settlement;
    if (isBad(settlement)) return { token, error: BAD };
    const run = this.running.get(token);
    if (run === undefined) return { token, outcome: "lease_lost" };
    this.running.delete(token);
    this.settled.push(settlement);
    const { job } = run;
    job.state = { done: "done", bury: "buried", cancel: "cancelled" }[outcome] ?? "ready";
    if (job.cancel && outcome !== "done") job.state = "cancelled";
    if (outcome === "release") job.attempts--;
    if (job.state === "ready") job.due = this.time.now() + (settlement.delay_ms ?? (outcome === "retry" ? 1000 : 0));
    Object.assign(job, { error: settlement.error, result: settlement.result });
    for (const { queue, payload } of settlement.follow_ups ?? []) this.put(queue, payload);
    return { token, outcome: "ok" };
  }
}

function isBad({ outcome, follow_ups: jobs = [] }) {
  return !OUTCOMES.has(outcome) || jobs.some(({ priority = 0 }) => !Number.isInteger(priority));
}

function answer(status, body, now) {
  const headers = new Headers({ "content-type": "application/json", "retry-after": "1" });
  if (now !== undefined) headers.set("date", new Date(now).toUTCString());
  return { status, headers, json: async () => body, text: async () => JSON.stringify(body) };
}

function lost(code) {
  return new TypeError("fetch failed", { cause: { code, message: code } });
}

// Runs `test(world)` in virtual time; world.worker(functions, options) makes workers of the fake daemon.
export function virtually(test) {
  return async () => {
    const time = new VirtualTime();
    const daemon = new FakeDaemon(time);
    const logged = [];
    const worker = (run, options = {}) => {
      const client = new Client("http://fake", { fetch: daemon.fetch, time, retryForMs: 0 });
      const settings = { client, time, signals: false, untilEmpty: true, lingerMs: 0, queues: ["q"], log: (line) => logged.push(line) };
      return new Worker(undefined, { ...settings, ...options }).job("q", run);
    };
    await time.run(test({ time, daemon, worker, logged }));
  };
}
