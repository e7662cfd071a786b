// The contract of argiope/testing: for tests of programs that use Argiope (docs/testing-handlers.md). Node only.
import type { Client, Job, JobFunction, JobOptions, NewJob, Payload } from "../index.js";

// A job as a worker would give it to a handler, for one run. `payload` and options as for put(). `attempt`: of this run, from 1. `record`:
// members of docs/http-api.md that `job.record` has besides. Errors: as newJob().
export function makeJob(
  queue: string,
  payload?: Payload,
  options?: JobOptions & { attempt?: number; record?: Record<string, unknown> },
): Job;

// How the run of a handler would end.
export interface Run {
  // "retry" is a failed attempt, after which the queue's max_attempts says whether there is another; "buried" has failed for good;
  // "snoozed" runs again and counts as no attempt.
  outcome: "done" | "retry" | "buried" | "snoozed" | "cancelled";
  result?: string | Uint8Array; // as it would be kept; undefined: none
  followUps: NewJob[];
  delayMs?: number; // until the next attempt; undefined: as the queue's policy says
  priority?: number; // the job's new one
  error: string; // the words that the daemon would keep
  exception?: unknown; // what the handler threw
  progress: { progress: number; message: string }[]; // each that it told
}

// Runs a handler, and says how the run would end; what the handler throws is in it.
export function runHandler(handler: JobFunction, job: Job): Promise<Run>;

// As if the job were cancelled while it runs: `job.signal` is aborted.
export function cancelJob(job: Job): void;

// There is no program `argiope` here; the message has the ways out.
export class ProgramNotFound extends Error {}

// `argiope serve` in a temporary folder, on a port of loopback that the system chooses. It ends with this process at the latest.
export class Daemon {
  private constructor();
  // `program`: its path; default: ARGIOPE, or `argiope` on PATH. `args`: more words for its command line. `store`: default a file in its
  // folder. Variables of this process that begin with ARGIOPE are not handed on.
  // Errors: ProgramNotFound; Error, with its log, for one that does not begin to listen.
  static start(options?: { program?: string; args?: string[]; store?: string }): Promise<Daemon>;
  readonly url: string;
  readonly client: Client; // of it, without a token
  readonly folder: string; // where it runs
  readonly log: string; // what it has said so far
  // Ends it, and starts it again on the same store and port.
  restart(): Promise<void>;
  // Ends it, and removes its folder. Twice is as good as once.
  stop(): Promise<void>;
}
