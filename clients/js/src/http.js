// One request after the other: what is sent, how an answer is read, and when it is sent again.
import { ApiError, Unreachable } from "./errors.js";
import { Backoff, shown, sleep } from "./time.js";

const DEFAULT_URL = "http://127.0.0.1:7733";
// Of fetch in Node: nothing was sent.
const NOT_SENT = new Set([
  "ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT",
]);

// The text without halves of characters, which no reader of JSON takes, as where one was cut in two.
export const wellFormed = (text) => text.toWellFormed?.() ?? new TextDecoder().decode(new TextEncoder().encode(text));

const HAVE_NO_JSON = [Map, Set, WeakMap, WeakSet, Promise];

// JSON of what a program gave: the one way to it. Errors: TypeError for what JSON has no word for, and would turn into null or {}
// or leave out in silence. Members that are undefined are left out.
export function jsonOf(value, what) {
  const text = JSON.stringify(value, function (key, part) {
    if (typeof part === "string") return wellFormed(part);
    const given = this[key];
    const isOdd = typeof part === "number" ? !Number.isFinite(part) : typeof part === "bigint" || typeof part === "function" || typeof part === "symbol";
    if (isOdd) throw new TypeError(`${what} with the ${typeof part} ${shown(part).slice(0, 100)}, which JSON cannot say`);
    if (given instanceof Date) throw new TypeError(`${what} with an invalid Date`);
    const kind = HAVE_NO_JSON.find((one) => part instanceof one);
    if (kind) throw new TypeError(`${what} with a ${kind.name}, which JSON cannot say`);
    return part;
  });
  if (text === undefined) throw new TypeError(`${what} that is a ${typeof value}, which JSON cannot say`);
  return text;
}

export class Http {
  constructor(url, { token, timeoutMs = 30_000, retryForMs = 30_000, fetch = globalThis.fetch, time }) {
    const environment = globalThis.process?.env ?? {};
    this.url = new URL(url ?? environment.ARGIOPE_URL ?? DEFAULT_URL).href.replace(/\/+$/, "");
    const word = token ?? environment.ARGIOPE_TOKEN;
    this.headers = word ? { Authorization: `Bearer ${word}` } : {};
    this.timeoutMs = timeoutMs;
    this.retryForMs = retryForMs;
    this.time = time;
    this.fetch = (...request) => fetch(...request);
  }

  // The answer as `read` gives it. `safe`: sending it twice does no more than sending it once.
  // Errors: ApiError, Unreachable; what `signal` was aborted with.
  async send(method, path, { body, text, type = "application/json", key, waitMs = 0, safe, signal, read = json } = {}) {
    const headers = { ...this.headers };
    if (key) headers["Idempotency-Key"] = key;
    const content = text ?? (body === undefined ? undefined : jsonOf(body, "a request"));
    if (content !== undefined) headers["Content-Type"] = type;
    const request = { method, headers, body: content };
    const again = safe || Boolean(key) || ["GET", "PUT", "DELETE"].includes(method);
    return this.#tryOn(path, request, again, waitMs, signal, read);
  }

  async #tryOn(path, request, isSafe, waitMs, signal, read) {
    const giveUpAt = this.time.now() + this.retryForMs;
    const backoff = new Backoff();
    let mayBeDone = false;
    for (;;) {
      try {
        return await this.#once(path, request, waitMs, signal, read);
      } catch (error) {
        if (mayBeDone && request.method === "DELETE" && error.status === 404) return undefined; // by the attempt before
        mayBeDone ||= error instanceof Unreachable && error.sent;
        const again = error instanceof Unreachable ? isSafe || !error.sent : isSafe && error.status === 503;
        const pause = backoff.next(error.retryAfterMs);
        if (!again || this.time.now() + pause > giveUpAt) throw error;
        await sleep(this.time, pause, signal);
        signal?.throwIfAborted();
      }
    }
  }

  async #once(path, request, waitMs, signal, read) {
    const limit = this.timeoutMs + waitMs;
    const { response, end } = await this.open(path, request, limit, signal);
    try {
      if (response.status >= 300) throw await problemOf(response);
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
    return new Unreachable(`${this.url}: ${error.cause?.message || error.message}`, !NOT_SENT.has(code), error);
  }
}

const TIMEOUT = new Error("timeout");

export async function problemOf(response) {
  const text = await response.text();
  let problem = {};
  try {
    problem = JSON.parse(text);
  } catch {
    problem = { title: text.slice(0, 200) || `status ${response.status}` };
  }
  const after = response.headers.get("retry-after") ?? "";
  const requestId = response.headers.get("x-request-id") ?? undefined;
  const retryAfterMs = /^\d+$/.test(after) ? Number(after) * 1000 : undefined;
  return new ApiError({ request_id: requestId, status: response.status, ...problem }, retryAfterMs);
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
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  return given.length === 0 ? "" : "?" + new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
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
