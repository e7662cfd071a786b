// The client has a method for each operation of the daemon's own description of its API, and no others; its types name each;
// and only calls that do nothing twice are sent again.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { Client } from "../src/index.js";

const DESCRIPTION = new URL("../../../src/serve/api/openapi.json", import.meta.url);
const SOURCES = new URL("../src/", import.meta.url);
const read = (name) => readFileSync(new URL(name, SOURCES), "utf8");

// Each method, with all that an address may have.
const CALLS = {
  put: (client) => client.put("x"),
  putMany: (client) => client.putMany([]),
  putLines: (client) => client.putLines("{}"),
  counters: (client) => client.counters(),
  workers: (client) => client.workers(),
  workersPage: (client) => client.workersPage({ after: "a", limit: 2 }),
  endWorker: (client) => client.endWorker("x"),
  hosts: (client) => client.hosts({ filter: "a", doing: "busy", project: "x", after: 1, limit: 2 }),
  explainHost: (client) => client.explainHost("http://a"),
  config: (client) => client.config(),
  auditPage: (client) => client.auditPage({ after: 1, limit: 2 }),
  simulate: (client) => client.simulate({}),
  history: (client) => client.history({ queue: "x", from: "t", to: "t", step: 10 }),
  notify: (client) => client.notify(),
  testNotify: (client) => client.testNotify("x"),
  version: (client) => client.version(),
  metrics: (client) => client.metrics(),
  health: (client) => client.health(),
  ready: (client) => client.ready(),
  events: (client) => client.events({ kinds: ["job"], queue: "x" }).next(),
  "jobs.get": ({ jobs }) => jobs.get("x"),
  "jobs.page": ({ jobs }) => jobs.page({ queue: "x", state: "done", key: "k", word: "w", order: "newest", payloads: true, beginnings: true, own: false, after: 1, limit: 2 }),
  "jobs.list": ({ jobs }) => jobs.list().next(),
  "jobs.cancel": ({ jobs }) => jobs.cancel("x"),
  "jobs.kick": ({ jobs }) => jobs.kick("x"),
  "jobs.erase": ({ jobs }) => jobs.erase("x"),
  "jobs.setPriority": ({ jobs }) => jobs.setPriority("x", 1),
  "jobs.setDue": ({ jobs }) => jobs.setDue("x", { delayMs: 1 }),
  "jobs.change": ({ jobs }) => jobs.change("kick", [1]),
  "jobs.explain": ({ jobs }) => jobs.explain("x"),
  "jobs.history": ({ jobs }) => jobs.history("x"),
  "jobs.output": ({ jobs }) => jobs.output("x"),
  "queues.list": ({ queues }) => queues.list({ after: "x", limit: 2 }),
  "queues.get": ({ queues }) => queues.get("x"),
  "queues.set": ({ queues }) => queues.set("x", {}),
  "queues.change": ({ queues }) => queues.change("x", {}),
  "queues.delete": ({ queues }) => queues.delete("x"),
  "queues.pause": ({ queues }) => queues.pause("x"),
  "queues.resume": ({ queues }) => queues.resume("x"),
  "queues.kick": ({ queues }) => queues.kick("x"),
  "queues.stats": ({ queues }) => queues.stats("x"),
  "leases.take": ({ leases }) => leases.take(["x"]),
  "leases.renew": ({ leases }) => leases.renew([1]),
  "leases.settle": ({ leases }) => leases.settle([]),
  "leases.settleTexts": ({ leases }) => leases.settleTexts([]),
  "schedules.page": ({ schedules }) => schedules.page({ after: 1, limit: 2 }),
  "schedules.list": ({ schedules }) => schedules.list().next(),
  "schedules.add": ({ schedules }) => schedules.add({}, { conflict: "keep" }),
  "schedules.get": ({ schedules }) => schedules.get("x"),
  "schedules.set": ({ schedules }) => schedules.set("x", {}),
  "schedules.change": ({ schedules }) => schedules.change("x", {}),
  "schedules.delete": ({ schedules }) => schedules.delete("x"),
  "schedules.pause": ({ schedules }) => schedules.pause("x"),
  "schedules.resume": ({ schedules }) => schedules.resume("x"),
  "schedules.run": ({ schedules }) => schedules.run("x"),
  "schedules.history": ({ schedules }) => schedules.history("x", 2),
  "schedules.explain": ({ schedules }) => schedules.explain("x"),
  "schedules.output": ({ schedules }) => schedules.output("x"),
  "schedules.next": ({ schedules }) => schedules.next("x", 2),
  "schedules.nextTimes": ({ schedules }) => schedules.nextTimes("@every 1h"),
  "projects.list": ({ projects }) => projects.list(),
  "projects.get": ({ projects }) => projects.get("x"),
  "projects.set": ({ projects }) => projects.set("x", {}),
  "projects.change": ({ projects }) => projects.change("x", {}),
  "projects.delete": ({ projects }) => projects.delete("x"),
  "projects.restore": ({ projects }) => projects.restore("x"),
  "projects.start": ({ projects }) => projects.start("x"),
  "projects.resume": ({ projects }) => projects.resume("x"),
  "projects.versions": ({ projects }) => projects.versions("x", 2),
  "projects.version": ({ projects }) => projects.version("x", 1),
  "projects.rollBack": ({ projects }) => projects.rollBack("x", 1),
  "projects.pages": ({ projects }) => projects.pages("x", { state: "done", rule: "x", filter: "x", after: 1, limit: 2 }),
  "projects.page": ({ projects }) => projects.page("x", "http://a/"),
  "projects.ask": ({ projects }) => projects.ask("x", { url: "http://a/" }),
  "projects.sendMessage": ({ projects }) => projects.sendMessage("x", { n: 1 }, { url: "x" }),
  "projects.tryPage": ({ projects }) => projects.tryPage({ url: "http://a/", project: "x" }),
  "projects.explain": ({ projects }) => projects.explain("x", "http://a/"),
  "projects.recent": ({ projects }) => projects.recent("x"),
  "projects.results": ({ projects }) => projects.results("x", { rule: "x", page: "x", after: "1", limit: 2 }),
  "projects.export": ({ projects }) => projects.export("x", "csv", { rule: "x" }),
  "projects.feed": ({ projects }) => projects.feed("x", { after: 1, order: "newest", before: 9, limit: 2 }),
};
const FOR_TOOLS = ["GET /v1/session", "POST /v1/session", "DELETE /v1/session", "GET /v1/openapi.json"];
const FOR_WORKERS = ["leases.settleTexts"]; // not in the types
// What a daemon that was killed does not remember, and what is counted from what is there: twice is not once. Of a lease that
// was not received only the settlements would be repeated.
const NOT_SENT_AGAIN = [
  "jobs.setDue", "jobs.setPriority", "projects.change", "projects.sendMessage", "queues.change", "queues.kick", "schedules.change", "schedules.run",
  "testNotify",
];

const AT_ONCE = { now: () => 0, setTimeout: (run) => setImmediate(run), clearTimeout: clearImmediate };

// The requests of a call whose first answer is lost; the second is 404.
async function requestsOf(name) {
  const requests = [];
  const fetch = async (url, { method }) => {
    requests.push({ method, url: new URL(url) });
    if (requests.length === 1) throw new TypeError("fetch failed", { cause: { code: "ECONNRESET" } });
    return new Response("{}", { status: 404 });
  };
  await CALLS[name](new Client("http://daemon", { fetch, time: AT_ONCE })).catch(() => {});
  return requests;
}

// What is written goes before what is in braces.
function operationOf(operations, { method, url }) {
  const exact = `${method} ${url.pathname}`;
  if (operations.has(exact)) return exact;
  return [...operations.keys()].find((one) => new RegExp(`^${one.replace(/\{\w+\}/g, "[^/]+")}$`).test(exact));
}

function describedOperations() {
  const { paths } = JSON.parse(readFileSync(DESCRIPTION, "utf8"));
  const found = new Map();
  for (const [path, { parameters: shared = [], ...methods }] of Object.entries(paths)) {
    for (const [method, { parameters = [] }] of Object.entries(methods)) {
      found.set(`${method.toUpperCase()} ${path}`, new Set([...shared, ...parameters].map(({ name }) => name)));
    }
  }
  return found;
}

function methodsOf(object) {
  return Object.getOwnPropertyNames(Object.getPrototypeOf(object)).filter((name) => name !== "constructor");
}

describe("all of the API", { skip: !existsSync(DESCRIPTION) && "there is no description" }, () => {
  test("every operation has a method, and every method is an operation", async () => {
    const operations = describedOperations();
    const missing = new Set(operations.keys());
    for (const name of Object.keys(CALLS)) {
      const [request] = await requestsOf(name);
      const operation = operationOf(operations, request);
      assert.ok(operation, `${name}: ${request.method} ${request.url}`);
      for (const parameter of request.url.searchParams.keys()) assert.ok(operations.get(operation).has(parameter), name);
      missing.delete(operation);
    }
    assert.deepEqual([...missing], FOR_TOOLS);
  });

  test("every method is known here, and has its types", () => {
    const client = new Client("http://daemon");
    const groups = ["jobs", "queues", "leases", "schedules", "projects"];
    const methods = groups.flatMap((group) => methodsOf(client[group]).map((name) => `${group}.${name}`));
    assert.deepEqual([...methodsOf(client), ...methods].sort(), Object.keys(CALLS).sort());
    const types = read("index.d.ts");
    for (const name of Object.keys(CALLS).filter((one) => !FOR_WORKERS.includes(one))) {
      assert.match(types, new RegExp(`^ +${name.replace(/.*\./, "")}\\(`, "m"), name);
    }
  });
});

test("only what does nothing twice is sent again", async () => {
  const names = Object.keys(CALLS);
  const sent = await Promise.all(names.map(async (name) => (await requestsOf(name)).length));
  assert.deepEqual(names.filter((_, at) => sent[at] === 1).sort(), NOT_SENT_AGAIN);
});

test("nothing is imported that browsers do not have", () => {
  for (const name of readdirSync(SOURCES).filter((one) => one.endsWith(".js"))) {
    const imported = [...read(name).matchAll(/^(?:import|export) [^;]*?from "([^"]+)"/gm)].map(([, from]) => from);
    assert.deepEqual(imported.filter((from) => !from.startsWith("./")), [], name);
  }
});
