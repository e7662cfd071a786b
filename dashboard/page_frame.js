// The fetched page as a picture of itself, and selectors of what is clicked in it.
import { baseOf, drawPage, frameSandbox, frameSource, readPage } from './crawled_page.js';
import { count, plural } from './format.js';
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from './lib.js';
import { elementsOf, fieldNameOf, readSource, selectorOf, selectorOfAlike } from './pick.js';
import { fieldValue, patternOf } from './source_edit.js';
import { Copy, Icon, Name } from './ui.js';

const kMostMarked = 3000;
const kTallestPx = 40_000;
const kWidestPx = 4000;

// Draws the page, and gives what is drawn, once it is.
function useDrawing(page) {
  const frame = useRef(null);
  const [drawing, set] = useState(null);
  const draw = () => {
    const target = frame.current?.contentDocument;
    if (!page || !target?.body || !target.querySelector('meta[http-equiv]')) return;
    const drawn = { ...drawPage(page, target), target };
    set(drawn);
    measure();
  };
  // As tall as its content: the box around it scrolls.
  const measure = () => {
    const at = frame.current;
    const root = at?.contentDocument?.documentElement;
    if (!root) return;
    at.style.width = '100%';
    at.style.height = '400px';
    at.style.width = `${Math.min(kWidestPx, Math.max(root.scrollWidth, at.clientWidth))}px`;
    at.style.height = `${Math.min(kTallestPx, Math.max(root.scrollHeight, 160))}px`;
  };
  useEffect(draw, [page]); // else when the frame is there
  useEffect(() => {
    const box = frame.current?.parentElement?.parentElement;
    if (!box) return;
    let width = box.clientWidth;
    const watch = new ResizeObserver(() => {
      if (box.clientWidth !== width) measure();
      width = box.clientWidth;
    });
    watch.observe(box);
    return () => watch.disconnect();
  }, []);
  return { frame, draw, drawing };
}

// The attribute `name` on the elements that are marked so, and on no others.
function useMarks(drawing, name, elements) {
  const marked = useRef([]);
  useLayoutEffect(() => {
    for (const element of marked.current) element.removeAttribute(name);
    marked.current = drawing ? elements.slice(0, kMostMarked).map(drawing.drawnOf).filter(Boolean) : [];
    for (const element of marked.current) element.setAttribute(name, '');
  }, [drawing, elements]);
}

const pathOf = (element) => {
  const path = [];
  for (let e = element; e; e = e.parentElement) path.unshift(e);
  return path;
};
const shortName = (element) =>
  `${element.localName}${element.id ? `#${element.id}` : element.classList.length ? `.${element.classList[0]}` : ''}`.slice(0, 40);
const shown = (element) => element.textContent.replace(/\s+/g, ' ').trim().slice(0, 120);

function Picked({ selection, set, page, url, tools }) {
  const { element, text } = selection;
  const found = useMemo(() => elementsOf(text, page), [text, page]);
  const { selector, tail } = readSource(text);
  const [name, setName] = useState('');
  const [takes, setTakes] = useState('');
  const [isAll, setAll] = useState(false);
  const [rule, setRule] = useState('');
  const first = found?.[0] ?? element;
  useEffect(() => {
    if (!element) return;
    setName(fieldNameOf(element));
    setTakes(element.localName === 'img' && element.hasAttribute('src') ? 'src' : '');
  }, [element]);
  const known = tools.rules.includes(rule) ? rule : tools.rules.includes(tools.rule) ? tools.rule : (tools.rules[0] ?? 'page');
  const attribute = /^::attr\((.*)\)$/.exec(tail)?.[1] ?? takes;
  const take = (next, mode) => set({ ...selection, text: next, mode });
  const links = (found ?? []).map((e) => e.closest('a[href]')?.getAttribute('href')).filter(Boolean);
  const pattern = links.length ? patternOf(links.slice(0, 2000).map((href) => resolved(href, url)), url) : null;
  const source = `css:${selector}${attribute && `::attr(${attribute})`}`;
  const told = found === null ? 'no selector' : `${plural(found.length, 'element')}`;
  return html`<div class="picked" role="group" aria-label="Selector">
    ${element && html`<div class="picked-path" role="group" aria-label="Where it stands">${pathOf(element).map((e) => html`<button
        type="button" class="quiet" key=${shortName(e)} aria-pressed=${e === element} onClick=${() => tools.pick(e)}><${Name}
        of=${shortName(e)} /></button>`)}</div>`}
    <div class="picked-line"><input class="mono grow" aria-label="CSS selector" value=${text} spellcheck=${false} autocomplete="off"
        placeholder="Click into the page, or write a selector" aria-invalid=${found === null ? 'true' : undefined}
        onInput=${(e) => set({ ...selection, text: e.target.value, mode: 'own' })} />
      ${element && html`<span class="segments"><button type="button" aria-pressed=${selection.mode === 'one'} onClick=${() => take(
          selectorOf(element, page),
          'one',
        )}>This one</button><button type="button" aria-pressed=${selection.mode === 'alike'} onClick=${() => take(
          selectorOfAlike(element, page),
          'alike',
        )}>All like it</button></span>`}
      <${Copy} text=${source} label="Copy" /></div>
    <p class="small muted" role="status">${told}${found?.length > 0 && html`: <span class="clip-line"><${Name}
        of=${(attribute ? first.getAttribute(attribute) : shown(first)) ?? 'nothing there'} /></span>`}</p>
    ${found?.length > 0 && html`<div class="picked-line">
      ${attribute === takes && html`<label><span class="hidden-text">What is taken of it</span><select aria-label="What is taken of it" value=${takes}
          onChange=${(e) => setTakes(e.target.value)}><option value="">its text</option>${[...first.attributes].slice(0, 20).map(
            (a) => html`<option key=${a.name} value=${a.name}>${a.name}</option>`,
          )}</select></label>`}
      <label><span class="hidden-text">Rule</span><select aria-label="Rule that it is put into" value=${known} onChange=${(e) => setRule(e.target.value)}>
          ${(tools.rules.length ? tools.rules : ['page']).map((r) => html`<option key=${r} value=${r}>rule ${r}</option>`)}</select></label>
      <input class="mono" aria-label="Name of the field" value=${name} spellcheck=${false} autocomplete="off"
          onInput=${(e) => setName(e.target.value)} />
      <label class="check"><input type="checkbox" checked=${isAll} onChange=${(e) => setAll(e.target.checked)} />all of them</label>
      <button type="button" disabled=${!name.trim()} onClick=${() => tools.addField(known, name.trim(), fieldValue(selector, { attribute, all: isAll }))}>
          <${Icon} name="plus" />Add the field</button>
      ${pattern && html`<button type="button" title=${`follow = ["${pattern}"]: the links of what is marked`}
          onClick=${() => tools.addFollow(known, pattern)}>Follow ${pattern}</button>`}
      ${tools.insert && html`<button type="button" onClick=${() => tools.insert(selector)}>Put into the script</button>`}
    </div>`}
  </div>`;
}
function resolved(href, url) {
  try {
    return new URL(href, url).href;
  } catch {
    return '';
  }
}

// What keys move to, from an element of the page.
const moves = {
  ArrowUp: (e) => e.parentElement,
  ArrowDown: (e) => e.firstElementChild,
  ArrowLeft: (e) => e.previousElementSibling,
  ArrowRight: (e) => e.nextElementSibling,
};

const kNothing = [];
// `text` is the page's HTML, `url` where it came from. `tools`: {rules, rule, addField, addFollow, insert}.
export function PageFrame({ text, url, tools }) {
  const page = useMemo(() => readPage(text), [text]);
  const base = useMemo(() => baseOf(page, url), [page]);
  const { frame, draw, drawing } = useDrawing(page);
  const [isPicking, setPicking] = useState(false);
  const [over, setOver] = useState(null);
  const [selection, set] = useState({ element: null, text: '', mode: 'one' });
  const matches = useMemo(() => (isPicking ? (elementsOf(selection.text, page) ?? kNothing) : kNothing), [isPicking, selection.text, page]);
  const overs = useMemo(() => (isPicking && over ? [over] : kNothing), [isPicking, over]);
  const picked = useMemo(() => (isPicking && selection.element ? [selection.element] : kNothing), [isPicking, selection.element]);
  useMarks(drawing, 'data-argiope-match', matches);
  useMarks(drawing, 'data-argiope-over', overs);
  useMarks(drawing, 'data-argiope-picked', picked);
  useEffect(() => {
    setOver(null);
    set((old) => (old.element ? { ...old, element: null } : old));
  }, [page]);
  const pick = (element) => {
    const mode = selection.mode === 'alike' ? 'alike' : 'one';
    set({ element, mode, text: mode === 'alike' ? selectorOfAlike(element, page) : selectorOf(element, page) });
  };
  const under = (event) => {
    const box = frame.current.getBoundingClientRect();
    let at = drawing?.target.elementFromPoint(event.clientX - box.left, event.clientY - box.top);
    while (at && !drawing.originalOf(at)) at = at.parentElement;
    return at ? drawing.originalOf(at) : null;
  };
  const press = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const from = over ?? selection.element ?? page.body;
    if (event.key === 'Enter' && from) {
      event.preventDefault();
      pick(from);
    } else if (moves[event.key]) {
      event.preventDefault();
      let next = moves[event.key](from);
      while (next && !drawing?.drawnOf(next)) next = event.key === 'ArrowLeft' ? next.previousElementSibling : next.nextElementSibling;
      if (!next) return;
      setOver(next);
      drawing.drawnOf(next).scrollIntoView?.({ block: 'nearest' });
    }
  };
  return html`<div class="page-frame">
    <div class="page-frame-bar"><label class="check"><input type="checkbox" name="helper" checked=${isPicking}
        onChange=${(e) => setPicking(e.target.checked)} />Enable CSS selector helper</label>
      <span class="small muted" aria-live="polite">${isPicking ? (over ? html`<code><${Name} of=${shortName(over)} /></code>` : 'click an element, or take the arrow keys and Enter') : 'scripts, pictures and styles of its site are left out'}</span></div>
    ${isPicking && html`<${Picked} selection=${selection} set=${set} page=${page} url=${base} tools=${{ ...tools, pick }} />`}
    <div class="page-frame-box" tabindex="0" role="group" aria-label="The page"><div class="page-frame-whole">
      <iframe ref=${frame} title="The fetched page, without scripts" sandbox=${frameSandbox} referrerpolicy="no-referrer" tabindex="-1"
        srcdoc=${frameSource(page.compatMode === 'BackCompat')} onLoad=${draw}></iframe>
      ${isPicking && html`<div class="page-frame-cover" tabindex="0" role="button" aria-label="Choose an element: arrow keys move, Enter takes it"
        onMouseMove=${(e) => setOver(under(e))} onMouseLeave=${() => setOver(null)}
        onClick=${(e) => {
          const at = e.detail === 0 ? null : under(e);
          if (at) pick(at);
        }} onKeyDown=${press}></div>`}
    </div></div>
    ${drawing?.isCut && html`<p class="small muted">Only the first ${count(40_000)} elements are shown.</p>`}
  </div>`;
}
