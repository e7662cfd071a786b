// What goes wrong, and what a job's function throws to say more than "it failed".

export class ArgiopeError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

export class Unreachable extends ArgiopeError {
  constructor(why, sent, cause) {
    super(why, { cause });
    this.sent = sent;
  }
}

export class ApiError extends ArgiopeError {
  constructor(problem, retryAfterMs) {
    const type = String(problem.type ?? "").replace(/^.*:/, "");
    super(String(problem.detail || problem.title || type || `status ${problem.status}`));
    this.type = type;
    this.title = problem.title ?? "";
    this.status = problem.status ?? 0;
    this.detail = this.message;
    this.errors = problem.errors ?? [];
    this.requestId = problem.request_id;
    this.retryAfterMs = retryAfterMs;
  }
}

export class Retry extends Error {
  constructor(delayMs, why = "to be tried again", { priority } = {}) {
    super(why);
    this.delayMs = delayMs;
    this.priority = priority;
  }
}

export class Bury extends Error {}

export class Snooze extends Error {
  constructor(delayMs) {
    super("snoozed");
    this.delayMs = delayMs;
  }
}
