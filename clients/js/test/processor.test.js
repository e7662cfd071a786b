// Scripts on Project, as processes of their own, over the real protocol of docs/processors.md.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, test } from "node:test";
import { HeaderFields } from "../src/processor/headers.js";

const MODULE = new URL("../src/processor/index.js", import.meta.url).href;
const CURL_COMMANDS = new URL("../../../tests/data/curl_commands.json", import.meta.url);
const LIMITS = { line_bytes: 16 << 20, answer_bytes: 64 << 20, log_bytes: 1000, time_ms: 30_000 };
const PATIENCE_MS = 120_000;
let cleanups = [];
afterEach(() => {
  for (const cleanup of cleanups) cleanup();
  cleanups = [];
});

// Plays Argiope's part.
class Argiope {
  lastId = 0;
  log = []; // of no visit
  stderr = "";
  #answers = new Map();
  onSelect = () => ({ matches: [] });

  constructor(text) {
    const folder = mkdtempSync(join(tmpdir(), "argiope-processor-"));
    const path = join(folder, "script.mjs");
    writeFileSync(path, `import { Bury, Project, Retry } from ${JSON.stringify(MODULE)};\n${text}`);
    this.process = spawn(process.execPath, [path], { stdio: "pipe" });
    this.ended = new Promise((resolve) => this.process.on("close", (status) => resolve(status)));
    this.process.stderr.on("data", (data) => (this.stderr += data));
    this.process.stdin.on("error", () => {});
    createInterface({ input: this.process.stdout }).on("line", (line) => this.#take(JSON.parse(line)));
    const guard = setTimeout(() => this.process.kill("SIGKILL"), PATIENCE_MS);
    cleanups.push(() => {
      clearTimeout(guard);
      this.process.kill("SIGKILL");
      rmSync(folder, { recursive: true });
    });
  }

  #take({ type, ...message }) {
    const visit = this.#answers.get(message.id ?? 0);
    if (type === "described") visit.resolve(message);
    else if (type === "log") (message.id ? visit.log : this.log).push([message.level, message.text]);
    else if (type === "select") this.#write({ type: "selected", id: message.id, query: message.query, ...this.onSelect(message) });
    else {
      assert.ok(type === "more" || type === "done", type);
      for (const name of ["pages", "results", "messages"]) {
        if (message[name]) visit.answer[name] = [...(visit.answer[name] ?? []), ...message[name]];
      }
      if (type === "done") visit.resolve({ ...message, ...visit.answer, log: visit.log });
    }
  }

  #write(message, content = "") {
    this.process.stdin.write(JSON.stringify(message) + "\n");
    this.process.stdin.write(content);
  }

  #wait(id) {
    return new Promise((resolve, reject) => {
      this.#answers.set(id, { resolve, log: [], answer: {} });
      void this.ended.then((status) => reject(new Error(`it ended: ${status}\n${this.stderr}`)));
    });
  }

  describe(use = {}) {
    const told = this.#wait(0);
    this.#write({ type: "describe", protocol: 1, project: "shop", limits: LIMITS, new: "member", ...use });
    return told;
  }

  visit(rule, { content = "", url = "https://shop.example/", event = "fetch", page, response, save = null, fields, limit = PATIENCE_MS } = {}) {
    const id = ++this.lastId;
    const answer = this.#wait(id);
    const head = { type: "page", id, body: Buffer.byteLength(content), event, rule, project: "shop", time_limit_ms: limit };
    const answered = { url, status: 200, headers: [["Content-Type", "text/html"], ["Set-Cookie", "a"]], cookies: {}, encoding: null, time_ms: 1 };
    this.#write({ ...head, page: { name: url, url, rule, attempt: 1, ...page }, response: { ...answered, ...response }, save, fields }, content);
    return answer;
  }

  close() {
    this.process.stdin.end();
    return this.ended;
  }
}

const project = (rules, options = "") => new Argiope(`await new Project(${options})${rules}.run();`);
const values = ({ results = [], error }) => (assert.equal(error, undefined), results.map(({ value }) => value));

test("it tells its rules, ticks, events and defaults", async () => {
  const argiope = project(
    `.start(() => {}).message(() => {}).every(60_000, "tick", () => {})
     .rule("page", { ageMs: 1000, errors: true, fields: { title: "css:h1" }, headers: { A: "b" }, render: { width: 5 } }, () => {})`,
    `{ concurrency: 4, retryDelayMs: 500, priority: 2, cookies: { c: "d" } }`,
  );
  assert.deepEqual(await argiope.describe(), {
    protocol: 1, concurrency: 4, on: { start: "on_start", message: "on_message" }, ticks: [{ rule: "tick", every_ms: 60_000 }],
    rules: {
      on_start: {}, on_message: {}, tick: {},
      page: { age_ms: 1000, errors: true, fields: { title: "css:h1" }, request: { headers: { a: "b" }, render: { width: 5 } } },
    },
    defaults: { priority: 2, request: { cookies: { c: "d" } } }, retry_delay_ms: { "": 500 },
  }); // prettier-ignore
  assert.equal(await argiope.close(), 0);
});

test("it knows whether it is debugged, and whether one page is tried", async () => {
  const text = `
    const project = new Project();
    await project.rule("read", (visit) => [visit.debug, visit.isTry, project.debug, project.isTry]).run();`;
  for (const [use, expected] of [
    [{}, [false, false, false, false]],
    [{ debug: false, try: false }, [false, false, false, false]],
    [{ debug: true, try: false }, [true, false, true, false]],
    [{ debug: true, try: true }, [true, true, true, true]],
  ]) {
    const argiope = new Argiope(text);
    await argiope.describe(use);
    assert.deepEqual((await argiope.visit("read")).results, [{ part: "", value: expected }]);
  }
});

test("what a function returns is the result, and each value of a generator one", async () => {
  const argiope = project(`
    .rule("page", (visit) => eval(visit.context))
    .rule("many", async function* () { yield 1; yield { two: [2n, new Set([3]), new Map([["m", NaN]]), Buffer.from("b"), "\\ud800"] }; })`);
  for (const [code, expected] of [["undefined", []], ["null", []], ["0", [0]], ["'x'", ["x"]], ["Promise.resolve({ a: 1 })", [{ a: 1 }]]]) {
    assert.deepEqual(values(await argiope.visit("page", { page: { context: code } })), expected);
  }
  assert.deepEqual((await argiope.visit("many")).results, [
    { part: "1", value: 1 }, { part: "2", value: { two: ["2", [3], { m: null }, "b", "\ufffd"] } },
  ]); // prettier-ignore
  assert.deepEqual((await argiope.visit("page", { page: { context: "visit.noResults()" } })).results, []);
});

test("it asks for pages", async () => {
  const argiope = project(`.rule("page", (visit) => { eval(visit.context); })`);
  const pages = async (code) => {
    const answer = await argiope.visit("page", { page: { context: code } });
    assert.equal(answer.error, undefined);
    return answer.pages;
  };
  assert.deepEqual(await pages(`visit.crawl(["a", new URL("b", visit.url)], "page")`), [
    { url: "a", rule: "page" }, { url: "https://shop.example/b", rule: "page" },
  ]); // prettier-ignore
  assert.deepEqual(
    await pages(`visit.crawl("/x", "page", { name: "n", context: { a: 1 }, priority: 1, ageMs: null, tag: "t", retries: 0, recrawl: true, dueAt: 0,
      force: true, cancel: false, timeLimitMs: 5, headers: { "X-A": "b" }, body: { j: 1 }, method: "PUT", redirects: 0, proxy: false, timeoutMs: 9 })`),
    [{
      url: "/x", rule: "page", name: "n", context: { a: 1 }, priority: 1, age_ms: null, tag: "t", retries: 0, recrawl: true,
      due_at: "1970-01-01T00:00:00.000Z", force: true, cancel: false, time_limit_ms: 5,
      request: {
        headers: { "x-a": "b", "content-type": "application/json" }, body: '{"j":1}', method: "PUT", redirects: 0, proxy: false, timeout_ms: 9,
      },
    }],
  ); // prettier-ignore
  const [form, bytes] = await pages(`visit.crawl("/f", "page", { body: new URLSearchParams({ a: "b c" }) }); visit.crawl("/b", "page", { body: Buffer.from([255]) })`);
  assert.deepEqual([form.request, bytes.request], [{ body: "a=b+c" }, { body_base64: "/w==" }]);
  for (const code of [`visit.crawl("/x", "page", { agems: 1 })`, `visit.crawl(5, "page")`, `visit.crawl([null], "page")`]) {
    assert.equal((await argiope.visit("page", { page: { context: code } })).error.kind, "TypeError");
  }
});

test("a link that is not there is passed over, and the log says so", async () => {
  const argiope = project(`.rule("page", async (visit) => { visit.crawl(undefined, "page"); visit.crawl(null, "page"); visit.crawl("/x", "page"); })`);
  const { pages, log } = await argiope.visit("page");
  assert.deepEqual(pages, [{ url: "/x", rule: "page" }]);
  assert.deepEqual(log.map(([level, text]) => [level, text.slice(0, 16)]), [["warning", "crawl(undefined)"], ["warning", "crawl(null): the"]]); // prettier-ignore
});

test("a form with files is a body, always the same", async () => {
  const argiope = project(`
    .rule("page", (visit) => {
      for (const url of ["/1", "/2"]) visit.crawl(url, "page", { body: { a: "\u4e2d" }, files: { up: { 'x".txt': "one", b: Buffer.from([255]) } } });
    })`);
  const [{ request }, again] = (await argiope.visit("page")).pages;
  assert.deepEqual(request, again.request);
  const [, boundary] = /^multipart\/form-data; boundary=(\w{32})$/.exec(request.headers["content-type"]);
  const field = (rest, content) => `--${boundary}\r\nContent-Disposition: form-data; name="${rest}\r\n\r\n${content}\r\n`;
  const expected = field('a"', "\u00e4\u00b8\u00ad") + field('up"; filename="x%22.txt"', "one") + field('up"; filename="b"', "\u00ff") + `--${boundary}--\r\n`;
  assert.equal(Buffer.from(request.body_base64, "base64").toString("latin1"), expected);
});

test("beside files a body is fields: text, numbers and booleans, repeated by arrays", async () => {
  const argiope = project(`.rule("page", (visit) => { visit.crawl("/", "page", { body: eval("(" + visit.context + ")"), files: { up: { f: "x" } } }); })`);
  const asked = async (context) => argiope.visit("page", { page: { context } });
  const fields = async (body) => {
    const [{ request }] = (await asked(body)).pages;
    const form = Buffer.from(request.body_base64, "base64").toString();
    return [...form.matchAll(/form-data; name="(\w+)"\r\n\r\n(.*)\r\n/g)].map(([, name, value]) => `${name}=${value}`).join("&");
  };
  for (const [body, expected] of [
    [`{ t: "a", n: 1.5, big: 2n, yes: true, no: false, empty: "", none: undefined, list: ["x", 2, undefined, false], nothing: [] }`,
      "t=a&n=1.5&big=2&yes=true&no=false&empty=&list=x&list=2&list=false"],
    [`[["a", 1], ["a", [2, 3]]]`, "a=1&a=2&a=3"], [`new Map([["a", 1]])`, "a=1"], [`new URLSearchParams("a=1&a=2")`, "a=1&a=2"], ["undefined", ""], ["null", ""],
  ]) {
    assert.equal(await fields(body), expected, body);
  } // prettier-ignore
  for (const body of [`"a=1"`, "5", "true", "Buffer.from([1])", `["ab"]`, `[["a"]]`, "{ a: null }", "{ a: {} }", "{ a: [null] }", "{ a: [[1]] }", "{ a: new Date(0) }"]) {
    const { error } = await asked(body);
    assert.deepEqual([error?.kind, error?.text.slice(0, 6)], ["TypeError", "crawl:"], body);
  } // prettier-ignore
});

test("a curl command is asked for as it stands there", async () => {
  const argiope = project(`.rule("page", (visit) => { visit.crawl(visit.context.command, "page", visit.context.options); })`);
  const asked = async (command, options) => {
    const { pages, error } = await argiope.visit("page", { page: { context: { command, options } } });
    return error ?? pages.map(({ url, rule, ...rest }) => (assert.equal(rule, "page"), [url, rest.request]));
  };
  for (const { command, urls, request, error, why } of JSON.parse(readFileSync(CURL_COMMANDS))) {
    const answer = await asked(command);
    const said = `${command} (${why ?? "as it says"})`;
    if (error) assert.ok(answer.text?.includes(error), `${said}: ${JSON.stringify(answer)}`);
    else assert.deepEqual(answer, urls.map((url) => [url, Object.keys(request).length ? request : undefined]), said); // prettier-ignore
  }
  assert.deepEqual(await asked("curl https://a.example/ -H 'A: b' -H 'C: d' -b s=1", { headers: { a: "mine" }, cookies: { t: "2" }, timeoutMs: 5 }), [
    ["https://a.example/", { headers: { a: "mine", c: "d" }, cookies: { s: "1", t: "2" }, timeout_ms: 5 }],
  ]);
  for (const [command, kind] of [["curl -Z", "TypeError"], ["curl -d @f x", "TypeError"], ["curl -m x y", "TypeError"], ["curl 'https://a", "SyntaxError"]]) {
    assert.equal((await asked(command)).kind, kind, command);
  } // prettier-ignore
});

test("its cookies are those that were sent and those that were set", async () => {
  const argiope = project(`.rule("page", (visit) => [visit.cookies])`);
  const answer = await argiope.visit("page", { page: { request: { cookies: { sid: "1", lang: "de" } } }, response: { cookies: { lang: "en" } } });
  assert.deepEqual(values(answer), [[{ sid: "1", lang: "en" }]]);
});

test("it knows the answer", async () => {
  const argiope = project(`
    .rule("page", (v) => [v.url, v.askedUrl, v.status, v.ok, v.headers.get("content-type"), v.text, v.json().a, v.fields, v.attempt, v.save])`);
  const answer = await argiope.visit("page", {
    content: '\ufeff{"a":"\u4e2d"}', page: { url: "https://asked.example/" }, response: { encoding: "utf-8" }, fields: { f: 1 }, save: { s: 1 },
  }); // prettier-ignore
  assert.deepEqual(values(answer), [
    ["https://shop.example/", "https://asked.example/", 200, true, "text/html", '{"a":"\u4e2d"}', "\u4e2d", { f: 1 }, 1, { s: 1 }],
  ]);
  assert.equal("save" in answer, false);
});

test("its headers are as the platform's, without what that one brings with it", async () => {
  const given = [undefined, {}, { A: "b", "x-y": 5 }, [["B", " c "], ["a", "1"], ["A", "2"]], [["z", "\u00e9"]], new Headers({ q: "r" })]; // prettier-ignore
  for (const init of given) {
    const [ours, theirs] = [new HeaderFields(init), new Headers(init)];
    assert.deepEqual([[...ours], [...ours.keys()], [...ours.values()]], [[...theirs], [...theirs.keys()], [...theirs.values()]]);
    for (const name of ["a", "X-Y", "set-cookie", "none"]) assert.deepEqual([ours.get(name), ours.has(name)], [theirs.get(name), theirs.has(name)]);
    const [told, expected] = [[], []];
    ours.forEach((value, name) => told.push([name, value]));
    theirs.forEach((value, name) => expected.push([name, value]));
    assert.deepEqual(told, expected);
    for (const headers of [ours, theirs]) {
      headers.set("A", "new");
      headers.delete("z");
    }
    assert.deepEqual([...ours], [...theirs]);
  }
  // Node 18 of Debian 12 still tells these together.
  const cookies = new HeaderFields([["Set-Cookie", "a"], ["z", "1"], ["set-cookie", "b"]]); // prettier-ignore
  assert.deepEqual([...cookies], [["set-cookie", "a"], ["set-cookie", "b"], ["z", "1"]]); // prettier-ignore
  assert.equal(cookies.get("set-cookie"), "a, b");
  for (const bad of [["a b", "c"], ["", "c"], ["a", "b\nc"], ["a", "b\0"], ["a", "\u4e2d"]]) {
    for (const kind of [HeaderFields, Headers]) assert.throws(() => new kind([bad]), TypeError);
  }
  const argiope = project(`.rule("page", (v) => [v.headers.get("content-type"), process.moduleLoadList.filter((name) => name.includes("undici"))])`);
  assert.deepEqual(values(await argiope.visit("page")), [["text/html", []]]);
});

test("what is no success reaches only rules that want it", async () => {
  const argiope = project(`.rule("page", (v) => v.status).rule("all", { errors: true }, (v) => [v.status, v.ok, v.error?.kind ?? null])`);
  for (const [status, error] of [[404], [500], [0, { kind: "timeout", text: "too long" }]]) {
    const { error: told } = await argiope.visit("page", { response: { status, error } });
    assert.equal(told.text, error?.text ?? `status ${status}`);
    assert.deepEqual(values(await argiope.visit("all", { response: { status, error } })), [[status, false, error?.kind ?? null]]);
  }
  assert.deepEqual(values(await argiope.visit("page", { response: { status: 304 } })), []);
});

test("messages, and what is saved", async () => {
  const argiope = project(`
    .rule("page", (v) => { v.send("other", { a: 1 }); v.save = { n: (v.save?.n ?? 0) + 1 }; })
    .message((v, message, from) => [message, from])`);
  const answer = await argiope.visit("page", { save: { n: 1 } });
  assert.deepEqual([answer.messages, answer.save], [[{ project: "other", message: { a: 1 }, url: "data:,on_message" }], { n: 2 }]);
  const context = { project: "other", message: 5 };
  assert.deepEqual(values(await argiope.visit("on_message", { event: "message", page: { context } })), [[5, "other"]]);
});

test("Argiope selects", async () => {
  const argiope = project(`
    .rule("page", async (v) => {
      const items = await v.select("a.item");
      return [items[0].attributes.href, (await v.first("b", { within: items, give: ["html"] })).html];
    })
    .rule("wrong", (v) => v.select("a["))`);
  const asked = [];
  argiope.onSelect = ({ css, within, give, most }) => {
    asked.push([css, within, give, most]);
    if (css === "a[") return { error: { kind: "invalid_input", text: "wrong at character 2" } };
    return { matches: css === "b" ? [{ node: 4, html: "<b>" }] : [{ node: 3, text: "One", attributes: { href: "/1" } }] };
  };
  assert.deepEqual(values(await argiope.visit("page")), [["/1", "<b>"]]);
  assert.deepEqual(asked, [["a.item", undefined, ["text", "attributes"], undefined], ["b", [3], ["html"], 1]]);
  assert.equal((await argiope.visit("wrong")).error.text, "wrong at character 2");
});

test("a function that throws says where, and when again", async () => {
  const argiope = project(`
    .rule("page", (v) => { v.crawl("/x", "page"); null.x; })
    .rule("retry", () => { throw new Retry(90_000, "busy"); }).rule("bury", () => { throw new Bury("gone"); }).rule("odd", () => { throw undefined; })`);
  const { error, pages } = await argiope.visit("page");
  assert.deepEqual([error.kind, error.where, pages.length], ["TypeError", "script.mjs:3", 1]);
  assert.doesNotMatch(error.trace, /src\/processor/);
  assert.equal((await argiope.visit("retry")).error.delay_ms, 90_000);
  assert.equal((await argiope.visit("bury")).error.final, true);
  assert.equal((await argiope.visit("odd")).error.text, "undefined");
  assert.match((await argiope.visit("none")).error.text, /there is no rule none/);
});

test("an end that cannot be told is a failure, and the process runs on", async () => {
  const argiope = project(`
    .rule("delay", (v) => { throw new Retry(eval(v.context)); })
    .rule("error", (v) => { throw eval("(" + v.context + ")"); })
    .rule("save", (v) => { v.save = { toJSON() { throw null; } }; })
    .rule("page", () => [1])`);
  const asked = async (rule, context) => (await argiope.visit(rule, { page: { context } })).error;
  for (const [delay, ms] of [["10n", 10], ["1.5", 2], ["-5", 0], ["1e30", 2 ** 53 - 1], ["1e300", 2 ** 53 - 1], ["10n ** 400n", undefined], ["null", undefined]]) {
    assert.equal((await asked("delay", delay)).delay_ms, ms, delay);
  } // prettier-ignore
  for (const delay of ["NaN", "Infinity", "'soon'", "true", "({})", "Symbol('s')", "new Date(0)", "Object.create(null)"]) {
    const error = await asked("delay", delay);
    assert.match(error.text, /is no delay: give a number of milliseconds/, delay);
    assert.deepEqual([error.kind, error.where, error.delay_ms], ["Error", "script.mjs:3", undefined], delay);
  }
  const bad = "{ get() { throw new Error('no') }, getPrototypeOf() { throw 5 } }";
  for (const [thrown, text] of [
    ["null", "null"], ["Symbol('s')", "Symbol(s)"], ["5n", "5"], ["{ name: 5n, message: Symbol('m') }", "Symbol(m)"],
    ["Object.create(null)", "a value of type object"], ["Object.setPrototypeOf(new Error('lost'), null)", "lost"], [`new Proxy({}, ${bad})`, "Error: no"],
    ["{ get message() { throw new Error('no'); } }", "Error: no"], ["{ toString() { throw null; } }", "a value of type object"], ["{ message: { toString: null, valueOf: null } }", "a value of type object"],
    ["Object.defineProperty(new Error('kept'), 'stack', { get() { throw 1; } })", "kept"], ["Object.assign(new Bury('x'), { name: { toString: null } })", "x"],
    ["new Error('\\ud83d')", "\ufffd"], ["Object.assign(new Retry(5), { message: null })", "Error"],
    ["Object.assign(new Error(), { message: Symbol('m') })", "Symbol(m)"], ["Object.assign(new Error('named'), { name: { a: 1 } })", "named"],
    ["{ message: 'x', get stack() { throw null; } }", "x"], ["new Error('x' + '\\u{1f600}'.repeat(600))", "x\u{1f600}"],
  ]) {
    const error = await asked("error", thrown);
    assert.ok(error?.text.includes(text), `${thrown}: ${JSON.stringify(error)}`);
    assert.equal(typeof error.kind, "string", thrown);
    assert.equal(error.text.includes("\ufffd"), thrown.includes("\\ud83d"), `${thrown}: cut in half`);
  } // prettier-ignore
  assert.match((await asked("save")).text, /null/);
  assert.deepEqual(values(await argiope.visit("page")), [[1]]);
});

test("several visits run at a time, each with its own log", async () => {
  const argiope = new Argiope(`
    const ends = {}; // of the visits that wait for the one after them
    await new Project().rule("page", async (v) => {
      console.log("begins", v.context);
      if (v.context > 1) await new Promise((resolve) => (ends[v.context] = resolve));
      process.stdout.write("ends " + v.context + "\\n");
      setImmediate(() => ends[v.context + 1]?.());
      return v.context;
    }).run();`);
  const order = [];
  const answers = await Promise.all([3, 2, 1].map((n) => argiope.visit("page", { page: { context: n } }).then((a) => (order.push(n), a))));
  assert.deepEqual(order, [1, 2, 3]);
  assert.deepEqual(answers.map(({ log }) => log), [3, 2, 1].map((n) => [["print", `begins ${n}`], ["print", `ends ${n}`]]));
});

test("a visit that takes too long is ended, and what it does later counts for nothing", async () => {
  const argiope = project(`
    .rule("slow", async (v) => {
      v.crawl("/before", "page");
      v.signal.addEventListener("abort", () => console.log("aborted"));
      await new Promise((resolve) => setTimeout(resolve, 400));
      v.crawl("/after", "page");
    })
    .rule("page", () => new Promise((resolve) => setTimeout(() => resolve(1), 500)))`);
  const { error, pages } = await argiope.visit("slow", { limit: 200 });
  assert.deepEqual([error.kind, pages.length], ["TimeoutError", 1]);
  assert.deepEqual(values(await argiope.visit("page")), [1]);
});

test("its output is never the protocol's, and its log has an end", async () => {
  const argiope = project(`
    .rule("page", (v) => {
      for (const name of ["log", "info", "warn", "error", "debug"]) console[name]('{"type":"done"}', 1);
      console.dir({ a: 1 });
      process.stdout.write("no end");
      process.stdout.write(" of line\\n");
    })
    .rule("much", () => { for (let i = 0; i < 100; i++) console.log("x".repeat(99)); })`);
  await argiope.describe();
  const line = '{"type":"done"} 1';
  assert.deepEqual((await argiope.visit("page")).log, [
    ["print", line], ["info", line], ["warning", line], ["error", line], ["debug", line], ["print", "{ a: 1 }"], ["print", "no end of line"],
  ]); // prettier-ignore
  const { log } = await argiope.visit("much");
  assert.deepEqual(log.at(-1), ["warning", "8910 more characters of this log were not kept"]);
});

test("large bodies and long answers", async () => {
  const argiope = project(`
    .rule("page", (v) => v.body.length)
    .rule("many", (v) => { for (let i = 0; i < 2500; i++) { v.crawl("/" + i, "page"); v.send("o", i); v.result(i, String(i)); } })`);
  for (const size of [50_000_000, 0, 1]) assert.deepEqual(values(await argiope.visit("page", { content: Buffer.alloc(size, 10) })), [size]);
  const { pages, messages, results } = await argiope.visit("many");
  assert.deepEqual([pages.length, messages.length, results.length], [2500, 2500, 2500]);
});

test("what is too long is left out or an error, and never a line too long", async () => {
  const argiope = project(`
    .rule("page", (v) => {
      v.save = "x".repeat(2e7);
      v.result("x".repeat(2e7));
      v.result("y", "y");
      v.crawl("/1", "page", { context: "x".repeat(2e7) });
    })
    .rule("much", (v) => { for (let i = 0; i < 100; i++) v.result("x".repeat(1e6), String(i)); })`);
  const { results, pages, save, log } = await argiope.visit("page");
  assert.deepEqual([results, pages, save], [[{ part: "y", value: "y" }], undefined, undefined]);
  assert.deepEqual(log.map(([level, text]) => [level, /^[\w/]+/.exec(text)[0]]), [["error", "save"], ["error", "pages/0"], ["error", "results/0"]]);
  assert.match((await argiope.visit("much")).error.text, /its answer has/);
});

test("a script that cannot be loaded ends with its error", async () => {
  const argiope = new Argiope("import './no-such-file.mjs';");
  await assert.rejects(argiope.describe(), /it ended: 1\n.*no-such-file/s);
  for (const rules of [".every(10, 'x', () => {})", ".rule('x')", ".rule('x', { no: 1 }, () => {})"]) {
    await assert.rejects(project(rules).describe(), /it ended: 1/);
  }
});
