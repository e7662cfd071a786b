// What happens, as it happens: one stream of server-sent events for the whole page, closed while the tab is hidden. It is
// read by fetch, because an EventSource does not tell why it was refused.
import { base, get, onSession, problemOf } from './api.js';
import { EventParser } from './event_parser.js';
import { useEffect, useRef, useState } from './lib.js';

const kSilenceMs = 40_000; // the daemon says something every 15 s
const kLongestPauseMs = 10_000;
const kMostPoints = 1800; // half an hour, a point a second
const kMostQueues = 200; // that have a history

const numberOr = (other, value) => (Number.isFinite(value) ? value : other);
const states = ['ready', 'delayed', 'running', 'done', 'buried', 'cancelled'];

// One queue's counts and rates, or those of all.
function readCounts(json) {
  const counts = {};
  for (const state of states) counts[state] = numberOr(0, json?.[state]);
  counts.putRate = numberOr(null, json?.added_rate);
  counts.doneRate = numberOr(null, json?.done_rate);
  counts.failedRate = ['retried_rate', 'buried_rate', 'expired_rate'].reduce((sum, name) => sum + numberOr(0, json?.[name]), 0);
  return counts;
}

function readCounters(json) {
  const queues = new Map(Object.entries(json.queues ?? {}).map(([name, of]) => [name, readCounts(of)]));
  return { at: Date.parse(json.at) || Date.now(), queues, totals: readCounts(json.totals), daemon: json.daemon ?? null };
}

// Whether no job is there, in whatever state, and none went by just now.
export const isEmpty = ({ totals }) => states.every((state) => totals[state] === 0) && !totals.putRate && !totals.doneRate;

const kPlotted = ['ready', 'delayed', 'running', 'buried', 'putRate', 'doneRate', 'failedRate'];

// The last half hour of some numbers, as columns for a plot. A pause of the stream is a gap in it.
class History {
  constructor() {
    this.columns = kPlotted.map(() => []);
    this.at = [];
  }
  push(at, counts) {
    const last = this.at.at(-1);
    if (last !== undefined && at - last > 5) this.row(last + 1, null);
    this.row(at, counts);
    if (this.at.length <= kMostPoints + 200) return;
    const extra = this.at.length - kMostPoints;
    this.at.splice(0, extra);
    for (const column of this.columns) column.splice(0, extra);
  }
  // Puts what the daemon has counted before the first snapshot: {at: [times], added: […] …} in steps of some seconds.
  begin(counted) {
    const first = this.at[0] ?? Infinity;
    const of = (i, ...names) => names.reduce((sum, name) => sum + counted[name][i], 0) / counted.step_s;
    const rows = counted.at
      .map((at, i) => ({
        at: Date.parse(at) / 1000,
        counts: {
          ready: counted.ready[i],
          running: counted.running[i],
          putRate: of(i, 'added'),
          doneRate: of(i, 'done'),
          failedRate: of(i, 'retried', 'buried', 'expired'),
        },
      }))
      .filter((row, i, all) => row.at < first && row.at > all.at(-1).at - kMostPoints);
    this.at.unshift(...rows.map((row) => row.at));
    kPlotted.forEach((name, i) => this.columns[i].unshift(...rows.map((row) => row.counts[name] ?? null)));
  }
  row(at, counts) {
    this.at.push(at);
    kPlotted.forEach((name, i) => this.columns[i].push(counts ? counts[name] : null));
  }
  of(...names) {
    return [this.at, ...names.map((name) => this.columns[kPlotted.indexOf(name)])];
  }
}

class Live {
  status = 'connecting'; // live, waiting, hidden, refused
  problem = null;
  snapshot = null;
  totals = new History();
  queues = new Map();
  lastId = null;
  #wanted = new Map();
  #listeners = new Set();
  #events = new Set();
  #abort = null;
  #failures = 0;
  #timer = 0;
  #openKinds = '';
  #last = 0;
  #begun = new Set();

  start() {
    document.addEventListener('visibilitychange', () => this.#look());
    window.addEventListener('pagehide', () => this.#close('hidden'));
    window.addEventListener('pageshow', () => this.#look());
    onSession(() => this.restart());
    this.#look();
  }
  restart() {
    this.#failures = 0;
    this.#close('connecting');
    this.#look();
  }

  // `listener` hears of each snapshot and change of status.
  listen(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
  // `take({kind, data, id})` hears of events. Job events come only while someone wants them: they may be many.
  follow(kinds, take) {
    const entry = { kinds: new Set(kinds), take };
    this.#events.add(entry);
    this.#want(kinds, 1);
    return () => {
      this.#events.delete(entry);
      this.#want(kinds, -1);
    };
  }
  // The stream begins anew, with so many of the events before.
  goBack(most) {
    this.#last = most;
    this.lastId = null;
    this.restart();
  }
  // Takes a snapshot that came another way, if it is not older than the last.
  offer(json) {
    const snapshot = readCounters(json);
    if (this.snapshot && snapshot.at <= this.snapshot.at) return;
    this.snapshot = snapshot;
    const seconds = snapshot.at / 1000;
    this.totals.push(seconds, snapshot.totals);
    for (const [name, counts] of snapshot.queues) this.#historyOf(name)?.push(seconds, counts);
    this.#tell();
  }
  // Has a history of that queue from now on, however many there are.
  keep(name) {
    if (!this.queues.has(name)) this.queues.set(name, new History());
  }
  // Plots of that queue, or of all together, begin with what was counted before the page was opened. Once; what is refused is left out.
  async begin(name = null) {
    if (this.#begun.has(name)) return;
    this.#begun.add(name);
    const counted = await get('/v1/history', name === null ? null : { queue: name }).catch(() => null);
    if (!counted?.at.length) return;
    if (name !== null) this.keep(name);
    (name === null ? this.totals : this.queues.get(name)).begin(counted);
    this.#tell();
  }
  #historyOf(name) {
    if (!this.queues.has(name) && this.queues.size < kMostQueues) this.queues.set(name, new History());
    return this.queues.get(name);
  }

  #want(kinds, by) {
    for (const kind of kinds) this.#wanted.set(kind, (this.#wanted.get(kind) ?? 0) + by);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (this.#abort && this.#kinds() !== this.#openKinds) this.restart();
      else this.#look();
    }, 60);
  }
  #kinds() {
    const kinds = ['counters', 'schedule', 'queue', 'worker'];
    if (this.#wanted.get('job') > 0) kinds.push('job');
    return kinds.join(',');
  }

  #look() {
    if (document.hidden) return this.#close('hidden');
    if (!this.#abort) this.#run();
  }
  #close(status) {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.#abort = null;
    this.#say(status);
  }
  #say(status, problem = null) {
    if (this.status === status && this.problem === problem) return;
    this.status = status;
    this.problem = problem;
    this.#tell();
  }
  #tell() {
    for (const listener of this.#listeners) listener();
  }

  async #run() {
    const abort = (this.#abort = new AbortController());
    this.#openKinds = this.#kinds();
    let problem = null;
    try {
      problem = await this.#read(abort);
    } catch {
      // It broke off, which the pause below is for.
    }
    if (this.#abort !== abort) return;
    this.#abort = null;
    if (problem?.status === 401 || problem?.status === 403) return this.#say('refused', problem);
    const pause = Math.min(kLongestPauseMs, 500 * 2 ** this.#failures++);
    this.#say('waiting', problem);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#look(), pause);
  }

  async #read(abort) {
    const more = { Accept: 'text/event-stream' };
    if (this.lastId) more['Last-Event-ID'] = this.lastId;
    const last = this.lastId ? 0 : this.#last;
    const response = await fetch(`${base}/v1/events?kinds=${this.#openKinds}${last ? `&last=${last}` : ''}`, {
      headers: more,
      credentials: 'same-origin',
      signal: abort.signal,
      cache: 'no-store',
    });
    if (!response.ok) return problemOf(response);
    this.#last = 0;
    const parser = new EventParser((event) => this.#take(event));
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let silence = 0;
    const watch = () => {
      clearTimeout(silence);
      silence = setTimeout(() => abort.abort(), kSilenceMs);
    };
    const aborted = new Promise((_, fail) => abort.signal.addEventListener('abort', () => fail(abort.signal.reason)));
    try {
      this.#say('live');
      for (;;) {
        watch();
        const { done, value } = await Promise.race([reader.read(), aborted]);
        if (done) return null;
        this.#failures = 0;
        parser.feed(value);
        if (parser.id) this.lastId = parser.id;
      }
    } finally {
      clearTimeout(silence);
    }
  }

  #take({ event, data, id }) {
    let json;
    try {
      json = JSON.parse(data);
    } catch {
      return;
    }
    if (event === 'counters') this.offer(json);
    for (const { kinds, take } of this.#events) {
      if (event === 'reset' || kinds.has(event)) take({ kind: event, data: json, id });
    }
  }
}

export const live = new Live();

// The stream's state, for who draws it. The caller is drawn again when what `of` gives has changed: by default, with each
// snapshot.
export function useLive(of = () => live.snapshot) {
  const [, again] = useState(0);
  const drawn = useRef(null);
  drawn.current = [of(live), live.status];
  useEffect(() => {
    const look = () => {
      const now = [of(live), live.status];
      if (now.some((value, i) => !Object.is(value, drawn.current[i]))) again((n) => n + 1);
    };
    look();  // it may have changed since it was drawn
    return live.listen(look);
  }, []);
  return live;
}

// Calls `take` for events of those kinds while the caller is on the page.
export function useEvents(kinds, take, deps) {
  useEffect(() => live.follow(kinds, take), deps);
}

// Calls `refresh` soon after events that `concerns`, at most every `ms`.
export function useRefresh(kinds, concerns, refresh, deps, ms = 1500) {
  useEffect(() => {
    let timer = 0;
    let last = 0;
    const stop = live.follow(kinds, (event) => {
      if (timer || (event.kind !== 'reset' && !concerns(event))) return;
      timer = setTimeout(
        () => {
          timer = 0;
          last = Date.now();
          refresh();
        },
        Math.max(80, ms - (Date.now() - last)),
      );
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, deps);
}

// The moment, every second, at once for all who ask; it stands still while the tab is hidden.
const clocks = new Set();
setInterval(() => {
  if (document.hidden) return;
  const now = Date.now();
  for (const tell of clocks) tell(now);
}, 1000);
export function useNow() {
  const [now, set] = useState(Date.now);
  useEffect(() => {
    clocks.add(set);
    return () => clocks.delete(set);
  }, []);
  return now;
}

// Calls `look` so many milliseconds after its last end, again and again, while the page is seen; at once when it is seen again.
export function usePoll(look, ms, deps = []) {
  const current = useRef(look);
  current.current = look;
  useEffect(() => {
    let timer = 0;
    let isOver = false;
    let isLooking = false;
    const run = async () => {
      isLooking = true;
      await current.current();
      isLooking = false;
      if (!isOver && !document.hidden) timer = setTimeout(run, ms);
    };
    const seen = () => {
      clearTimeout(timer);
      if (!document.hidden && !isLooking) timer = setTimeout(run, 0);
    };
    timer = setTimeout(run, ms);
    document.addEventListener('visibilitychange', seen);
    return () => {
      isOver = true;
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', seen);
    };
  }, deps);
}
