// Requests to the daemon. Who asks is known by a session, where the daemon has tokens: a cookie that stands for one, which no
// script can read.
import { parseExact } from './results.js';

const listeners = new Set();
// {name, scope, prefixes, by}, as far as it is known.
let caller = null;
export const hasTokens = () => caller !== null && caller.by !== 'nothing';

export async function whoAsks(signal) {
  return (caller = await get('/v1/session', null, signal));
}
export async function signIn(token) {
  caller = await post('/v1/session', { token });
  for (const listener of listeners) listener();
  return caller;
}
export async function signOut() {
  await del('/v1/session');
  caller = null;
  for (const listener of listeners) listener();
}
// Called when someone has signed in or out. Gives what takes the listener away.
export function onSession(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

// What the daemon refused, or that it could not be reached (status 0). `detail` is its own sentence.
class ApiError extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `The daemon answered ${status}.`);
    this.status = status;
    this.type = String(problem.type ?? '').replace('urn:argiope:problem:', '');
    this.title = problem.title ?? '';
    this.errors = Array.isArray(problem.errors) ? problem.errors : [];
    this.requestId = problem.request_id ?? '';
    this.#untold = new Set(this.errors);
  }
  // Whether it is of the member of that pointer, or of one below it.
  isOf(pointer) {
    return this.#find(pointer) !== undefined;
  }
  // What is wrong with that member. It is asked for by the field that shows it.
  at(pointer) {
    const found = this.#find(pointer);
    this.#untold.delete(found);
    return found?.detail ?? null;
  }
  #find(pointer) {
    return this.errors.find((e) => e.pointer === pointer || String(e.pointer).startsWith(`${pointer}/`));
  }
  // Of `errors`, those that no field tells.
  get untold() {
    return [...this.#untold];
  }
  #untold;
}

// The daemon's address, whatever path a proxy puts before it.
export const base = new URL('.', document.baseURI).href.replace(/\/$/, '');

export async function problemOf(response) {
  const text = await response.text().catch(() => '');
  try {
    return new ApiError(response.status, JSON.parse(text));
  } catch {
    return new ApiError(response.status, { detail: `${response.status} ${response.statusText}`.trim() });
  }
}

async function send(method, path, { body, params, signal, headers: more = {} } = {}) {
  const query = params ? `?${new URLSearchParams(Object.entries(params).filter(([, v]) => v != null && v !== ''))}` : '';
  const options = { method, signal, cache: 'no-store', credentials: 'same-origin' };
  // A page of another origin cannot send X-Argiope; the daemon wants it where a cookie tells who asks.
  options.headers = { Accept: 'application/json', 'X-Argiope': 'dashboard', ...more };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers['Content-Type'] = 'application/json';
  }
  let response;
  try {
    response = await fetch(`${base}${path}${query === '?' ? '' : query}`, options);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, { title: 'Unreachable', detail: 'The daemon does not answer.' });
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function json(method, path, options) {
  const response = await send(method, path, options);
  if (response.status === 204) return null;
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

// With numbers that JSON.parse would round as they came.
export async function getExact(path, params, signal) {
  return parseExact(await (await send('GET', path, { params, signal })).text());
}
export const get = (path, params, signal) => json('GET', path, { params, signal });
export const post = (path, body = {}, options = {}) => json('POST', path, { body, ...options });
export const put = (path, body) => json('PUT', path, { body });
export const patch = (path, body) => json('PATCH', path, { body });
export const del = (path, params) => json('DELETE', path, { params });
// {bytes: Uint8Array, type}; null where there is none.
export async function raw(path, signal) {
  try {
    const response = await send('GET', path, { signal, headers: { Accept: '*/*' } });
    return { bytes: new Uint8Array(await response.arrayBuffer()), type: response.headers.get('Content-Type') ?? '' };
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}
// A name as a part of a path; one that a path has another use for stands behind "=".
export const part = (name) => (/^(\.|\.\.|change|=.*)$/s.test(name) ? '=' : '') + encodeURIComponent(name);
// Of a POST that may be repeated after its answer was lost.
export const once = () => ({ headers: { 'Idempotency-Key': crypto.randomUUID?.() ?? String(Math.random()).slice(2) } });
