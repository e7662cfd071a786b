// For tests of programs that use Argiope (docs/testing-handlers.md). index.d.ts has the contract. Node only.
export { Daemon, ProgramNotFound } from "./daemon.js";
export { cancelJob, makeJob, runHandler } from "./runs.js";
