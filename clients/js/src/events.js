// Server-sent events from bytes.

export class EventReader {
  #decoder = new TextDecoder();
  #rest = "";
  #kind = "";
  #data = [];

  constructor(lastEventId = "") {
    this.lastEventId = lastEventId;
    this.retryMs = undefined;
  }

  // What began and did not end is forgotten: the stream that follows brings it whole.
  brokenOff() {
    this.#decoder = new TextDecoder();
    this.#rest = this.#kind = "";
    this.#data = [];
  }

  *feed(chunk) {
    const lines = (this.#rest + this.#decoder.decode(chunk, { stream: true })).split("\n");
    this.#rest = lines.pop();
    for (const line of lines) {
      const event = this.#line(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (event) yield event;
    }
  }

  #line(line) {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") this.#kind = value;
    if (name === "data") this.#data.push(value);
    if (name === "id" && !value.includes("\0")) this.lastEventId = value;
    if (name === "retry" && /^\d+$/.test(value)) this.retryMs = Number(value);
    return undefined;
  }

  #dispatch() {
    const kind = this.#kind;
    const text = this.#data.join("\n");
    this.#kind = "";
    this.#data = [];
    if (!kind && !text) return undefined;
    let data = text;
    try {
      data = JSON.parse(text);
    } catch {
      // Text, then.
    }
    return { kind: kind || "message", data, id: this.lastEventId };
  }
}
