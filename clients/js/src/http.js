// One request after the other: what is sent, how an answer is read, and when it is sent again.
import { ApiError, Unreachable } from "./errors.js";
import { Backoff, limitOf, shown, sleep, timeOf, waitOf } from "./time.js";

const LONGEST_RETRY_FOR_MS = 30_000; // unless told
const DEFAULT_URL = "http://127.0.0.1:7733";
// Of fetch in Node: nothing was sent.
const NOT_SENT = new Set([
  "ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT",
]);

// JSON of what a program gave: the one way to it. A member that is undefined is left out, and half a character becomes U+FFFD, since no
// reader of JSON takes it. Errors: TypeError, which names what JSON cannot say, and would turn into null or {}, or leave out, in silence.
export function jsonOf(value, what) {
  const refuse = (words, key) => {
    throw new TypeError(`${what}${key === "" ? "" : `, at ${JSON.stringify(key)}`}: ${words}, which JSON cannot say`);
  };
  const text = JSON.stringify(value, function (key, part) {
    const words = unsayable(this[key], part, Array.isArray(this));
    if (words !== undefined) refuse(words, key);
    return typeof part === "string" || part instanceof String ? wellFormed(String(part)) : part;
  });
  return text === undefined ? refuse("undefined", "") : text;
}

const LOSING = [Map, Set, WeakMap, WeakSet, Promise, RegExp, Error, ArrayBuffer];

// Why JSON loses a value; undefined: it does not. `part`: what its toJSON() gives.
function unsayable(given, part, isInList) {
  if (given instanceof Date && part === null) return "a Date that is no time";
  if (typeof part === "number" || part instanceof Number) return Number.isFinite(Number(part)) ? undefined : `the number ${part}`;
  if (["bigint", "symbol", "function"].includes(typeof part)) return `the ${typeof part} ${shown(part).slice(0, 100)}`;
  if (part === undefined) return isInList || given !== undefined ? "undefined" : undefined;
  return typeof part === "object" && part !== null && losesMembers(part) ? `an object of type ${kindOf(part)}` : undefined;
}

const kindOf = (part) => part.constructor?.name || Object.prototype.toString.call(part).slice("[object ".length, -1);

function losesMembers(part) {
  if (Array.isArray(part) || part instanceof String || part instanceof Boolean) return false;
  if (isBytes(part) || LOSING.some((type) => part instanceof type)) return true;
  const kind = Object.getPrototypeOf(part);
  return kind !== null && Object.getPrototypeOf(kind) !== null && Object.keys(part).length === 0;
}

export class Http {
  constructor(url, { token, timeoutMs = 30_000, retryForMs, fetch = globalThis.fetch, time, log }) {
    const environment = globalThis.process?.env ?? {};
    this.url = addressOf(url || environment.ARGIOPE_URL || DEFAULT_URL);
    const word = token ?? environment.ARGIOPE_TOKEN;
    this.headers = word ? { Authorization: `Bearer ${ofAHead(word, "token")}` } : {};
    this.timeoutMs = waitOf(timeoutMs, "timeoutMs");
    this.retryForMs = retryForMs === undefined ? Math.min(this.timeoutMs, LONGEST_RETRY_FOR_MS) : limitOf(retryForMs, "retryForMs");
    this.time = time;
    this.log = log ?? ((message) => console.warn(`argiope: ${message}`));
    this.absence = new Absence(this);
    this.fetch = (...request) => fetch(...request);
  }

  // A log of the program's own may throw, or be an async function that does; the call goes on.
  async tell(message) {
    try {
      await this.log(message);
    } catch {
      // There is nowhere else to say it.
    }
  }

  // The answer as `read` gives it. `safe`: sending it twice does no more than sending it once. `advice`: what to do about
  // a refusal of this type, which is added to its text.
  // Errors: ApiError, Unreachable; what `signal` was aborted with.
  async send(method, path, { body, text, type = "application/json", key, waitMs = 0, safe, signal, read = json, advice } = {}) {
    const headers = { ...this.headers };
    if (key) headers["Idempotency-Key"] = ofAHead(key, "idempotencyKey");
    const content = text ?? (body === undefined ? undefined : jsonOf(body, "a request"));
    if (content !== undefined) headers["Content-Type"] = type;
    const request = { method, headers, body: content };
    const again = safe || Boolean(key) || ["GET", "PUT", "DELETE"].includes(method);
    return this.#tryOn(path, request, again, waitMs, signal, read, advice);
  }

  async #tryOn(path, request, isSafe, waitMs, signal, read, advice) {
    const giveUpAt = this.time.now() + this.retryForMs;
    const backoff = new Backoff();
    let mayBeDone = false;
    for (;;) {
      try {
        const result = await this.#once(path, request, waitMs, signal, read, advice);
        this.absence.isOver();
        return result;
      } catch (error) {
        if (error instanceof ApiError && error.status !== 503) this.absence.isOver();
        if (mayBeDone && request.method === "DELETE" && error.status === 404) return undefined; // by the attempt before
        mayBeDone ||= error instanceof Unreachable && error.sent;
        const again = error instanceof Unreachable ? isSafe || !error.sent : isSafe && error.status === 503;
        const pause = backoff.next(error.retryAfterMs);
        const leftMs = giveUpAt - this.time.now();
        if (!again || pause > leftMs) throw error;
        this.absence.isWaitedFor(error, leftMs);
        await sleep(this.time, pause, signal);
        signal?.throwIfAborted();
      }
    }
  }

  async #once(path, request, waitMs, signal, read, advice) {
    const limit = this.timeoutMs + waitMs;
    const { response, end } = await this.open(path, request, limit, signal);
    try {
      if (response.status >= 300) throw await problemOf(response, advice);
      return await read(response);
    } catch (error) {
      throw this.#lost(error, signal, limit);
    } finally {
      end();
    }
  }

  // An answer whose body has not been read; end() when it has. After `limitMs` it is broken off.
  async open(path, request, limitMs, signal) {
    const controller = new AbortController();
    const abort = () => controller.abort(signal.reason);
    const timer = this.time.setTimeout(() => controller.abort(TIMEOUT), limitMs);
    signal?.addEventListener("abort", abort);
    const end = () => {
      this.time.clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
    try {
      signal?.throwIfAborted();
      return { response: await this.fetch(this.url + path, { ...request, signal: controller.signal }), end, controller };
    } catch (error) {
      end();
      throw this.#lost(error, signal, limitMs);
    }
  }

  #lost(error, signal, limitMs) {
    if (error instanceof ApiError) return error;
    if (signal?.aborted) return signal.reason;
    if (error === TIMEOUT) return new Unreachable(`no answer within ${limitMs} ms`, true, error);
    const code = error.cause?.code ?? error.cause?.errors?.[0]?.code;
    const todo = code === "ECONNREFUSED" ? NOBODY_LISTENS : "";
    return new Unreachable(`${this.url}: ${error.cause?.message || code || error.message}${todo}`, !NOT_SENT.has(code), error);
  }
}

// Errors: TypeError for what is no address of a daemon that this client can reach.
function addressOf(url) {
  let parts = {};
  try {
    parts = new URL(url);
  } catch {
    // It is none.
  }
  const { protocol, username, password, search, hash } = parts;
  const refuse = (why) => {
    throw Object.assign(new TypeError(why), { code: "ERR_INVALID_URL" });
  };
  if (!/^https?:$/.test(protocol) || search || hash) refuse(`${shown(url)}: a URL like "${DEFAULT_URL}" is needed`);
  if (username || password) refuse(`${parts.host}: a URL without a user and password is needed: give the token`);
  return parts.href.replace(/\/+$/, "");
}

// Errors: TypeError for what no field of a request's head may have.
export function ofAHead(text, what) {
  if (/^[\x20-\x7e\xa0-\xff]*$/.test(text)) return String(text);
  throw new TypeError(`${what}: ${JSON.stringify(text)}: only printable characters of Latin-1 are sent in a request's head`);
}

// One name is one queue, and no list of its letters.
export function listOf(queues) {
  return typeof queues === "string" ? [queues] : [...queues];
}

const NOBODY_LISTENS = "; nobody listens there: start a daemon (`argiope serve`), or give the address of yours (`url`, or ARGIOPE_URL)";

// Tells `log` when the daemon is away, once, and when it is back.
class Absence {
  #http;
  #isTold = false;

  constructor(http) {
    this.#http = http;
  }

  // A call is sent again for another `leftMs`.
  isWaitedFor(error, leftMs) {
    if (this.#isTold) return;
    this.#isTold = true;
    const { url } = this.#http;
    const why = error.message.startsWith(`${url}: `) ? error.message.slice(url.length + 2) : error.message;
    const until = leftMs < 86_400_000 ? `, until ${new Date(Date.now() + leftMs).toTimeString().slice(0, 8)}` : "";
    this.#http.tell(`the daemon at ${url} does not answer: ${why}. Trying again for ${Math.round(leftMs / 1000)} s${until}`);
  }

  isOver() {
    if (!this.#isTold) return;
    this.#isTold = false;
    this.#http.tell(`the daemon at ${this.#http.url} answers again`);
  }
}

const TIMEOUT = new Error("timeout");

export async function problemOf(response, advice = {}) {
  const text = await response.text();
  let problem = {};
  try {
    problem = Object(JSON.parse(text));
  } catch {
    problem = { title: text.slice(0, 200) || `status ${response.status}` };
  }
  const after = response.headers.get("retry-after") ?? "";
  const requestId = response.headers.get("x-request-id") ?? undefined;
  const retryAfterMs = /^\d+$/.test(after) ? Number(after) * 1000 : undefined;
  // What a proxy's JSON calls status may be anything.
  const error = new ApiError({ request_id: requestId, ...problem, status: response.status }, retryAfterMs);
  const todo = Object.hasOwn(advice, error.type) ? advice[error.type] : undefined;
  if (todo) error.message = error.detail = `${error.detail}; ${todo}`;
  return error;
}

export const json = (response) => response.json();
export const nothing = async (response) => void (await response.arrayBuffer());
export const bytes = async (response) => new Uint8Array(await response.arrayBuffer());
export const plain = (response) => response.text();

export function newKey() {
  if (globalThis.crypto?.randomUUID) return crypto.randomUUID();
  return Array.from({ length: 4 }, () => Math.random().toString(36).slice(2, 10)).join("-"); // Node 18; a page without TLS
}

// A name that a path has another use for stands behind "=".
export function path(resource, name, ...rest) {
  const mark = /^(\.|\.\.|change|try|=.*)$/s.test(name) ? "=" : "";
  return ["/v1", resource, mark + encodeURIComponent(name), ...rest].join("/");
}

export function query(members) {
  const given = Object.entries(members).filter(([, value]) => value !== undefined && value !== null);
  return given.length === 0 ? "" : "?" + new URLSearchParams(given.map(([name, value]) => [name, value instanceof Date ? timeOf(value) : String(value)]));
}

export function toBase64(data) {
  const view = ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data);
  if (globalThis.Buffer) return Buffer.from(view.buffer, view.byteOffset, view.byteLength).toString("base64");
  let text = "";
  for (let at = 0; at < view.length; at += 8192) text += String.fromCharCode(...view.subarray(at, at + 8192));
  return btoa(text);
}

export function fromBase64(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

export function isBytes(value) {
  return value instanceof ArrayBuffer || ArrayBuffer.isView(value);
}

// The first `most` characters, none of them cut in half.
export function frontOf(text, most) {
  return text.length <= most ? text : text.slice(0, most).replace(/[\ud800-\udbff]$/, "");
}

// The text with U+FFFD for each half of a character.
export function wellFormed(text) {
  return text.toWellFormed?.() ?? new TextDecoder("utf-8", { ignoreBOM: true }).decode(new TextEncoder().encode(text));
}
