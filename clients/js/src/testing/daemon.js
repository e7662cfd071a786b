// A real daemon for tests: `argiope serve` in a folder of its own, as a process that ends with the test.
import { spawn } from "node:child_process";
import { accessSync, constants, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "../client.js";

const PATIENCE_MS = 60_000; // for its start and its end
const LISTENS = /listening: (http:\/\/\S+)/;
// What would make it another daemon than the one that the test asks for.
const FOREIGN = /^(ARGIOPE|LISTEN_(FDS|PID|FDNAMES)$|NOTIFY_SOCKET$|WATCHDOG_)/;

export class ProgramNotFound extends Error {
  name = "ProgramNotFound";
}

export class Daemon {
  log = "";
  url = "";
  client;
  folder;
  #words;
  #process;
  #ended;

  // Those that live end with this process.
  static #living = new Set();

  static async start({ program, args = [], store = "sqlite:jobs.db" } = {}) {
    const daemon = new Daemon();
    daemon.#words = [findProgram(program), "serve", "--store", store, ...args];
    daemon.folder = mkdtempSync(join(tmpdir(), "argiope-test-"));
    try {
      await daemon.#start("127.0.0.1:0");
    } catch (error) {
      daemon.#remove();
      throw error;
    }
    daemon.client = new Client(daemon.url, { token: "" });
    return daemon;
  }

  async restart() {
    await this.#end();
    await this.#start(new URL(this.url).host);
  }

  async stop() {
    await this.#end();
    this.#remove();
  }

  async #start(listen) {
    const [program, ...args] = [...this.#words, "--listen", listen];
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !FOREIGN.test(name)));
    const started = spawn(program, args, { cwd: this.folder, env, stdio: ["ignore", "pipe", "pipe"] });
    this.#process = started;
    this.#ended = new Promise((tell) => started.once("close", tell).once("error", tell));
    if (Daemon.#living.size === 0) process.once("exit", Daemon.#endAll);
    Daemon.#living.add(this);
    const url = await new Promise((found, failed) => {
      const tooLate = setTimeout(() => failed(this.#doesNotListen()), PATIENCE_MS);
      this.#ended.then(() => failed(this.#doesNotListen())).finally(() => clearTimeout(tooLate));
      started.once("error", failed);
      for (const stream of [started.stdout, started.stderr]) {
        createInterface(stream).on("line", (line) => {
          this.log += `${line}\n`;
          const listens = LISTENS.exec(line);
          if (!listens) return;
          clearTimeout(tooLate);
          found(listens[1]);
        });
      }
    }).catch(async (error) => {
      await this.#end();
      throw error;
    });
    this.url = url;
  }

  #doesNotListen() {
    return new Error(`${this.#words.join(" ")} does not listen; it said:\n${this.log}`);
  }

  async #end() {
    Daemon.#living.delete(this);
    if (Daemon.#living.size === 0) process.removeListener("exit", Daemon.#endAll);
    this.#process.kill("SIGTERM");
    const kill = setTimeout(() => this.#process.kill("SIGKILL"), PATIENCE_MS);
    await this.#ended;
    clearTimeout(kill);
  }

  #remove() {
    rmSync(this.folder, { recursive: true, force: true });
  }

  static #endAll() {
    for (const daemon of Daemon.#living) {
      daemon.#process.kill("SIGTERM");
      daemon.#remove();
    }
  }
}

// The path of `program`; without it, of what ARGIOPE names; without that, of `argiope` on PATH.
function findProgram(program) {
  const wanted = program || process.env.ARGIOPE || "argiope";
  const places = wanted.includes("/") ? [wanted] : (process.env.PATH ?? "").split(delimiter).filter(Boolean).map((folder) => join(folder, wanted));
  const found = places.find(isProgram);
  if (found !== undefined) return resolve(found);
  throw new ProgramNotFound(
    `there is no program '${wanted}': install Argiope, so that argiope is on PATH, or say where it is, as in ` +
      "ARGIOPE=/opt/argiope/bin/argiope or Daemon.start({ program: … })",
  );
}

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
