// A project's file and script as text: indenting, where an error is, and lines that are put in. Pure.

// What a tab key makes of `text` with the selection from `start` to `end`: {text, start, end}. Several lines are indented
// together; `isBack` takes a step away.
export function indented(text, start, end, step, isBack = false) {
  const first = text.lastIndexOf('\n', start - 1) + 1;
  if (!isBack && start === end) {
    const wide = step.length - ((start - first) % step.length);
    const put = ' '.repeat(wide);
    return { text: text.slice(0, start) + put + text.slice(end), start: start + wide, end: start + wide };
  }
  // A selection that ends at the beginning of a line does not touch that line.
  const last = end > start && text[end - 1] === '\n' ? end - 1 : end;
  const stop = text.indexOf('\n', last) < 0 ? text.length : text.indexOf('\n', last);
  const lines = text.slice(first, stop).split('\n');
  const cut = (line) => Math.min(step.length, /^ */.exec(line)[0].length);
  const changed = lines.map((line) => (isBack ? line.slice(cut(line)) : line && step + line));
  const by = changed.map((line, i) => line.length - lines[i].length);
  const all = by.reduce((sum, n) => sum + n, 0);
  return {
    text: text.slice(0, first) + changed.join('\n') + text.slice(stop),
    start: Math.max(first, start + by[0]),
    end: Math.max(first, end + all),
  };
}

// What Enter puts in: the line's own indentation goes on.
export const newLine = (text, at) => `\n${/^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', at - 1) + 1, at))[0]}`;

export const linesIn = (text) => {
  let n = 1;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) ++n;
  return n;
};
// Where line `number`, counted from 1, begins and ends.
export function lineAt(text, number) {
  let begin = 0;
  for (let n = 1; n < number; ++n) {
    const next = text.indexOf('\n', begin);
    if (next < 0) break;
    begin = next + 1;
  }
  const end = text.indexOf('\n', begin);
  return { begin, end: end < 0 ? text.length : end };
}

// "source:7: rule "item": …" as the daemon says it: {line: 7, text: "rule …"}. Without a line, line is null.
export function lineOfError(message) {
  const found = /^(?:source|script):(\d+):\s*([^]*)$/.exec(String(message ?? ''));
  return found ? { line: Number(found[1]), text: found[2] } : { line: null, text: String(message ?? '') };
}
// Lines of the script that a trace names, the innermost first: [12, 40]. `file` is the script's name.
export function linesOfTrace(trace, file) {
  const lines = [];
  for (const [, path, line] of String(trace ?? '').matchAll(/(?:File ")?([^\s"():]+)(?:", line |:)(\d+)/g)) {
    if (file && path.split('/').pop() === file) lines.unshift(Number(line));
  }
  return [...new Set(lines)];
}
// The script among a processor's arguments: shop.py of ["python3", "-m", "argiope.processor", "scripts/shop.py"].
export function scriptOf(processor) {
  const named = (processor ?? []).slice(1).filter((word) => /^[^-].*\.\w+$/.test(word) && !/^argiope\./.test(word));
  return named.length ? named[0].split('/').pop() : '';
}

// --- TOML --------------------------------------------------------------------------------------------------------------

export const tomlText = (text) => JSON.stringify(String(text)).replace(/[\u007f-\u009f]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
export const tomlKey = (key) => (/^[\w-]+$/.test(key) ? key : tomlText(key));

// Where a value or comment that begins at `at` ends, if it is a string; else `at`.
function endOfString(text, at) {
  const quote = text[at];
  if (quote !== '"' && quote !== "'") return at;
  const isLong = text.startsWith(quote.repeat(3), at);
  const close = isLong ? quote.repeat(3) : quote;
  for (let i = at + close.length; i < text.length; ++i) {
    if (quote === '"' && text[i] === '\\') ++i;
    else if (text.startsWith(close, i)) {
      let end = i + close.length;
      while (isLong && text[end] === quote) ++end; // a quote or two before the end are the string's
      return end;
    } else if (!isLong && text[i] === '\n') return i;
  }
  return text.length;
}

// The file's statements in their order: {begin, end, name} of a table's head ("rule.fields", and whether it is a `list`, as
// [[rule]] is), {begin, end, key, value: [from, to]} of a member. Strings, comments and what stands in brackets hide nothing.
export function statementsOf(text) {
  const out = [];
  let i = 0;
  const skip = () => {
    while (i < text.length) {
      if (/\s/.test(text[i])) ++i;
      else if (text[i] === '#') while (i < text.length && text[i] !== '\n') ++i;
      else break;
    }
  };
  // To the end of the statement: the line's, or that of the brackets that are open in it.
  const through = (stop) => {
    for (let depth = 0; i < text.length; ) {
      const c = text[i];
      if (c === '"' || c === "'") i = Math.max(endOfString(text, i), i + 1);
      else if (c === '#') while (i < text.length && text[i] !== '\n') ++i;
      else if (depth === 0 && (c === '\n' || c === stop)) return;
      else {
        if (c === '[' || c === '{') ++depth;
        if (c === ']' || c === '}') depth = Math.max(0, depth - 1);
        ++i;
      }
    }
  };
  for (skip(); i < text.length; skip()) {
    const begin = i;
    const head = /^(\[\[?)\s*([^\[\]\n]*?)\s*\]\]?[ \t]*(?:#.*)?(?=\r?\n|$)/.exec(text.slice(i, i + 500));
    if (head) {
      i += head[0].length;
      out.push({ begin, end: i, name: head[2].replace(/["'\s]/g, ''), list: head[1] === '[[' });
      continue;
    }
    through('=');
    if (text[i] !== '=') continue; // no TOML: the daemon says so
    const key = text.slice(begin, i).trim().replace(/^(["'])(.*)\1$/, '$2');
    for (++i; text[i] === ' ' || text[i] === '\t'; ) ++i;
    const from = i;
    through('\n');
    const value = text.slice(from, i);
    const end = from + value.replace(/\s+$/, '').length;
    out.push({ begin, end, key, value: [from, end] });
  }
  return out;
}

// The rules of a file: {name, begin, end, own: its members, tables: {fields: {…}}} where `end` is behind all that is its.
export function rulesOf(text) {
  const rules = [];
  let rule = null;
  let table = null;
  for (const one of statementsOf(text)) {
    if (one.name !== undefined) {
      table = null;
      if (one.list && one.name === 'rule') {
        rule = { name: '', begin: one.begin, end: one.end, own: {}, ownEnd: one.end, fields: null };
        rules.push(rule);
        continue;
      }
      if (!rule || !one.name.startsWith('rule.')) {
        rule = null;
        continue;
      }
      table = { end: one.end, name: one.name, members: {} };
      if (one.name === 'rule.fields') rule.fields = table;
    } else if (rule) {
      if (table) {
        table.end = one.end;
        table.members[one.key] = one;
      } else {
        rule.own[one.key] = one;
        rule.ownEnd = one.end;
        if (one.key === 'name') rule.name = unquoted(text.slice(...one.value));
      }
    }
    if (rule) rule.end = one.end;
  }
  return rules;
}
function unquoted(value) {
  const literal = /^'([^'\n]*)'/.exec(value);
  if (literal) return literal[1];
  const basic = /^"(?:[^"\\\n]|\\.)*"/.exec(value);
  try {
    return basic ? JSON.parse(basic[0]) : '';
  } catch {
    return '';
  }
}
// What the file says as its processor, as text; undefined: nothing. `{…}` and a table of its own are a webhook.
function processorText(text) {
  let inProject = false;
  for (const one of statementsOf(text)) {
    if (one.name === 'project.processor') return '{}';
    if (one.name !== undefined) inProject = one.name === 'project' && !one.list;
    else if (inProject && one.key === 'processor') return text.slice(...one.value);
    else if (inProject && /^processor\s*\./.test(one.key)) return '{}';
  }
  return undefined;
}
// Whether its pages go to a webhook: it has no script of its own then.
export const isWebhookIn = (text) => processorText(text)?.startsWith('{') ?? false;
// Whether the file names a program as processor, and its script: undefined, or "shop.py" or "".
export function processorIn(text) {
  const said = processorText(text);
  if (said === undefined || said.startsWith('{')) return undefined;
  return scriptOf([...said.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'/g)].map(([, a, b]) => a ?? b));
}

const restOfLine = (text, at) => (text.indexOf('\n', at) < 0 ? text.length : text.indexOf('\n', at));
function withLine(text, at, line) {
  const end = restOfLine(text, at);
  return { text: `${text.slice(0, end)}\n${line}${text.slice(end) || '\n'}`, at: end + 1 };
}
const behind = (text) => (text.trim() ? `${text.replace(/\s*$/, '')}\n\n` : '');

// What a field of a rule is: "css:h1", or a table where more is said.
export function fieldValue(selector, { attribute = '', all = false } = {}) {
  const isUrl = attribute === 'href' || attribute === 'src';
  if (!all && !isUrl) return tomlText(`css:${selector}${attribute ? `::attr(${attribute})` : ''}`);
  const more = [attribute && `attribute = ${tomlText(attribute)}`, isUrl && 'type = "url"', all && 'all = true'].filter(Boolean);
  return `{ css = ${tomlText(selector)}, ${more.join(', ')} }`;
}

// The file with the field `name` of the rule `rule`, which takes the place of one of that name: {text, at}, `at` the place of
// the change. A rule that is not there is made.
export function withField(text, rule, name, value) {
  const member = `${tomlKey(name)} = ${value}`;
  const found = rulesOf(text).find((r) => r.name === rule);
  if (!found) {
    const before = `${behind(text)}[[rule]]\nname = ${tomlText(rule)}\n\n[rule.fields]\n`;
    return { text: `${before}${member}\n`, at: before.length };
  }
  const old = found.fields?.members[name];
  if (old) return { text: `${text.slice(0, old.begin)}${member}${text.slice(old.end)}`, at: old.begin };
  if (found.fields) return withLine(text, found.fields.end, member);
  const inline = found.own.fields && text.slice(...found.own.fields.value);
  if (inline) {
    const from = found.own.fields.value[0];
    const close = from + inline.lastIndexOf('}');
    const body = text.slice(from + 1, close).replace(/\s+$/, '');
    const comma = body.trim() && !body.trim().endsWith(',') ? ', ' : ' ';
    const at = from + 1 + body.length + comma.length;
    return { text: `${text.slice(0, from + 1)}${body}${comma}${member} ${text.slice(close)}`, at };
  }
  const made = withLine(text, found.ownEnd, `\n[rule.fields]\n${member}`);
  return { text: made.text, at: made.text.indexOf(member, made.at) };
}

// The file with one more pattern of links that the rule follows.
export function withFollow(text, rule, pattern) {
  const quoted = tomlText(pattern);
  const found = rulesOf(text).find((r) => r.name === rule);
  if (!found) {
    const before = `${behind(text)}[[rule]]\nname = ${tomlText(rule)}\n`;
    return { text: `${before}follow = [${quoted}]\n`, at: before.length };
  }
  const old = found.own.follow;
  if (!old) return withLine(text, found.ownEnd, `follow = [${quoted}]`);
  const value = text.slice(...old.value);
  const list = /^\[([^]*)\]/.exec(value);
  const single = /^(?:"(?:[^"\\]|\\.)*"|'[^']*')/.exec(value);
  let next = `[${quoted}]`; // true or false
  let rest = value.replace(/^\w+/, '');
  if (list) {
    const body = list[1].replace(/[\s,]+$/, '');
    next = body.includes(quoted) ? list[0] : `[${body.trim() ? `${body}, ` : ''}${quoted}]`;
    rest = value.slice(list[0].length);
  } else if (single) {
    next = single[0] === quoted ? single[0] : `[${single[0]}, ${quoted}]`;
    rest = value.slice(single[0].length);
  }
  return { text: `${text.slice(0, old.value[0])}${next}${rest}${text.slice(old.value[1])}`, at: old.begin };
}

// A project that came as JSON, as a file.
export function tomlOf(definition) {
  const isTable = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
  const isTables = (value) => Array.isArray(value) && value.length > 0 && value.every(isTable);
  const inline = (value) => {
    if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`;
    if (isTable(value)) return `{ ${members(value).join(', ')} }`;
    return typeof value === 'string' ? tomlText(value) : String(value);
  };
  const given = (table) => Object.entries(table).filter(([, value]) => value !== null && value !== undefined);
  const members = (table) => given(table).map(([key, value]) => `${tomlKey(key)} = ${inline(value)}`);
  const out = [];
  const write = (table, name, depth) => {
    const isOwn = ([, value]) => depth < 2 && (isTable(value) || isTables(value));
    for (const [key, value] of given(table).filter((m) => !isOwn(m))) out.push(`${tomlKey(key)} = ${inline(value)}`);
    for (const [key, value] of given(table).filter(isOwn)) {
      const path = name ? `${name}.${tomlKey(key)}` : tomlKey(key);
      for (const one of isTable(value) ? [value] : value) {
        if (out.length) out.push('');
        out.push(isTable(value) ? `[${path}]` : `[[${path}]]`);
        write(one, path, depth + 1);
      }
    }
  };
  write(definition ?? {}, '', 0);
  return `${out.join('\n')}\n`;
}

// --- patterns of links -------------------------------------------------------------------------------------------------

// One pattern (as `follow` and `match` have them) that covers all of `urls`, which are absolute; null where they have too
// little in common.
export function patternOf(urls, page) {
  const places = [];
  for (const text of urls) {
    try {
      const { protocol, host, pathname } = new URL(text, page);
      if (/^https?:$/.test(protocol)) places.push({ host, path: pathname });
    } catch {
      // no URL
    }
  }
  if (!places.length || places.some((p) => p.host !== places[0].host)) return null;
  const plain = (text) => text.replace(/[*?{}[\]\\]/g, '?');
  const paths = [...new Set(places.map((p) => p.path))].map((path) => path.split('/'));
  const least = Math.min(...paths.map((p) => p.length));
  const isEven = paths.every((p) => p.length === least);
  const out = [];
  for (let i = 0; i < least; ++i) {
    const pieces = paths.map((p) => p[i]);
    if (pieces.every((p) => p === pieces[0])) out.push(plain(pieces[0]));
    else if (!isEven) break;
    else {
      const ends = new Set(pieces.map((p) => /\.[a-z]{1,5}$/i.exec(p)?.[0] ?? ''));
      const begins = new Set(pieces.map((p) => /^[a-z]+[-_=]/i.exec(p)?.[0] ?? ''));
      out.push(`${begins.size === 1 ? plain([...begins][0]) : ''}*${ends.size === 1 ? plain([...ends][0]) : ''}`);
    }
  }
  if (!isEven) {
    if (out.length < 2) return null;
    out.push('**');
  }
  const path = out.join('/');
  let isHere = false;
  try {
    isHere = new URL(page).host === places[0].host;
  } catch {
    // a page without a host
  }
  return isHere ? path : `${places[0].host}${path}`;
}
