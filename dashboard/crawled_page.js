// A page of strangers as something to look at. It is read without a window, where nothing runs and nothing is loaded, and what is
// harmless of it is made anew, element by element, in a frame that may run no script (sandbox) and ask nobody (its policy). No
// text of the page is ever parsed in that frame: what one parser took for text, another cannot take for markup.

export const framePolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
export const frameSandbox = 'allow-same-origin'; // so that we can draw in it; without allow-scripts nothing in it runs
export const frameSource = (isQuirky = false) =>
  `${isQuirky ? '' : '<!doctype html>'}<html lang="en"><head><meta http-equiv="Content-Security-Policy" content="${framePolicy}"><title>The page</title></head><body></body></html>`;

const kMostElements = 40_000;
const kMostStyleChars = 3_000_000;

const words = (text) => new Set(text.split(' '));
// Left out with all that is in them.
const gone = words('script style link meta base title head template param source track area map noembed noframes datalist');
// A box stands for them.
const boxed = words('iframe frame object embed applet portal fencedframe audio video canvas picture-in-picture');
const kept = words(
  'a abbr acronym address article aside b bdi bdo big blockquote br button caption center cite code col colgroup dd del details ' +
    'dfn dialog dir div dl dt em fieldset figcaption figure font footer h1 h2 h3 h4 h5 h6 header hgroup hr i img input ins kbd ' +
    'label legend li main mark menu meter nav nobr ol optgroup option output p picture pre progress q rp rt ruby s samp search ' +
    'section select small span strike strong sub summary sup table tbody td textarea tfoot th thead time tr tt u ul var wbr',
);
const attributes = words(
  'id class title lang dir alt width height colspan rowspan align valign bgcolor border cellpadding cellspacing color face size ' +
    'start reversed value checked placeholder open datetime hidden span nowrap label rows cols max min low high optimum',
);
const inputs = words('text search checkbox radio submit button reset number range hidden tel color');
const drawings = words('svg g path rect circle ellipse line polyline polygon text tspan defs lineargradient radialgradient stop clippath');
const drawingAttributes = words(
  'viewBox width height d x y x1 y1 x2 y2 cx cy r rx ry points fill stroke stroke-width stroke-linecap stroke-linejoin ' +
    'fill-rule clip-rule opacity fill-opacity stroke-opacity transform id class preserveAspectRatio offset stop-color stop-opacity ' +
    'gradientUnits gradientTransform text-anchor font-size',
);
const kDrawing = 'http://www.w3.org/2000/svg';
const kHtml = 'http://www.w3.org/1999/xhtml';
const isPicture = (url) => /^\s*data:image\/(?:png|jpe?g|gif|webp|avif|bmp)[;,]/i.test(url ?? '');

// Ours: below all that the page says, and above.
const below = `:root { background: #fff; color: #000; color-scheme: light; }
[data-argiope-link] { color: #0645ad; text-decoration: underline; }
noscript, [data-argiope-block] { display: block; }
img:not([src]) { min-width: 1em; min-height: 1em; outline: 1px dashed #aaa; background: #f0f0ee; overflow: hidden; font-size: 12px; color: #555; }
[data-argiope-box] { display: inline-block; padding: 8px 12px; outline: 1px dashed #aaa; background: #f0f0ee; color: #555; font: 12px sans-serif; }`;
const above = `[data-argiope-match] { outline: 2px solid #1d7d4f !important; outline-offset: -1px !important; background-color: rgb(29 125 79 / 16%) !important; }
[data-argiope-over] { outline: 2px solid #d08700 !important; outline-offset: -1px !important; background-color: rgb(242 181 15 / 24%) !important; }
[data-argiope-picked] { outline: 3px solid #d08700 !important; outline-offset: -1px !important; }`;

// The page as a document without a window.
export const readPage = (text) => new DOMParser().parseFromString(text, 'text/html');

const asks = /url\(|image-set\(|src\(|image\(|element\(/i;
const pictures = /url\(\s*["']?data:image\/(?:png|jpe?g|gif|webp|avif|bmp)[;,][^)]*\)/gi;
const isHarmless = (name, value) => {
  if (name.startsWith('--')) return !/\\|url|image|src|element/i.test(value);
  return !asks.test(value.replace(pictures, ''));
};
// Takes out all that would ask somebody for something. As parsed: however it was written, it reads plain here.
function cleanStyle(style) {
  for (const name of [...style]) if (!isHarmless(name, style.getPropertyValue(name))) style.removeProperty(name);
  // What waits for a variable is not parsed yet, and told of no single property.
  const rest = style.cssText.replace(pictures, '');
  if (asks.test(rest) || (/\\/.test(rest) && /var\(|env\(|attr\(/i.test(rest))) style.cssText = '';
}
function cleanRules(owner) {
  for (let i = owner.cssRules.length - 1; i >= 0; --i) {
    const rule = owner.cssRules[i];
    const kind = rule.constructor.name;
    if (kind === 'CSSImportRule' || kind === 'CSSFontFaceRule' || kind === 'CSSNamespaceRule') {
      owner.deleteRule(i);
      continue;
    }
    if (rule.style) cleanStyle(rule.style);
    if (rule.cssRules && kind !== 'CSSKeyframesRule') cleanRules(rule);
    else if (rule.cssRules) for (const frame of rule.cssRules) cleanStyle(frame.style);
  }
}
function sheetOf(target, text, media = '') {
  const Sheet = target.defaultView.CSSStyleSheet;
  const sheet = new Sheet({ media });
  sheet.replaceSync(text); // ignores @import
  cleanRules(sheet);
  return sheet;
}

function copyAttributes(from, to, allowed) {
  for (const { name, value } of from.attributes) if (allowed.has(name)) to.setAttribute(name, value);
  const style = from.getAttribute('style');
  if (style && to.style) {
    to.style.cssText = style.slice(0, 20_000);
    cleanStyle(to.style);
  }
}

function drawElement(from, target) {
  const name = from.localName.toLowerCase();
  if (from.namespaceURI === kDrawing) {
    // Without what moves, links, loads, or brings HTML with it.
    if (gone.has(name) || name === 'foreignobject' || name === 'set' || name.startsWith('animate')) return null;
    const made = target.createElementNS(kDrawing, drawings.has(name) ? from.localName : 'g');
    for (const { name: key, value } of from.attributes) {
      if (drawingAttributes.has(key) && !asks.test(value.replace(/url\(\s*["']?#[\w-]*["']?\s*\)/g, ''))) made.setAttribute(key, value);
    }
    return made;
  }
  if (from.namespaceURI !== kHtml) return target.createElement('span');
  if (gone.has(name)) return null;
  if (boxed.has(name)) {
    const box = target.createElement('span');
    copyAttributes(from, box, words('id class'));
    box.setAttribute('data-argiope-box', '');
    box.textContent = name;
    return box;
  }
  const isKept = kept.has(name);
  const made = target.createElement(isKept ? name : name === 'form' ? 'div' : 'span');
  copyAttributes(from, made, attributes);
  if (name === 'noscript') made.setAttribute('data-argiope-block', '');
  if (name === 'a' && from.hasAttribute('href')) made.setAttribute('data-argiope-link', '');
  if (name === 'img' && isPicture(from.getAttribute('src'))) made.setAttribute('src', from.getAttribute('src').trim());
  if (name === 'input') {
    const type = (from.getAttribute('type') ?? 'text').toLowerCase();
    made.setAttribute('type', type === 'image' ? 'submit' : inputs.has(type) ? type : 'text');
  }
  if (name === 'dialog') made.removeAttribute('open');
  if (/^(?:input|button|select|textarea)$/.test(name)) {
    made.setAttribute('disabled', '');
    made.setAttribute('tabindex', '-1');
  }
  return made;
}

// Draws `page` into `target`, the empty document of the frame: {drawnOf, originalOf, isCut}.
export function drawPage(page, target) {
  const drawn = new Map();
  const originals = new Map();
  const keep = (from, to) => {
    drawn.set(from, to);
    originals.set(to, from);
  };
  for (const [from, to] of [[page.documentElement, target.documentElement], [page.body, target.body]]) {
    for (const name of to.getAttributeNames()) to.removeAttribute(name); // of the page before
    if (!from) continue;
    copyAttributes(from, to, attributes);
    keep(from, to);
  }
  const sheets = [sheetOf(target, below)];
  let room = kMostStyleChars;
  for (const style of page.querySelectorAll('style')) {
    if (style.namespaceURI !== kHtml && style.namespaceURI !== kDrawing) continue;
    room -= style.textContent.length;
    if (room >= 0) sheets.push(sheetOf(target, style.textContent, style.getAttribute('media') ?? ''));
  }
  sheets.push(sheetOf(target, above));
  target.adoptedStyleSheets = sheets;

  const whole = target.createDocumentFragment();
  const waiting = [];
  const wait = (from, to) => {
    for (let child = from.lastChild; child; child = child.previousSibling) waiting.push([child, to]);
  };
  if (page.body) wait(page.body, whole);
  let count = 0;
  let isCut = false;
  while (waiting.length) {
    const [from, to] = waiting.pop();
    if (from.nodeType === 3) to.appendChild(target.createTextNode(from.data));
    if (from.nodeType !== 1) continue;
    if (++count > kMostElements) {
      isCut = true;
      break;
    }
    const made = drawElement(from, target);
    if (!made) continue;
    to.appendChild(made);
    keep(from, made);
    if (!made.hasAttribute('data-argiope-box')) wait(from, made);
  }
  target.body.replaceChildren(whole);
  return { drawnOf: (e) => drawn.get(e), originalOf: (e) => originals.get(e), isCut };
}

// Where links of the page are resolved against.
export function baseOf(page, url) {
  try {
    return new URL(page.querySelector('base[href]')?.getAttribute('href') ?? '', url).href;
  } catch {
    return url;
  }
}
