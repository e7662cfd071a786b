// An editor of source text: line numbers, and a tab key that indents until Escape leaves.
import { html, useEffect, useId, useLayoutEffect, useMemo, useRef } from './lib.js';
import { indented, lineAt, linesIn, newLine } from './source_edit.js';

const kLinePx = 19;
const kPadPx = 10;

// Puts `text` over the selection as if it were typed, so that it can be undone.
function type(area, text) {
  if (!document.execCommand?.('insertText', false, text)) {
    area.setRangeText(text, area.selectionStart, area.selectionEnd, 'end');
    area.dispatchEvent(new Event('input', { bubbles: true }));
  }
}
function become(area, { text, start, end }) {
  const before = area.value;
  if (text !== before) {
    let from = 0;
    while (from < text.length && from < before.length && text[from] === before[from]) ++from;
    let same = 0;
    while (same < Math.min(text.length, before.length) - from && text.at(-1 - same) === before.at(-1 - same)) ++same;
    area.setSelectionRange(from, before.length - same);
    const put = text.slice(from, text.length - same);
    if (put) type(area, put);
    else if (!document.execCommand?.('delete')) type(area, '');
  }
  area.setSelectionRange(start, end);
}

// `wrong`: {line, text} of an error. `place`: {line} or {at} to go to, a new object each time. `at`: a ref that is given the field.
export function Editor({ label, value, change, step = '  ', wrong, place, at, keys, isReadOnly = false }) {
  const own = useRef(null);
  const area = at ?? own;
  const gutter = useRef(null);
  const id = useId();
  const numbers = useMemo(() => Array.from({ length: linesIn(value) }, (_, i) => i + 1).join('\n'), [value]);
  const scroll = () => {
    gutter.current.style.transform = `translateY(${-area.current.scrollTop}px)`;
  };
  useLayoutEffect(scroll, [value]);
  useEffect(() => {
    if (!place) return;
    const { begin, end } = place.at != null ? { begin: place.at, end: place.to ?? place.at } : lineAt(value, place.line);
    area.current.focus();
    area.current.setSelectionRange(begin, end);
    const line = place.line ?? linesIn(value.slice(0, begin));
    area.current.scrollTop = Math.max(0, line * kLinePx - area.current.clientHeight / 2);
    scroll();
  }, [place]);
  const press = (event) => {
    if (event.isComposing || isReadOnly) return;
    const { selectionStart: start, selectionEnd: end } = area.current;
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (event.key === 'Tab' && isPlain) {
      event.preventDefault();
      become(area.current, indented(area.current.value, start, end, step, event.shiftKey));
    } else if (event.key === 'Enter' && isPlain && !event.shiftKey) {
      event.preventDefault();
      type(area.current, newLine(area.current.value, start));
    } else keys?.(event);
  };
  return html`<div class="editor" data-bad=${Boolean(wrong)}>
    <div class="editor-side" aria-hidden="true"><div ref=${gutter}><pre>${numbers}</pre>${wrong?.line && html`<i
        style=${{ top: `${kPadPx + (wrong.line - 1) * kLinePx}px` }}>${wrong.line}</i>`}</div></div>
    <textarea ref=${area} wrap="off" spellcheck=${false} autocapitalize="off" autocomplete="off" autocorrect="off" aria-label=${label}
      aria-describedby="${id}-help${wrong ? ` ${id}-wrong` : ''}" aria-invalid=${wrong ? 'true' : undefined} value=${value}
      readonly=${isReadOnly} onInput=${(e) => change(e.target.value)} onScroll=${scroll} onKeyDown=${press}></textarea>
    <span class="hidden-text" id="${id}-help">Tab indents. Escape leaves the editor.</span>
    ${wrong && html`<span class="hidden-text" id="${id}-wrong">${wrong.line ? `Line ${wrong.line}: ` : ''}${wrong.text}</span>`}
  </div>`;
}
