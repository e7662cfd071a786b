// The client over real sockets, against the daemon in memory that the Python client's tests have.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { after, before, beforeEach, describe, test } from "node:test";
import { inspect } from "node:util";
import { fileURLToPath } from "node:url";
import { runInNewContext } from "node:vm";
import { Client, newJob, Unreachable, Worker } from "../src/index.js";
import { Backoff, realTime } from "../src/time.js";

const PYTHON = fileURLToPath(new URL("../../python", import.meta.url));
let daemon, url, client;
let queue = "";
let queues = 0;

before(async () => {
  daemon = spawn("python3", ["-m", "tests.fake_daemon"], { cwd: PYTHON, stdio: ["ignore", "pipe", "inherit"] });
  [url] = await once(createInterface(daemon.stdout), "line");
  client = new Client(url);
});
after(() => daemon.kill());
beforeEach(() => (queue = `queue ${++queues}`));

const is = (type) => (error) => error.type === type;

// A client whose next answers suffer: "drop", or a status.
function faulty(...faults) {
  const suffer = async (...request) => {
    const fault = faults.shift();
    if (typeof fault === "number") return new Response("{}", { status: fault });
    const response = await fetch(...request);
    if (fault === "drop") throw new TypeError("fetch failed", { cause: { code: "ECONNRESET" } });
    return response;
  };
  return new Client(url, { fetch: suffer });
}

describe("what no request can be made of is refused at once, and named", () => {
  for (const address of ["localhost:7733", "127.0.0.1:7733", "unix:/run/argiope.sock", "ftp://h", {}, "http://h/?q", "http://h/#f", "http://ann:secret@h"]) {
    test(`the address ${address}`, () => {
      assert.throws(() => new Client(address), (error) => error instanceof TypeError && /a URL/.test(error.message) && !/secret/.test(error.message));
    });
  }
  test("an empty one in the environment is none", (context) => {
    context.after(() => delete process.env.ARGIOPE_URL);
    process.env.ARGIOPE_URL = "";
    assert.equal(new Client().url, "http://127.0.0.1:7733");
  });
  test("keys, tokens and ids of events", async () => {
    for (const key of ["a\r\nX: 1", "order-\u0436"]) {
      await assert.rejects(client.put(queue, 1, { idempotencyKey: key }), { name: "TypeError", message: /^idempotencyKey: / });
      assert.throws(() => new Client(url, { token: key }), { name: "TypeError", message: /^token: / });
      await assert.rejects(client.events({ lastEventId: key }).next(), { name: "TypeError", message: /^lastEventId: / });
    }
  });
  test("no time to wait in", () => {
    for (const timeoutMs of [0, -1, -Infinity]) assert.throws(() => new Client(url, { timeoutMs }), /^(Range|Type)Error: timeoutMs: /);
    new Client(url, { timeoutMs: Infinity });
  });
  test("one queue is a queue, and null is no filter", async () => {
    await client.put(queue, "text");
    const { leases } = await client.leases.take(queue);
    assert.equal(leases[0].job.queue, queue);
    const { jobs } = await client.jobs.page({ queue, after: null, state: null });
    assert.equal(jobs.length, 1);
  });
});

describe("operations", () => {
  test("a job is put and looked at", async () => {
    const name = `${queue}/first %`;
    const { id, outcome } = await client.put(queue, "hällo", { key: "ann", priority: 3, id: name });
    assert.equal(outcome, "added");
    assert.equal((await client.put(queue, "again", { id: name })).outcome, "kept");
    const job = await client.jobs.get(name);
    assert.deepEqual([job.id, job.payload, job.key, job.priority], [id, "hällo", "ann", 3]);
    assert.equal((await client.jobs.explain(id)).reason, "none");
    assert.deepEqual(await client.jobs.history(id), []);
    await assert.rejects(client.jobs.output(id), is("not_found"));
  });

  test("payloads of every kind", async () => {
    const payloads = ["text", { a: 1 }, 0, new Uint8Array([255]), undefined];
    await client.putMany(payloads.map((payload) => newJob(queue, payload)));
    const seen = [];
    for await (const job of client.jobs.list({ queue })) seen.push(job.payload_base64 ?? job.payload);
    assert.deepEqual(seen, ["text", '{"a":1}', "0", "/w==", ""]);
    const { replies } = await client.putMany(new Set([{ queue, payload: new Uint8Array([254]), delay_ms: 60_000n }]));
    const { payload_base64, state } = await client.jobs.get(replies[0].id);
    assert.deepEqual([payload_base64, state], ["/g==", "delayed"], "also what newJob() has not made");
  });

  test("many are put, and each is answered", async () => {
    const answer = await client.putMany([newJob(queue, 1), { queue, nonsense: 1 }], { completion: newJob(queue) });
    assert.deepEqual([answer.replies[0].outcome, answer.replies[1].error.type], ["added", "invalid_input"]);
    assert.equal(answer.completion.outcome, "added");
    const lines = await client.putLines(`{"queue":"${queue}"}\n{"queue":"${queue}"}\n`);
    assert.equal(lines.replies.length, 2);
    const generated = (function* () {
      for (let at = 0; at < 3; at++) yield `{"queue":"${queue}"}\r\n`;
    })();
    assert.deepEqual((await client.putLines(generated)).replies.map(({ outcome }) => outcome), ["added", "added", "added"]);
    await assert.rejects(client.putMany([{ queue, nonsense: 1 }], { atomic: true }), (error) => {
      return error.errors[0].pointer === "/jobs/0/nonsense";
    });
  });

  test("a list is read page by page", async () => {
    await client.putMany(Array(7).fill(newJob(queue)));
    let count = 0;
    for await (const job of client.jobs.list({ queue, limit: 2 })) count += job.queue === queue;
    assert.equal(count, 7);
    assert.equal((await client.jobs.page({ queue, limit: 3 })).jobs.length, 3);
  });

  test("a list has whole payloads unless told, is of a word, and in either order", async () => {
    const { replies } = await client.putMany(["ann", "bob", "Anna" + "x".repeat(1000)].map((payload) => newJob(queue, payload)));
    const [ann, , anna] = replies.map(({ id }) => id);
    const listed = async (filter, take) => {
      const found = [];
      for await (const job of client.jobs.list({ queue, ...filter })) found.push(take(job));
      return found;
    };
    assert.deepEqual(await listed({ word: "ANN", order: "newest", limit: 1 }, ({ id }) => id), [anna, ann]);
    assert.deepEqual(await listed({}, ({ payload }) => payload.length), [3, 3, 1004]);
    assert.deepEqual(await listed({ beginnings: true }, ({ payload }) => payload.length), [3, 3, 200]);
    assert.deepEqual(await listed({ payloads: false }, ({ payload }) => payload), ["", "", ""]);
    assert.equal((await client.jobs.page({ queue })).jobs[2].payload, "");
  });

  test("jobs are changed", async () => {
    const { replies } = await client.putMany(Array(4).fill(newJob(queue)));
    const [a, b, c, d] = replies.map(({ id }) => id);
    assert.equal((await client.jobs.setPriority(a, 9)).outcome, "changed");
    await client.jobs.setDue(b, { delayMs: 60_000 });
    assert.equal((await client.jobs.get(b)).state, "delayed");
    await client.jobs.kick(b);
    await client.jobs.cancel(c, "no more");
    assert.equal(await client.jobs.erase(d), undefined);
    await assert.rejects(client.jobs.kick(c), is("wrong_state"));
    const changed = await client.jobs.change("cancel", [a, c]);
    assert.deepEqual([changed[0].outcome, changed[1].error.type], ["changed", "wrong_state"]);
  });

  test("queues", async () => {
    const { queues } = client;
    assert.equal((await queues.set(queue, { max_attempts: 5 })).config.max_attempts, 5);
    assert.equal((await queues.change(queue, { capacity: 1 })).config.max_attempts, 5);
    assert.equal((await queues.pause(queue)).config.paused, true);
    assert.equal((await queues.resume(queue)).config.paused, false);
    assert.equal(await queues.kick(queue), 0);
    assert.equal((await queues.stats(queue)).ready, 0);
    assert.ok((await queues.list()).some(({ name }) => name === queue));
    await client.put(queue);
    await assert.rejects(client.put(queue), { type: "queue_full", retryAfterMs: 1000, requestId: "r1" });
    await assert.rejects(queues.delete(queue), is("wrong_state"));
    await assert.rejects(queues.get("none"), is("not_found"));
  });

  test("leases", async () => {
    await client.putMany([newJob(queue, "0"), newJob(queue, "1"), newJob(queue, "2")]);
    const { leases } = await client.leases.take([queue], { most: 2, worker: "w" });
    const tokens = leases.map(({ token }) => token);
    const renewed = await client.leases.renew([tokens[0], { token: tokens[1], progress: 0.5 }, 9e9], "w");
    assert.deepEqual(renewed.map((reply) => reply.lease_lost ?? false), [false, false, true]);
    const settle = [{ token: tokens[0], outcome: "done", result: "r" }];
    const second = await client.leases.take([queue], { most: 5, settle });
    assert.deepEqual([second.leases.length, second.settled[0].outcome], [1, "ok"]);
    assert.equal(new TextDecoder().decode(await client.jobs.output(leases[0].job.id)), "r");
    assert.equal(await client.endWorker("w"), 1);
    const settled = await client.leases.settle([{ token: tokens[1], outcome: "done" }]);
    assert.equal(settled[0].outcome, "lease_lost");
    assert.ok((await client.workers()).some(({ name }) => name === "w"));
  });

  test("schedules", async () => {
    const { schedules } = client;
    const backup = { name: `backup ${queue}`, trigger: "30 2 * * *", job: { queue } };
    assert.equal((await schedules.add(backup)).outcome, "added");
    await assert.rejects(schedules.add(backup), is("conflict"));
    assert.equal((await schedules.set("rent", { trigger: "@every 1h" })).outcome, "added");
    const names = [];
    for await (const schedule of schedules.list()) names.push(schedule.name);
    assert.deepEqual(names, [backup.name, "rent"]);
    assert.equal((await schedules.pause(backup.name, "ann")).paused, true);
    assert.equal((await schedules.resume(backup.name)).paused, false);
    assert.equal((await client.jobs.get(await schedules.run(backup.name))).queue, queue);
    assert.equal((await schedules.change("rent", { coalesce: "all" })).schedule.coalesce, "all");
    assert.equal((await schedules.next("rent", 3)).length, 3);
    assert.equal((await schedules.nextTimes("@every 1h", 2)).length, 2);
    assert.deepEqual(await schedules.history("rent", 5), []);
    assert.equal((await schedules.explain("rent")).reason, "not_due");
    assert.equal(new TextDecoder().decode(await schedules.output("rent")), "left");
    assert.equal((await schedules.get("rent")).name, "rent");
    await schedules.delete("rent");
    await assert.rejects(schedules.get("rent"), is("not_found"));
    const nightly = { queue, payload: { a: 1 }, function: "send", misfire_grace: "300s", coalesce: "all" };
    assert.equal((await schedules.add("nightly", "30 3 * * *", nightly)).outcome, "added");
    const added = (await schedules.get("nightly")).schedule;
    assert.deepEqual([added.trigger, added.misfire_grace, added.coalesce], ["30 3 * * *", "300s", "all"]);
    assert.deepEqual(added.job, { queue, payload: { a: 1 }, function: "send" });
    await assert.rejects(schedules.add("nightly", "30 3 * * *", { queue }), { type: "conflict", message: /there is one of that name; conflict: "replace"/ });
    await schedules.add("nightly", "@every 1h", { queue, conflict: "replace" });
    assert.equal((await schedules.get("nightly")).schedule.trigger, "@every 1h");
    await schedules.delete("nightly");
    for (const words of [
      ["nightly"], ["nightly", "30 3 * * *"], ["nightly", undefined, { queue }], ["nightly", "30 3 * * *", { conflict: "keep" }],
      [backup, "30 3 * * *"], [backup, {}, {}], [backup, { queue }],
    ]) {
      await assert.rejects(schedules.add(...words), TypeError);
    } // prettier-ignore
    for (const [theirs, ours] of [["tz", "zone"], ["pattern", "trigger"], ["repeat", "trigger"], ["limit", "max_runs"],
                                ["eta", "trigger"], ["max_retries", "max_attempts"], ["misfire_grace_time", "misfire_grace"], ["run_date", "trigger"],
                                ["name", "the name"], ["replace_existing", "conflict"], ["executor", "queue"], ["conflict_policy", "conflict"]]) {
      const message = new RegExp(`no option "${theirs}"; use .*${ours}`);
      await assert.rejects(schedules.add("nightly", "30 3 * * *", { queue, [theirs]: 1 }), { message });
      await assert.rejects(schedules.change("nightly", { [theirs]: 1 }), { message });
    } // prettier-ignore
    await assert.rejects(schedules.add("nightly", "30 3 * * *", { queue, coalesce: true }), { name: "TypeError", message: /coalesce is "latest"/ });
    for (const asked of [() => schedules.add(() => 1, "30 3 * * *"), () => client.put(() => 1, "hello"), async () => newJob(() => 1)]) {
      await assert.rejects(asked(), { name: "TypeError", message: /^that is a function: write the name of / });
    }
    for (const [theirs, ours] of [["attempts", "max_attempts"], ["max_retries", "max_attempts"], ["limiter", "rate"], ["removeOnComplete", "keep_done"]]) {
      const message = new RegExp(`a queue has no option "${theirs}"; use ${ours}`);
      await assert.rejects(client.queues.set(queue, { rate: 1, [theirs]: 1 }), { message });
      await assert.rejects(client.queues.change(queue, { [theirs]: 1 }), { message });
    } // prettier-ignore
    for (const [theirs, ours] of [["attempts", "max_attempts"], ["delay", "delay_ms"], ["jobId", "id"], ["repeat", "schedules.add"],
                                ["eta", "due_at"], ["countdown", "delay_ms"], ["max_retries", "max_attempts"], ["run_date", "due_at"]]) {
      await assert.rejects(client.put(queue, "", { [theirs]: 1 }), { message: new RegExp(`no option "${theirs}"; use ${ours}`) });
    } // prettier-ignore
  });

  test("a schedule whose trigger names no zone is told to count in UTC", async () => {
    const told = [];
    const { schedules } = new Client(url, { log: (message) => told.push(message) });
    const cron = { type: "cron", expression: "30 3 * * *" };
    const silent = ["@every 1h", "TZ=Asia/Tokyo 30 3 * * *", "CRON_TZ=UTC 30 3 * * *", { ...cron, zone: "UTC" }, { ...cron, expression: "TZ=UTC 30 3 * * *" },
      { type: "interval", every: "1h" }, { type: "or", triggers: [{ ...cron, zone: "UTC" }] }, { type: "or", zone: "UTC", triggers: [cron] },
      { type: "cron", dialect: "systemd", expression: "daily Europe/Berlin" }, { type: "date", time: "2030-01-01T00:00:00Z" }];
    const heard = ["30 3 * * *", "@daily", cron, { type: "calendar", days: 1, hour: 9 }, { type: "and", triggers: [cron, { ...cron, zone: "UTC" }] },
      { type: "cron", fields: { hour: 3 } }]; // prettier-ignore
    for (const trigger of [...silent, ...heard]) {
      const before = told.length;
      await schedules.add("nightly", trigger, { queue, conflict: "replace" });
      await schedules.set("nightly", { trigger, job: { queue } });
      assert.equal(told.length - before, heard.includes(trigger) ? 2 : 0, JSON.stringify(trigger));
    }
    assert.match(told[0], /^schedule "nightly" counts in UTC, since its trigger names no zone; .*Europe\/Berlin/);
    await schedules.delete("nightly");
  });

  test("the daemon", async () => {
    assert.equal((await client.version()).api, 1);
    assert.deepEqual([await client.health(), await client.ready()], [{ status: "ok" }, { status: "ok" }]);
    assert.match(await client.metrics(), /argiope_jobs/);
    assert.ok((await client.counters()).queues);
    assert.deepEqual((await client.config()).locked, []);
    assert.deepEqual((await client.auditPage()).entries, []);
  });
});

describe("what JSON or the API has no word for is refused before it is sent", () => {
  const unsayable = [
    NaN, Infinity, { a: [NaN] }, new Number(NaN), () => 1, Symbol("s"), 1n, [undefined], new Date(NaN), { at: new Date(NaN) }, new Map([[1, 2]]), { set: new Set() },
    [Promise.resolve(1)], { f() {} }, { s: Symbol("s") }, { n: 1n }, /x/, Object.assign(new Error("lost"), { code: 1 }), { bytes: new Uint8Array(2) },
    { toJSON: () => undefined }, { toJSON: () => NaN }, new (class { #secret = 1; })(),
  ]; // prettier-ignore
  unsayable.forEach((payload, at) =>
    test(`payload ${at}: ${inspect(payload)}`, async () => {
      for (const ask of [
        () => client.put(queue, payload), () => client.putMany([{ queue }, { queue, payload }]), () => client.putMany([], { completion: { queue, payload } }),
        () => client.schedules.add({ name: "n", trigger: "* * * * *", job: { queue, payload } }), () => client.schedules.add("n", "@daily", { queue, payload }),
        () => client.leases.settle([{ token: 1, outcome: "done", result: payload }]),
        () => client.leases.take([queue], { settle: [{ token: 1, outcome: "done", result: payload }] }),
      ]) {
        await assert.rejects(ask(), { name: "TypeError", message: /, which JSON cannot say$/ });
      } // prettier-ignore
    }),
  );
  test("the error names what it is, and where", async () => {
    await assert.rejects(client.putMany([{ queue, payload: { total: NaN } }]), { message: 'jobs[0]: a payload, at "total": the number NaN, which JSON cannot say' });
    for (const bad of [{ queue, payload: 1n }, null, "text", { queue, delay_ms: "5m" }, { queue, due_at: new Date(NaN) }]) {
      await assert.rejects(client.putMany([newJob(queue, 1), bad]), { name: "TypeError", message: /^jobs\[1\]: / });
    }
    await assert.rejects(client.queues.set(queue, { rate: NaN }), { message: 'a request, at "rate": the number NaN, which JSON cannot say' });
    await assert.rejects(client.put(queue, new Map()), { message: "a payload: an object of type Map, which JSON cannot say" });
  });
  test("what JSON can say is put as it is", () => {
    const said = [0, -0, "", null, [], {}, Object.create(null), { a: undefined }, new Date(0), [new String("s"), new Boolean(false), new Number(1)], { toJSON: () => 1 }];
    for (const payload of said) assert.deepEqual(newJob("q", payload).payload, payload);
  });
  test("arguments that make no request reject, and throw nothing at once", async () => {
    const { jobs, queues, schedules } = client;
    for (const ask of [
      () => client.put(queue, "", { delay_ms: "soon" }), () => jobs.setDue(1, { delayMs: NaN }), () => jobs.setDue(1, { dueAt: {} }), () => jobs.get("\ud800"), () => jobs.setDue(1),
      () => queues.pause(queue, NaN), () => schedules.nextTimes("* * * * *", 1, { after: {} }), () => client.leases.settle(),
    ]) {
      await ask().then(() => assert.fail("it was taken"), (error) => assert.ok(error instanceof TypeError || error instanceof URIError, error));
    } // prettier-ignore
  });
  test("half a character becomes a mark, and what is undefined is left out", async () => {
    const { id } = await client.put(queue, { a: "half \ud83d", b: undefined, at: new Date(0) });
    const { payload } = await client.jobs.get(id);
    assert.deepEqual(JSON.parse(payload), { a: "half \ufffd", at: "1970-01-01T00:00:00.000Z" });
  });
  for (const options of [{ delay_ms: "soon" }, { delay_ms: NaN }, { lease_time_ms: new Date() }, { due_at: new Date(NaN) }, { due_at: {} }]) {
    test(JSON.stringify(options), () => {
      assert.throws(() => newJob(queue, "", options), TypeError);
    });
  }

  test("times are taken as people write them", () => {
    const at = new Date("2030-01-02T00:00:00Z");
    for (const due_at of [at, at.getTime(), at.toISOString()]) assert.equal(newJob("q", "", { due_at }).due_at, "2030-01-02T00:00:00.000Z");
    assert.equal(newJob("q", "", { delay_ms: 5n }).delay_ms, 5);
    const throwing = { valueOf: () => { throw new Error("no"); } };
    const ofOthers = [runInNewContext(`new Date(${at.getTime()})`), { epochMilliseconds: at.getTime() }, { valueOf: () => at.getTime() }, BigInt(at.getTime())];
    for (const due_at of ofOthers) assert.equal(newJob("q", "", { due_at }).due_at, "2030-01-02T00:00:00.000Z");
    for (const due_at of [throwing, true, Infinity, NaN, Symbol("s"), () => 0, [], 1e300]) assert.throws(() => newJob("q", "", { due_at }), TypeError);
  });
  test("times and delays are taken as people write them wherever they go", async () => {
    const sent = [];
    const fetch = async (url, { body }) => {
      sent.push(decodeURIComponent(new URL(url).search) || JSON.parse(body));
      return Response.json({ replies: [], leases: [] });
    };
    const here = new Client("http://127.0.0.1:1", { fetch });
    const at = new Date("2030-01-02T00:00:00Z");
    for (const from of [at, at.getTime(), at.toISOString()]) await here.history({ queue: "q", from });
    const settlement = { token: 1, outcome: "retry", delay_ms: 10n, follow_ups: [{ queue: "q", delay_ms: 5n, due_at: at }] };
    await here.leases.settle([settlement]);
    await here.leases.take(["q"], { waitMs: 5n, settle: [settlement] });
    const told = { ...settlement, delay_ms: 10, follow_ups: [{ queue: "q", delay_ms: 5, due_at: at.toISOString() }] };
    assert.deepEqual(sent.slice(0, 3), Array(3).fill("?queue=q&from=2030-01-02T00:00:00.000Z"));
    assert.deepEqual([sent[3].settlements, sent[4].settle, sent[4].wait_ms], [[told], [told], 5]);
    const wrong = { name: "TypeError", message: "delay_ms: soon is no delay: give a number of milliseconds" };
    await assert.rejects(here.leases.settle([{ token: 1, outcome: "retry", delay_ms: "soon" }]), wrong);
    await assert.rejects(here.history({ from: {} }), TypeError);
    for (const [options, name] of [[{ timeoutMs: "1" }, "timeoutMs"], [{ retryForMs: NaN }, "retryForMs"]]) {
      assert.throws(() => new Client("http://127.0.0.1:1", options), (error) => error instanceof TypeError && error.message.startsWith(name));
    }
    for (const good of [10n, 10, Infinity]) new Worker("http://127.0.0.1:1", { drainLimitMs: good, concurrency: 2n });
    assert.throws(() => new Worker("http://127.0.0.1:1", { drainLimitMs: "10" }), { message: 'drainLimitMs: 10 is no delay: give a number of milliseconds' });
    assert.throws(() => new Worker("http://127.0.0.1:1", { concurrency: "2" }), RangeError);
  });
});

describe("when things go wrong", () => {
  test("a put whose answer is lost is put once", async () => {
    const { id } = await faulty("drop", 503).put(queue, "once");
    assert.equal((await client.queues.get(queue)).counts.ready, 1);
    assert.equal((await client.jobs.get(id)).payload, "once");
  });

  test("a put of the same key is put once", async () => {
    const idempotencyKey = `order ${queue}`;
    const first = await client.put(queue, "once", { idempotencyKey });
    assert.deepEqual(await client.put(queue, "once", { idempotencyKey }), first);
    await assert.rejects(client.put(queue, "other", { idempotencyKey }), is("idempotency_mismatch"));
  });

  test("an erasure whose answer is lost succeeds", async () => {
    const { id } = await client.put(queue);
    assert.equal(await faulty("drop").jobs.erase(id), undefined);
  });

  test("leases whose answer is lost are given again", async () => {
    await client.put(queue);
    const { leases } = await faulty("drop").leases.take([queue]);
    assert.equal(leases.length, 1);
    assert.equal((await client.leases.take([queue])).leases.length, 0);
  });

  test("what may be done twice is not sent again", async () => {
    const { id } = await client.put(queue);
    await assert.rejects(faulty("drop").jobs.setDue(id, { delayMs: 1 }), (error) => error instanceof Unreachable && error.sent);
    await assert.rejects(faulty("drop").put(queue, "x", { idempotencyKey: "" }), Unreachable);
  });

  test("the status is that of HTTP, whatever a proxy's JSON calls so", async () => {
    for (const body of ['{"status":"error","message":"no upstream"}', '{"status":200}', "null", "[]"]) {
      const proxied = new Client(url, { fetch: async () => new Response(body, { status: 503 }), retryForMs: 0 });
      await assert.rejects(proxied.jobs.get(1), { status: 503 }, body);
    }
  });

  test("limits that no timer takes do not end at once", (context) => {
    const set = context.mock.method(globalThis, "setTimeout", () => 0);
    for (const ms of [1000, 2 ** 31, Number.MAX_SAFE_INTEGER, Infinity]) realTime.setTimeout(() => {}, ms);
    assert.deepEqual(set.mock.calls.map((call) => call.arguments[1]), [1000, 2 ** 31 - 1, 2 ** 31 - 1, 2 ** 31 - 1]);
  });

  test("a daemon that is away is told of once, and that it is back", async () => {
    const told = [];
    const faults = ["ECONNREFUSED", 503, "ECONNREFUSED", 503];
    const suffer = async (...request) => {
      const fault = faults.shift();
      if (typeof fault === "number") return new Response("{}", { status: fault });
      if (fault) throw new TypeError("fetch failed", { cause: { code: fault, message: "connect refused" } });
      return fetch(...request);
    };
    const time = { ...realTime, setTimeout: (run, ms) => setTimeout(run, ms < 10_000 ? 0 : ms) }; // without the pauses
    const patient = new Client(url, { fetch: suffer, time, log: (message) => told.push(message) });
    await patient.put(queue);
    assert.equal(told.length, 2);
    assert.match(told[0], /^the daemon at http:\/\/[^ ]*:\d+ does not answer: connect refused; .*`argiope serve`.*`url`.*\. Trying again for 30 s, until \d\d:\d\d:\d\d$/);
    assert.equal(told[1], `the daemon at ${patient.url} answers again`);
  });

  test("a log that throws harms no call", async () => {
    for (const log of [() => { throw new Error("no"); }, async () => { throw new Error("no"); }]) {
      const faults = [503];
      const suffer = async (...request) => (faults.shift() ? new Response("{}", { status: 503 }) : fetch(...request));
      assert.equal((await new Client(url, { fetch: suffer, log }).put(queue)).outcome, "added");
    } // prettier-ignore
  });

  test("a Retry-After is heeded up to a minute", () => {
    const waits = [undefined, 0, 7000, 60_000, 61_000, 1e12, Infinity].map((ms) => new Backoff().next(ms));
    assert.deepEqual(waits.map((ms) => Math.floor(ms / 1000)), [0, 0, 7, 60, 60, 60, 60]);
  });

  test("calls are sent again no longer than an answer is waited for, unless told", async () => {
    for (const [options, limit] of [[{}, 30_000], [{ timeoutMs: 2000 }, 2000], [{ timeoutMs: 300_000 }, 30_000], [{ timeoutMs: 2000, retryForMs: 9000 }, 9000]]) {
      let now = 0;
      const time = { now: () => now, setTimeout: (run, ms) => setImmediate(() => { now += ms; run(); }), clearTimeout: clearImmediate };
      const refuse = async () => {
        throw new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } });
      };
      await assert.rejects(new Client(url, { fetch: refuse, time, log: () => {}, ...options }).put(queue), /ECONNREFUSED; nobody listens/);
      assert.ok(now <= limit && now > limit - 6000, `${now} of ${limit}`);
    } // prettier-ignore
  });

  test("nobody is waited for no longer than it was told", async () => {
    const server = await listening();
    const nobody = new Client(server.url, { retryForMs: 0 });
    server.close();
    await once(server, "close");
    const names = (error) => [server.url, "`argiope serve`", "`url`", "ARGIOPE_URL"].every((word) => error.message.includes(word));
    await assert.rejects(nobody.put(queue), (error) => error instanceof Unreachable && !error.sent && names(error));
  });

  test("a daemon that says nothing is left", async () => {
    const server = await listening();
    await assert.rejects(new Client(server.url, { timeoutMs: 50, retryForMs: 0 }).version(), Unreachable);
    server.close();
  });

  test("what is aborted throws the reason", async () => {
    const controller = new AbortController();
    const taking = client.leases.take([queue], { waitMs: 30_000, signal: controller.signal });
    controller.abort(new Error("enough"));
    await assert.rejects(taking, { message: "enough" });
  });
});

describe("events", () => {
  test("come as they happen, and go on where they broke", async () => {
    let streams = 0;
    // Each stream breaks after its first event.
    const breaking = async (...request) => {
      const response = await fetch(...request);
      if (!String(request[0]).includes("/events")) return response;
      streams++;
      return { status: 200, body: oneEvent(response.body) };
    };
    const watcher = new Client(url, { fetch: breaking });
    await client.put(queue);
    const seen = [];
    for await (const event of watcher.events({ kinds: ["job"], queue, lastEventId: "0" })) {
      seen.push(event.data.state);
      if (seen.length === 1) await client.put(queue);
      if (seen.length === 2) break;
    }
    assert.deepEqual([seen, streams], [["ready", "ready"], 2]);
  });

  test("end when they are aborted", async () => {
    const controller = new AbortController();
    // Aborted as soon as the stream is open; what is not heard ends with the test's time.
    const opening = async (...request) => {
      const response = await fetch(...request);
      setImmediate(() => controller.abort());
      return response;
    };
    const watcher = new Client(url, { fetch: opening });
    for await (const event of watcher.events({ signal: controller.signal, queue: "none" })) assert.fail(event.kind);
  });

  test("a refusal is thrown", async () => {
    const refused = new Client(url, { fetch: async () => new Response('{"type":"x:forbidden"}', { status: 403 }) });
    await assert.rejects(refused.events().next(), { type: "forbidden" });
  });
});

// A server that says nothing.
async function listening() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  server.url = `http://127.0.0.1:${server.address().port}`;
  return server;
}

function oneEvent(body) {
  const reader = body.getReader();
  let text = "";
  return new ReadableStream({
    async pull(controller) {
      if (text.includes("data:")) {
        await reader.cancel();
        return controller.error(new Error("cut"));
      }
      const { value } = await reader.read();
      text += new TextDecoder().decode(value);
      controller.enqueue(value);
    },
  });
}
