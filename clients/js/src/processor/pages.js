// Options of crawl(), of rules and of the project, as the protocol's pages say them.
import { createHash } from "node:crypto";
import { jsonOf } from "../http.js";
import { HeaderFields } from "./headers.js";

const PLAIN = ["name", "context", "priority", "tag", "retries", "recrawl", "force", "cancel", "ageMs", "delayMs", "timeLimitMs"];
const OF_REQUEST = ["method", "cookies", "timeoutMs", "connectTimeoutMs", "redirects", "verifyCertificate", "proxy", "etag", "lastModified", "robots"];
const OF_A_FIELD = ["string", "number", "bigint", "boolean"];
const KNOWN = new Set([...PLAIN, ...OF_REQUEST, "rule", "dueAt", "headers", "body", "files", "render", "errors", "fields"]);

const toSnake = (name) => name.replace(/[A-Z]/g, (letter) => "_" + letter.toLowerCase());

// Errors: TypeError for an option that is not known.
export function membersOf(options) {
  const page = {};
  const request = {};
  for (const [name, value] of Object.entries(options)) {
    if (!KNOWN.has(name)) throw new TypeError(`crawl: there is no option ${name}`);
    if (value === undefined) continue;
    if (PLAIN.includes(name)) page[toSnake(name)] = value;
    else if (OF_REQUEST.includes(name)) request[toSnake(name)] = value;
  }
  if (options.dueAt !== undefined) page.due_at = new Date(options.dueAt).toISOString();
  const headers = Object.fromEntries(new HeaderFields(options.headers ?? {}));
  Object.assign(request, options.files ? formWithFiles(options.body, options.files, headers) : bodyOf(options.body, headers));
  if (Object.keys(headers).length) request.headers = headers;
  if (options.render) request.render = options.render === true ? {} : options.render;
  if (Object.keys(request).length) page.request = request;
  return page;
}

// Text and bytes as they are, URLSearchParams as a form, anything else as JSON.
function bodyOf(body, headers) {
  if (body === undefined || body === null) return {};
  if (typeof body === "string") return { body };
  if (body instanceof URLSearchParams) return { body: body.toString() };
  if (body instanceof Uint8Array) return { body_base64: Buffer.from(body).toString("base64") };
  headers["content-type"] ??= "application/json";
  return { body: jsonOf(body, "crawl: a body") };
}

// As multipart/form-data. The boundary is made from what is in it, so that the same form is always the same body.
function formWithFiles(fields, files, headers) {
  const quoted = (name) => String(name).replace(/\r/g, "%0D").replace(/\n/g, "%0A").replace(/"/g, "%22");
  const parts = [];
  const add = (disposition, content) => {
    const head = `Content-Disposition: form-data; ${disposition}\r\n\r\n`;
    parts.push([Buffer.from(head), Buffer.from(content), Buffer.from("\r\n")]);
  };
  for (const [name, value] of fieldsOf(fields)) add(`name="${quoted(name)}"`, value);
  for (const [name, each] of Object.entries(files)) {
    for (const [file, content] of Object.entries(each)) add(`name="${quoted(name)}"; filename="${quoted(file)}"`, content);
  }
  const boundary = createHash("sha256").update(Buffer.concat(parts.flat())).digest("hex").slice(0, 32);
  headers["content-type"] = `multipart/form-data; boundary=${boundary}`;
  const whole = parts.flatMap((part) => [Buffer.from(`--${boundary}\r\n`), ...part]);
  return { body_base64: Buffer.concat([...whole, Buffer.from(`--${boundary}--\r\n`)]).toString("base64") };
}

// The fields beside the files, pairs of a name and its text: of an object, or of pairs. An array repeats its field, undefined leaves it out.
// Errors: TypeError for what is no form, and for values that are neither text nor numbers nor booleans.
function* fieldsOf(body) {
  if (body === undefined || body === null) return;
  const pairs = typeof body !== "object" ? [body] : typeof body[Symbol.iterator] === "function" ? body : Object.entries(body);
  for (const pair of pairs) {
    if (!Array.isArray(pair) || pair.length !== 2) throw new TypeError("crawl: with files, body is an object, or pairs of a name and a value");
    for (const value of Array.isArray(pair[1]) ? pair[1] : [pair[1]]) {
      if (value === undefined) continue;
      if (!OF_A_FIELD.includes(typeof value)) throw new TypeError(`crawl: with files, field ${pair[0]} is text, a number, a boolean or an array of them`);
      yield [pair[0], String(value)];
    }
  }
}
