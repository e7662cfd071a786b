// What a worker does, in virtual time, against a daemon in memory.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Bury, Client, Retry, Snooze, Worker } from "../src/index.js";
import { virtually } from "./virtual.js";

const many = (daemon, count, more) => Array.from({ length: count }, (_, at) => daemon.put("q", String(at), more));
const requests = (daemon, method, path) => daemon.requests.filter(([m, p]) => m === method && p === path);

// What becomes of one job whose function is `run`.
async function one({ daemon, worker }, run, more) {
  const job = daemon.jobs.get(daemon.put("q", "payload", more));
  const it = worker(run);
  await it.run();
  return { job, counts: it.counts, settled: daemon.settled };
}

describe("how a run ends", () => {
  test("what it returns is the result", virtually(async (world) => {
    const results = [[undefined, undefined], ["text", "text"], [{ a: [1] }, '{"a":[1]}'], [0, "0"], [null, "null"]];
    for (const [value, result] of results) {
      const { job } = await one(world, () => value);
      assert.deepEqual([job.state, job.result], ["done", result]);
    }
  }));

  test("bytes are kept exactly", virtually(async (world) => {
    const { settled } = await one(world, () => new Uint8Array([255, 0]));
    assert.equal(settled[0].result_base64, "/wA=");
  }));

  test("what it throws is a failed attempt that says where", virtually(async (world) => {
    const { settled, counts } = await one(world, async () => {
      throw new TypeError("no such address");
    });
    assert.equal(settled[0].outcome, "retry");
    assert.match(settled[0].error, /^TypeError: no such address \(worker\.test\.js:\d+:\d+\)$/);
    assert.equal(counts.failed, 1);
  }));

  test("a long text does not hide where it was thrown, and a group names its first errors", virtually(async (world) => {
    const errors = Array.from({ length: 9 }, (_, at) => new RangeError(`number ${at}`));
    for (const [error, said] of [
      [new Error("x".repeat(9000)), /^Error: x+ \(worker\.test\.js:\d+:\d+\)$/],
      [new AggregateError(errors, "all"), /^AggregateError: all: RangeError: number 0; RangeError: number 1; RangeError: number 2 \(/],
    ]) {
      const { settled } = await one(world, async () => {
        throw error;
      }, { max_attempts: 1 });
      const { error: text } = settled.findLast(({ outcome }) => outcome === "retry");
      assert.match(text, said);
      assert.ok(text.length <= 4000);
    }
  }));

  test("Retry, Bury and Snooze say more", virtually(async (world) => {
    const throws = (error) => () => {
      throw error;
    };
    const { settled } = await one(world, throws(new Retry(30_000, "later", { priority: 7 })));
    assert.deepEqual(settled[0], { token: 1, outcome: "retry", error: "later", delay_ms: 30_000, priority: 7 });
    const { job } = await one(world, throws(new Bury("hopeless")));
    assert.deepEqual([job.state, job.error], ["buried", "hopeless"]);
    const snoozed = await one(world, throws(new Snooze(60_000)));
    assert.deepEqual([snoozed.settled.at(-1).delay_ms, snoozed.job.attempts, snoozed.counts.released], [60_000, 0, 1]);
  }));

  const odd = {
    "a delay that is a bigint of no size": () => new Retry(10n ** 400n),
    "an endless delay": () => new Retry(Infinity),
    "a delay of text": () => new Retry("soon"),
    "a snooze of no number": () => new Snooze(NaN),
    "a snooze without a delay": () => new Snooze(),
    "a priority that is a bigint": () => new Retry(10, "later", { priority: 1n }),
    "an error without a prototype": () => Object.create(null),
    "a symbol": () => Symbol("s"),
    "nothing": () => undefined,
    "an error whose name throws": () => Object.defineProperty(new Error("x"), "name", { get: () => { throw new Error("no"); } }),
    "an error whose message throws": () => Object.defineProperty(new Bury("x"), "message", { get: () => { throw new Error("no"); } }),
    "a proxy that refuses": () => new Proxy({}, { get: () => { throw new Error("no"); }, getPrototypeOf: () => { throw new Error("no"); } }),
    "an error whose stack is one long word": () => Object.assign(new Error("x"), { stack: "a".repeat(10_000_000) }),
    "an error whose stack is no text": () => Object.assign(new Error("x"), { stack: 7, message: 8 }),
  };
  for (const [name, make] of Object.entries(odd)) {
    test(`${name}: a failed attempt that says something, and the next job runs`, virtually(async ({ daemon, worker }) => {
      many(daemon, 2, { max_attempts: 1 });
      const it = worker((job) => {
        if (job.payload === "0") throw make();
      }, { concurrency: 1 });
      await it.run();
      assert.deepEqual(daemon.states(), ["ready", "done"]);
      assert.ok(daemon.settled.find(({ token, error }) => token === 1 && error));
    }));
  }

  test("a function that changes or freezes its job changes its own view alone", virtually(async ({ daemon, worker, logged }) => {
    const changes = {
      token: (job) => (job.token = 9), record: (job) => (job.record = {}), attempt: (job) => delete job.attempt, signal: (job) => (job.signal = null),
      names: (job) => {
        Object.assign(job.record, { id: Symbol("s"), queue: { toString: null } });
        throw new Error("forgotten");
      },
    };
    for (const name of [...Object.keys(changes), "freeze", "more", "fine"]) daemon.put("q", name, { lease_time_ms: 3000 });
    const it = worker(async (job) => {
      if (job.payload === "freeze") Object.freeze(job);
      if (job.payload === "freeze") job.progress(0.5);
      if (job.payload === "more") Object.assign(job, { started: false, told: 1, run: null, whyCancelled: "lost", leaseMs: NaN, dueAt: NaN });
      changes[job.payload]?.(job);
    }, { concurrency: 2 });
    await it.run();
    assert.deepEqual(daemon.states(), [...Array(5).fill("ready"), "done", "done", "done"]);
    assert.ok(logged.some((line) => /^job 5 of q failed .*forgotten/s.test(line)), logged.join());
  }));

  test("functions that throw at once keep no other job from being run", virtually(async ({ daemon, worker }) => {
    many(daemon, 20, { max_attempts: 1 });
    const ran = new Set();
    const it = worker((job) => {
      ran.add(job.payload);
      if (Number(job.payload) % 4 !== 3) throw new Error("at once");
    }, { concurrency: 2, prefetch: 9 });
    await it.run();
    assert.equal(ran.size, 20);
    assert.ok(!daemon.states().includes("running"), daemon.states().join());
  }));

  test("a delay that is past is now, and one that is too far the farthest", virtually(async (world) => {
    for (const [delay, expected] of [[-5, 0], [-5n, 0], [1e300, 100 * 365 * 24 * 3600 * 1000]]) {
      let thrown = false;
      const { settled } = await one(world, () => {
        if (thrown) return;
        thrown = true;
        throw new Retry(delay);
      });
      assert.equal(settled.filter(({ outcome }) => outcome === "retry").at(-1).delay_ms, expected);
    }
  }));

  test("delays are numbers and bigints", virtually(async (world) => {
    for (const delay of [30_000, 30_000n, 29_999.7]) {
      let thrown = false;
      const { settled } = await one(world, () => {
        if (thrown) return;
        thrown = true;
        throw new Retry(delay);
      });
      assert.equal(settled.filter(({ outcome }) => outcome === "retry").at(-1).delay_ms, 30_000);
    }
  }));

  const no = () => {
    throw new Error("no log");
  };
  for (const log of [no, async () => no()]) {
    test(`a log that throws stops nothing: ${log}`, virtually(async ({ daemon, worker }) => {
      many(daemon, 2, { max_attempts: 1 });
      const it = worker((job) => {
        if (job.payload === "0") throw new Error("x");
      });
      it.log = log;
      await it.run();
      assert.deepEqual(daemon.states(), ["ready", "done"]);
    }));
  }

  test("results that JSON would change in silence fail the run", virtually(async (world) => {
    for (const result of [NaN, { a: [Infinity] }, () => 1, Symbol("s")]) {
      const { settled } = await one(world, () => result, { max_attempts: 1 });
      assert.match(settled.at(-1).error, /JSON cannot say/);
    }
  }));

  test("a result that is no JSON fails the run alone", virtually(async ({ daemon, worker }) => {
    many(daemon, 3);
    await worker((job) => (job.payload === "1" ? { big: 1n } : "fine")).run();
    assert.deepEqual(daemon.states(), ["done", "ready", "done"]);
  }));

  test("a large end goes alone", virtually(async ({ daemon, worker }) => {
    many(daemon, 3);
    await worker((job) => "x".repeat(job.payload === "1" ? 9 << 20 : 9)).run();
    const brought = daemon.requests.map(([, , body]) => body?.settlements ?? body?.settle ?? []).filter((ends) => ends.length > 0);
    assert.deepEqual(brought.map((ends) => ends.map(({ token }) => token)), [[1], [2], [3]]);
  }));

  test("a job that no function fits is a failed attempt, or the default's", virtually(async (world) => {
    const { job } = await one(world, () => {}, { function: "unknown" });
    assert.match(job.error, /has no function/);
    const seen = [];
    world.daemon.put("q", "x", { function: "other" });
    await world.worker(() => {}).default((job) => seen.push([job.function, job.payload, job.attempt])).run();
    assert.deepEqual(seen, [["other", "x", 1]]);
  }));

  test("follow-ups are put with the end, and not with a failure", virtually(async (world) => {
    const { settled } = await one(world, (job) => job.followUp("next", { from: job.id }, { priority: 3 }));
    assert.deepEqual(settled[0].follow_ups, [{ queue: "next", payload: { from: 1 }, priority: 3 }]);
    await one(world, (job) => {
      job.followUp("next");
      throw new Error("no");
    });
    assert.equal(world.daemon.settled[1].follow_ups, undefined);
  }));

  for (const refusesParts of [false, true]) {
    const how = refusesParts ? "by itself" : "with its request";
    test(`an end that is refused ${how} fails its run and no other`, virtually(async ({ daemon, worker, logged }) => {
      many(daemon, 8);
      daemon.refusesParts = refusesParts;
      const it = worker((job) => {
        if (job.payload === "3") job.followUp("next", "", { priority: "high" });
      });
      await it.run();
      assert.deepEqual(daemon.states(), ["done", "done", "done", "ready", "done", "done", "done", "done"]);
      assert.match(daemon.jobs.get(4).error, /its end was refused/);
      assert.match(logged[1], /is refused/);
      assert.match(logged[2], /1 jobs are due later/);
      assert.deepEqual([logged.length, it.counts.done, it.counts.failed, it.counts.lost], [3, 7, 1, 0]);
    }));
  }

  test("progress that is none fails the run alone", virtually(async (world) => {
    const { job } = await one(world, (it) => it.progress(1.5));
    assert.match(job.error, /from 0 to 1/);
  }));
});

test("what is told has no halves of characters", virtually(async (world) => {
  const text = "x".repeat(249) + "\u{1f600}";
  const { job } = await one(world, async (it) => {
    it.progress(0.5, text);
    await world.time.sleep(1500);
  });
  assert.equal(job.message, "x".repeat(249));
  for (const error of [new Error("\ud83d"), new Bury("x".repeat(3999) + "\u{1f600}"), new Retry(60_000, "\ude00"), "\ud83d"]) {
    const { settled } = await one(world, () => Promise.reject(error));
    assert.doesNotMatch(settled.at(-1).error, /\p{Surrogate}/u);
  }
}));

describe("leases", () => {
  test("are renewed also where the progress of one is refused", virtually(async ({ time, daemon, worker, logged }) => {
    many(daemon, 3, { lease_time_ms: 9000 });
    const it = worker(async (job) => {
      if (job.id === 2) job.progress(0.5, "bad");
      await time.sleep(30_000);
    });
    daemon.refusesProgress = "bad";
    await it.run();
    assert.deepEqual([daemon.states(), it.counts.lost], [["done", "done", "done"], 0]);
    assert.deepEqual(logged.filter((line) => /progress is refused/.test(line)).length, 1);
    const [refused, again] = requests(daemon, "PATCH", "/v1/leases").map(([, , { leases }]) => leases);
    assert.deepEqual(again, refused.map(({ token }) => ({ token })));
  }));

  test("are renewed three times in their length", virtually(async ({ time, daemon, worker }) => {
    many(daemon, 1);
    await worker(() => time.sleep(119_000)).run();
    assert.deepEqual([daemon.states(), requests(daemon, "PATCH", "/v1/leases").length], [["done"], 5]);
  }));

  test("that are short are renewed in time beside long ones", virtually(async ({ time, daemon, worker }) => {
    many(daemon, 1);
    many(daemon, 1, { lease_time_ms: 300 });
    const it = worker(() => time.sleep(3000));
    await it.run();
    assert.deepEqual([daemon.states(), it.counts.lost], [["done", "done"], 0]);
  }));

  test("of jobs that are cancelled abort the signal", virtually(async ({ time, daemon, worker }) => {
    many(daemon, 1);
    const it = worker((job) => new Promise((_, reject) => {
      job.signal.addEventListener("abort", () => reject(job.signal.reason));
    }));
    const running = it.run();
    await time.sleep(1000);
    daemon.jobs.get(1).cancel = true;
    await running;
    assert.deepEqual([daemon.states(), it.counts.cancelled], [["cancelled"], 1]);
  }));

  test("that are lost are not settled", virtually(async ({ time, daemon, worker }) => {
    many(daemon, 1);
    const it = worker(() => time.sleep(40_000));
    const running = it.run();
    await time.sleep(1000);
    daemon.running.clear();
    daemon.jobs.clear();
    await running;
    assert.deepEqual([it.counts.lost, daemon.settled.length], [1, 0]);
  }));

  test("tell progress at most once a second", virtually(async ({ time, daemon, worker }) => {
    many(daemon, 1);
    await worker(async (job) => {
      for (let step = 0; step < 40; step++) {
        job.progress(step / 40, `step ${step}`);
        await time.sleep(100);
      }
    }).run();
    assert.ok([3, 4].includes(requests(daemon, "PATCH", "/v1/leases").length));
    assert.match(daemon.jobs.get(1).message, /^step/);
  }));

  test("are renewed with what is told, though a character is cut in two", virtually(async ({ time, daemon, worker }) => {
    many(daemon, 1);
    await worker(async (job) => {
      job.progress(0.5, "x" + "\u{1f600}".repeat(200));
      await time.sleep(5000);
    }).run();
    const [request] = requests(daemon, "PATCH", "/v1/leases");
    assert.doesNotMatch(JSON.stringify(request), /\\ud83d/);
    assert.deepEqual(daemon.states(), ["done"]);
  }));
});

describe("how much it takes", () => {
  test("no more run at once than it is told", virtually(async ({ time, daemon, worker }) => {
    many(daemon, 100);
    let [running, most] = [0, 0];
    const it = worker(async () => {
      most = Math.max(most, ++running);
      await time.sleep(10);
      running--;
    }, { concurrency: 7 });
    await it.run();
    assert.deepEqual([most, it.counts.done], [7, 100]);
  }));

  test("quick jobs are leased and settled in batches", virtually(async ({ daemon, worker }) => {
    many(daemon, 5000);
    const it = worker(() => {});
    await it.run();
    assert.equal(it.counts.done, 5000);
    assert.ok(daemon.requests.length < 150, daemon.requests.length);
  }));

  test("long jobs are not taken from other workers", virtually(async ({ time, daemon, worker }) => {
    many(daemon, 60);
    let most = 0;
    await worker(async () => {
      most = Math.max(most, daemon.running.size);
      await time.sleep(10_000);
    }, { concurrency: 5 }).run();
    assert.ok(most <= 6, most);
  }));

  test("what waits for a second is given back", virtually(async ({ time, daemon, worker }) => {
    many(daemon, 12);
    const it = worker(() => time.sleep(100_000), { concurrency: 2, prefetch: 10, untilEmpty: false });
    const running = it.run();
    await time.sleep(500);
    assert.equal(daemon.running.size, 12);
    await time.sleep(1500);
    assert.deepEqual([it.counts.released, daemon.running.size], [10, 2]);
    it.stop({ atOnce: true });
    await running;
  }));

  test("an end is told at once while it waits for jobs", virtually(async ({ time, daemon, worker }) => {
    many(daemon, 1);
    const it = worker(() => time.sleep(5000), { untilEmpty: false });
    const running = it.run();
    await time.sleep(5020);
    assert.deepEqual(daemon.states(), ["done"]);
    it.stop();
    await running;
  }));
});

describe("until empty it", () => {
  const failOnce = (delayMs) => (job) => {
    if (job.attempt === 1) throw new Retry(delayMs);
  };
  const work = async ({ time, worker }, run, options) => {
    const began = time.now();
    await worker(run, { lingerMs: 60_000, ...options }).run();
    return time.now() - began;
  };

  test("ends at once where nothing is left", virtually(async (world) => {
    many(world.daemon, 2);
    assert.ok((await work(world, () => {})) < 100);
    assert.ok((await work(world, () => {}, { queues: ["none"] })) < 100);
  }));

  test("waits for retries that are due before long, not for later ones, and tells of them", virtually(async (world) => {
    many(world.daemon, 2);
    assert.ok(Math.abs((await work(world, failOnce(40_000))) - 40_000) < 1000);
    assert.deepEqual(world.daemon.states(), ["done", "done"]);
    world.daemon.put("q");
    assert.ok((await work(world, failOnce(62_000))) < 200);
    assert.match(world.logged.at(-1), /1 jobs are due later, the first at 1970-01-01T00:01:4/);
    assert.ok(Math.abs((await work(world, () => {}, { lingerMs: 120_000 })) - 62_000) < 1500);
  }));

  test("waits for no job that was put with a later time, nor for a queue that gives nothing", virtually(async (world) => {
    world.daemon.put("q", "", { due: world.time.now() + 30_000 });
    assert.ok((await work(world, () => {})) < 200);
    world.daemon.put("q", "", { due: 0 });
    for (const config of [{ paused: true }, { rate: 0 }]) {
      world.daemon.config = config;
      assert.ok((await work(world, () => {}, { queues: ["q"], prefetch: 0 })) < 200);
    }
  }));

  test("waits for what runs elsewhere", virtually(async (world) => {
    world.daemon.put("q");
    const [job] = world.daemon.jobs.values();
    job.state = "running";
    const ended = work(world, () => {});
    await world.time.sleep(20_000);
    job.state = "ready";
    assert.ok((await ended) > 20_000);
    assert.deepEqual(world.daemon.states(), ["done"]);
  }));

  test("lets no job wait for one that runs long", virtually(async (world) => {
    many(world.daemon, 2);
    const ended = work(world, (job) => (job.id === 1 ? world.time.sleep(1e6) : failOnce(5000)(job)));
    await world.time.sleep(10_000);
    assert.deepEqual(world.daemon.states(), ["running", "done"]);
    await ended;
  }));

  test("waits for a daemon that is away when it looks, and stops meanwhile", virtually(async (world) => {
    many(world.daemon, 1);
    world.daemon.faults.push(["/v1/queues/q", "drop"], ["/v1/queues/q", 503]);
    await work(world, failOnce(2000));
    assert.deepEqual(world.daemon.states(), ["done"]);
    world.daemon.faults.push(...Array(1000).fill(["/v1/queues/q", "drop"]));
    const it = world.worker(() => {});
    const ended = it.run();
    await world.time.sleep(5000);
    it.stop({ atOnce: true });
    await ended;
    assert.ok(world.daemon.faults.length > 900);
  }));
});

describe("stopping", () => {
  const begin = async ({ time, daemon, worker }, ms, jobs, options) => {
    many(daemon, jobs);
    const it = worker(() => time.sleep(ms), { untilEmpty: false, ...options });
    const running = it.run();
    await time.sleep(100);
    const began = time.now();
    return { it, ended: () => running.then(() => time.now() - began) };
  };

  test("by the function that runs, before it waits, does not give its job back", virtually(async ({ daemon, worker }) => {
    const [id] = many(daemon, 1);
    const it = worker(() => {
      it.stop();
      return "ended";
    });
    await it.run();
    assert.deepEqual([daemon.jobs.get(id).state, daemon.jobs.get(id).result, it.counts.done], ["done", "ended", 1]);
  }));

  test("lets what runs end and gives back the rest", virtually(async (world) => {
    const { it, ended } = await begin(world, 5000, 5, { concurrency: 2, prefetch: 3 });
    it.stop();
    assert.ok(Math.abs((await ended()) - 4900) < 100);
    assert.deepEqual(world.daemon.states(), ["done", "done", "ready", "ready", "ready"]);
  }));

  test("cancels and gives back what does not end in time", virtually(async (world) => {
    const { it, ended } = await begin(world, 1e6, 3, { drainLimitMs: 10_000 });
    it.stop();
    assert.ok(Math.abs((await ended()) - 10_000) < 100);
    assert.deepEqual([world.daemon.states(), it.counts.released], [["ready", "ready", "ready"], 3]);
  }));

  test("whatever kind of number says when", virtually(async (world) => {
    const { it, ended } = await begin(world, 1e6, 3, { drainLimitMs: 10_000n });
    it.stop();
    assert.ok(Math.abs((await ended()) - 10_000) < 100);
  }));

  test("also while it works until all is done", virtually(async (world) => {
    const { it, ended } = await begin(world, 1e6, 3, { drainLimitMs: 10_000, untilEmpty: true });
    it.stop();
    assert.ok(Math.abs((await ended()) - 10_000) < 100);
  }));

  test("at once", virtually(async (world) => {
    const { it, ended } = await begin(world, 1e6, 3);
    it.stop();
    it.stop({ atOnce: true });
    assert.ok((await ended()) < 200);
    assert.deepEqual(world.daemon.states(), ["ready", "ready", "ready"]);
  }));

  test("an idle worker ends at once and leaves no lease behind", virtually(async (world) => {
    const { it, ended } = await begin(world, 0, 0);
    it.stop();
    assert.ok((await ended()) < 100);
    assert.equal(world.daemon.requests.at(-1)[0], "DELETE");
  }));

  test("before it runs; and it may run again", virtually(async ({ daemon, worker }) => {
    const it = worker(() => {});
    it.stop();
    await it.run();
    many(daemon, 3);
    await it.run();
    assert.equal(it.counts.done, 3);
  }));

  test("is not held up by a daemon that is gone", virtually(async (world) => {
    const { it, ended } = await begin(world, 1000, 3);
    world.daemon.goDown();
    it.stop();
    assert.ok((await ended()) < 30_000);
    assert.match(world.logged.at(-1), /was not told of 3 ends/);
  }));
});

describe("when the daemon is away", () => {
  test("runs go on, and their ends are sent when it is back", virtually(async ({ time, daemon, worker, logged }) => {
    many(daemon, 3);
    const it = worker(() => time.sleep(5000), { untilEmpty: false });
    const running = it.run();
    await time.sleep(1000);
    daemon.goDown();
    await time.sleep(39_000);
    daemon.isDown = false;
    await time.sleep(10_000);
    assert.match(logged[0], /runs jobs of q from .*, \d+ at a time/);
    assert.deepEqual([daemon.states(), logged.length], [["done", "done", "done"], 3]);
    it.stop();
    await running;
  }));

  test("an end whose answer is lost is sent again and counts once", virtually(async ({ time, daemon, worker }) => {
    many(daemon, 40);
    daemon.faults.push(["/v1/leases/settle", "drop"], ["/v1/leases/settle", "drop"], ["/v1/leases/settle", 503]);
    await worker((job) => time.sleep(job.id)).run();
    assert.equal(daemon.settled.length, 40);
  }));

  test("leases whose answer is lost are not waited for", virtually(async ({ time, daemon, worker }) => {
    many(daemon, 4);
    daemon.faults.push(["/v1/leases", "drop"]);
    const began = time.now();
    await worker(() => {}).run();
    assert.deepEqual(daemon.states(), ["done", "done", "done", "done"]);
    assert.deepEqual([...daemon.jobs.values()].map((job) => job.attempts), [1, 1, 1, 1]);
    assert.ok(time.now() - began < 30_000);
  }));

  test("answers of others than the daemon are waited out", virtually(async ({ time, daemon, worker, logged }) => {
    for (const [path, body] of [["/v1/leases", "{}"], ["/v1/leases", "null"], ["/v1/leases/settle", '{"status":"ok"}']]) {
      const before = daemon.requests.length;
      many(daemon, 1);
      daemon.faults.push([path, new Response(body, { status: 200 })]);
      const it = worker(() => {}, { untilEmpty: false });
      const running = it.run();
      await time.sleep(10_000);
      it.stop();
      await running;
      assert.equal(it.counts.done, 1, body);
      assert.match(logged.splice(0).join(" "), /an answer without/, path);
      assert.ok(daemon.requests.length - before < 10);
    }
  }));

  test("an address that is none is said each time", async () => {
    const it = new Worker("no address").job("q", () => {});
    for (let time = 0; time < 2; time++) await assert.rejects(it.run(), { code: "ERR_INVALID_URL" });
  });

  test("answers that are too few are none, and the ends are sent again", virtually(async ({ time, daemon, worker }) => {
    many(daemon, 5);
    const real = daemon.fetch;
    let cut = 0;
    const fetch = async (url, request) => {
      const response = await real(url, request);
      const body = await response.json();
      if (url.endsWith("/settle") && cut < 2 && body.replies.length > 0) cut += body.replies.splice(0, 1).length;
      return { ...response, json: async () => body };
    };
    const it = worker((job) => time.sleep(1000 * job.id), { client: new Client("http://fake", { fetch, time, retryForMs: 0 }) });
    await it.run();
    assert.deepEqual([cut, daemon.states(), it.counts.done + it.counts.lost], [2, Array(5).fill("done"), 5]);
  }));

  test("an answer that ends one of its loops ends the worker, and it may run again", virtually(async ({ daemon, worker }) => {
    daemon.put("q", "", { lease_time_ms: 3000 });
    const real = daemon.fetch;
    const fetch = async (url, request) => {
      if (!url.endsWith("/leases") || request.method !== "POST") return real(url, request);
      return { status: 200, headers: new Headers(), json: async () => ({ leases: [{ token: 1 }] }) };
    };
    const it = worker(() => {}, { client: new Client("http://fake", { fetch, time: daemon.time, retryForMs: 0 }) });
    for (let at = 0; at < 2; at++) await assert.rejects(it.run(), TypeError);
  }));

  test("numbers that are none are named", () => {
    for (const [name, value] of [["concurrency", 2.5], ["concurrency", NaN], ["concurrency", 0], ["prefetch", -1], ["prefetch", "4"]]) {
      assert.throws(() => new Worker("http://fake", { [name]: value }), { name: "RangeError", message: new RegExp(`^${name}: `) });
    }
  });

  test("one queue is a queue", virtually(async ({ daemon, worker }) => {
    many(daemon, 1);
    await worker(() => {}, { queues: "q" }).run();
    assert.deepEqual(daemon.states(), ["done"]);
  }));

  test("a refusal ends the worker and is thrown", virtually(async ({ daemon, worker }) => {
    daemon.faults.push(401);
    await assert.rejects(worker(() => {}, { untilEmpty: false }).run(), { status: 401 });
  }));

  test("faults at every request neither lose nor repeat an end", virtually(async (world) => {
    for (const fault of ["refuse", 503, "drop"]) {
      for (let at = 0; at < 10; at++) {
        const { time, daemon, worker } = world;
        daemon.jobs.clear();
        daemon.running.clear();
        many(daemon, 20);
        daemon.faults = [...Array(at).fill(undefined), fault];
        await worker((job) => time.sleep(job.id), { concurrency: 4 }).run();
        // Leases whose answer was lost end by themselves.
        const states = new Set(daemon.states());
        if (fault === "drop") states.delete("running");
        assert.deepEqual([...states], states.size ? ["done"] : [], `${fault} ${at}`);
      }
    }
  }));
});
