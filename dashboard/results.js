// Results of projects as tables and texts, and what becomes of asks for pages. Pure.
import { instant, moment } from './format.js';

// What a JSON text says, with its numbers to the letter where the browser can tell them: one that JSON.parse would change is what
// JSON.rawJSON makes of it, and JSON.stringify writes it as it was.
export const parseExact = (text) =>
  JSON.parse(text, (_, value, context) => {
    const isChanged = typeof value === 'number' && context?.source !== undefined && String(value) !== context.source;
    return isChanged && JSON.rawJSON ? JSON.rawJSON(context.source) : value;
  });

const isRaw = (value) => JSON.isRawJSON?.(value) ?? false;
const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value) && !isRaw(value);

const kValue = 'value'; // the column of results that are no objects

// The columns of results: those that the project's rules name, and what else the results have, in the order in which it is met.
export function columnsOf(results, named = []) {
  const columns = new Set(named);
  for (const { value } of results) {
    if (!isObject(value)) columns.add(kValue);
    else for (const name of Object.keys(value)) columns.add(name);
  }
  return [...columns];
}
const memberOf = (value, column) => {
  if (!isObject(value)) return column === kValue ? value : undefined;
  return Object.hasOwn(value, column) ? value[column] : undefined;
};
const textOf = (value) => (value == null ? '' : typeof value === 'string' ? value : JSON.stringify(value));
// The text of one cell; '' where there is nothing.
export const cellOf = ({ value }, column) => textOf(memberOf(value, column));

export const wholeOf = (value) => JSON.stringify(value, null, 2) ?? 'null';

// A result in a line: "title: Blue shoes · price: 12".
export function lineOf(value, most = 300) {
  if (!isObject(value)) return textOf(value).slice(0, most);
  let line = '';
  for (const [name, member] of Object.entries(value)) {
    if (line.length >= most) break;
    if (textOf(member) !== '') line += `${line && ' · '}${name}: ${textOf(member).slice(0, most)}`;
  }
  return line.length > most ? `${line.slice(0, most)}…` : line;
}

// --- pages

const reasons = {
  new: 'it is new',
  tag_changed: 'its tag has changed',
  too_old: 'it is older than its age',
  forced: 'it is asked for by force',
  has_failed: 'it has failed, and rested since',
  raised: 'its priority is raised',
  hastened: 'its time is earlier',
  terms_changed: 'its terms change',
  cancelled: 'it is cancelled',
  fresh: 'it is fresh',
  resting: 'it has failed, and rests',
  waits: 'it waits already',
  visited: 'it is visited now',
  unknown: 'it is not known',
  at_rest: 'it does not wait',
  was_cancelled: 'it was cancelled',
};
const verdicts = {
  add: 'The page is added',
  again: 'It is visited again',
  after: 'It is visited once more after this visit',
  change: 'It waits already, and changes',
  cancel: 'It is cancelled',
  drop: 'Nothing is done',
};
// What has become of an ask, as a sentence.
export function askSentence({ verdict, reason, until }) {
  const what = verdicts[verdict] ?? verdict;
  const at = instant(until);
  return verdict === 'cancel' ? `${what}.` : `${what}: ${reasons[reason] ?? reason}${at ? ` until ${moment(at)}` : ''}.`;
}

// The members of POST …/pages that ask for a known page once more, as it was asked for.
export function askAgain(page, more = {}) {
  const ask = { ...page.settings, url: page.url };
  if (page.page !== page.url) ask.name = page.page;
  if (page.rule) ask.rule = page.rule;
  if (page.context != null) ask.context = page.context;
  return { ...ask, ...more };
}
