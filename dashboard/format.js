// Numbers, spans and times as people read them. Pure: what depends on the moment is given it.

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1, minimumFractionDigits: 1 });
const short = new Intl.NumberFormat('en-US', { notation: 'compact', maximumSignificantDigits: 4 });

export const count = (n) => (n == null ? '–' : whole.format(n));
// Exact below a million, and four digits beyond; whoever shows it puts count() into the title.
export const brief = (n) => (n == null ? '–' : Math.abs(n) < 1e6 ? whole.format(n) : short.format(n));

// Per second.
export function rate(n) {
  if (n == null) return '–';
  if (n === 0) return '0';
  if (n < 0.05) return '<0.1';
  return n < 99.95 ? tenth.format(n) : brief(n);
}

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
];

// "340 ms", "4.2 s", "12 min 3 s", "3 d 4 h": two units at most.
export function span(ms) {
  if (ms == null || !Number.isFinite(ms)) return '–';
  if (ms < 0) return `−${span(-ms)}`;
  if (ms < 1) return ms === 0 ? '0 s' : '<1 ms';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${tenth.format(ms / 1000)} s`;
  let rest = Math.round(ms / 1000) * 1000;
  const at = units.findIndex(([, length]) => rest >= length);
  const [name, length] = units[at];
  const most = Math.floor(rest / length);
  rest -= most * length;
  const next = units[at + 1];
  const fewer = next ? Math.floor(rest / next[1]) : 0;
  return fewer ? `${most} ${name} ${fewer} ${next[0]}` : `${most} ${name}`;
}

// As the command says them.
export function bytes(n) {
  if (n < 1000) return `${n} B`;
  if (n < 1e6) return `${tenth.format(n / 1e3)} kB`;
  return `${tenth.format(n / 1e6)} MB`;
}

// Milliseconds since 1970 of an RFC 3339 time; null for none, and for the epoch, which stands for "at once".
export function instant(time) {
  if (time == null || time === '') return null;
  const ms = typeof time === 'number' ? time : Date.parse(time);
  return Number.isFinite(ms) && ms > 0 ? ms : null;
}

// "in 4 min", "12 s ago", "now".
export function distance(ms, now) {
  const away = ms - now;
  if (Math.abs(away) < 1500) return 'now';
  const length = Math.abs(away) < 9_950 ? `${Math.round(Math.abs(away) / 1000)} s` : span(Math.abs(away));
  return away > 0 ? `in ${length}` : `${length} ago`;
}

const pad = (n, digits = 2) => String(n).padStart(digits, '0');
export const clock = (ms, withMs = false) => {
  const at = new Date(ms);
  const time = `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
  return withMs ? `${time}.${pad(at.getMilliseconds(), 3)}` : time;
};
export const day = (ms) => {
  const at = new Date(ms);
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
};
// In the reader's own zone: "2026-11-22 08:00:00".
export const moment = (ms, withMs = false) => `${day(ms)} ${clock(ms, withMs)}`;

// The clock of a trigger's zone, as the API writes it: "2026-11-22T08:00:00+01:00" is 08:00:00.
export const writtenClock = (text) => /T(\d\d:\d\d(?::\d\d)?)/.exec(text)?.[1] ?? '';
export const writtenDay = (text) => /^(\d{4}-\d\d-\d\d)T/.exec(text)?.[1] ?? '';

// Where a string of a JSON text that begins at `at` ends.
function endOfString(text, at) {
  for (let i = at + 1; i < text.length; ++i) {
    if (text[i] === '\\') ++i;
    else if (text[i] === '"') return i + 1;
  }
  return text.length;
}

// Pieces of `text`, and between them the code of each character that is not seen, or turns the text around it:
// ["a", "202E", "b"].
const unseen =
  '\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u115f\\u1160\\u180e\\u200b-\\u200f\\u2028-\\u202e' +
  '\\u2060-\\u206f\\u2800\\u3164\\ufeff\\uffa0\\u{e0000}-\\u{e007f}';
const splitBy = (pattern) => (text) =>
  text.split(pattern).map((piece, i) => (i % 2 ? piece.codePointAt(0).toString(16).toUpperCase().padStart(4, '0') : piece));
export const seen = splitBy(new RegExp(`([${unseen}])`, 'u'));
// Of a name, where line breaks, and spaces at its ends, are not seen either.
export const seenInName = splitBy(new RegExp(`([\\t\\n${unseen}]|^ +| +$)`, 'u'));

// A JSON text on several lines, its numbers and strings to the letter: JSON.parse would round large numbers.
// null where it is no JSON, or no object or list.
export function prettyJson(text) {
  if (!/^\s*[[{]/.test(text)) return null;
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  let out = '';
  let depth = 0;
  const line = () => `\n${'  '.repeat(depth)}`;
  for (let i = 0; i < text.length; ++i) {
    const c = text[i];
    if (c === '"') {
      const end = endOfString(text, i);
      out += text.slice(i, end);
      i = end - 1;
    } else if (c === '{' || c === '[') {
      const close = /^\s*[}\]]/.exec(text.slice(i + 1, i + 65));
      if (close) {
        out += c + close[0].trim();
        i += close[0].length;
      } else {
        ++depth;
        out += c + line();
      }
    } else if (c === '}' || c === ']') {
      --depth;
      out += line() + c;
    } else if (c === ',') {
      out += c + line();
    } else if (c === ':') {
      out += ': ';
    } else if (!/\s/.test(c)) {
      out += c;
    }
  }
  return out;
}

// A span as people write it in forms ("90s", "1h30m", "250ms"; a bare number is seconds) in milliseconds; null when it is none.
export function readSpan(text) {
  const factors = { w: 604_800_000, d: 86_400_000, h: 3_600_000, m: 60_000, min: 60_000, s: 1000, ms: 1 };
  const parts = [...text.trim().matchAll(/(\d+(?:\.\d+)?)\s*(ms|min|[wdhms])?\s*/gy)];
  if (parts.length === 0 || parts.map((p) => p[0]).join('') !== text.trim()) return null;
  if (parts.length > 1 && parts.some((p) => !p[2])) return null;
  return Math.round(parts.reduce((sum, [, n, unit]) => sum + Number(n) * factors[unit ?? 's'], 0));
}
// The way back: "1h30m".
export function writeSpan(ms) {
  if (ms === 0) return '0s';
  let out = '';
  for (const [unit, length] of [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1000],
    ['ms', 1],
  ]) {
    const n = Math.floor(ms / length);
    if (n > 0) out += `${n}${unit}`;
    ms -= n * length;
  }
  return out;
}
