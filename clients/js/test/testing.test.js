// argiope/testing: how the run of a handler would end, and a daemon that lives as long as a test.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, test } from "node:test";
import { Bury, Retry, Snooze, Worker } from "../src/index.js";
import { cancelJob, Daemon, makeJob, ProgramNotFound, runHandler } from "../src/testing/index.js";
import { virtually } from "./virtual.js";

const throws = (error) => () => {
  throw error;
};

describe("a job made by hand", () => {
  test("has what a worker would give", () => {
    const job = makeJob("mail", { to: "ännie" }, { attempt: 3, key: "ann", function: "send", priority: 5, id: "welcome/ann" });
    assert.deepEqual([job.queue, job.key, job.function, job.attempt, job.name, job.id], ["mail", "ann", "send", 3, "welcome/ann", 1]);
    assert.deepEqual([job.payload, job.json(), job.record.priority, job.cancelled], ['{"to":"ännie"}', { to: "ännie" }, 5, false]);
  });

  test("has its payload as the daemon tells it", () => {
    const bytes = (...values) => new Uint8Array(values);
    for (const [payload, text, exact] of [
      ["text", "text", bytes(116, 101, 120, 116)], [bytes(116), "t", bytes(116)], [bytes(255), "\ufffd", bytes(255)], [undefined, "", bytes()], [0, "0", bytes(48)],
    ]) {
      const job = makeJob("q", payload);
      assert.deepEqual([job.payload, job.payloadBytes], [text, exact]);
    } // prettier-ignore
  });

  test("takes no options that there are not", () => {
    assert.throws(() => makeJob("q", "", { delay: 1 }), { message: /no option "delay"; use delay_ms/ });
  });

  test("takes members of its record", () => {
    assert.equal(makeJob("q", "", { record: { created_at: "2030-01-01T00:00:00Z" } }).record.created_at, "2030-01-01T00:00:00Z");
  });
});

describe("the run of a handler", () => {
  test("that returns is done", async () => {
    for (const [value, result] of [[undefined, undefined], ["text", "text"], [{ a: [1] }, '{"a":[1]}'], [new Uint8Array([255]), new Uint8Array([255])]]) {
      const run = await runHandler(async () => value, makeJob("q"));
      assert.deepEqual([run.outcome, run.result, run.error], ["done", result, ""]);
    } // prettier-ignore
  });

  test("that throws is a failed attempt", async () => {
    const error = new TypeError("no such address");
    const run = await runHandler(throws(error), makeJob("q"));
    assert.deepEqual([run.outcome, run.delayMs, run.exception], ["retry", undefined, error]);
    assert.match(run.error, /^TypeError: no such address \(testing\.test\.js:\d+:\d+\)$/);
  });

  test("says more by Retry, Bury and Snooze", async () => {
    const run = await runHandler(throws(new Retry(30_000, "busy", { priority: 7 })), makeJob("q"));
    assert.deepEqual([run.outcome, run.delayMs, run.error, run.priority], ["retry", 30_000, "busy", 7]);
    const buried = await runHandler(throws(new Bury("no address")), makeJob("q"));
    assert.deepEqual([buried.outcome, buried.error], ["buried", "no address"]);
    const snoozed = await Promise.all([1500, 0].map((ms) => runHandler(throws(new Snooze(ms)), makeJob("q"))));
    assert.deepEqual(snoozed.map(({ outcome, delayMs }) => [outcome, delayMs]), [["snoozed", 1500], ["snoozed", 0]]);
  });

  test("that cannot be told is a failed attempt", async () => {
    assert.match((await runHandler(() => new Map(), makeJob("q"))).error, /an object of type Map, which JSON cannot say/);
    assert.match((await runHandler(throws(new Retry("soon")), makeJob("q"))).error, /an end that cannot be told/);
  });

  test("tells follow-ups and progress", async () => {
    const run = await runHandler((job) => {
      job.progress(0.5, "half");
      job.progress(1);
      job.followUp("mail", { to: job.payload }, { key: "ann" });
    }, makeJob("q", "payload"));
    assert.deepEqual(run.followUps, [{ queue: "mail", key: "ann", payload: { to: "payload" } }]);
    assert.deepEqual(run.progress, [{ progress: 0.5, message: "half" }, { progress: 1, message: "" }]);
  });

  test("is cancelled", async () => {
    const handler = (job) =>
      new Promise((_, reject) => {
        job.signal.addEventListener("abort", () => reject(job.signal.reason));
        cancelJob(job);
      });
    assert.equal((await runHandler(handler, makeJob("q"))).outcome, "cancelled");
  });

  test("ends as a worker tells the daemon", virtually(async ({ daemon, worker }) => {
    const following = (job) => {
      job.followUp("next", new Uint8Array([255]), { delay_ms: 3 });
      return { ok: true };
    };
    const errors = [new Error("x"), new Retry(2000, "later"), new Retry(), new Bury("bad"), new Snooze(60_000), new Retry("x"), undefined];
    for (const handler of [following, () => "text", () => undefined, () => new Map(), ...errors.map(throws)]) {
      const run = await runHandler(handler, makeJob("q", "payload"));
      daemon.jobs.clear();
      daemon.put("q", "payload");
      const before = daemon.settled.length;
      const it = worker((job) => {
        it.stop();
        return handler(job);
      });
      await it.run();
      const { outcome, error = "", delay_ms: delayMs, follow_ups: followUps = [], result } = daemon.settled[before];
      assert.deepEqual([run.error, run.delayMs, run.followUps, run.result], [error, delayMs, followUps, result]);
      assert.equal({ done: "done", retry: "retry", buried: "bury", snoozed: "release" }[run.outcome], outcome);
    }
  }));
});

describe("a daemon", () => {
  // A program in a folder that ends with the test.
  function programOf(context, text) {
    const folder = mkdtempSync(join(tmpdir(), "argiope-program-"));
    context.after(() => rmSync(folder, { recursive: true, force: true }));
    const path = join(folder, "argiope");
    writeFileSync(path, `#!${process.execPath}\n${text}`);
    chmodSync(path, 0o755);
    return path;
  }

  // Runs with these variables of the environment, "" for none.
  async function withEnvironment(variables, run) {
    const before = Object.fromEntries(Object.keys(variables).map((name) => [name, process.env[name]]));
    Object.assign(process.env, variables);
    try {
      return await run();
    } finally {
      for (const [name, value] of Object.entries(before)) value === undefined ? delete process.env[name] : (process.env[name] = value);
    }
  }

  test("whose program is not there is named, with the ways out", async () => {
    const wanted = (error) =>
      error instanceof ProgramNotFound && ["'argiope'", "install Argiope", "PATH", "ARGIOPE=", "program:"].every((word) => error.message.includes(word));
    await withEnvironment({ PATH: "", ARGIOPE: "" }, () => assert.rejects(Daemon.start(), wanted));
    await assert.rejects(Daemon.start({ program: "/nowhere/argiope" }), /'\/nowhere\/argiope'/);
  });

  test("that does not listen is an error with its log", async (context) => {
    const program = programOf(context, 'console.error("no such store"); process.exitCode = 1;');
    await assert.rejects(Daemon.start({ program }), /serve[^]*does not listen[^]*no such store/);
  });

  test("runs in a folder of its own, without this process's settings, and is ended", async (context) => {
    const program = programOf(context, `
      console.log("words", ...process.argv.slice(2));
      console.log("settings", Object.keys(process.env).filter((name) => /^(ARGIOPE|LISTEN_)/.test(name)).length);
      require("fs").writeFileSync("is here", "");
      console.log("info listening: http://127.0.0.1:4711");
      setInterval(() => {}, 1000);
    `); // prettier-ignore
    const daemon = await withEnvironment({ ARGIOPE_URL: "http://x", LISTEN_FDS: "1" }, () => Daemon.start({ program, args: ["--log", "json"] }));
    context.after(() => daemon.stop());
    assert.equal(daemon.url, "http://127.0.0.1:4711");
    assert.match(daemon.log, /words serve --store sqlite:jobs\.db --log json --listen 127\.0\.0\.1:0\nsettings 0\n/);
    assert.ok(existsSync(join(daemon.folder, "is here")));
    await daemon.restart();
    assert.match(daemon.log, /--listen 127\.0\.0\.1:4711/);
    await daemon.stop();
    await daemon.stop();
    assert.ok(!existsSync(daemon.folder));
  });

  const command = process.env.ARGIOPE && resolve(process.env.ARGIOPE);
  const serves = command && spawnSync(command, ["serve", "--help"]).status === 0;
  test("that is real: a handler works with it, also after a restart", { skip: !serves && "ARGIOPE is no command that serves" }, async (context) => {
    const daemon = await Daemon.start();
    context.after(() => daemon.stop());
    await daemon.client.put("mail", { to: "ann" });
    await daemon.restart();
    const sent = [];
    const worker = new Worker(daemon.url, { untilEmpty: true, lingerMs: 0, log: () => {} });
    await worker.job("mail", (job) => void sent.push(job.json().to)).run();
    assert.deepEqual([sent, worker.counts.done], [["ann"], 1]);
  });
});
