// The pipes to Argiope, as messages: a line of JSON each, and behind a page's line its bytes (docs/processors.md).
import { AsyncLocalStorage } from "node:async_hooks";
import { format } from "node:util";
import { wellFormed } from "../http.js";

export const visits = new AsyncLocalStorage(); // which page's callback is running here

// Messages of a stream, the body of each in `content`. Ends with the stream, also in the middle of a message.
export async function* messagesOf(input) {
  const chunks = input[Symbol.asyncIterator]();
  let waiting = Buffer.alloc(0);

  // Until there is what is asked for; `isEnough` sees each chunk once, and how much there is with it.
  async function fill(isEnough) {
    if (isEnough(waiting, waiting.length)) return true;
    const parts = [waiting];
    for (let length = waiting.length; ; ) {
      const { done, value } = await chunks.next();
      if (done) return false;
      parts.push(value);
      length += value.length;
      if (isEnough(value, length)) break;
    }
    waiting = Buffer.concat(parts);
    return true;
  }

  while (await fill((chunk) => chunk.includes(10))) {
    const end = waiting.indexOf(10);
    const line = waiting.subarray(0, end).toString();
    waiting = waiting.subarray(end + 1);
    if (!line.trim()) continue;
    const message = JSON.parse(line);
    const size = message.body ?? 0;
    if (!(await fill((_, length) => length >= size))) return;
    message.content = waiting.subarray(0, size);
    waiting = waiting.subarray(size);
    yield message;
  }
}

// Sends messages, and makes standard output theirs alone: console and process.stdout become the log of the visit that writes.
export class Output {
  #write;
  #begun = ""; // of a line that was written without its end

  constructor(stream) {
    this.#write = stream.write.bind(stream);
    this.drained = Promise.resolve();
  }

  send(message) {
    return this.sendLine(toJson(message));
  }

  sendLine(line) {
    this.#write(line + "\n");
  }

  log(level, text) {
    const visit = visits.getStore();
    if (visit && !visit.logs(text.length)) return;
    const id = visit?.isOpen ? { id: visit.id } : {};
    this.send({ type: "log", ...id, level, text: wellFormed(text) });
  }

  takeConsole(stdout) {
    const levels = { log: "print", info: "info", warn: "warning", error: "error", debug: "debug", trace: "debug" };
    for (const [method, level] of Object.entries(levels)) console[method] = (...values) => this.log(level, format(...values));
    console.dir = console.dirxml = (value) => this.log("print", format("%O", value));
    stdout.write = (chunk, encoding, done) => {
      const lines = (this.#begun + (typeof chunk === "string" ? chunk : Buffer.from(chunk).toString())).split("\n");
      this.#begun = lines.pop();
      if (lines.length) this.log("print", lines.join("\n"));
      const after = typeof encoding === "function" ? encoding : done;
      if (after) queueMicrotask(after);
      return true;
    };
  }
}

// JSON that any reader takes: no halves of characters, no numbers that are none; bytes as text, or in base64.
export function toJson(value) {
  return JSON.stringify(value, function (key, given) {
    const original = this[key];
    if (typeof given === "string") return wellFormed(given);
    if (typeof given === "bigint") return given.toString();
    if (original instanceof Map) return Object.fromEntries(original);
    if (original instanceof Set) return [...original];
    if (original instanceof Uint8Array) return bytesText(original);
    return given;
  });
}

export function bytesText(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return Buffer.from(bytes).toString("base64");
  }
}
