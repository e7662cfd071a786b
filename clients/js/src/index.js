// Argiope's client: puts jobs, looks at them, and works on them, over the HTTP API of `argiope serve`. index.d.ts has the
// contract.
export { Client, newJob } from "./client.js";
export { ApiError, ArgiopeError, Bury, Retry, Snooze, Unreachable } from "./errors.js";
export { Job } from "./job.js";
export { Worker } from "./worker.js";
