// Scripts that read pages for Argiope (docs/processors.md), in JavaScript.
//
//   import { Project } from "argiope/processor";
//   await new Project()
//     .start((visit) => visit.crawl("https://shop.example/", "list"))
//     .rule("list", { ageMs: 3_600_000 }, async (visit) => {
//       for (const link of await visit.select("a.item")) visit.crawl(link.attributes.href, "item");
//     })
//     .rule("item", async (visit) => ({ name: (await visit.first("h1"))?.text }))
//     .run();
import type { Bury, Retry } from "../index.js";
export { Bury, Retry };

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

// What a page, a rule or the project may say. Spans are milliseconds.
export interface RuleOptions {
  priority?: number; // higher first
  ageMs?: number | null; // fresh for so long after a success; null: for ever
  tag?: string | null; // a page whose tag differs from its last success's is not fresh
  retries?: number;
  recrawl?: boolean; // due again by itself, ageMs after each success
  timeLimitMs?: number; // for the function
  method?: string;
  headers?: HeadersInit;
  cookies?: Record<string, string>;
  // Text, bytes, URLSearchParams; anything else as JSON. With `files` the form's other fields, an object or pairs: values are text, numbers and
  // booleans, an array repeats its field, undefined leaves it out. Errors: TypeError for others.
  body?: unknown;
  files?: Record<string, Record<string, string | Uint8Array>>; // field to file name to content
  timeoutMs?: number; // of the request
  connectTimeoutMs?: number;
  redirects?: number;
  verifyCertificate?: boolean;
  proxy?: string | false;
  etag?: boolean | string;
  lastModified?: boolean | string;
  robots?: boolean;
  render?: boolean | { script?: string; run_at?: "start" | "end"; width?: number; height?: number; images?: boolean };
}

export interface CrawlOptions extends RuleOptions {
  name?: string; // what makes it this page; default: its URL
  context?: unknown; // comes with the answer
  dueAt?: Date | string | number;
  delayMs?: number;
  force?: boolean; // visit it though it is fresh, queued or being visited
  cancel?: boolean;
}

export interface Match {
  node?: number; // of an element
  text?: string;
  raw?: string;
  lines?: string;
  html?: string;
  inner_html?: string;
  name?: string;
  attributes?: Record<string, string>;
}

export interface SelectOptions {
  within?: Match | number | (Match | number)[];
  html?: string; // another document than the body
  give?: ("text" | "raw" | "lines" | "html" | "inner_html" | "name" | "attributes")[]; // default: text, attributes
  most?: number;
}

// A page with its answer. It ends with its function: what is called later throws.
export interface Visit {
  readonly id: number;
  readonly event: "fetch" | "start" | "tick" | "message" | "finished";
  readonly rule: string;
  readonly project: string;
  readonly debug: boolean; // the project's status is DEBUG, or one page is tried
  readonly isTry: boolean; // one page is tried, as on the debug page, and nothing of it is stored: pyspider's is_debugger()
  readonly page: Record<string, Json>; // as the protocol has it
  readonly url: string; // behind redirects
  readonly askedUrl: string;
  readonly status: number; // 0: no answer
  readonly ok: boolean; // 200 to 399 but 304, and no error
  readonly error?: { kind: string; text: string };
  readonly headers: Headers; // as the platform's; no instance of that class
  readonly rawHeaders: [string, string][];
  readonly cookies: Record<string, string>; // that were sent, and that were set on the way
  readonly encoding: string;
  readonly timeMs: number;
  readonly body: Uint8Array;
  readonly text: string;
  readonly context: any;
  readonly attempt: number;
  readonly fields: Record<string, any>; // what the rule's `fields` found
  readonly scriptResult: Json | undefined;
  readonly signal: AbortSignal; // at the time limit
  save: any; // kept for the page's next visit
  json(): any;
  // Relative URLs are the page's. A curl command is a URL, too; the options count more than what it says. No URL (null, undefined) is passed
  // over, and the log says so. Errors: TypeError for an option that is not known, and for a curl command that has one or
  // names a file; SyntaxError for one whose quotes do not end.
  crawl(url: string | URL | Iterable<string | URL> | null | undefined, rule: string, options?: CrawlOptions): void;
  result(value: unknown, part?: string): void; // of one part the last counts
  noResults(): void; // what earlier visits gave is gone
  send(project: string, message: unknown, url?: string): void;
  // Argiope reads the document; links in it are absolute. Errors: Error for a selector that it refuses.
  select(css: string, options?: SelectOptions): Promise<Match[]>;
  xpath(xpath: string, options?: SelectOptions): Promise<Match[]>;
  first(css: string, options?: SelectOptions): Promise<Match | undefined>;
}

// What it returns is the page's result, undefined and null: none; each value of a generator is one of its own. One that throws has failed: Retry
// and Bury say when it is tried again.
export type VisitFunction = (visit: Visit) => unknown;

export class Project {
  // `concurrency`: visits at a time, 16. `retryDelayMs`: of all attempts, or of each ("" for the others, null: no further one).
  constructor(options?: RuleOptions & { concurrency?: number; retryDelayMs?: number | Record<string, number | null> });
  // `errors`: it also gets what is no success. `fields`: what Argiope takes from the page before (docs/extraction.md).
  rule(name: string, options: RuleOptions & { errors?: boolean; fields?: Record<string, Json> }, run: VisitFunction): this;
  rule(name: string, run: VisitFunction): this;
  // Calls the rule at each multiple of `ms` since 1970. Errors: RangeError below a second.
  every(ms: number, rule: string, run?: VisitFunction): this;
  start(run: VisitFunction): this; // a round begins
  message(run: (visit: Visit, message: any, from: string) => unknown): this;
  finished(run: VisitFunction): this; // a round has ended; its counts are the context
  // As Visit's; false until Argiope has asked what the script is.
  readonly debug: boolean;
  readonly isTry: boolean;
  // Until Argiope closes standard input. console and process.stdout are the log of the visit that writes; programs that it starts must
  // not inherit standard output.
  run(streams?: { input?: AsyncIterable<Uint8Array>; output?: { write(text: string): unknown } }): Promise<void>;
}
