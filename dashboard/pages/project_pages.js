// The pages of a project: which there are, where each stands, and why it is not visited now.
import * as api from '../api.js';
import { count, instant, moment, plural, readSpan, span } from '../format.js';
import { html, useEffect, useRef, useState } from '../lib.js';
import { usePoll } from '../live.js';
import { go, to } from '../router.js';
import { askAgain, askSentence, wholeOf } from '../results.js';
import {
  Action,
  ask,
  Copy,
  Dialog,
  Empty,
  Field,
  Filter,
  Icon,
  Name,
  Problem,
  State,
  Time,
  toast,
  useResource,
  Visible,
} from '../ui.js';
import { outcome, Outside, PageCell, pageHref, Pager, Whole } from './project_parts.js';

const kStates = ['waiting', 'visiting', 'done', 'failed', 'cancelled'];
const kLimit = 50;
const kPollMs = 2000;
const kCountsMs = 5000; // of the project as a whole
const pathOf = (project, what) => `/v1/projects/${api.part(project.name)}/${what}`;
// A place among the pages: what of `params` stays, and what changes.
const placeOf = (project, { state, rule, filter, after, n }, change = {}) =>
  to('projects', project.name, { view: 'pages', state, rule, filter, after, n, ...change });

function Tabs({ project, params }) {
  const nav = useRef(null);
  const tab = (state, title = state) => html`<a key=${state} href=${placeOf(project, params, { state, after: '', n: '' })}
      aria-current=${(params.state ?? '') === state ? 'page' : undefined}>${title}</a>`;
  useEffect(
    () => nav.current.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' }),
    [params.state],
  );
  return html`<nav class="tabs" aria-label="States" ref=${nav}>${tab('', 'all')}${kStates.map((s) => tab(s))}
      ${tab('lately', 'visited lately')}</nav>`;
}

// One of the project's rules, or another that is known by its name.
function RuleSelect({ project, none, ...more }) {
  const names = [...(project.rules ?? [])];
  if (more.value && !names.includes(more.value)) names.push(more.value);
  return html`<select ...${more}><option value="">${none}</option>${names.map((name) => html`<option key=${name}
      value=${name}>${name}</option>`)}</select>`;
}

function Filters({ project, params }) {
  const filter = (change) => go(placeOf(project, params, { ...change, after: '', n: '' }));
  return html`<div class="filters">
    <${RuleSelect} project=${project} none="all rules" aria-label="Rule" value=${params.rule ?? ''}
        onChange=${(event) => filter({ rule: event.target.value })} />
    <${Filter} label="URL" hint="filter by URL or name" value=${params.filter} apply=${(text) => filter({ filter: text })} /></div>`;
}

const waitsFor = { retry: 'to be tried again', recrawl: 'for its next time' };
const PageState = ({ page }) => html`<${State} of=${page.state} />${page.waits_for in waitsFor && html` <span
    class="small muted">${waitsFor[page.waits_for]}</span>`}`;
const NextVisit = ({ page }) =>
  page.state === 'visiting'
    ? 'now'
    : page.state === 'waiting'
      ? html`<${Time} at=${page.due_at} empty="as soon as it may" past="as soon as it may" />`
      : html`<span class="muted">–</span>`;
const Answer = ({ code, error }) => html`${code > 0 && html`<span class="nowrap">${code}</span> `}${error && html`<span class="clip bad"
    title=${error}><${Name} of=${error} /></span>`}`;

function Row({ project, page }) {
  return html`<tr data-row tabindex="-1">
    <td class="grow"><${PageCell} project=${project.name} page=${page.page} url=${page.url} /></td>
    <td data-name="rule"><span class="clip short" title=${page.rule}><${Name} of=${page.rule} /></span></td>
    <td><${PageState} page=${page} /></td>
    <td class="nowrap" data-name="next visit"><${NextVisit} page=${page} /></td>
    <td class="nowrap" data-name="last visit"><${Time} at=${page.ended_at} empty="never" /></td>
    <td data-name=${page.status_code > 0 || page.error ? 'answer' : undefined}><${Answer} code=${page.status_code}
        error=${page.error} /></td>
    <td class="number" data-name="retried">${page.retried}</td>
    <td class="number" data-name="priority">${page.priority}</td>
    <td data-name=${page.tag ? 'tag' : undefined}>${page.tag && html`<span class="clip short" title=${page.tag}><${Name} of=${page.tag} /></span>`}</td></tr>`;
}

const Table = ({ project, pages }) => html`<div class="scroll" tabindex="0"><table class="cards"><thead><tr><th>Page</th>
    <th>Rule</th><th>State</th><th>Next visit</th><th>Last visit</th><th>Answer</th><th class="number">Retried</th><th
    class="number">Priority</th><th>Tag</th></tr></thead>
  <tbody>${pages.map((page) => html`<${Row} key=${page.number} project=${project} page=${page} />`)}</tbody></table></div>`;

function NoPages({ project, params, next }) {
  const isFiltered = params.state || params.rule || params.filter;
  if (next != null)
    return html`<${Empty} title="None so far"><p>Many pages were looked at, and none fits. There are more to look at: go on by
        “Next”.</p><//>`;
  if (isFiltered)
    return html`<${Empty} title="No such pages"><p>Nothing fits these filters. <a
        href=${to('projects', project.name, { view: 'pages' })}>Look at all.</a></p><//>`;
  return html`<${Empty} title="No pages yet"><p>A project knows the pages that its start, links, scripts and people have asked
      for. Start it, or ask for a page.</p><//>`;
}

function Visit({ project, visit }) {
  const is = outcome(visit);
  return html`<tr data-row tabindex="-1">
    <td class="nowrap" data-name="when"><${Time} at=${visit.at} /></td>
    <td class="grow"><${PageCell} project=${project.name} page=${visit.page} url=${visit.url} /></td>
    <td data-name="rule"><span class="clip short" title=${visit.rule}><${Name} of=${visit.rule} /></span></td>
    <td><span class="state" data-state=${is}>${is}</span></td>
    <td data-name=${visit.status_code > 0 || visit.error ? 'answer' : undefined}><${Answer} code=${visit.status_code}
        error=${visit.error} /></td>
    <td class="number" data-name="fetched in">${span(visit.fetch_ms)}</td>
    <td class="number" data-name="processed in">${span(visit.process_ms)}</td>
    <td class="number" data-name="pages">${count(visit.pages)}</td>
    <td class="number" data-name="results">${count(visit.results)}</td></tr>`;
}
const Visits = ({ project, visits, label = 'Visits that ended lately' }) => html`<div class="scroll" tabindex="0"><table
    class="cards" aria-label=${label}><thead><tr><th>When</th><th>Page</th><th>Rule</th><th>Outcome</th><th>Answer</th><th
    class="number">Fetched in</th><th class="number">Processed in</th><th class="number">Pages</th><th
    class="number">Results</th></tr></thead>
  <tbody>${visits.map((visit, i) => html`<${Visit} key=${`${visit.at} ${visit.page} ${i}`} project=${project} visit=${visit} />`)}
  </tbody></table></div>`;

function Lately({ project }) {
  const found = useResource((signal) => api.get(pathOf(project, 'recent'), null, signal), [project.name]);
  usePoll(found.reload, kPollMs, [project.name]);
  const visits = found.data?.visits ?? [];
  return html`<${Problem} error=${found.error} retry=${found.reload} />
    ${visits.length > 0 && html`<${Visits} project=${project} visits=${visits} />`}
    ${found.data && !visits.length && html`<${Empty} title="No visits yet"><p>The last visits since the daemon began would be
        here.</p><//>`}`;
}

function List({ project, params }) {
  const { state, rule, filter, after } = params;
  const of = [project.name, state, rule, filter, after];
  const found = useResource(
    (signal) => api.get(pathOf(project, 'pages'), { state, rule, filter, after, limit: kLimit }, signal),
    of,
  );
  usePoll(found.reload, kPollMs, of);
  const pages = found.data?.pages ?? [];
  const next = found.data?.next;
  return html`<${Filters} project=${project} params=${params} />
    <${Problem} error=${found.error} retry=${found.reload} />
    <div aria-busy=${found.loading}>${pages.length > 0 && html`<${Table} project=${project} pages=${pages} />`}
    ${found.data && !pages.length && html`<${NoPages} project=${project} params=${params} next=${next} />`}
    ${found.data && html`<${Pager} params=${params} at=${(change) => placeOf(project, params, change)} next=${next} />`}</div>`;
}

// --- asking

// Asks for it, and says what has become of that.
async function askFor(project, page) {
  const reply = await api.post(pathOf(project, 'pages'), page, api.once());
  toast(askSentence(reply), { bad: reply.verdict === 'drop' });
  return reply;
}

function AskDialog({ project, close }) {
  const [error, setError] = useState(null);
  const [wrongContext, setWrongContext] = useState('');
  const [busy, setBusy] = useState(false);
  const send = async (event) => {
    event.preventDefault();
    if (busy) return;
    const form = new FormData(event.target);
    const page = { url: form.get('url').trim() };
    if (form.get('rule')) page.rule = form.get('rule');
    if (form.get('priority')) page.priority = Number(form.get('priority'));
    if (form.get('tag')) page.tag = form.get('tag');
    if (form.get('force')) page.force = true;
    const delay = form.get('delay').trim();
    if (delay) page.delay_ms = readSpan(delay) ?? delay;
    try {
      if (form.get('context').trim()) page.context = JSON.parse(form.get('context'));
      setWrongContext('');
    } catch (wrong) {
      return setWrongContext(wrong.message);
    }
    setBusy(true);
    try {
      await askFor(project, page);
      close();
    } catch (wrong) {
      setError(wrong);
      setBusy(false);
    }
  };
  return html`<${Dialog} title="Ask for a page" close=${close}><${Problem} error=${error} />
    <form onSubmit=${send}><div class="form">
      <${Field} label="URL" wide><input name="url" required autofocus autocomplete="off" spellcheck=${false}
          placeholder="https://shop.example/item/1" /><//>
      <${Field} label="Rule" hint="Whose pages it is one of."><${RuleSelect} project=${project} name="rule"
          none="the first that matches its URL" /><//>
      <${Field} label="Priority" hint="Higher first."><input name="priority" type="number" step="1" placeholder="the rule’s" /><//>
      <${Field} label="Not before" hint="From now: 90s, 1h30m."><input name="delay" placeholder="now" autocomplete="off" /><//>
      <${Field} label="Tag" hint="Another one than before: it is visited again."><input name="tag" maxlength="1000"
          placeholder="the rule’s" autocomplete="off" /><//>
      <${Field} label="Context" wide error=${wrongContext} hint="JSON that goes with the page to the script."><textarea
          name="context" spellcheck=${false} rows="2"></textarea><//>
    </div><label class="check spaced"><input type="checkbox" name="force" />Visit it though it is fresh</label>
    <footer class="form-foot"><button class="primary" disabled=${busy}>Ask for it</button><button type="button" class="quiet"
        onClick=${close}>Cancel</button></footer></form><//>`;
}

function PriorityDialog({ project, page, close, done }) {
  const [error, setError] = useState(null);
  const send = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const more = { priority: Number(form.get('priority')) };
    if (form.get('force')) more.force = true;
    try {
      await askFor(project, askAgain(page, more));
      done();
      close();
    } catch (wrong) {
      setError(wrong);
    }
  };
  return html`<${Dialog} title="Ask with priority" close=${close}><${Problem} error=${error} />
    <form onSubmit=${send}><${Field} label="Priority" hint="Higher first."><input name="priority" type="number" step="1"
        required autofocus defaultValue=${page.priority} /><//>
    <label class="check spaced"><input type="checkbox" name="force" defaultChecked />Visit it though it is fresh</label>
    <footer class="form-foot"><button class="primary">Ask for it</button><button type="button" class="quiet"
        onClick=${close}>Cancel</button></footer></form><//>`;
}

// --- one page

async function loadPage(project, name, signal) {
  const query = { page: name };
  const [page, why, results, recent] = await Promise.all([
    api.getExact(pathOf(project, 'pages/one'), query, signal),
    api.get(pathOf(project, 'pages/explain'), query, signal).catch(() => null),
    api.getExact(pathOf(project, 'results'), { ...query, limit: 1000 }, signal).catch(() => null),
    api.get(pathOf(project, 'recent'), null, signal).catch(() => null),
  ]);
  return { page, why, results: results?.results ?? [], more: results?.next, visits: recent?.visits ?? [] };
}

// An explanation, with its time in the reader's zone where there is one.
function Why({ why, state }) {
  if (!why) return null;
  const at = instant(why.until);
  const words = at ? why.words.replace(/ until \d{4}-[\d-]+T[\d:]+Z$/, '') : why.words;
  return html`<div class="why" data-state=${state}><p><${Visible} text=${words} />${at && html`,${' '}
      ${why.reason === 'not_due' ? 'at' : 'until'} ${moment(at)} <span class="muted">(<${Time} at=${at} />)</span>`}.</p></div>`;
}

const Fact = ({ name, children }) => html`<dt>${name}</dt><dd>${children}</dd>`;
const timeFact = (name, at) => instant(at) && html`<${Fact} name=${name}><span title=${at}>${moment(instant(at))}</span> <span
    class="muted"><${Time} at=${at} /></span><//>`;
const textFact = (name, text) => text != null && text !== '' && html`<${Fact} name=${name}><${Name} of=${text} /><//>`;
const jsonFact = (name, value) =>
  value != null && html`<${Fact} name=${name}><${Whole} value=${value} /><//>`;

function Facts({ project, page }) {
  const hasSettings = Object.keys(page.settings ?? {}).length > 0;
  return html`<section class="card" aria-labelledby="facts"><header><h2 id="facts">Facts</h2></header><div class="body"><dl
      class="facts">
    <${Fact} name="URL"><${Outside} url=${page.url} /><//>
    ${page.page !== page.url && textFact('Name', page.page)}
    <${Fact} name="Rule"><a href=${to('projects', project.name, { view: 'pages', rule: page.rule })}><${Name} of=${page.rule} /></a><//>
    <${Fact} name="Next visit">${page.state === 'waiting' && instant(page.due_at) && html`${moment(instant(page.due_at))} `}<span
        class="muted"><${NextVisit} page=${page} /></span><//>
    ${timeFact('Last visit', page.ended_at)}
    ${timeFact('Last success', page.succeeded_at)}
    ${page.status_code > 0 && html`<${Fact} name="Answer">${page.status_code}<//>`}
    <${Fact} name="Retried">${page.retried}${page.crashes > 0 && `; its processor ended over it ${page.crashes} times`}<//>
    <${Fact} name="Priority">${page.priority}<//>${textFact('Tag', page.tag)}
    ${page.from && html`<${Fact} name="Asked for by"><a href=${pageHref(project.name, page.from)}><${Name} of=${page.from} /></a><//>`}
    ${page.round != null && html`<${Fact} name="Round">${page.round}<//>`}
    ${textFact('ETag', page.etag)}${textFact('Last-Modified', page.last_modified)}
    ${hasSettings && jsonFact('Its settings', page.settings)}${jsonFact('Context', page.context)}${jsonFact('Kept by its script', page.save)}
  </dl></div></section>`;
}

function PageResults({ results, more }) {
  return html`<section class="card" aria-labelledby="results"><header><h2 id="results">Results</h2>${results.length > 1 && html`<p>
      ${count(results.length)}${more != null && ' and more'}</p>`}</header><div class="body stack">
    ${!results.length && html`<p class="muted">The page has none.</p>`}
    ${results.slice(0, kLimit).map(
      (result) => html`<article key=${result.part}><header class="head-actions">${result.part && html`<h3>part <${Name} of=${result.part} /></h3>`}<span
          class="muted small">changed <${Time} at=${result.changed_at} /></span><${Copy} text=${wholeOf(result.value)} /></header>
        <${Whole} value=${result.value} /></article>`,
    )}
    ${results.length > kLimit && html`<p class="muted">The first ${kLimit} are shown.</p>`}</div></section>`;
}

// What its last visit did: of all pages, however long ago.
function LastVisit({ visit }) {
  const { logs = [], logs_left_out: leftOut = 0, failure } = visit;
  return html`<section class="card" aria-labelledby="last-visit"><header><h2 id="last-visit">What its last visit did</h2><p>fetched in ${span(visit.fetch_ms)}, processed in
      ${` ${span(visit.process_ms)}`}; ${plural(visit.pages, 'new page')}, ${plural(visit.results, 'result')}</p></header>
    ${failure?.trace && html`<div class="body"><pre class="text" tabindex="0" aria-label="Trace"><${Visible} text=${failure.trace} /></pre></div>`}
    ${leftOut > 0 && html`<p class="calm">${plural(leftOut, 'earlier line')} of its log ${leftOut === 1 ? 'was' : 'were'} not kept.</p>`}
    ${logs.length > 0 && html`<ol class="log debug-log" aria-label="Log">${logs.map((line, i) => html`<li key=${i} data-tone=${/err|crit/i.test(line.level) ? 'bad' : ''}><span
        class="kind">${line.level}</span><span class="wrap"><${Visible} text=${line.text} /></span></li>`)}</ol>`}
    ${!logs.length && !failure?.trace && html`<p class="calm">It has logged nothing.</p>`}</section>`;
}

function PageActions({ project, page, reload }) {
  const [raising, setRaising] = useState(false);
  const again = async () => (await askFor(project, askAgain(page, { force: true })), reload());
  const cancel = async () => {
    const text = page.state === 'visiting' ? 'Its visit is ended.' : 'It does not wait any more.';
    const isSure = await ask({ title: 'Cancel this page?', text: `${text} Asked for again, it is visited.`, does: 'Cancel the page', danger: true });
    if (isSure) await askFor(project, askAgain(page, { cancel: true }));
    reload();
  };
  const waits = page.state === 'waiting' || page.state === 'visiting';
  return html`<div class="head-actions"><${Action} does=${again} class="primary">Ask again<//>
    <button onClick=${() => setRaising(true)}>With priority</button>
    ${waits && html`<${Action} does=${cancel} class="danger">Cancel<//>`}
    <a class="button" href=${to('projects', project.name, { view: 'debug', url: page.url, rule: page.rule })}>Debug</a>
    ${raising && html`<${PriorityDialog} project=${project} page=${page} close=${() => setRaising(false)} done=${reload} />`}</div>`;
}

function OnePage({ project, name }) {
  const found = useResource((signal) => loadPage(project, name, signal), [project.name, name]);
  usePoll(found.reload, kPollMs, [project.name, name]);
  const { page, why, results, more, visits = [] } = found.data ?? {};
  const isGone = found.error?.status === 404;
  const own = visits.filter((visit) => visit.page === name);
  return html`<header class="head"><div class="head-title"><a class="back"
      href=${to('projects', project.name, { view: 'pages' })} aria-label="All pages of the project"><${Icon} name="back" /></a><h2
      class="long-name"><${Name} of=${page?.url ?? name} /></h2>${page && html`<${PageState} page=${page} />`}</div>
      ${page && html`<${PageActions} project=${project} page=${page} reload=${found.reload} />`}</header>
    ${isGone ? html`<section class="card"><${Empty} title="There is no such page"><p>Nothing has asked for it in this project.</p><//>
        </section>` : html`<${Problem} error=${found.error} retry=${found.reload} />`}
    ${
      page &&
      html`<${Why} why=${why} state=${page.state} />
      ${page.error && html`<section class="card error-card" aria-label="Error"><header><h2>What went wrong</h2></header><div
          class="body"><pre class="text" tabindex="0"><${Visible} text=${page.error} /></pre></div></section>`}
      <div class="columns"><${PageResults} results=${results} more=${more} /><${Facts} project=${project} page=${page} /></div>
      ${page.last_visit && html`<${LastVisit} visit=${page.last_visit} />`}
      ${own.length > 0 && html`<section class="card"><header><h2>Its last visits</h2></header><${Visits} project=${project}
          visits=${own} label="Its last visits" /></section>`}`
    }`;
}

export function ProjectPages({ project, params, reload }) {
  const [asking, setAsking] = useState(false);
  usePoll(reload, kCountsMs, [project.name]);
  if (params.page) return html`<${OnePage} key=${params.page} project=${project} name=${params.page} />`;
  return html`<section class="card" aria-label="Pages"><header><h2>Pages <span class="muted small">${count(project.pages)}</span>
      </h2><button class="primary" data-new onClick=${() => setAsking(true)}><${Icon} name="plus" />Ask for a page</button></header>
    <${Tabs} project=${project} params=${params} />
    ${params.state === 'lately' ? html`<${Lately} project=${project} />` : html`<${List} project=${project} params=${params} />`}
    </section>
    ${asking && html`<${AskDialog} project=${project} close=${() => setAsking(false)} />`}`;
}
