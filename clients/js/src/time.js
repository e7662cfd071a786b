// Time, so that tests can bring their own: now() in milliseconds, timers, and what is made of them.

// A timer that is set for longer ends at once. Whatever waits for longer looks at the time again, or ends after these 24 days.
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const realTime = {
  now: () => performance.now(),
  setTimeout: (run, ms) => setTimeout(run, Math.min(ms, LONGEST_TIMER_MS)),
  clearTimeout: (timer) => clearTimeout(timer),
};

// A delay in milliseconds. Errors: TypeError, which names what is none; `what` is what it was given as.
export function delayOf(delay, what) {
  const ms = typeof delay === "bigint" ? Number(delay) : delay;
  if (typeof ms !== "number" || !Number.isFinite(ms)) {
    throw new TypeError(`${what ? `${what}: ` : ""}${shown(delay)} is no delay: give a number of milliseconds`);
  }
  return Math.round(ms);
}

const LONGEST_DELAY_MS = 100 * 365 * 24 * 3600 * 1000; // that the daemon takes

// Of what ends a run: a time that is past is now, and one that is too far is the farthest, since no end may be lost for it.
export function delayOfEnd(delay, longestMs = LONGEST_DELAY_MS) {
  return Math.min(Math.max(0, delayOf(delay)), longestMs);
}

// delayOf() of a limit, which may be none: Infinity.
export function limitOf(limit, what) {
  return limit === Infinity ? limit : delayOf(limit, what);
}

// A job, or what ends one, with its times and delays as the daemon takes them.
export function withTimes(of) {
  if (of === null || typeof of !== "object") return of;
  const made = { ...of };
  if (made.due_at !== undefined) made.due_at = timeOf(made.due_at);
  for (const name of ["delay_ms", "lease_time_ms"]) if (made[name] !== undefined) made[name] = delayOf(made[name], name);
  if (Array.isArray(made.follow_ups)) made.follow_ups = made.follow_ups.map(withTimes);
  return made;
}

// A point in time as text: of a Date, of milliseconds since 1970 as Date.now() gives them, or of RFC 3339 as it is.
// Errors: TypeError, which names what is none.
export function timeOf(when) {
  if (when === undefined || when === null || typeof when === "string") return when;
  const date = when instanceof Date ? when : new Date(typeof when === "number" || typeof when === "bigint" ? Number(when) : NaN);
  if (Number.isNaN(date.getTime())) {
    throw new TypeError(`${shown(when)} is no time: give a Date, milliseconds since 1970, or text as of RFC 3339`);
  }
  return date.toISOString();
}

// Any value as a few words, whatever its own functions do.
export function shown(value) {
  try {
    return typeof value === "bigint" ? `${value}n` : String(value);
  } catch {
    return `a value of type ${typeof value}`;
  }
}

// What `make` makes of what a program threw. It throws nothing itself: an end that cannot be made is a failed attempt, which `otherwise`
// makes of the reason.
export function endOf(make, otherwise) {
  try {
    return make();
  } catch (trouble) {
    return otherwise(`an end that cannot be told: ${shown(trouble)}`);
  }
}

// Whether what was thrown is of that class, whatever it is.
export function isA(error, type) {
  try {
    return error instanceof type;
  } catch {
    return false;
  }
}

// Resolves after `ms`, or as soon as `signal` is aborted.
export function sleep(time, ms, signal) {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const end = () => {
      time.clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = time.setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
}

// Who waits goes on when it is rung. A ring that nobody waited for is remembered.
export class Bell {
  #rung = false;
  #wake = null;

  ring() {
    this.#rung = true;
    this.#wake?.();
  }

  silence() {
    this.#rung = false;
  }

  // Until it is rung, or `ms` have passed.
  async wait(time, ms) {
    if (!this.#rung) {
      let timer;
      await new Promise((resolve) => {
        this.#wake = resolve;
        if (ms !== undefined) timer = time.setTimeout(resolve, ms);
      });
      time.clearTimeout(timer);
      this.#wake = null;
    }
    this.#rung = false;
  }
}

// What is waited for because an answer says so; whoever says more may be mistaken, or no daemon of ours.
const LONGEST_RETRY_AFTER_MS = 60_000;

// Waits between attempts: each drawn from a quarter of a limit to the limit, which doubles, so that clients that lost the same
// daemon do not come back together.
export class Backoff {
  #limit;

  constructor(firstMs = 100, longestMs = 5000) {
    this.firstMs = firstMs;
    this.longestMs = longestMs;
    this.#limit = firstMs;
  }

  reset() {
    this.#limit = this.firstMs;
  }

  // `atLeastMs`: what an answer's Retry-After says; beyond a minute it counts as a minute.
  next(atLeastMs = 0) {
    const limit = this.#limit;
    this.#limit = Math.min(limit * 2, this.longestMs);
    return Math.min(atLeastMs, LONGEST_RETRY_AFTER_MS) + limit * (0.25 + 0.75 * Math.random());
  }
}
