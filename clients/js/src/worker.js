// Worker: leases jobs, runs their functions, renews their leases, settles them.
//
// Three loops send: one leases, one settles, one renews. Ends go into #unsent as JSON, and stay there until the daemon has
// answered; the loop that leases takes them along, and the one that settles sends what would wait otherwise.
import { lookForBacklog } from "./backlog.js";
import { Client } from "./client.js";
import { ApiError, Snooze, Unreachable } from "./errors.js";
import { listOf, newKey } from "./http.js";
import { endOfRun, released, retried, Run, stopped } from "./job.js";
import { Backoff, Bell, countOf, isA, limitOf, realTime, shown, sleep } from "./time.js";

const MOST_LEASED = 256; // in one request
const MOST_SETTLED = 1000;
const MOST_SETTLED_LENGTH = 8 * 1024 * 1024;
const MOST_PREFETCHED = 2 * MOST_LEASED;
const LONGEST_POLL_MS = 30_000;
const LOOK_INTERVAL_MS = 500; // with untilEmpty, between two looks whether anything is left
// What is leased beyond what runs would be done in this time, at the speed of late: it keeps functions busy while requests are
// under way. What waits for longer than LONGEST_WAIT_MS is given back, for another worker to run.
const PREFETCH_TIME_MS = 50;
const LONGEST_WAIT_MS = 1000;
// How long an end waits for a request that leases to take it along, while more jobs are at hand.
const LINGER_MS = 20;
const LAST_TRY_MS = 10_000;

const isAway = (error) => error instanceof Unreachable || [429, 502, 503, 504].includes(error.status);
const isMalformed = (error) => error instanceof ApiError && [400, 404, 413, 422].includes(error.status);

function traceOf(error) {
  try {
    return shown(error?.stack ?? error);
  } catch {
    return shown(error);
  }
}

export class Worker {
  #options;
  #time;
  #makeClient;
  #functions = new Map();
  #default;
  #isRunning = false;
  #stopAsked; // before it runs: at once or not

  constructor(url, { token, client, time = realTime, ...options } = {}) {
    this.#options = { concurrency: 16, drainLimitMs: 10_000, untilEmpty: false, lingerMs: 60_000, signals: true, ...options };
    this.#options.drainLimitMs = limitOf(this.#options.drainLimitMs, "drainLimitMs");
    this.#options.lingerMs = limitOf(this.#options.lingerMs, "lingerMs");
    this.#options.concurrency = countOf(this.#options.concurrency, "concurrency", 1);
    if (options.prefetch !== undefined) this.#options.prefetch = countOf(options.prefetch, "prefetch", 0);
    if (options.queues !== undefined) this.#options.queues = listOf(options.queues);
    this.#time = time;
    this.#makeClient = () => client ?? new Client(url, { token, retryForMs: 0 });
    this.name = options.name ?? "";
    this.counts = { done: 0, failed: 0, released: 0, cancelled: 0, lost: 0 };
    this.log = options.log ?? ((message) => console.warn(`argiope: ${message}`));
  }

  job(name, run) {
    this.#functions.set(name, run);
    return this;
  }

  default(run) {
    this.#default = run;
    return this;
  }

  async run() {
    const queues = this.#options.queues ?? [...this.#functions.keys()];
    if (queues.length === 0) throw new TypeError("a worker needs a function of a queue's name, or queues");
    if (this.#isRunning) throw new Error("it runs already");
    let forget = () => {};
    try {
      await this.#begin(queues);
      this.#tell(`worker ${this.name} runs jobs of ${queues.join(", ")} from ${this.#client.url}, ${this.#options.concurrency} at a time`);
      if (this.#options.signals) forget = this.#hearSignals();
      await this.#work();
    } finally {
      this.#isRunning = false;
      forget();
    }
    if (this.#failure) throw this.#failure;
  }

  stop({ atOnce = false } = {}) {
    if (!this.#isRunning) {
      this.#stopAsked = { atOnce };
      return;
    }
    if (atOnce) this.#hurry.abort();
    if (this.#stopping) return;
    this.#stopping = true;
    this.#giveBackWaiting();
    this.#look?.abort();
    for (const bell of [this.#room, this.#ends, this.#heartbeat, this.#changed]) bell.ring();
    if (this.#pollsAlone) {
      this.#pollWasCut = true;
      this.#poll.abort();
    }
  }

  // What lives while it runs.

  #client;
  #queues;
  #lostPoll; // what was asked for by a request for leases whose answer was lost: it is sent again under its key
  #held; // every lease that it has, by token, in the order of leasing
  #waiting; // jobs whose functions have not begun
  #running;
  #unsent;
  #sending; // ends that are on their way
  #failing = new Set(); // tokens of those that were refused
  #room;
  #ends;
  #heartbeat;
  #changed;
  #stopping;
  #hurry;
  #over;
  #failure;
  #poll;
  #pollsAlone;
  #pollWasCut;
  #longestPollMs;
  #look; // whether anything is left
  #prefetch;
  #rate;
  #endCount;
  #counted;
  #isAway;
  #ownsName = false;

  async #begin(queues) {
    this.#client = this.#makeClient();
    this.#isRunning = true;
    this.#queues = queues;
    this.#held = new Map();
    this.#waiting = [];
    this.#unsent = [];
    this.#running = this.#sending = 0;
    [this.#room, this.#ends, this.#heartbeat, this.#changed] = [new Bell(), new Bell(), new Bell(), new Bell()];
    this.#stopping = this.#over = this.#pollsAlone = this.#pollWasCut = this.#isAway = false;
    this.#longestPollMs = this.#options.untilEmpty ? 0 : LONGEST_POLL_MS;
    this.#hurry = new AbortController();
    this.#failure = undefined;
    this.#prefetch = this.#options.prefetch ?? 0;
    this.#rate = this.#endCount = 0;
    this.#counted = { ends: 0, at: this.#time.now() };
    if (!this.name) {
      this.name = await uniqueName();
      this.#ownsName = true;
    }
  }

  async #work() {
    // Without one of them no end would be told, or leases would run out: where it ends by a mistake, the worker does, too.
    const others = [this.#settleOn(), this.#renewOn()].map((loop) => loop.catch((error) => this.#fail(error)));
    if (this.#stopAsked) this.stop(this.#stopAsked);
    this.#stopAsked = undefined;
    try {
      await this.#leaseOn();
      await this.#drain();
    } finally {
      this.#over = true;
      this.#ends.ring();
      this.#heartbeat.ring();
      await Promise.all(others);
      await this.#leave();
    }
  }

  // Leasing.

  async #leaseOn() {
    const backoff = new Backoff();
    while (!this.#stopping) {
      const most = this.#wanted();
      if (most === 0) {
        this.#room.silence();
        await this.#room.wait(this.#time);
        continue;
      }
      const ends = this.#lostPoll ? [] : this.#takeUnsent();
      const wasIdle = this.#isIdle();
      const answer = await this.#ask(most, ends, backoff);
      if (answer === undefined) continue;
      this.#measure();
      this.#accept(answer.leases ?? []);
      for (const token of answer.cancel ?? []) if (this.#held.has(token)) this.#cancel(this.#held.get(token), "cancel");
      if (!this.#options.untilEmpty || answer.leases?.length > 0 || ends.length > 0) continue;
      if (wasIdle && !(await this.#isMoreLeft(backoff))) return; // before it asked, so that nothing has followed since
      await this.#until(() => this.#isIdle() || this.#stopping, LOOK_INTERVAL_MS);
      this.#longestPollMs = wasIdle || !this.#isIdle() ? LOOK_INTERVAL_MS : 0;
    }
  }

  // Leases; undefined: it did not. It waits for jobs only when it brings no ends, so that each end is answered promptly.
  async #ask(most, ends, backoff) {
    const waitMs = ends.length > 0 ? 0 : this.#longestPollMs;
    this.#poll = new AbortController();
    this.#pollsAlone = ends.length === 0;
    const idempotencyKey = this.#pollsAlone ? newKey() : undefined;
    const asked = this.#lostPoll ?? { most, waitMs, worker: this.name, settleTexts: ends, idempotencyKey };
    try {
      const answer = await this.#client.leases.take(this.#queues, { ...asked, signal: this.#poll.signal });
      this.#pollsAlone = false;
      this.#lostPoll = undefined;
      this.#isReached(backoff);
      this.#answered(ends, answer.settled ?? []);
      return answer;
    } catch (error) {
      this.#pollsAlone = false;
      this.#lostPoll = isAway(error) && ends.length === 0 ? asked : undefined;
      if (!this.#poll.signal.aborted) await this.#notLeased(error, ends, backoff);
      return undefined;
    } finally {
      this.#poll = undefined;
    }
  }

  // Whether one that works untilEmpty and was given nothing asks again. Where the daemon is away, it does.
  async #isMoreLeft(backoff) {
    this.#look = new AbortController();
    try {
      const left = await lookForBacklog(this.#client, this.#queues, this.#options.lingerMs, this.#look.signal);
      const first = left.dueLater > 0 && new Date(left.nextDue).toISOString();
      if (first) this.#tell(`nothing is left for now; ${left.dueLater} jobs are due later, the first at ${first}`);
      return left.isLeft;
    } catch (error) {
      if (this.#look.signal.aborted) return false;
      if (isAway(error)) await this.#rest(backoff, error);
      else this.#fail(error);
      return isAway(error);
    } finally {
      this.#look = undefined;
    }
  }

  async #notLeased(error, ends, backoff) {
    if (isMalformed(error) && ends.length > 0) return this.#settle(ends, backoff);
    this.#keep(ends);
    if (isAway(error)) await this.#rest(backoff, error);
    else this.#fail(error);
  }

  // How many jobs to ask for now; 0: wait until more have ended.
  #wanted() {
    const { concurrency } = this.#options;
    const room = concurrency + this.#prefetch - this.#held.size;
    if (this.#held.size >= concurrency && room < Math.max(1, this.#prefetch >> 1)) return 0;
    return Math.min(room, MOST_LEASED);
  }

  // Sets the prefetch by how many jobs end.
  #measure() {
    const now = this.#time.now();
    const elapsed = now - this.#counted.at;
    if (this.#options.prefetch !== undefined || elapsed < 10) return;
    this.#rate = (this.#rate + (this.#endCount - this.#counted.ends) / elapsed) / 2;
    this.#counted = { ends: this.#endCount, at: now };
    this.#prefetch = Math.min(Math.floor(this.#rate * PREFETCH_TIME_MS), MOST_PREFETCHED);
  }

  #accept(leases) {
    const now = this.#time.now();
    let wakes = this.#held.size === 0 && leases.length > 0;
    for (const lease of leases) {
      const job = new Run(lease, now, () => this.#heartbeat.ring());
      this.#held.set(job.token, job);
      wakes ||= job.leaseMs < 3 * LONGEST_WAIT_MS;
      job.function = this.#functions.get(job.wanted) ?? this.#default;
      if (job.function) this.#waiting.push(job);
      else this.#lacks(job);
    }
    if (wakes) this.#heartbeat.ring();
    this.#start();
    if (this.#stopping) this.#giveBackWaiting();
  }

  #lacks(job) {
    this.#tell(`job ${job.id} of ${job.queue} failed: there is no function for it`);
    this.#end(job, retried(job.token, `worker ${this.name} has no function for it`));
  }

  #isIdle() {
    return this.#held.size === 0 && this.#unsent.length === 0 && this.#sending === 0;
  }

  // Running.

  #start() {
    while (this.#waiting.length > 0 && this.#running < this.#options.concurrency) {
      const job = this.#waiting.shift(); // before it runs: its function may stop the worker, which gives back what waits
      if (!this.#held.has(job.token)) continue;
      this.#running++;
      this.#run(job);
    }
  }

  async #run(job) {
    job.started = true;
    const end = await endOfRun(job, (error) => this.#hearError(job, error));
    this.#running--;
    this.#end(job, end);
    this.#start();
  }

  #hearError(job, error) {
    if (!isA(error, Snooze)) this.#tell(`job ${job.id} of ${job.queue} failed (attempt ${job.attempt}): ${traceOf(error)}`);
  }

  // A log of the program's own may throw, or be an async function that does; the worker goes on.
  async #tell(message) {
    try {
      await this.log(message);
    } catch {
      // There is nowhere else to say it.
    }
  }

  // The run of a job has ended; `end` undefined: it was cancelled.
  #end(job, end) {
    this.#changed.ring();
    if (!this.#held.delete(job.token)) return; // given back before
    if (job.started) this.#hasRun();
    if (job.whyCancelled === "lost") this.counts.lost++;
    else this.#unsent.push(end ?? stopped(job));
    this.#ends.ring();
    if (this.#wanted() > 0) this.#room.ring();
  }

  #hasRun() {
    this.#endCount++;
    this.#prefetch = this.#options.prefetch ?? this.#prefetch;
  }

  // Settling.

  #takeUnsent() {
    // One that is larger goes alone: it takes long, and may be refused.
    let count = 0;
    for (let length = 0; count < this.#unsent.length && count < MOST_SETTLED; count++) {
      length += this.#unsent[count].length;
      if (count > 0 && length > MOST_SETTLED_LENGTH) break;
    }
    this.#sending += count;
    return this.#unsent.splice(0, count);
  }

  // They were not answered: they are sent again.
  #keep(ends) {
    if (ends.length === 0) return;
    this.#sending -= ends.length;
    this.#unsent.unshift(...ends);
    this.#ends.ring();
  }

  async #settleOn() {
    const backoff = new Backoff();
    while (!this.#over) {
      if (this.#unsent.length === 0) await this.#ends.wait(this.#time);
      // The loop that leases takes them along: soon while there is more to do, or in this very turn.
      if (this.#waiting.length > 0 && !this.#stopping) await sleep(this.#time, LINGER_MS, this.#hurry.signal);
      else if (this.#poll === undefined && !this.#stopping) await Promise.resolve().then(() => {});
      const ends = this.#takeUnsent();
      if (ends.length > 0) await this.#settle(ends, backoff);
    }
  }

  async #settle(ends, backoff) {
    try {
      this.#answered(ends, await this.#client.leases.settleTexts(ends));
      this.#isReached(backoff);
    } catch (error) {
      if (isMalformed(error)) return this.#settleHalves(ends, error, backoff);
      this.#keep(ends);
      if (!isAway(error)) this.#fail(error);
      await this.#rest(backoff, error);
    }
  }

  // One end of many is refused with all of them: finds it, and makes it a failed attempt, so that no other suffers.
  async #settleHalves(ends, error, backoff) {
    if (ends.length > 1) {
      const middle = ends.length >> 1;
      await this.#settle(ends.slice(0, middle), backoff);
      return this.#settle(ends.slice(middle), backoff);
    }
    this.#refused(ends[0], error.message);
  }

  // One on its way was refused: its run is to be a failed attempt instead, which the daemon may have made it already.
  #refused(end, why) {
    this.#sending--;
    this.#changed.ring();
    const { token } = JSON.parse(end);
    if (this.#failing.delete(token)) return; // then its lease runs out
    this.#tell(`the end of a run is refused: ${why}`);
    this.#failing.add(token);
    this.#unsent.push(retried(token, `its end was refused: ${why}`.slice(0, 1000)));
    this.#ends.ring();
  }

  // Errors: Unreachable for answers that are none of the API's; they change nothing.
  #answered(ends, replies) {
    if (replies?.length !== ends.length) throw new Unreachable(`${replies?.length} answers to ${ends.length} ends, which is none of the API's`, true);
    replies.forEach((reply, at) => {
      if (reply.error) return this.#refused(ends[at], reply.error.detail);
      this.#sending--;
      this.counts[this.#failing.delete(reply.token) ? "failed" : reply.outcome === "ok" ? kindOf(ends[at]) : "lost"]++;
    });
    this.#changed.ring();
  }

  // Heartbeats.

  async #renewOn() {
    const backoff = new Backoff();
    while (!this.#over) {
      await this.#heartbeat.wait(this.#time, this.#untilRenewal());
      const now = this.#time.now();
      this.#giveBackOld(now);
      const held = [...this.#held.values()];
      if (!held.some((job) => job.dueAt <= now)) continue;
      // Those that are nearly due go along.
      const due = held.filter((job) => job.dueAt <= now + job.leaseMs / 10);
      try {
        await this.#renew(due, now);
        this.#isReached(backoff);
      } catch (error) {
        await this.#rest(backoff, error);
      }
    }
  }

  // Looking once a second, it renews none late whose length is three seconds or more; shorter ones, and progress, wake it.
  #untilRenewal() {
    if (this.#held.size === 0) return undefined;
    let at = this.#time.now() + LONGEST_WAIT_MS;
    for (const job of this.#held.values()) at = Math.min(at, job.dueAt);
    return Math.max(0, at - this.#time.now());
  }

  async #renew(jobs, now) {
    const entries = jobs.map((job) => ({ token: job.token, ...job.told }));
    for (const job of jobs) job.told = undefined;
    for (const reply of await this.#renewAll(entries)) {
      const job = this.#held.get(reply.token);
      if (job === undefined) continue;
      if (reply.lease_lost) {
        this.#cancel(job, "lost");
        continue;
      }
      job.renewedAt = now;
      job.leaseMs = reply.lease_ms ?? job.leaseMs;
      if (reply.cancel) this.#cancel(job, "cancel");
    }
  }

  // What is refused for the progress that one of them tells is renewed without any, so that no other lease is harmed.
  async #renewAll(entries) {
    try {
      return await this.#client.leases.renew(entries, this.name);
    } catch (error) {
      if (!isMalformed(error) && !(error instanceof TypeError)) throw error;
      this.#tell(`progress is refused: ${error.message}`);
      return this.#client.leases.renew(entries.map(({ token }) => token), this.name);
    }
  }

  // A run whose lease was lost is no concern of ours any more, also when its function does not heed that.
  #cancel(job, why) {
    job.cancel(why);
    if (!job.started || why === "lost") this.#end(job, undefined);
  }

  // Giving back, and the end.

  #giveBackOld(now) {
    const oldest = this.#waiting[0];
    if (oldest === undefined || now - oldest.takenAt < LONGEST_WAIT_MS) return;
    this.#giveBackWaiting();
    this.#rate = this.#prefetch = 0; // until others have ended
  }

  #giveBackWaiting() {
    for (const job of this.#waiting.splice(0)) this.#end(job, released(job.token));
  }

  // It cannot go on: what runs ends, and run() throws this.
  #fail(error) {
    this.#failure ??= error;
    this.stop();
  }

  async #drain() {
    await this.#until(() => this.#held.size === 0, this.#stopping ? this.#options.drainLimitMs : undefined, this.#hurry.signal);
    for (const job of [...this.#held.values()]) {
      job.cancel("stop");
      this.#end(job, released(job.token));
    }
    await this.#until(() => this.#isIdle(), this.#hurry.signal.aborted ? LAST_TRY_MS / 10 : LAST_TRY_MS);
    if (!this.#isIdle()) {
      const count = this.#unsent.length + this.#sending;
      this.#tell(`the daemon was not told of ${count} ends; those jobs run again when their leases end`);
    }
  }

  // Waits until `holds()`, `limitMs` have passed, or `signal` is aborted.
  async #until(holds, limitMs = Infinity, signal = undefined) {
    const giveUpAt = this.#time.now() + limitMs;
    const ring = () => this.#changed.ring();
    signal?.addEventListener("abort", ring);
    while (!holds() && !signal?.aborted && this.#time.now() < giveUpAt) {
      await this.#changed.wait(this.#time, limitMs === Infinity ? undefined : giveUpAt - this.#time.now());
    }
    signal?.removeEventListener("abort", ring);
  }

  // A poll that was cut off may have been given leases that never arrived: they end now.
  async #leave() {
    if (!(this.#pollWasCut || this.#lostPoll) || !this.#ownsName || this.#failure) return;
    await this.#client.endWorker(this.name).catch(() => {});
  }

  async #rest(backoff, error) {
    if (!this.#isAway) this.#tell(`waiting for the daemon: ${error.message}`);
    this.#isAway = true;
    if (!this.#over) await sleep(this.#time, backoff.next(error.retryAfterMs), this.#hurry.signal);
    // Who is in a hurry to end still does not ask without a pause.
    if (this.#hurry.signal.aborted && !this.#over) await sleep(this.#time, backoff.firstMs);
  }

  #isReached(backoff) {
    backoff.reset();
    if (this.#isAway) this.#tell("the daemon answers again");
    this.#isAway = false;
  }

  #hearSignals() {
    const process = globalThis.process;
    if (typeof process?.on !== "function") return () => {};
    let came = false;
    const hear = () => {
      this.stop({ atOnce: came });
      came = true;
    };
    for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, hear);
    return () => ["SIGTERM", "SIGINT"].forEach((signal) => process.removeListener(signal, hear));
  }
}

// Every settlement begins with its token and its outcome.
function kindOf(end) {
  const outcome = end.slice(end.indexOf(',"outcome":"') + 12);
  if (outcome.startsWith("done")) return "done";
  if (outcome.startsWith("release")) return "released";
  return outcome.startsWith("cancel") ? "cancelled" : "failed";
}

async function uniqueName() {
  const process = globalThis.process;
  const suffix = newKey().slice(0, 6);
  if (process?.versions?.node === undefined) return `browser:${suffix}`;
  const { hostname } = await import("node:os");
  return `${hostname()}:${process.pid}:${suffix}`;
}
