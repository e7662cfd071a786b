// Whole processes: the worker of the README, the example, signals, and a daemon that goes and comes. The daemon is the
// real one when ARGIOPE is the path of a command that can serve; else the one in memory that the Python client's tests have.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Client, newJob } from "../src/index.js";

const HERE = fileURLToPath(new URL("..", import.meta.url));
const PYTHON = join(HERE, "..", "python");
const COMMAND = realCommand();
let folder, port, url, client;
let processes;

function realCommand() {
  const command = process.env.ARGIOPE && resolve(process.env.ARGIOPE);
  return command && spawnSync(command, ["serve", "--help"]).status === 0 ? command : undefined;
}

beforeEach(async () => {
  processes = [];
  folder = mkdtempSync(join(tmpdir(), "argiope-client-"));
  port = await freePort();
  url = `http://127.0.0.1:${port}`;
  client = new Client(url, { retryForMs: 120_000 });
  await daemon();
});
afterEach(() => {
  for (const running of processes) running.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

async function daemon() {
  const running = COMMAND
    ? start([COMMAND, "serve", "--store", "sqlite:jobs.db", "--listen", `127.0.0.1:${port}`], folder)
    : start(["python3", "-m", "tests.fake_daemon", String(port)], PYTHON);
  await client.health(); // which waits for it
  return running;
}

function start([command, ...options], cwd = HERE) {
  const env = { ...process.env, ARGIOPE_URL: url, PYTHONPATH: PYTHON };
  const running = spawn(command, options, { cwd, stdio: ["ignore", "pipe", "ignore"], env });
  processes.push(running);
  const lines = createInterface(running.stdout)[Symbol.asyncIterator]();
  running.line = async () => (await lines.next()).value;
  return running;
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port: free } = server.address();
  server.close();
  return free;
}

async function allLines(running) {
  const found = [];
  for (let line = await running.line(); line !== undefined; line = await running.line()) found.push(line);
  return found;
}

// Asks until it is so; what never is, ends with the test's time.
async function until(condition) {
  while (!(await condition()));
}

const ended = async (running) => (running.exitCode === null ? (await once(running, "exit"))[0] : running.exitCode);

// Says what it runs, and runs until there is the file that the payload names.
const SLOW = `
import { existsSync } from "node:fs";
import { Worker } from "./src/index.js";
const worker = new Worker();
worker.job("slow", async (job) => {
  console.log("begins");
  while (!existsSync(job.payload)) await new Promise((resolve) => setTimeout(resolve, 10));
  console.log("ends");
});
await worker.run();
`;
const gate = () => join(folder, "open");
const openGate = () => writeFileSync(gate(), "");
const slowWorker = () => start([process.execPath, "--input-type=module", "-e", SLOW]);

test("the worker of the README", async () => {
  const text = readFileSync(join(HERE, "README.md"), "utf8");
  const program = /```js\n(import \{ Worker \}[^]*?)```/.exec(text)[1];
  const here = program.replace('"argiope"', '"./src/index.js"').replace("http://127.0.0.1:7733", url);
  const worker = start([process.execPath, "--input-type=module", "-e", here]);
  await client.put("mail", "hello");
  assert.equal(await worker.line(), "sending hello");
  worker.kill("SIGTERM");
  assert.equal(await ended(worker), 0);
});

test("the mail queue with three workers, as the README runs it", async () => {
  const [, program] = /^node (examples\/mail_workers\.mjs) ann bob/m.exec(readFileSync(join(HERE, "README.md"), "utf8"));
  const once = start([process.execPath, program, "ann", "bob", "x3"]);
  assert.deepEqual((await allLines(once)).sort(), ["sent welcome to ann", "sent welcome to bob"]);
  assert.equal(await ended(once), 0);
  const workers = [1, 2, 3].map(() => start([process.execPath, program]));
  await until(async () => (await client.workers()).filter(({ waiting }) => waiting).length === 3);
  const names = [..."abcdefghijkl"];
  await client.putMany(names.map((name) => newJob("mail", { text: "hello" }, { key: name })));
  await until(async () => {
    const { counts } = await client.queues.get("mail");
    return counts.ready + counts.running === 0;
  });
  for (const worker of workers) worker.kill("SIGTERM");
  const lines = (await Promise.all(workers.map(allLines))).flat();
  assert.deepEqual(lines.sort(), names.map((name) => `sent hello to ${name}`));
  assert.deepEqual(await Promise.all(workers.map(ended)), [0, 0, 0]);
});

test("a daemon that stops and starts again is waited for", async () => {
  const worker = slowWorker();
  await client.put("slow", gate());
  assert.equal(await worker.line(), "begins");
  const before = processes[0];
  before.kill("SIGTERM");
  await ended(before);
  openGate();
  assert.equal(await worker.line(), "ends");
  await daemon();
  await client.put("slow", gate());
  assert.equal(await worker.line(), "begins");
});

test("SIGTERM lets what runs end", async () => {
  const worker = slowWorker();
  await client.put("slow", gate());
  assert.equal(await worker.line(), "begins");
  worker.kill("SIGTERM");
  openGate();
  assert.equal(await worker.line(), "ends");
  assert.equal(await ended(worker), 0);
});
