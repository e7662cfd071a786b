// Client: every operation of the API (docs/http-api.md). index.d.ts says what each takes, gives and throws.
import { ApiError, Unreachable } from "./errors.js";
import { EventReader } from "./events.js";
import { bytes, Http, isBytes, jsonOf, listOf, newKey, nothing, ofAHead, path, plain, problemOf, query, toBase64 } from "./http.js";
import { OF_A_JOB, OF_A_QUEUE, OF_A_SCHEDULE, refuseFunction, refuseTheirs } from "./theirs.js";
import { Backoff, delayOf, realTime, shown, sleep, timeOf, withTimes } from "./time.js";
import { aboutZone } from "./zones.js";

// The daemon says something on an event stream every 15 s.
const SILENCE_LIMIT_MS = 45_000;

export function newJob(queue, payload, options = {}) {
  refuseFunction(queue, "its queue");
  refuseTheirs("a job", options, OF_A_JOB);
  const job = withTimes({ queue, ...options });
  if (isBytes(payload)) job.payload_base64 = toBase64(payload);
  else if (payload !== undefined) job.payload = typeof payload === "string" ? payload : refuseUnlessJson(payload, "a payload");
  return job;
}

// One of newJob(), which stays as it is, or one that a program has written by itself. Errors: TypeError, which names it as `what`.
function newJobAgain(job, what) {
  try {
    if (job === null || typeof job !== "object") throw new TypeError(`${shown(job)} is no job: make it with newJob()`);
    const { queue, payload, ...options } = job;
    return newJob(queue, payload, options);
  } catch (error) {
    throw new TypeError(`${what}: ${error.message}`, { cause: error });
  }
}

function refuseUnlessJson(value, what) {
  jsonOf(value, what);
  return value;
}

const textsOf = (settlements) => settlements.map((settlement) => jsonOf(withTimes(settlement), "a settlement"));

// A reply of one of many: its error, if it has one, as what would have been thrown.
function replyOf(reply) {
  return reply.error ? { ...reply, error: new ApiError(reply.error) } : reply;
}

async function putReplies(response) {
  const { replies, completion } = await response.json();
  return { replies: replies.map(replyOf), completion: completion && replyOf(completion) };
}

// The answer, where it has that member; one that has not, as a proxy's, is none of the daemon's.
const having = (name) => async (response) => {
  const answer = await response.json();
  if (answer?.[name] === undefined) throw new TypeError(`an answer without ${JSON.stringify(name)}, which is none of the API's`);
  return answer;
};
const member = (name) => async (response) => (await having(name)(response))[name];

async function* all(page, name, filter) {
  let after;
  do {
    const answer = await page({ ...filter, after });
    yield* answer[name];
    after = answer.next ?? undefined;
  } while (after !== undefined);
}

class Jobs {
  #http;
  constructor(http) {
    this.#http = http;
  }

  async get(job) {
    return this.#http.send("GET", path("jobs", job));
  }
  async page(filter = {}) {
    return this.#http.send("GET", "/v1/jobs" + query(filter));
  }
  list(filter = {}) {
    const told = "payloads" in filter || "beginnings" in filter ? filter : { ...filter, payloads: true };
    return all((members) => this.page(members), "jobs", told);
  }
  async cancel(job, why) {
    return this.#http.send("POST", path("jobs", job, "cancel"), { body: { why }, key: newKey() });
  }
  async kick(job) {
    return this.#http.send("POST", path("jobs", job, "kick"), { key: newKey() });
  }
  async erase(job) {
    return this.#http.send("DELETE", path("jobs", job), { read: nothing });
  }
  async setPriority(job, priority) {
    return this.#http.send("PATCH", path("jobs", job), { body: { priority } });
  }
  async setDue(job, { dueAt, delayMs }) {
    return this.#http.send("PATCH", path("jobs", job), { body: { due_at: timeOf(dueAt), delay_ms: delayMs === undefined ? undefined : delayOf(delayMs) } });
  }
  async change(change, ids, { why, priority, dueAt } = {}) {
    const body = { change, ids, why, priority, due_at: timeOf(dueAt) };
    const read = async (response) => (await response.json()).replies.map(replyOf);
    return this.#http.send("POST", "/v1/jobs/change", { body, key: newKey(), read });
  }
  async explain(job) {
    return this.#http.send("GET", path("jobs", job, "explain"));
  }
  async history(job) {
    return this.#http.send("GET", path("jobs", job, "history"), { read: member("attempts") });
  }
  async output(job) {
    return this.#http.send("GET", path("jobs", job, "output"), { read: bytes });
  }
}

class Queues {
  #http;
  constructor(http) {
    this.#http = http;
  }

  async list({ after, limit } = {}) {
    return this.#http.send("GET", "/v1/queues" + query({ after, limit }), { read: member("queues") });
  }
  async get(queue) {
    return this.#http.send("GET", path("queues", queue));
  }
  async set(queue, config) {
    refuseTheirs("a queue", config ?? {}, OF_A_QUEUE);
    return this.#http.send("PUT", path("queues", queue), { body: config });
  }
  async change(queue, config) {
    refuseTheirs("a queue", config ?? {}, OF_A_QUEUE);
    return this.#http.send("PATCH", path("queues", queue), { body: config });
  }
  async delete(queue) {
    return this.#http.send("DELETE", path("queues", queue), { read: nothing });
  }
  async pause(queue, until) {
    return this.#http.send("POST", path("queues", queue, "pause"), { body: { until: timeOf(until) }, key: newKey() });
  }
  async resume(queue) {
    return this.#http.send("POST", path("queues", queue, "resume"), { key: newKey() });
  }
  async kick(queue, limit = 1000) {
    return this.#http.send("POST", path("queues", queue, "kick"), { body: { limit }, read: member("kicked") });
  }
  async stats(queue) {
    return this.#http.send("GET", path("queues", queue, "stats"));
  }
}

class Leases {
  #http;
  constructor(http) {
    this.#http = http;
  }

  // `settle` may be JSON already: a list of texts in `settleTexts`.
  // One that settles nothing has a key: where its answer is lost it is sent again, and given the same leases. What is answered to
  // settlements under a key the daemon keeps for a day: too much for every end of a busy worker.
  async take(queues, { most = 1, waitMs = 0, worker, settle, settleTexts, signal, idempotencyKey } = {}) {
    const texts = settleTexts ?? textsOf(settle ?? []);
    waitMs = delayOf(waitMs, "waitMs");
    let text = jsonOf({ queues: listOf(queues), most, wait_ms: waitMs, worker }, "a request");
    if (texts.length > 0) text = `${text.slice(0, -1)},"settle":[${texts.join(",")}]}`;
    const key = idempotencyKey ?? (texts.length === 0 ? newKey() : undefined);
    return this.#http.send("POST", "/v1/leases", { text, waitMs, signal, key, read: having("leases") });
  }
  async renew(leases, worker) {
    const body = { leases: leases.map((lease) => (typeof lease === "number" ? { token: lease } : lease)), worker };
    return this.#http.send("PATCH", "/v1/leases", { body, safe: true, read: member("leases") });
  }
  async settle(settlements) {
    return this.settleTexts(textsOf(settlements));
  }
  async settleTexts(texts) {
    const text = `{"settlements":[${texts.join(",")}]}`;
    return this.#http.send("POST", "/v1/leases/settle", { text, safe: true, read: member("replies") });
  }
}

const OF_ITS_JOB = ["queue", "payload", "function", "key", "priority", "max_attempts"];

function refuseOfSchedule(members) {
  refuseTheirs("a schedule", members, OF_A_SCHEDULE);
  if (typeof members.coalesce === "boolean") throw new TypeError('coalesce is "latest" (APScheduler\'s True), "earliest" or "all" (its False)');
}

// The schedule of add(name, trigger, options), and the options that are the call's. Errors: TypeError.
function namedSchedule(name, trigger, { conflict, job = {}, ...members } = {}) {
  refuseOfSchedule(members);
  const own = Object.fromEntries(OF_ITS_JOB.map((each) => [each, members[each]]).filter(([, value]) => value !== undefined));
  const { queue, payload, ...options } = { ...job, ...own };
  if (trigger === undefined || queue === undefined) {
    throw new TypeError(`the schedule ${JSON.stringify(name)} needs a trigger and a queue: add("nightly", "30 3 * * *", { queue: "mail" })`);
  }
  const others = Object.fromEntries(Object.entries(members).filter(([each]) => !OF_ITS_JOB.includes(each)));
  return [{ name, trigger, job: newJob(queue, payload, options), ...others }, { conflict }];
}

function wholeSchedule(schedule, options = {}, ...more) {
  const { conflict, ...others } = options;
  if (more.some((each) => each !== undefined) || typeof options !== "object" || Object.keys(others).length > 0) {
    throw new TypeError("a whole schedule has its trigger, queue and payload in itself");
  }
  return [schedule, { conflict }];
}

const IF_THERE = { conflict: 'conflict: "replace" takes its place, and conflict: "keep" leaves it' };

class Schedules {
  #http;
  constructor(http) {
    this.#http = http;
  }

  async page(filter = {}) {
    return this.#http.send("GET", "/v1/schedules" + query(filter));
  }
  list() {
    return all((members) => this.page(members), "schedules", {});
  }
  async add(schedule, trigger, options) {
    refuseFunction(schedule, "the schedule");
    const [body, { conflict }] = typeof schedule === "string" ? namedSchedule(schedule, trigger, options) : wholeSchedule(schedule, trigger, options);
    this.#tellZone(body?.name, body);
    return this.#http.send("POST", "/v1/schedules" + query({ conflict }), { body, key: newKey(), advice: IF_THERE });
  }
  async get(schedule) {
    return this.#http.send("GET", path("schedules", schedule));
  }
  async set(name, schedule) {
    this.#tellZone(name, schedule);
    return this.#http.send("PUT", path("schedules", name), { body: schedule });
  }
  #tellZone(name, schedule) {
    const told = aboutZone(name, schedule?.trigger);
    if (told) this.#http.tell(told);
  }
  async change(schedule, members) {
    refuseOfSchedule(members ?? {});
    return this.#http.send("PATCH", path("schedules", schedule), { body: members });
  }
  async delete(schedule) {
    return this.#http.send("DELETE", path("schedules", schedule), { read: nothing });
  }
  async pause(schedule, by) {
    return this.#http.send("POST", path("schedules", schedule, "pause"), { body: { by }, key: newKey() });
  }
  async resume(schedule, from = "now") {
    return this.#http.send("POST", path("schedules", schedule, "resume"), { body: { from }, key: newKey() });
  }
  async run(schedule) {
    return this.#http.send("POST", path("schedules", schedule, "run"), { read: member("job") });
  }
  async history(schedule, limit) {
    return this.#http.send("GET", path("schedules", schedule, "history") + query({ limit }), { read: member("runs") });
  }
  async explain(schedule) {
    return this.#http.send("GET", path("schedules", schedule, "explain"));
  }
  async output(schedule) {
    return this.#http.send("GET", path("schedules", schedule, "output"), { read: bytes });
  }
  async next(schedule, count = 10) {
    return this.#http.send("GET", path("schedules", schedule, "next") + query({ count }), { read: member("times") });
  }
  async nextTimes(trigger, count = 10, { after } = {}) {
    const body = { trigger, count, after: timeOf(after) };
    return this.#http.send("POST", "/v1/next", { body, safe: true, read: member("times") });
  }
}

const LONGEST_TRY_MS = 70_000; // the daemon's limit, and some

class Projects {
  #http;
  constructor(http) {
    this.#http = http;
  }

  async list() {
    return this.#http.send("GET", "/v1/projects", { read: member("projects") });
  }
  async get(project) {
    return this.#http.send("GET", path("projects", project));
  }
  async set(project, definition) {
    return this.#http.send("PUT", path("projects", project), { body: definition });
  }
  async change(project, members) {
    return this.#http.send("PATCH", path("projects", project), { body: members });
  }
  async delete(project) {
    return this.#http.send("DELETE", path("projects", project), { read: nothing });
  }
  async restore(project) {
    return this.#http.send("POST", path("projects", project, "restore"), { body: {}, key: newKey() });
  }
  async start(project) {
    return this.#http.send("POST", path("projects", project, "start"), { body: {}, key: newKey() });
  }
  async resume(project) {
    return this.#http.send("POST", path("projects", project, "resume"), { body: {}, key: newKey() });
  }
  async versions(project, limit) {
    return this.#http.send("GET", path("projects", project, "versions") + query({ limit }), { read: member("versions") });
  }
  async version(project, number) {
    return this.#http.send("GET", path("projects", project, "versions", number));
  }
  async rollBack(project, number) {
    return this.#http.send("POST", path("projects", project, "roll-back"), { body: { version: number }, key: newKey() });
  }
  async pages(project, filter = {}) {
    return this.#http.send("GET", path("projects", project, "pages") + query(filter));
  }
  async page(project, page) {
    return this.#http.send("GET", path("projects", project, "pages", "one") + query({ page }));
  }
  async ask(project, page) {
    return this.#http.send("POST", path("projects", project, "pages"), { body: page, key: newKey() });
  }
  async sendMessage(project, message, { url } = {}) {
    return this.#http.send("POST", path("projects", project, "messages"), { body: { message, url }, read: member("page") });
  }
  async tryPage(page) {
    return this.#http.send("POST", "/v1/projects/try", { body: page, key: newKey(), waitMs: LONGEST_TRY_MS });
  }
  async explain(project, page) {
    return this.#http.send("GET", path("projects", project, "pages", "explain") + query({ page }));
  }
  async recent(project) {
    return this.#http.send("GET", path("projects", project, "recent"), { read: member("visits") });
  }
  async results(project, filter = {}) {
    return this.#http.send("GET", path("projects", project, "results") + query(filter));
  }
  async export(project, format = "jsonl", { rule } = {}) {
    return this.#http.send("GET", path("projects", project, "results") + query({ format, rule }), { read: bytes });
  }
  async feed(project, filter = {}) {
    return this.#http.send("GET", path("projects", project, "feed") + query(filter));
  }
}

export let sendBy; // a request of the package's own, by a client: as Http.send()

export class Client {
  #http;
  static {
    sendBy = (client, ...request) => client.#http.send(...request);
  }

  constructor(url, options = {}) {
    this.#http = new Http(url, { time: realTime, ...options });
    this.url = this.#http.url;
    this.jobs = new Jobs(this.#http);
    this.queues = new Queues(this.#http);
    this.leases = new Leases(this.#http);
    this.schedules = new Schedules(this.#http);
    this.projects = new Projects(this.#http);
  }

  async put(queue, payload, { idempotencyKey = newKey(), ...options } = {}) {
    return this.#http.send("POST", "/v1/jobs", { body: newJob(queue, payload, options), key: idempotencyKey });
  }
  async putMany(jobs, { atomic, completion, idempotencyKey = newKey() } = {}) {
    const made = Array.from(jobs, (job, at) => newJobAgain(job, `jobs[${at}]`));
    const body = { jobs: made, atomic, completion: completion && newJobAgain(completion, "completion") };
    return this.#http.send("POST", "/v1/jobs", { body, key: idempotencyKey, read: putReplies });
  }
  async putLines(lines, { idempotencyKey = newKey() } = {}) {
    const type = "application/x-ndjson";
    const text = typeof lines === "string" ? lines : Array.from(lines, (line) => String(line).replace(/[\r\n]+$/, "")).join("\n");
    return this.#http.send("POST", "/v1/jobs", { text, type, key: idempotencyKey, read: putReplies });
  }
  async counters() {
    return this.#http.send("GET", "/v1/counters");
  }
  async workersPage(filter = {}) {
    return this.#http.send("GET", "/v1/workers" + query(filter));
  }
  async workers() {
    const found = [];
    for await (const worker of all((filter) => this.workersPage(filter), "workers", {})) found.push(worker);
    return found;
  }
  async endWorker(worker) {
    return this.#http.send("DELETE", path("workers", worker), { read: member("ended") });
  }
  async hosts(filter = {}) {
    return this.#http.send("GET", "/v1/hosts" + query(filter));
  }
  async explainHost(site) {
    return this.#http.send("GET", path("hosts", "explain") + query({ site }));
  }
  async config() {
    return this.#http.send("GET", "/v1/config");
  }
  async auditPage(filter = {}) {
    return this.#http.send("GET", "/v1/audit" + query(filter));
  }
  async simulate(changes = {}) {
    return this.#http.send("POST", "/v1/simulate", { body: changes, safe: true });
  }
  async notify() {
    return this.#http.send("GET", "/v1/notify", { read: member("notify") });
  }
  async testNotify(name) {
    return this.#http.send("POST", path("notify", name, "test"), { read: member("job") });
  }
  async history(filter = {}) {
    return this.#http.send("GET", "/v1/history" + query({ ...filter, from: timeOf(filter.from), to: timeOf(filter.to) }));
  }
  async version() {
    return this.#http.send("GET", "/v1/version");
  }
  async metrics() {
    return this.#http.send("GET", "/metrics", { read: plain });
  }
  async health() {
    return this.#http.send("GET", "/healthz");
  }
  async ready() {
    return this.#http.send("GET", "/readyz");
  }

  async *events({ kinds, queue, lastEventId = "", signal } = {}) {
    const reader = new EventReader(lastEventId);
    const backoff = new Backoff();
    while (!signal?.aborted) {
      let pause;
      try {
        for await (const chunk of this.#stream("/v1/events" + query({ kinds: kinds && listOf(kinds).join(","), queue }), reader, signal)) {
          for (const event of reader.feed(chunk)) {
            backoff.reset();
            yield event;
          }
        }
      } catch (error) {
        if (signal?.aborted) return;
        if (!(error instanceof Unreachable) && error.status !== 503) throw error;
        pause = error.retryAfterMs;
      }
      reader.brokenOff();
      await sleep(this.#http.time, backoff.next(pause ?? reader.retryMs), signal);
    }
  }

  async *#stream(target, events, signal) {
    const http = this.#http;
    const headers = { ...http.headers, Accept: "text/event-stream" };
    if (events.lastEventId) headers["Last-Event-ID"] = ofAHead(events.lastEventId, "lastEventId");
    const { response, end, controller } = await http.open(target, { method: "GET", headers }, SILENCE_LIMIT_MS, signal);
    let timer;
    const heard = () => {
      http.time.clearTimeout(timer);
      timer = http.time.setTimeout(() => controller.abort(), SILENCE_LIMIT_MS);
    };
    end();
    const abort = () => controller.abort();
    signal?.addEventListener("abort", abort);
    try {
      heard();
      if (response.status !== 200) throw await problemOf(response);
      const reader = response.body.getReader();
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        heard();
        yield piece.value;
      }
    } catch (error) {
      throw error instanceof ApiError ? error : new Unreachable(`the stream broke: ${error.message}`, true, error);
    } finally {
      http.time.clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      controller.abort();
    }
  }
}
