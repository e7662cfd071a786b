// Visit: a page with its answer, and what its function gives for it.
import { fromCurl } from "./curl.js";
import { HeaderFields } from "./headers.js";
import { membersOf } from "./pages.js";
import { toJson } from "./wire.js";

const NO_ANSWER = 0;

export class Visit {
  #send;
  #queries = new Map(); // those that wait for Argiope
  #logged = 0;
  #lastQuery = 0;
  #abort = new AbortController();
  #text;
  given = { pages: [], results: undefined, messages: [] };
  isOpen = true;

  constructor(call, send, { debug = false, isTry = false } = {}) {
    this.#send = send;
    this.debug = debug;
    this.isTry = isTry;
    const { page = {}, response = {} } = call;
    this.id = call.id;
    this.event = call.event;
    this.rule = call.rule;
    this.project = call.project;
    this.page = page;
    this.url = response.url ?? page.url;
    this.askedUrl = page.url;
    this.status = response.status ?? NO_ANSWER;
    this.headers = new HeaderFields();
    for (const [name, value] of response.headers ?? []) {
      try {
        this.headers.append(name, value);
      } catch {
        // What no header may hold is left out: rawHeaders has it.
      }
    }
    this.rawHeaders = response.headers ?? [];
    this.cookies = { ...page.request?.cookies, ...response.cookies };
    this.encoding = response.encoding ?? "utf-8";
    this.timeMs = response.time_ms ?? 0;
    this.error = response.error;
    this.scriptResult = response.script_result;
    this.body = call.content;
    this.context = page.context;
    this.attempt = page.attempt ?? 1;
    this.fields = call.fields ?? {};
    this.save = call.save ?? undefined;
    this.signal = this.#abort.signal;
  }

  get ok() {
    return !this.error && this.status >= 200 && this.status < 400 && this.status !== 304;
  }

  get text() {
    if (this.#text === undefined) {
      let decoder;
      try {
        decoder = new TextDecoder(this.encoding);
      } catch {
        decoder = new TextDecoder();
      }
      this.#text = decoder.decode(this.body);
    }
    return this.#text;
  }

  json() {
    return JSON.parse(this.text);
  }

  crawl(url, rule, options = {}) {
    this.#requireOpen("crawl");
    if (typeof rule === "object" && rule !== null) [rule, options] = [rule.rule, rule];
    if (url === undefined || url === null) {
      // Of a selector that has found nothing.
      this.#send({ type: "log", id: this.id, level: "warning", text: `crawl(${url}): there is no URL, and nothing was asked for` });
      return;
    }
    if (typeof url === "string" && /^\s*curl\s/.test(url)) {
      const { urls, options: said } = fromCurl(url.trim());
      const lower = Object.fromEntries(new HeaderFields(options.headers ?? {}));
      [url, options] = [urls, { ...said, ...options, headers: { ...said.headers, ...lower }, cookies: { ...said.cookies, ...options.cookies } }];
      if (!Object.keys(options.cookies).length) delete options.cookies;
    }
    for (const each of typeof url === "string" || url instanceof URL ? [url] : url) {
      if (typeof each !== "string" && !(each instanceof URL)) throw new TypeError(`crawl(${each}): a URL, or several`);
      this.given.pages.push(toJson({ url: String(each), rule, ...membersOf(options) }));
    }
  }

  result(value, part = "") {
    this.#requireOpen("result");
    (this.given.results ??= []).push(toJson({ part, value: value === undefined ? null : value }));
  }

  // An empty list of results says that there are none any more.
  noResults() {
    this.#requireOpen("noResults");
    this.given.results ??= [];
  }

  send(project, message, url = "data:,on_message") {
    this.#requireOpen("send");
    this.given.messages.push(toJson({ project, message: message ?? null, url }));
  }

  select(css, options) {
    return this.#query({ css }, options);
  }

  xpath(xpath, options) {
    return this.#query({ xpath }, options);
  }

  async first(css, options) {
    return (await this.select(css, { ...options, most: 1 }))[0];
  }

  #query(what, { within, html, give = ["text", "attributes"], most } = {}) {
    this.#requireOpen("select");
    const query = ++this.#lastQuery;
    const nodes = within && [within].flat().map((match) => match.node ?? match);
    return new Promise((resolve, reject) => {
      this.#queries.set(query, { resolve, reject });
      this.#send({ type: "select", id: this.id, query, ...what, within: nodes, html, give, most });
    });
  }

  // Argiope's answer to a query.
  selected({ query, matches, error }) {
    const waiting = this.#queries.get(query);
    this.#queries.delete(query);
    if (error) waiting?.reject(new Error(error.text ?? error.kind));
    else waiting?.resolve(matches ?? []);
  }

  // Nothing more is taken from the function, should it run on.
  close(reason) {
    this.isOpen = false;
    if (reason) this.#abort.abort(reason);
    for (const { reject } of this.#queries.values()) reject(reason ?? new Error("the visit has ended"));
  }

  logRoom = 64 * 1024; // characters
  logLost = 0;

  // Whether the log has room for so much more.
  logs(length) {
    const hasRoom = this.#logged + length <= this.logRoom;
    if (hasRoom) this.#logged += length;
    else this.logLost += length;
    return hasRoom;
  }

  #requireOpen(what) {
    if (!this.isOpen) throw new Error(`${what}() after the visit has ended: is a promise not awaited?`);
  }
}
