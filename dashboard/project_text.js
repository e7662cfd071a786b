// What pages of projects say and compare. Pure.
import { count, plural } from './format.js';

export const kStatuses = ['TODO', 'STOP', 'CHECKING', 'DEBUG', 'RUNNING'];
export const isVisited = (status) => status === 'RUNNING' || status === 'DEBUG';

// The objects of `before` where they say the same, so that who has drawn them need not draw them again.
export function keepSame(before, after) {
  const known = new Map((before ?? []).map((one) => [one.name, one]));
  return after.map((one) => {
    const old = known.get(one.name);
    return old && JSON.stringify(old) === JSON.stringify(one) ? old : one;
  });
}

// What it is doing, in a sentence; until when is said beside it.
export function doingSentence(project) {
  const { doing, status, trouble, under_way: underWay = 0, outstanding = 0 } = project;
  if (doing === 'stopped') return `It is ${status}: its pages are not visited, until it is set to DEBUG or RUNNING.`;
  if (doing === 'standing') return trouble || 'It stands still.';
  if (doing === 'paused') return 'Its visits kept failing, so it pauses.';
  if (doing === 'probing') return 'After a pause three visits are let through, to see whether they succeed.';
  if (doing === 'visiting')
    return `It visits ${plural(underWay, 'page')}${outstanding > underWay ? `; ${plural(outstanding, 'page')} of its round are left` : ''}.`;
  if (outstanding === 1) return 'One page of its round waits until it is due.';
  return outstanding ? `${count(outstanding)} pages of its round wait until they are due.` : 'Nothing is due now.';
}

// "2.5/10": visits a second, and how many at once after a rest.
export const rateText = ({ rate, burst }) => (rate == null ? '' : `${rate}/${burst}`);
// The members of a PATCH; null where it is neither a rate nor nothing, which stands for what its file says.
export function readRate(text) {
  if (text.trim() === '') return { rate: null, burst: null };
  const [, rate, burst] = /^\s*(\d*\.?\d+)\s*(?:\/\s*(\d+)\s*)?$/.exec(text) ?? [];
  if (rate === undefined) return null;
  return { rate: Number(rate), ...(burst !== undefined && { burst: Number(burst) }) };
}

const kSpanNames = { '5m': '5 minutes', '1h': 'an hour', '1d': 'a day', all: 'pages as they are now' };
const kCounted = ['pending', 'success', 'retry', 'failed'];
export const countsOf = (counts, span) => kCounted.map((state) => ({ state, value: counts?.[span]?.[state] ?? 0 }));
// What a bar counts: visits that have ended in a span; the pages, of all.
export const countedIn = (counts, span) =>
  countsOf(counts, span).reduce((sum, part) => sum + (part.state === 'pending' && span !== 'all' ? 0 : part.value), 0);
export const countsText = (counts, span) =>
  `${kSpanNames[span]}: ${countsOf(counts, span)
    .map((part) => `${count(part.value)} ${part.state}`)
    .join(', ')}`;

// Columns for a plot from counts by steps, the last of which has not ended: times in seconds, and of each of the names how many a
// second. null where nothing is told.
export function ratesOf(history, names) {
  if (!history) return null;
  const [began, ended] = [Date.parse(history.began) / 1000, Date.parse(history.ended) / 1000];
  const { step_s: step } = history;
  const ends = history[names[0]].map((_, i) => Math.min(began + (i + 1) * step, ended));
  // What has just begun says little.
  const length = (i) => Math.max(ends[i] - began - i * step, Math.min(step, 2));
  return [ends, ...names.map((name) => history[name].map((n, i) => n / length(i)))];
}

// --- files of new projects

const literal = (text) => JSON.stringify(text);
export const startsOf = (text) => text.split(/\s+/).filter(Boolean);
const listOf = (starts) => (starts.length < 2 ? `[${starts.map(literal)}]` : `[${starts.map((s) => `\n  ${literal(s)},`).join('')}\n]`);

const ruleFile = (name, starts) => `[project]
name = ${literal(name)}
start = ${listOf(starts)}
status = "TODO"              # DEBUG or RUNNING, in the table of projects, has its pages visited
every = "1d"                 # a new round each day

[[rule]]                     # pages from which results are taken
name = "item"
match = "/item/*"
follow = false
age = "10d"                  # an ask for one that is younger is dropped

[rule.fields]
title = "css:h1"
price = { css = ".price", type = "number" }

[[rule]]                     # all others, whose links are followed
name = "list"
age = "1h"
`;
const scriptFile = (name) => `[project]
name = ${literal(name)}
status = "TODO"              # DEBUG or RUNNING, in the table of projects, has its pages visited
processor = ["python3", "-m", "argiope.processor", "script.py"]
`;
const script = (starts) => `from argiope.processor import BaseHandler, config, every

START = ${listOf(starts)}


class Handler(BaseHandler):
    @every(minutes=24 * 60)
    def on_start(self):
        self.crawl(START, callback=self.list_page)

    @config(age=60 * 60)
    def list_page(self, response):
        for link in response.doc("a").items():
            self.crawl(link.attr.href, callback=self.item_page)

    @config(age=10 * 24 * 60 * 60, priority=1)
    def item_page(self, response):
        return {"url": response.url, "title": response.doc("title").text()}
`;

// A project's file with its name and starts, and its script where it has one: {source, script}.
export function templateOf(kind, name, starts) {
  if (kind === 'script') return { source: scriptFile(name), script: script(starts) };
  return { source: ruleFile(name, starts), script: '' };
}

// The text with another string or list of strings as the first member of that name; as it is where it has none.
export const withMember = (text, member, value) =>
  text.replace(new RegExp(`^(${member}[ \\t]*=[ \\t]*)("(?:[^"\\\\\\n]|\\\\.)*"|\\[[^\\]]*\\])`, 'm'), (_, begin) =>
    begin + (Array.isArray(value) ? listOf(value) : literal(value)),
  );

// Which line of what was sent the daemon speaks of: {line, text}; null where of none.
export function wrongLine(message, source) {
  const [, number] = /^source:(\d+):/.exec(message) ?? [];
  if (!number) return null;
  return { line: Number(number), text: source.split('\n')[number - 1] ?? '' };
}

// --- differences

const kMostEdits = 1500; // beyond these a stretch is told as replaced as a whole

// Myers' shortest way from one list of lines to the other, as [[kind, line]]; null where it is longer than kMostEdits.
function shortest(a, b) {
  const most = Math.min(a.length + b.length, kMostEdits);
  const reach = new Int32Array(2 * most + 2);
  const passed = [];
  const down = (k, d) => k === -d || (k !== d && reach[most + k - 1] < reach[most + k + 1]);
  for (let d = 0; d <= most; ++d) {
    passed.push(reach.slice(most - d, most + d + 2));
    for (let k = -d; k <= d; k += 2) {
      let x = down(k, d) ? reach[most + k + 1] : reach[most + k - 1] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) ++x;
      reach[most + k] = x;
      if (x >= a.length && x - k >= b.length) return wayBack(a, b, passed, d);
    }
  }
  return null;
}
function wayBack(a, b, passed, edits) {
  const way = [];
  let x = a.length;
  let y = b.length;
  for (let d = edits; d > 0; --d) {
    const at = (k) => passed[d][k + d];
    const k = x - y;
    const isDown = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const from = isDown ? k + 1 : k - 1;
    const fromX = at(from);
    while (x > fromX && y > fromX - from) way.push([' ', a[--x]]), --y;
    if (isDown) way.push(['+', b[--y]]);
    else way.push(['-', a[--x]]);
  }
  while (x > 0) way.push([' ', a[--x]]);
  return way.reverse();
}

const linesOf = (text) => (text === '' ? [] : text.replace(/\n$/, '').split('\n'));

// How one text becomes the other: [{kind: " ", "-" or "+", text, before, after}], with the line's number in each.
export function differences(before, after) {
  const a = linesOf(before);
  const b = linesOf(after);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) ++head;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) ++tail;
  const [left, right] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  const middle = shortest(left, right) ?? [...left.map((line) => ['-', line]), ...right.map((line) => ['+', line])];
  const same = (line) => [' ', line];
  let [old, now] = [0, 0];
  return [...a.slice(0, head).map(same), ...middle, ...a.slice(a.length - tail).map(same)].map(([kind, text]) => ({
    kind,
    text,
    before: kind === '+' ? null : ++old,
    after: kind === '-' ? null : ++now,
  }));
}

// Only what changed, with some lines around it: a list in which {skipped: n} stands for n lines that are the same.
export function hunks(lines, around = 3) {
  const isNear = new Uint8Array(lines.length);
  lines.forEach(({ kind }, i) => kind !== ' ' && isNear.fill(1, Math.max(0, i - around), i + around + 1));
  const out = [];
  lines.forEach((line, i) => {
    if (isNear[i]) out.push(line);
    else if (out.at(-1)?.skipped) ++out.at(-1).skipped;
    else out.push({ skipped: 1 });
  });
  return out;
}
