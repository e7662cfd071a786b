// A project's script in JavaScript: rules that read pages for Argiope. processor.d.ts has the contract.
import { Bury, Retry } from "../errors.js";
import { frontOf } from "../http.js";
import { delayOfEnd, endOf, shown } from "../time.js";
import { membersOf } from "./pages.js";
import { Visit } from "./visit.js";
import { messagesOf, Output, toJson, visits } from "./wire.js";

export { Bury, Retry, Visit };

const PROTOCOL = 1;
const MOST_IN_A_PART = 1000;
const MOST_LENGTH_IN_A_PART = 2 * 1024 * 1024; // characters; a line may have 16 MiB
const MOST_LENGTH_OF_AN_ENTRY = 1024 * 1024; // what is longer would not be kept, or would be a line too long
const MOST_LENGTH_OF_AN_ANSWER = 32 * 1024 * 1024;
const MOST_LENGTH_OF_A_KIND = 100;
const MOST_LENGTH_OF_A_TEXT = 1000;
const MARGIN_MS = 50; // a visit is ended that much before Argiope counts it

const ruleOf = (event) => `on_${event}`;

export class Project {
  #options;
  #concurrency;
  #retryDelayMs;
  #rules = new Map();
  #ticks = [];
  #on = {};
  #open = new Map(); // visits under way, by id
  #logRoom = 64 * 1024;
  #use = { debug: false, isTry: false };

  constructor({ concurrency = 16, retryDelayMs, ...options } = {}) {
    this.#concurrency = concurrency;
    this.#retryDelayMs = retryDelayMs;
    this.#options = membersOf(options);
  }

  rule(name, ...rest) {
    const run = rest.pop();
    const [options = {}] = rest;
    if (typeof run !== "function") throw new TypeError(`rule ${name}: a function is missing`);
    const { errors, fields } = options;
    this.#rules.set(name, { run, told: { ...membersOf(options), errors, fields } });
    return this;
  }

  every(ms, name, run) {
    if (!(ms >= 1000)) throw new RangeError(`every ${ms} ms: at least a second`);
    this.#ticks.push({ rule: name, every_ms: Math.round(ms) });
    return run ? this.rule(name, run) : this;
  }

  start(run) {
    return this.#event("start", run);
  }

  message(run) {
    return this.#event("message", (visit) => run(visit, visit.context?.message, visit.context?.project));
  }

  finished(run) {
    return this.#event("finished", run);
  }

  #event(kind, run) {
    this.#on[kind] = ruleOf(kind);
    return this.rule(ruleOf(kind), run);
  }

  async run({ input = process.stdin, output = process.stdout } = {}) {
    const out = new Output(output);
    if (output === process.stdout) out.takeConsole(process.stdout);
    for await (const message of messagesOf(input)) {
      if (message.type === "describe") out.send(this.#describe(message));
      else if (message.type === "page") void this.#visit(message, out);
      else if (message.type === "selected") this.#open.get(message.id)?.selected(message);
    }
    for (const visit of this.#open.values()) visit.close(new Error("Argiope is gone"));
  }

  get debug() {
    return this.#use.debug;
  }

  get isTry() {
    return this.#use.isTry;
  }

  #describe({ limits, debug, try: isTry }) {
    this.#logRoom = limits?.log_bytes ?? this.#logRoom;
    this.#use = { debug: Boolean(debug), isTry: Boolean(isTry) };
    const rules = Object.fromEntries([...this.#rules].map(([name, { told }]) => [name, told]));
    const delays = this.#retryDelayMs;
    return {
      type: "described",
      protocol: PROTOCOL,
      concurrency: this.#concurrency,
      on: this.#on,
      ticks: this.#ticks,
      rules,
      defaults: this.#options,
      retry_delay_ms: typeof delays === "number" ? { "": delays } : delays,
    };
  }

  async #visit(call, out) {
    const visit = new Visit(call, (message) => out.send(message), this.#use);
    visit.logRoom = this.#logRoom;
    this.#open.set(call.id, visit);
    const answer = { type: "done", id: call.id };
    const tell = (text) => out.send({ type: "log", id: call.id, level: "error", text });
    let timer;
    const late = new Promise((_, reject) => {
      if (!call.time_limit_ms) return;
      const error = Object.assign(new Error(`longer than ${call.time_limit_ms / 1000} s`), { name: "TimeoutError" });
      timer = setTimeout(() => reject(error), Math.max(10, call.time_limit_ms - MARGIN_MS));
    });
    const before = toJson(visit.save ?? null);
    try {
      await Promise.race([late, visits.run(visit, () => this.#call(visit))]);
    } catch (error) {
      answer.error = errorOf(error);
    }
    clearTimeout(timer);
    if (visit.logLost) out.send({ type: "log", id: call.id, level: "warning", text: `${visit.logLost} more characters of this log were not kept` });
    visit.close(answer.error && new Error(answer.error.text));
    this.#open.delete(call.id);
    try {
      const save = toJson(visit.save ?? null);
      if (save.length > MOST_LENGTH_OF_AN_ENTRY) tell(`save: ${save.length} characters as JSON, more than ${MOST_LENGTH_OF_AN_ENTRY}, and not kept`);
      else if (save !== before) answer.save = JSON.parse(save);
    } catch (error) {
      answer.error ??= errorOf(error);
    }
    for (const line of linesOf(visit.given, answer, tell)) out.sendLine(line);
  }

  async #call(visit) {
    const rule = this.#rules.get(visit.rule);
    if (!rule) throw new Error(`there is no rule ${visit.rule}`);
    if (!rule.told.errors && !visit.ok) {
      if (visit.status === 304) return;
      throw new Error(visit.error?.text ?? `status ${visit.status}`);
    }
    const value = await rule.run(visit);
    if (typeof value?.next === "function") {
      let part = 0;
      for await (const each of value) visit.result(each, String(++part));
    } else if (value !== undefined && value !== null) {
      visit.result(value);
    }
  }
}

// The protocol's `error` of what a function threw. It throws nothing, whatever that is.
export function errorOf(error) {
  const told = { kind: "Error", ...tryToTell(error, kindOf), ...tryToTell(error, placeOf) };
  return endOf(
    () => ({ ...told, text: textOf(error), ...whenAgain(error) }),
    (why) => ({ ...told, text: frontOf(why, MOST_LENGTH_OF_A_TEXT) }),
  );
}

// Members that an error can do without.
const tryToTell = (error, tell) => endOf(() => tell(error), () => undefined);

const kindOf = (error) => ({ kind: frontOf(shown(error?.name ?? typeof error), MOST_LENGTH_OF_A_KIND) });

const textOf = (error) => frontOf(shown(error?.message ?? error), MOST_LENGTH_OF_A_TEXT) || "error";

function placeOf(error) {
  if (typeof error?.stack !== "string") return {};
  const lines = error.stack.split("\n").filter((line) => !/\/src\/processor\/|\(?node:/.test(line));
  const place = /\/([^/]+:\d+):\d+\)?$/m.exec(lines.slice(1).join("\n"));
  return { trace: frontOf(lines.join("\n"), 16 * 1024), where: place?.[1] };
}

function whenAgain(error) {
  if (error instanceof Bury) return { final: true };
  if (!(error instanceof Retry) || error.delayMs === undefined || error.delayMs === null) return {};
  return { delay_ms: delayOfEnd(error.delayMs, Number.MAX_SAFE_INTEGER) };
}

// The answer in one line, or, where it is long, in several.
function* linesOf(given, answer, tell) {
  const parts = ["pages", "results", "messages"].flatMap((name) => inParts(name, given[name] ?? [], tell));
  const length = parts.reduce((sum, { text }) => sum + text.length, 0);
  if (length > MOST_LENGTH_OF_AN_ANSWER) {
    const text = `its answer has ${length} characters: more than ${MOST_LENGTH_OF_AN_ANSWER}`;
    yield toJson({ type: "done", id: answer.id, error: { kind: "RangeError", text } });
    return;
  }
  const whole = toJson(given.results?.length === 0 ? { ...answer, results: [] } : answer);
  if (new Set(parts.map(({ name }) => name)).size === parts.length) {
    yield whole.slice(0, -1) + parts.map(({ name, text }) => `,"${name}":[${text}]`).join("") + "}";
    return;
  }
  for (const { name, text } of parts) yield `{"type":"more","id":${answer.id},"${name}":[${text}]}`;
  yield whole;
}

function inParts(name, entries, tell) {
  const parts = [];
  let [lines, length] = [[], 0];
  for (const [at, entry] of entries.entries()) {
    if (entry.length > MOST_LENGTH_OF_AN_ENTRY) {
      tell(`${name}/${at}: ${entry.length} characters as JSON, more than ${MOST_LENGTH_OF_AN_ENTRY}, and left out`);
      continue;
    }
    if (lines.length >= MOST_IN_A_PART || (lines.length && length + entry.length > MOST_LENGTH_IN_A_PART)) {
      parts.push({ name, text: lines.join(",") });
      [lines, length] = [[], 0];
    }
    lines.push(entry);
    length += entry.length;
  }
  if (lines.length) parts.push({ name, text: lines.join(",") });
  return parts;
}
