// Short selectors of elements of a page, made to last: by ids and classes that people gave, by place where nothing else tells.

const kMostQueries = 600;
const kMostAncestors = 14;
const kMostClasses = 4;

// As CSS.escape has it.
export function escapeName(name) {
  let out = '';
  for (let i = 0; i < name.length; ++i) {
    const code = name.charCodeAt(i);
    const isDigit = code >= 48 && code <= 57;
    if (code === 0) out += '\ufffd';
    else if (code < 32 || code === 127 || (isDigit && (i === 0 || (i === 1 && name[0] === '-')))) out += `\\${code.toString(16)} `;
    else if (code > 127 || isDigit || /[\w-]/.test(name[i])) out += name === '-' ? '\\-' : name[i];
    else out += `\\${name[i]}`;
  }
  return out;
}

const states = /^(?:active|current|selected|open|opened|closed|hover|focus|focused|visible|hidden|show|shown|collapsed|expanded|disabled|loaded|lazy|first|last|odd|even)$/i;
// Whether an id or a class is likely to be the same tomorrow: no state, and not made by a program.
export function isSteady(name) {
  if (!name || name.length > 40 || /[\s\u0000-\u001f\ufffd]/.test(name)) return false;
  if (states.test(name) || /^(?:is|has|js|ng|v|css|sc|jss|svelte|data)[-_]/i.test(name)) return false;
  if (/\d{4}/.test(name)) return false;
  const last = /[A-Za-z0-9]+$/.exec(name)?.[0] ?? '';
  // "__3xYzQ", "-a1b2c3": letters and digits mixed more than once.
  return !(last.length >= 5 && /\d/.test(last) && /[A-Za-z]/.test(last) && !/^[A-Za-z]+\d{1,3}$/.test(last));
}

const typeOf = (element) => escapeName(element.localName);
function placeOf(element) {
  let n = 1;
  for (let e = element.previousElementSibling; e; e = e.previousElementSibling) {
    if (e.localName === element.localName) ++n;
  }
  return `${typeOf(element)}:nth-of-type(${n})`;
}
const classesOf = (element) =>
  [...(element.classList ?? [])].filter(isSteady).slice(0, kMostClasses).map((name) => `.${escapeName(name)}`);

// What may stand for an element, the best first.
function wordsFor(element, { withId = true } = {}) {
  const type = typeOf(element);
  const classes = classesOf(element);
  const words = [];
  if (withId && element.id && isSteady(element.id)) words.push(`#${escapeName(element.id)}`);
  words.push(...classes, ...classes.map((c) => type + c));
  for (let i = 0; i < classes.length; ++i) for (let k = i + 1; k < classes.length; ++k) words.push(classes[i] + classes[k]);
  words.push(type);
  return words;
}
const ancestorsOf = (element) => {
  const out = [];
  for (let e = element.parentElement; e && e.localName !== 'html' && out.length < kMostAncestors; e = e.parentElement) out.push(e);
  return out;
};

// What finds elements, so often at most.
function finder(root) {
  const known = new Map();
  return (selector) => {
    if (!known.has(selector)) known.set(selector, known.size < kMostQueries ? [...root.querySelectorAll(selector)] : []);
    return known.get(selector);
  };
}

// A selector that finds `element` alone in `root`, its document.
export function selectorOf(element, root = element.ownerDocument) {
  const find = finder(root);
  const isAlone = (selector) => {
    const found = find(selector);
    return found.length === 1 && found[0] === element;
  };
  const words = wordsFor(element);
  const alone = words.find(isAlone);
  if (alone) return alone;
  const ancestors = ancestorsOf(element);
  for (const own of [words, [placeOf(element)]]) {
    // First below what has a name of its own, then below what is only of some type.
    for (const isNamed of [true, false]) {
      for (const above of ancestors) {
        const all = wordsFor(above);
        for (const before of isNamed ? all.slice(0, -1) : all.slice(-1)) {
          for (const word of own) {
            if (isAlone(`${before} ${word}`)) return `${before} ${word}`;
            if (above === element.parentElement && isAlone(`${before} > ${word}`)) return `${before} > ${word}`;
          }
        }
      }
    }
  }
  // By places all the way, from the nearest that something tells.
  let path = placeOf(element);
  for (const above of [...ancestors, ...[root.documentElement].filter((e) => e && e !== element)]) {
    const told = wordsFor(above).find((word) => isAlone(`${word} > ${path}`));
    if (told) return `${told} > ${path}`;
    path = `${above.localName === 'html' || above.localName === 'body' ? typeOf(above) : placeOf(above)} > ${path}`;
    if (isAlone(path)) return path;
  }
  return path;
}

const depthOf = (element) => {
  let n = 0;
  for (let e = element.parentElement; e; e = e.parentElement) ++n;
  return n;
};
// A selector that finds `element` and what stands in the same place of its neighbours: all names of a list.
export function selectorOfAlike(element, root = element.ownerDocument) {
  const find = finder(root);
  const depth = depthOf(element);
  const isAlike = (e) => e.localName === element.localName && depthOf(e) === depth;
  const fits = (selector) => {
    const found = find(selector);
    return found.length > 1 && found.length <= 5000 && found.includes(element) && found.every(isAlike);
  };
  const words = wordsFor(element, { withId: false });
  const alone = words.slice(0, -1).find(fits);
  if (alone) return alone;
  for (const above of ancestorsOf(element)) {
    const told = wordsFor(above).slice(0, -1);
    for (const before of told) for (const word of words) if (fits(`${before} ${word}`)) return `${before} ${word}`;
    if (above !== element.parentElement) continue;
    for (const before of wordsFor(above)) if (fits(`${before} > ${words.at(-1)}`)) return `${before} > ${words.at(-1)}`;
  }
  return selectorOf(element, root);
}

// What a source of a field says: "css:a::attr(href)" is {selector: "a", tail: "::attr(href)"}.
export function readSource(text) {
  const [, selector, tail = ''] = /^\s*(?:css:)?([^]*?)(::text|::attr\([^)]*\))?\s*$/.exec(text);
  return { selector: selector.trim(), tail };
}
// The elements that it finds; null where it is no selector.
export function elementsOf(text, root) {
  const { selector } = readSource(text);
  if (!selector) return [];
  try {
    return [...root.querySelectorAll(selector)];
  } catch {
    return null;
  }
}

// What a field might be called that takes this element.
export function fieldNameOf(element) {
  const told = element.getAttribute('itemprop') || [...(element.classList ?? [])].find(isSteady) || (isSteady(element.id) && element.id);
  const tags = { h1: 'title', h2: 'title', a: 'link', img: 'image', time: 'date', p: 'text', price: 'price' };
  const name = String(told || tags[element.localName] || element.localName).split(/__|--|[^A-Za-z0-9_]+/).filter(Boolean);
  return (name.at(-1) ?? 'field').toLowerCase().slice(0, 40);
}
