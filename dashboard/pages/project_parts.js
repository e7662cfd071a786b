// What the pages and the results of a project share.
import { html } from '../lib.js';
import { wholeOf } from '../results.js';
import { to } from '../router.js';
import { Icon, Name, Visible } from '../ui.js';

const kMostShown = 128 * 1024; // characters of a value

export const pageHref = (project, page) => to('projects', project, { view: 'pages', page });
// An address that a browser may open in a tab of its own, which learns nothing of this one.
const isWeb = (url) => /^https?:\/\//i.test(url);
export const Outside = ({ url }) =>
  isWeb(url)
    ? html`<a href=${url} target="_blank" rel="noopener noreferrer"><${Name} of=${url} /></a>`
    : html`<${Name} of=${url} />`;

// A link to the page, by its URL, and by its name where that is another.
export function PageCell({ project, page, url, open = true }) {
  return html`<a class="clip" data-open=${open || undefined} title=${url || page} href=${pageHref(project, page)}><${Name} of=${url || page} /></a>
    ${url && url !== page && html`<span class="clip small muted" title=${page}><${Name} of=${page} /></span>`}`;
}

// What became of a visit, as the counters call it.
export const outcome = (visit) => (visit.succeeded ? 'success' : visit.gave_up ? 'failed' : 'retry');

// A value as JSON on several lines.
export function Whole({ value, label, name = 'text' }) {
  const text = wholeOf(value);
  return html`<pre class=${name} tabindex="0" aria-label=${label}><${Visible} text=${text.slice(0, kMostShown)} />
      ${text.length > kMostShown && '\n…'}</pre>`;
}

// Pages of a table behind a cursor. `at(change)`: the address with these members of it changed.
export function Pager({ params, at, next }) {
  const number = Number(params.n ?? 1);
  if (next == null && number === 1) return null;
  return html`<div class="pager"><span>page ${number}</span><div>
    ${number > 1 && html`<a class="button" href=${at({ after: '', n: '' })}>First</a><button
        onClick=${() => history.back()}><${Icon} name="back" />Back</button>`}
    ${next != null && html`<a class="button" href=${at({ after: next, n: number + 1 })}>Next<${Icon} name="forward" /></a>`}
    </div></div>`;
}
