// The pieces that pages are made of. What they are given is text, and is shown as text.
import { distance, instant, moment, plural, seen, seenInName, span } from './format.js';
import { cloneElement, html, useEffect, useLayoutEffect, useRef, useState } from './lib.js';
import { useNow } from './live.js';

const paths = {
  overview: 'M3 17l5-6 4 4 5-8 4 5M3 21h18',
  jobs: 'M4 5h16M4 12h16M4 19h10',
  queues: 'M4 6h4v12H4zM10 6h4v12h-4zM16 6h4v12h-4z',
  schedules: 'M4 6h16v14H4zM4 10h16M8 3v4M16 3v4',
  projects: 'M12 3v18M3 12h18M5.6 5.6l12.8 12.8M18.4 5.6L5.6 18.4M8 8h8v8H8z',
  hosts: 'M4 5h16v6H4zM4 13h16v6H4zM7.5 8h.01M7.5 16h.01',
  workers:
    'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20c.5-4 3-6 6.5-6s6 2 6.5 6M16 4.5a3.5 3.5 0 0 1 0 6M18 14.5c2 .8 3.2 2.7 3.5 5.5',
  log: 'M5 4h14v16H5zM8.5 9h7M8.5 13h7M8.5 17h4',
  settings:
    'M4 7h9M19 7h1M4 17h1M11 17h9M16 4.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM8 14.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z',
  'what-if': 'M12 3v4M12 17v4M3 12h4M17 12h4M12 8.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7z',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
  close: 'M6 6l12 12M18 6L6 18',
  plus: 'M12 5v14M5 12h14',
  back: 'M15 5l-7 7 7 7',
  forward: 'M9 5l7 7-7 7',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  pause: 'M8 5v14M16 5v14',
  play: 'M7 4.5v15l12-7.5z',
  help: 'M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M12 17.5h.01',
  alert: 'M12 4l9 16H3zM12 10v4M12 17h.01',
};
export const Icon = ({ name }) =>
  html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${paths[name]} /></svg>`;

export const Mark = () => html`<svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
  <g class="mark-web"><path
      d="M7 7l3.2 1-.6 3.2 3.3 1M25 25l-3.2-1 .6-3.2-3.3-1M25 7l-1 3.2-3.2-.6-1 3.3M7 25l1-3.2 3.2.6 1-3.3" /></g>
  <ellipse cx="16" cy="16" rx="3.2" ry="4.2" /></svg>`;

// Text of strangers, with what cannot be seen made visible.
const shown = (pieces) =>
  html`<bdi>${pieces.map((piece, i) => (i % 2 ? html`<span class="unseen" title=${`U+${piece}`}>${piece}</span>` : piece))}
      </bdi>`;
export const Visible = ({ text }) => shown(seen(String(text ?? '')));
export const Name = ({ of }) => shown(seenInName(String(of ?? '')));

export const State = ({ of }) => html`<span class="state" data-state=${of}>${of}</span>`;

// A moment, told from now; its exact time is in the title. `past`: what is said instead of one that has passed.
export function Time({ at, empty = '–', now, absolute = false, past }) {
  const tick = useNow();
  const ms = typeof at === 'number' ? at : instant(at);
  if (ms == null) return html`<span class="muted">${empty}</span>`;
  const exact = moment(ms, ms % 1000 !== 0);
  if (past && ms <= (now ?? tick)) return html`<span title=${exact}>${past}</span>`;
  return html`<time datetime=${new Date(ms).toISOString()} title=${exact}>${absolute ? exact : distance(ms, now ?? tick)}
      </time>`;
}

// A time from now on, counted down or up by the second.
export function Since({ at }) {
  const now = useNow();
  const ms = instant(at);
  return html`<span>${ms == null ? '–' : span(Math.max(0, now - ms))}</span>`;
}

// What the daemon refused, in its words, each word once: what fields tell is not said here again, nor what the frame tells of the
// connection and of who asks.
export function Problem({ error, retry, retryText = 'Try again' }) {
  const [seen, look] = useState(null);
  // The fields are drawn by now.
  useLayoutEffect(() => {
    look(error);
    if (isToldByFields(error)) document.querySelector(':is(dialog[open], main) [aria-invalid=true]')?.focus();
  }, [error]);
  if (!error || seen !== error || isToldByFields(error)) return null;
  if (retry && (error.status === 0 || error.status === 401)) return null;
  const more = error.errors?.length > 1 ? error.untold : [];
  return html`<div class="problem" role="alert">
    <${Icon} name="alert" />
    <div>
      <p class="problem-text"><${Visible} text=${error.message} /></p>
      ${more.length > 0 && html`<ul>${more.slice(0, 8).map((e) => html`<li><code>${e.pointer}</code> <${Visible} text=${e.detail} /></li>`)}</ul>`}
      ${error.requestId && html`<p class="muted small">request ${error.requestId}</p>`}
    </div>
    ${retry && html`<button class="quiet" onClick=${retry}>${retryText}</button>`}
  </div>`;
}

const isToldByFields = (error) => error?.errors?.length > 0 && error.untold?.length === 0;

export const Empty = ({ title, children }) => html`<div class="empty"><h2>${title}</h2>${children}</div>`;

export function Copy({ text, label = 'Copy' }) {
  const [done, set] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      set(true);
      setTimeout(() => set(false), 1500);
    } catch {
      toast('The browser does not let this page copy; select the text instead.');
    }
  };
  return html`<button type="button" class="quiet copy" onClick=${copy}><${Icon} name="copy" />${done ? 'Copied' : label}
      </button>`;
}

// A line for a shell, to be copied.
export const Command = ({ text }) =>
  html`<div class="command"><pre tabindex="0"><code>${text}</code></pre><${Copy} text=${text} /></div>`;

// What `load(signal)` gives: {data, error, loading, reload}. What was there stays while it is loaded again; an answer that
// was overtaken is dropped.
export function useResource(load, deps) {
  const [state, set] = useState({ data: null, error: null, loading: true });
  const current = useRef({ load, number: 0, abort: null });
  current.current.load = load;
  const reload = () => {
    const at = current.current;
    const number = ++at.number;
    at.abort?.abort();
    at.abort = new AbortController();
    const end = (next) => number === at.number && set((old) => ({ ...old, loading: false, ...next }));
    return at.load(at.abort.signal).then(
      (data) => end({ data, error: null }),
      (error) => error.name !== 'AbortError' && end({ error }),
    );
  };
  // Before the first paint: who asks soon is answered soon.
  useLayoutEffect(() => {
    set((old) => ({ ...old, loading: true }));
    reload();
    return () => {
      ++current.current.number;
      current.current.abort?.abort();
    };
  }, deps);
  return { ...state, reload, put: (data) => set((old) => ({ ...old, data })) };
}

// Runs what a button asks for once at a time: [run, busy].
function useAction(action) {
  const [busy, set] = useState(false);
  const run = async (...given) => {
    if (busy) return;
    set(true);
    try {
      await action(...given);
    } catch (error) {
      if (error.name !== 'AbortError') toast(error.message, { bad: true });
    } finally {
      set(false);
    }
  };
  return [run, busy];
}
export function Action({ does, class: name = '', children, disabled, title, icon }) {
  const [run, busy] = useAction(does);
  return html`<button type="button" class=${name} onClick=${() => run()} disabled=${disabled || busy} aria-busy=${busy}
      title=${title}>
    ${icon && html`<${Icon} name=${icon} />`}${children}</button>`;
}

// A modal dialog for as long as it is there.
export function Dialog({ title, close, children, wide = false }) {
  const at = useRef(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    at.current.showModal();
    at.current.querySelector('[autofocus]')?.focus();
    return () => before?.isConnected && before.focus();
  }, []);
  // A press beside it closes it, unless something is being written there.
  const outside = ({ target, clientX: x, clientY: y }) => {
    const { left, right, top, bottom } = at.current.getBoundingClientRect();
    const isBeside = target === at.current && (x < left || x > right || y < top || y > bottom);
    if (isBeside && !at.current.querySelector('form')) close();
  };
  const cancel = (event) => {
    event.preventDefault();
    close();
  };
  return html`<dialog ref=${at} class=${wide ? 'wide' : ''} aria-label=${title} onCancel=${cancel} onMouseDown=${outside}>
    <div class="dialog">
      <header><h2><${Name} of=${title} /></h2><button type="button" class="quiet square" aria-label="Close" onClick=${close}><${Icon}
          name="close" /></button></header>
      ${children}
    </div>
  </dialog>`;
}

// Messages and questions come from anywhere, and are shown by <Overlays>.
let overlays = { toasts: [], question: null };
let overlaysChanged = () => {};
const setOverlays = (change) => {
  overlays = { ...overlays, ...change };
  overlaysChanged();
};
let toasts = 0;
// `undo`: what takes it back, after which `undone` is said.
export function toast(text, { bad = false, undo, undone, link, linkText } = {}) {
  const id = ++toasts;
  const drop = () => setOverlays({ toasts: overlays.toasts.filter((t) => t.id !== id) });
  const takeBack = undo && (() => (drop(), undo().then(() => toast(undone), (error) => toast(error.message, { bad: true }))));
  setOverlays({ toasts: [...overlays.toasts.slice(-3), { id, text, bad, takeBack, link, linkText, drop }] });
  setTimeout(drop, undo ? 15_000 : bad ? 12_000 : 6_000);
}
// Whether the person agrees: true, false, or "other" for the second way to agree.
export function ask({ title, text, does = 'OK', other, danger = false }) {
  return new Promise((answer) => setOverlays({ question: { title, text, does, other, danger, answer } }));
}
export function Overlays() {
  const [, again] = useState(0);
  useLayoutEffect(() => {
    overlaysChanged = () => again((n) => n + 1);
    return () => (overlaysChanged = () => {});
  }, []);
  const { question } = overlays;
  const answer = (yes) => {
    setOverlays({ question: null });
    question.answer(yes);
  };
  return html`
    ${
      question &&
      html`<${Dialog} title=${question.title} close=${() => answer(false)}>
      <p class="dialog-text"><${Visible} text=${question.text} /></p>
      <footer><button type="button" onClick=${() => answer(false)}>Cancel</button>
        ${question.other && html`<button type="button" onClick=${() => answer('other')}>${question.other}</button>`}
        <button type="button" autofocus class=${question.danger ? 'danger' : 'primary'} onClick=${() => answer(true)}>
            ${question.does}</button></footer>
    <//>`
    }
    <div class="toasts" role="status" aria-live="polite">${overlays.toasts.map(
      (t) => html`<div key=${t.id} class="toast" data-bad=${t.bad}>
      <span><${Name} of=${t.text} /></span>
      ${t.link && html`<a href=${t.link} onClick=${t.drop}>${t.linkText}</a>`}
      ${t.takeBack && html`<button class="quiet" onClick=${t.takeBack}>Undo</button>`}
      <button class="quiet square" aria-label="Dismiss" onClick=${t.drop}><${Icon} name="close" /></button>
    </div>`,
    )}</div>`;
}

// One field of a form. `error` is the daemon's word on it.
let fields = 0;
export function Field({ label, hint, error, children, wide = false }) {
  const [id] = useState(() => `field-${++fields}`);
  const note = error ?? hint;
  const more = { id, 'aria-describedby': note ? `${id}-note` : undefined, 'aria-invalid': error ? 'true' : undefined };
  return html`<div class="field" data-wide=${wide} data-bad=${Boolean(error)}>
    <label for=${id}>${label}</label>${cloneElement(children, more)}
    ${note && html`<p class="note" id="${id}-note" role=${error ? 'alert' : undefined}>${note}</p>`}</div>`;
}

// A filter is part of the address; typing waits for a moment before it is.
export function Filter({ label = 'Filter', hint, value = '', apply }) {
  const [text, setText] = useState(value);
  const current = useRef({ timer: 0, hash: '', isApplying: false });
  Object.assign(current.current, { value, apply });
  const isOwn = () => current.current.isApplying || location.hash === current.current.hash;
  useEffect(() => {
    if (!isOwn()) setText(value); // else more may have been typed meanwhile
  }, [value]);
  useEffect(() => {
    const at = current.current;
    // What was typed on one page is not applied to the next.
    const moved = () => {
      if (isOwn()) return;
      at.hash = ''; // it may be gone back to
      clearTimeout(at.timer);
      setText(at.value);
    };
    window.addEventListener('hashchange', moved);
    return () => {
      clearTimeout(at.timer);
      window.removeEventListener('hashchange', moved);
    };
  }, []);
  const type = (event) => {
    const at = current.current;
    const next = event.target.value;
    setText(next);
    clearTimeout(at.timer);
    at.timer = setTimeout(() => {
      at.isApplying = true;
      at.apply(next.trim());
      at.isApplying = false;
      at.hash = location.hash;
    }, 250);
  };
  return html`<input type="search" aria-label=${label} placeholder=${hint} value=${text} onInput=${type} data-filter />`;
}
export const fits = (text, filter = '') => text.toLowerCase().includes(filter.toLowerCase());

// What of a queue a bar shows, in its order.
const kInBar = ['running', 'ready', 'delayed', 'buried'];
// How many jobs the longest of the bars of those counts stands for.
export const barScale = (all) => Math.max(0, ...all.map((counts) => kInBar.reduce((sum, state) => sum + (counts?.[state] ?? 0), 0)));
// The jobs of a queue as a bar, whose whole width is `scale` jobs.
export function Bar({ counts, scale }) {
  const parts = kInBar.map((state) => ({ state, value: counts?.[state] ?? 0 }));
  return html`<span class="bar" role="img" aria-label=${parts.map((p) => `${p.value} ${p.state}`).join(', ')}>
    ${parts.filter((p) => p.value > 0).map((p) => html`<span key=${p.state} data-state=${p.state}
        style=${{ flexBasis: `${(100 * p.value) / scale}%` }}></span>`)}
  </span>`;
}
export const BarLegend = ({ scale }) => html`<p class="bar-legend">${kInBar.map((state) => html`<span class="legend" key=${state}><i
    data-state=${state}></i>${state}</span>`)}<span>a full bar: ${plural(scale, 'job')}</span></p>`;

// The last values as a line without axes.
export function Spark({ values, max }) {
  const shown = values.slice(-60);
  const top = Math.max(max ?? 0, ...shown.filter((v) => v != null), 1e-9);
  let line = '';
  let pen = 'M';
  shown.forEach((v, i) => {
    if (v == null) return void (pen = 'M');
    line += `${pen}${((i + 60 - shown.length) * 2).toFixed(1)} ${(22 - (v / top) * 20).toFixed(1)}`;
    pen = 'L';
  });
  return html`<svg class="spark" viewBox="0 0 120 24" preserveAspectRatio="none" aria-hidden="true"><path class="ground"
      d="M0 22H120" /><path d=${line || 'M0 22'} /></svg>`;
}

export function Head({ title, children, note, back }) {
  return html`<header class="head">
    <div class="head-title">${back && html`<a class="back" href=${back} aria-label="Back"><${Icon} name="back" /></a>`}<h1
        tabindex="-1"><${Name} of=${title} /></h1>${note}</div>
    <div class="head-actions">${children}</div></header>`;
}
