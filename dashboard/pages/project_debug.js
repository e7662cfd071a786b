// The debug page: write a project, try it on one page, pick selectors by a click, follow its links, save it.
import * as api from '../api.js';
import { Editor } from '../editor.js';
import { bytes, count, instant, moment, plural, prettyJson, span } from '../format.js';
import { html, useEffect, useMemo, useRef, useState } from '../lib.js';
import { usePoll } from '../live.js';
import { PageFrame } from '../page_frame.js';
import { to } from '../router.js';
import { isWebhookIn, lineOfError, linesOfTrace, processorIn, rulesOf, tomlOf, withField, withFollow } from '../source_edit.js';
import { Action, Empty, Field, Icon, Name, Problem, toast, Visible } from '../ui.js';

const kMostRows = 300;
const kMostShownChars = 400_000;
const kMostHistory = 20;
const kPollMs = 5000;

// What was written and not saved, by project, for as long as the dashboard is open: other pages may be looked at meanwhile.
// {source, script, base: the version that it began with}
const drafts = new Map();
window.addEventListener('beforeunload', (event) => drafts.size > 0 && event.preventDefault());

// The draft's script, where the file names a program that runs one.
const scriptIn = (draft) => (draft.script && !isWebhookIn(draft.source) ? { script: draft.script } : {});
const hasScriptIn = (draft) => !isWebhookIn(draft.source) && (Boolean(draft.script) || processorIn(draft.source) !== undefined);

const savedOf = (project) => ({
  source: project.source ?? tomlOf(project.definition),
  script: project.script ?? '',
  base: project.version,
});

// The draft of a project, and what is to be said of it.
function useDraft(project, reload) {
  const saved = useMemo(() => savedOf(project), [project.source, project.script, project.version]);
  const [, again] = useState(0);
  const draft = drafts.get(project.name) ?? saved;
  const isDirty = draft.source !== saved.source || draft.script !== saved.script;
  const change = (members) => {
    const next = { ...(drafts.get(project.name) ?? saved), ...members };
    if (next.source === saved.source && next.script === saved.script) drafts.delete(project.name);
    else drafts.set(project.name, next);
    again((n) => n + 1);
  };
  const drop = () => {
    drafts.delete(project.name);
    again((n) => n + 1);
  };
  const save = async (note) => {
    const body = { source: draft.source, ...scriptIn(draft) };
    if (note) body.note = note;
    const made = await api.put(`/v1/projects/${api.part(project.name)}`, body);
    // What was typed while it was saved stays; and what was not kept: the daemon may take a file that means the same for the same.
    const now = drafts.get(project.name);
    if (made.source !== draft.source) return { ...made, isSame: true };
    if (now && now.source === draft.source && now.script === draft.script) drafts.delete(project.name);
    else if (now) drafts.set(project.name, { ...now, base: made.version });
    again((n) => n + 1);
    await reload();
    return made;
  };
  const isOvertaken = isDirty && draft.base !== saved.base;
  return { draft, isDirty, isOvertaken, change, drop, save };
}

// Tries, one at a time: {answer, error, asked, draft: the one that it was tried with, busy, run, stop, back, canGoBack}.
function useTries() {
  const [state, set] = useState({ answer: null, error: null, asked: null, draft: null, before: [], busy: false });
  const abort = useRef(null);
  useEffect(() => () => abort.current?.abort(), []);
  const run = async (asked, draft, body) => {
    abort.current?.abort();
    const mine = (abort.current = new AbortController());
    set((old) => ({ ...old, busy: true, error: null }));
    const end = (next) => !mine.signal.aborted && set((old) => ({ ...old, busy: false, ...next(old) }));
    try {
      const answer = await api.post('/v1/projects/try', body, { signal: mine.signal });
      end((old) => ({
        answer,
        asked,
        draft,
        before: old.answer ? [...old.before, { asked: old.asked, draft: old.draft, answer: old.answer }].slice(-kMostHistory) : old.before,
      }));
    } catch (error) {
      end(() => ({ error }));
    }
  };
  const stop = () => {
    abort.current?.abort();
    set((old) => ({ ...old, busy: false }));
  };
  const back = () => {
    const last = state.before.at(-1);
    if (!last) return null;
    abort.current?.abort();
    set({ ...last, error: null, before: state.before.slice(0, -1), busy: false });
    return last.asked;
  };
  return { ...state, run, stop, back };
}

const isHtml = (answer) =>
  /html/i.test(answer.content_type ?? '') || (!answer.content_type && /^\s*(?:<!doctype html|<html)/i.test(answer.body ?? ''));
const asText = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
const jsonOf = (text) => (text.trim() ? JSON.parse(text) : undefined);
// What a follow says of its page beside its URL, rule and data.
const moreOf = ({ url, rule, context, ...more } = {}) => (Object.keys(more).length ? JSON.stringify(more) : '');
// A page as it is asked for, in the words of a try. Throws SyntaxError for what is no JSON.
function askedOf({ url, rule, data, more }) {
  const context = jsonOf(data);
  const others = jsonOf(more);
  const where = { url: url.trim(), ...(rule.trim() && { rule: rule.trim() }) };
  if (others !== undefined) return { page: { ...others, ...where, ...(context !== undefined && { context }) } };
  return { ...where, ...(context !== undefined && { data: context }) };
}
// Whether a server would be asked for the same, as the same page.
const isSameAsk = (a, b) => ['url', 'rule', 'data', 'more'].every((member) => a[member].trim() === b[member].trim());
const textOf = (value) => (value == null ? '' : JSON.stringify(value));

// `leftOut`: those that did not even come.
function Cut({ all, leftOut = 0, what }) {
  const more = Math.max(0, all - kMostRows) + leftOut;
  return more > 0 && html`<p class="pager">and ${count(more)} more ${what}</p>`;
}

function Results({ answer }) {
  const rows = answer.results ?? [];
  if (answer.not_extracted) return html`<p class="calm"><${Icon} name="alert" /><span><${Visible} text=${answer.not_extracted} /></span></p>`;
  if (!rows.length) return html`<${Empty} title="No results"><p>${answer.dropped > 0 ? `${plural(answer.dropped, 'record')} dropped: without a field that is required, or without its part.` : 'A rule with fields gives them, or the script.'}</p><//>`;
  const named = answer.columns?.length ? answer.columns : [...new Set(rows.slice(0, kMostRows).flatMap((r) => (isObject(r.value) ? Object.keys(r.value) : [])))];
  const hasParts = rows.some((r) => r.part !== '');
  const hasPlain = rows.some((r) => !isObject(r.value));
  const cell = (value) => (value === null || value === undefined ? html`<span class="muted">–</span>` : html`<${Visible} text=${asText(value).slice(0, 2000)} />`);
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Results"><table class="cards"><thead><tr>${hasParts && html`<th>part</th>`}
      ${named.map((c) => html`<th key=${c}><${Name} of=${c} /></th>`)}${hasPlain && html`<th>value</th>`}</tr></thead>
    <tbody>${rows.slice(0, kMostRows).map(
      (row, i) => html`<tr key=${i} data-row tabindex="-1">${hasParts && html`<td data-name="part"><${Name} of=${row.part} /></td>`}
        ${named.map((c) => html`<td key=${c} data-name=${c}>${cell(isObject(row.value) ? row.value[c] : null)}</td>`)}
        ${hasPlain && html`<td data-name="value">${isObject(row.value) ? '' : cell(row.value)}</td>`}</tr>`,
    )}</tbody></table></div><${Cut} all=${rows.length} leftOut=${answer.results_left_out} what="results" />
    ${answer.dropped > 0 && html`<p class="calm"><${Icon} name="alert" /><span>${plural(answer.dropped, 'record')} dropped: without a field that is required, or without its part.</span></p>`}`;
}

// What else a visit would say of it: in the words of requests.
function SaidMore({ page }) {
  const { method, ...request } = page.request ?? {};
  const { url, rule, context, priority, request: ignored, ...others } = page;
  const names = [...Object.keys(request), ...Object.keys(others)];
  return html`${method && html` · <span class="tag">${method}</span>`}${names.length > 0 && html` · with <${Name} of=${names.join(', ')} />`}`;
}

function Follows({ answer, walk }) {
  const [showsAll, setAll] = useState(false);
  const [filter, setFilter] = useState('');
  const all = answer.follows ?? [];
  const others = all.filter((f) => !f.is_followed).length;
  const fits = (f) => (showsAll || f.is_followed) && (!filter || `${f.url} ${f.rule ?? ''}`.toLowerCase().includes(filter.toLowerCase()));
  const rows = all.filter(fits);
  return html`<div class="filters"><input type="search" class="grow" aria-label="Filter the links" placeholder="URL or rule" value=${filter}
        onInput=${(e) => setFilter(e.target.value)} />
      ${others > 0 && html`<button type="button" aria-pressed=${showsAll} onClick=${() => setAll(!showsAll)}>${showsAll ? 'Hide' : 'Show'} the
          ${` ${count(others)} `}that are not followed</button>`}</div>
    ${
      rows.length
        ? html`<ul class="follows">${rows.slice(0, kMostRows).map(
            (f, i) => html`<li key=${`${i} ${f.url}`} data-row tabindex="-1" data-out=${!f.is_followed}><div><b class="wrap"><${Name} of=${f.url} /></b>
          <p class="small muted">${f.rule ? html`<span class="tag"><${Name} of=${f.rule} /></span> ` : ''}<${Visible} text=${f.becomes ?? ''} />
              ${f.data !== undefined && f.data !== null && html` · data <code><${Visible} text=${asText(f.data).slice(0, 300)} /></code>`}
              ${f.priority ? html` · priority ${f.priority}` : ''}${f.page && html`<${SaidMore} page=${f.page} />`}</p></div>
          ${f.page?.cancel ? '' : html`<button type="button" data-open aria-label=${`Run ${f.url}`} onClick=${() => walk(f)}><${Icon} name="play" />Run</button>`}</li>`,
          )}</ul><${Cut} all=${rows.length} leftOut=${answer.follows_left_out} what="links" />`
        : html`<${Empty} title=${filter ? 'None is like that' : all.length ? 'None of them is followed' : 'No follows'}><p>${filter ? '' : all.length ? 'No rule takes them.' : 'The page has no links that lead on.'}</p><//>`
    }`;
}

const Messages = ({ answer }) =>
  answer.messages?.length
    ? html`<ul class="stuck">${answer.messages.slice(0, kMostRows).map((m, i) => html`<li key=${i}><div><p>to <b><${Name} of=${m.project ?? ''} /></b>
        ${m.url && html`<span class="muted small"> <${Name} of=${m.url} /></span>`}</p>
        <pre class="text"><${Visible} text=${prettyJson(asText(m.message)) ?? asText(m.message)} /></pre></div></li>`)}</ul><${Cut} all=${answer.messages.length} leftOut=${answer.messages_left_out} what="messages" />`
    : html`<${Empty} title="No messages"><p>A script sends them to other projects.</p><//>`;

const Logs = ({ answer }) =>
  answer.logs?.length
    ? html`<ol class="log debug-log">${answer.logs.slice(-2000).map((l, i) => html`<li key=${i} data-tone=${/err|crit/i.test(l.level) ? 'bad' : ''}><span
        class="kind">${l.level}</span><span class="wrap"><${Visible} text=${l.text} /></span></li>`)}</ol>`
    : html`<${Empty} title="Nothing was logged"><p>What a script prints and logs is shown here.</p><//>`;

function Source({ answer }) {
  const body = answer.body ?? '';
  const text = /json/i.test(answer.content_type ?? '') && body.length < kMostShownChars ? (prettyJson(body) ?? body) : body;
  if (!text) return html`<${Empty} title="Nothing came"><p>The answer has no body.</p><//>`;
  return html`<div class="body"><pre class="text page-source" tabindex="0"><${Visible} text=${text.slice(0, kMostShownChars)} /></pre>
    ${(answer.is_cut || text.length > kMostShownChars) && html`<p class="small muted">Cut: it has ${bytes(answer.body_bytes)}.</p>`}</div>`;
}

const Headers = ({ answer }) => html`<div class="body"><dl class="facts">
  <dt>URL</dt><dd><${Name} of=${answer.url ?? answer.asked} /></dd>
  ${answer.url && answer.url !== answer.asked && html`<dt>asked for</dt><dd><${Name} of=${answer.asked} /></dd>`}
  <dt>status</dt><dd>${answer.status}</dd><dt>took</dt><dd>${span(answer.took_ms)}</dd>
  ${(answer.headers ?? []).map(([name, value], i) => html`<dt key=${`n${i}`}><${Name} of=${name} /></dt><dd key=${`v${i}`}><${Visible} text=${value} /></dd>`)}
</dl></div>`;

function Failure({ failure, lines, go }) {
  return html`<div class="problem" role="alert"><${Icon} name="alert" /><div><p class="problem-text"><${Visible} text=${failure.text} /></p>
    ${failure.trace && html`<pre class="trace" tabindex="0"><${Visible} text=${failure.trace} /></pre>`}
    ${lines.length > 0 && html`<p>${lines.slice(0, 4).map((line) => html`<button type="button" key=${line} class="quiet" onClick=${() => go(line)}>
        Line ${line} of the script</button>`)}</p>`}</div></div>`;
}

// Whether its server was asked, or what it had said before was read again.
function Fetched({ response }) {
  if (!response) return null;
  const at = html`<time datetime=${response.fetched_at} title=${response.fetched_at}>${moment(instant(response.fetched_at))}</time>`;
  return response.is_reused
    ? html`<p class="small" data-fetched="again"><span class="tag">read again</span> the page that was fetched ${at}</p>`
    : html`<p class="small muted" data-fetched="now">fetched ${at}</p>`;
}

function Summary({ answer, useSave }) {
  const isBad = Boolean(answer.error) || answer.status >= 400 || answer.status === 0;
  return html`<div class="try-summary"><p><span class="tag" data-kind=${isBad ? 'bad' : undefined}>${answer.status || 'no answer'}</span>
      <span class="muted small"> ${span(answer.took_ms)} · ${bytes(answer.body_bytes ?? 0)}${answer.is_cut ? ', cut' : ''}${answer.content_type ? html` · <${Name}
          of=${answer.content_type} />` : ''}</span></p>
    <${Fetched} response=${answer.response} />
    ${answer.error && html`<p class="bad"><${Visible} text=${answer.error} /></p>`}
    ${answer.url && answer.url !== answer.asked && html`<p class="small">led to <${Name} of=${answer.url} /></p>`}
    <p class="small muted">${answer.rule ? html`rule <b><${Name} of=${answer.rule} /></b>` : 'no rule'}${answer.becomes ? html`; asked for now it would
        be: <${Visible} text=${answer.becomes} />` : ''}</p>
    ${answer.save !== undefined && html`<p class="small try-save"><span>it keeps for its next visit: <code><${Visible} text=${textOf(answer.save).slice(0, 400) || 'nothing'} /></code></span>
        <button type="button" class="quiet" onClick=${useSave}>Run with it</button></p>`}</div>`;
}

const kTabs = [
  ['web', 'Web'],
  ['html', 'HTML'],
  ['headers', 'Headers'],
  ['results', 'Results', (a) => a.results?.length ?? 0],
  ['follows', 'Follows', (a) => a.follows?.filter((f) => f.is_followed).length ?? 0],
  ['messages', 'Messages', (a) => a.messages?.length ?? 0],
  ['logs', 'Logs', (a) => a.logs?.length ?? 0],
];
// Arrow keys move among tabs, as they do everywhere.
function Tabs({ tab, set, answer, title = 'What came of it' }) {
  const move = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const at = kTabs.findIndex(([key]) => key === tab);
    const next = kTabs[(at + by + kTabs.length) % kTabs.length][0];
    set(next);
    event.currentTarget.querySelector(`[data-tab=${next}]`)?.focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${title} onKeyDown=${move}>${kTabs.map(([key, name, number]) => html`<button
      type="button" key=${key} id=${`tab-${key}`} role="tab" data-tab=${key} aria-selected=${key === tab} tabindex=${key === tab ? 0 : -1}
      aria-controls="tab-panel" onClick=${() => set(key)}>${name}${number && html`<span class="tab-count">${count(number(answer))}</span>`}</button>`)}</div>`;
}

function Answer({ answer, tools, walk, lines }) {
  const [chosen, choose] = useState('web');
  const hasWeb = isHtml(answer) && answer.body;
  // Where there is nothing to be seen, what follows is more telling.
  const tab = chosen === 'web' && !hasWeb && answer.follows?.length ? 'follows' : chosen;
  const panels = {
    web: () =>
      hasWeb
        ? html`<${PageFrame} text=${answer.body} url=${answer.url ?? answer.asked} tools=${tools} />`
        : html`<${Empty} title="No page to be shown"><p>${answer.body ? 'It is no HTML: its text is in the next tab.' : 'The answer has no body.'}</p><//>`,
    html: () => html`<${Source} answer=${answer} />`,
    headers: () => html`<${Headers} answer=${answer} />`,
    results: () => html`<${Results} answer=${answer} />`,
    follows: () => html`<${Follows} answer=${answer} walk=${walk} />`,
    messages: () => html`<${Messages} answer=${answer} />`,
    logs: () => html`<${Logs} answer=${answer} />`,
  };
  return html`<section class="card debug-answer" aria-label="The answer">
    <div class="debug-told"><${Summary} answer=${answer} useSave=${tools.useSave} />${answer.failure && html`<${Failure} failure=${answer.failure} lines=${lines}
        go=${tools.goToScript} />`}</div>
    <${Tabs} tab=${tab} set=${choose} answer=${answer} />
    <div role="tabpanel" id="tab-panel" aria-labelledby=${`tab-${tab}`}>${panels[tab]()}</div></section>`;
}

function Ask({ ask, set, rules, run, tries, back, kept }) {
  const [isOpen, setOpen] = useState(false);
  const more = isOpen || Boolean(ask.data || ask.save || ask.more);
  const change = (member) => (event) => set({ ...ask, [member]: event.target.value });
  const submit = (event) => {
    event.preventDefault();
    run(ask);
  };
  const isStart = ask.url === 'data:,on_start';
  return html`<section class="card" aria-labelledby="ask"><header><h2 id="ask">Page to try</h2><p>nothing is stored</p></header>
    <form class="body" onSubmit=${submit}>
      <${Field} label="URL" wide hint=${isStart ? 'on_start of the script is called' : undefined} error=${tries.error?.at('/url')}><input name="url" class="mono" value=${ask.url} required
          spellcheck=${false} autocomplete="off" onInput=${change('url')} /><//>
      <div class="ask-line"><${Field} label="Rule" error=${tries.error?.at('/rule')}><input name="rule" value=${ask.rule} onInput=${change('rule')} list="debug-rules"
          placeholder="by the URL" spellcheck=${false} autocomplete="off" /><//><datalist id="debug-rules">${rules.map((r) => html`<option key=${r} value=${r}></option>`)}</datalist>
        <button type="button" class="quiet" aria-expanded=${more} onClick=${() => setOpen(!isOpen)}>Data</button>
        ${back && html`<button type="button" onClick=${back}><${Icon} name="back" />Back</button>`}
        ${tries.busy ? html`<button type="button" onClick=${tries.stop}>Stop</button>` : ''}
        ${kept && html`<button type="button" disabled=${tries.busy} onClick=${() => run(ask, kept.isUsual ? 'anew' : 'again')}>${kept.isUsual ? 'Fetch anew' : 'Read again'}</button>`}
        <button class="primary" aria-busy=${tries.busy} disabled=${tries.busy}><${Icon} name="play" />Run</button></div>
      ${kept && html`<p class="small muted ask-hint">${kept.isUsual ? 'Only the project was changed: Run reads again what was fetched.' : 'Run fetches the page anew; Read again takes the one that was fetched.'}</p>`}
      ${more && html`<div class="form spaced"><${Field} label="Data" hint="JSON: what whoever asks gives the page" error=${tries.error?.at('/data')}><textarea name="data" class="low" spellcheck=${false}
            value=${ask.data} onInput=${change('data')}></textarea><//><${Field} label="Save" hint="JSON: what its last visit kept" error=${tries.error?.at('/save')}><textarea
            name="save" class="low" spellcheck=${false} value=${ask.save} onInput=${change('save')}></textarea><//>
          <${Field} label="Request and more" wide hint=${'JSON: what else is said of the page, such as {"request": {"method": "POST"}}'} error=${tries.error?.at('/page')}><textarea
            name="more" class="low" spellcheck=${false} value=${ask.more} onInput=${change('more')}></textarea><//></div>`}
    </form></section>`;
}

function Sources({ project, work, view, setView, wrong, places, areas, keys, save, note, setNote, dropAll }) {
  const { draft, isDirty, isOvertaken, change } = work;
  const processor = processorIn(draft.source);
  const hasScript = hasScriptIn(draft);
  const shown = hasScript ? view : 'source';
  const mark = (member) => draft[member] !== savedOf(project)[member] && html`<span class="unsaved" title="not saved">●<span class="hidden-text"> not saved</span></span>`;
  const fault = wrong?.where === shown ? wrong : null;
  return html`<section class="card debug-editor" aria-labelledby="sources"><header><h2 id="sources">${hasScript ? html`<span
      class="segments"><button type="button" aria-pressed=${shown === 'source'} onClick=${() => setView('source')}>Project${mark('source')}</button><button
      type="button" aria-pressed=${shown === 'script'} onClick=${() => setView('script')}>${processor || 'Script'}${mark('script')}</button></span>` : html`Project${mark('source')}`}</h2>
      ${project.locked ? html`<span class="tag">locked: the configuration decides; Run takes the draft</span>` : html`<p>version ${project.version}${isDirty ? ', changed' : ''}</p>`}</header>
    ${isOvertaken && html`<div class="debug-told"><div class="problem" role="status"><${Icon} name="alert" /><div><p>Version ${project.version} was saved meanwhile; this
        draft began with version ${draft.base}.</p></div><button type="button" class="quiet" onClick=${dropAll}>Take version ${project.version}</button></div></div>`}
    ${shown === 'source' ? html`<${Editor} key="source" label="The project's file, in TOML" value=${draft.source} change=${(source) => change({ source })}
        wrong=${fault} place=${places.source} at=${areas.source} keys=${keys} />` : html`<${Editor} key="script" label=${`The script${processor ? `, ${processor}` : ''}`} value=${draft.script}
        change=${(script) => change({ script })} step=${/\.py$/.test(processor ?? '.py') ? '    ' : '  '} wrong=${fault} place=${places.script} at=${areas.script} keys=${keys} />`}
    ${wrong && html`<div class="editor-wrong" role="alert"><${Icon} name="alert" /><p>${wrong.line && html`<button type="button" class="quiet"
        onClick=${wrong.go}>line ${wrong.line}</button>`}<${Visible} text=${wrong.text} /></p></div>`}
    <div class="debug-foot">${!project.locked && html`<${Action} does=${save} class="primary" disabled=${!isDirty}>${isDirty ? 'Save' : 'Saved'}<//>
        <input aria-label="Note on this version" placeholder="Note on this version" value=${note} onInput=${(e) => setNote(e.target.value)} />`}
      ${isDirty && html`<button type="button" class="quiet" onClick=${dropAll}>Discard</button>`}
      <span class="small muted keys-line"><kbd>Ctrl</kbd> <kbd>Enter</kbd> runs${project.locked ? '' : html`, <kbd>Ctrl</kbd> <kbd>S</kbd> saves`}; <kbd>Esc</kbd> leaves</span></div>
  </section>`;
}

// What a script may call: pyspider's callbacks.
const functionsIn = (script) =>
  [...script.matchAll(/^[ \t]+(?:async )?(?:def )?([A-Za-z]\w*)\((?:self|response)\b.*[:{]\s*$/gm)].map(([, name]) => name).filter((name) => name !== 'if' && name !== 'for').slice(0, 200);

const firstUrl = (project) => {
  const start = project.definition?.project?.start;
  return (Array.isArray(start) ? start[0] : start) ?? 'data:,on_start';
};

export function ProjectDebug({ project, reload, params }) {
  const work = useDraft(project, reload);
  const { draft } = work;
  const tries = useTries();
  const [ask, setAsk] = useState({ url: params.url || firstUrl(project), rule: params.rule ?? '', data: '', more: '', save: '' });
  const [view, setView] = useState(params.show === 'script' ? 'script' : 'source');
  const [wrong, setWrong] = useState(null);
  const [places, setPlaces] = useState({});
  const [note, setNote] = useState('');
  const areas = { source: useRef(null), script: useRef(null) };
  const caret = useRef(null);
  const ruleNames = useMemo(() => [...new Set([...rulesOf(draft.source).map((r) => r.name), ...(project.rules ?? [])])].filter(Boolean), [draft.source, project.rules]);

  usePoll(reload, kPollMs, [project.name]); // another may save, too
  useEffect(() => {
    // Who leaves with something unsaved is told that it is kept.
    return () => {
      if (drafts.has(project.name)) {
        toast(`What you changed in ${project.name} is not saved. It is kept until the dashboard is closed.`, {
          link: to('projects', project.name, { view: 'debug' }),
          linkText: 'Go back',
        });
      }
    };
  }, [project.name]);

  const goTo = (where, place) => {
    setView(where);
    setPlaces((old) => ({ ...old, [where]: place }));
  };
  // The daemon's word on the file or the script, at its line.
  const refuse = (error) => {
    const { line, text } = lineOfError(error.message);
    const where = /^script\b/.test(error.message) ? 'script' : 'source';
    const more = error.errors?.length && !line ? error.errors.map((e) => `${e.pointer} ${e.detail}`).join('; ') : '';
    setWrong({ where, line, text: [text, more].filter(Boolean).join(': '), go: () => goTo(where, { line }) });
  };
  const edit = (members) => {
    setWrong(null);
    work.change(members);
  };

  // What its server has said stays for some minutes: a page that differs by nothing but who reads it need not be fetched for that.
  const isKept = (next) => Boolean(tries.answer?.response) && isSameAsk(next, tries.asked);
  const isChanged = tries.draft !== null && (tries.draft.source !== draft.source || tries.draft.script !== draft.script);
  // `how`: "again" what was kept, "anew" from its server; unless said, again where only the project was changed.
  const run = (next = ask, how = isChanged ? 'again' : 'anew') => {
    let body;
    try {
      body = { ...(work.isDirty ? { source: draft.source, ...scriptIn(draft) } : { project: project.name }), ...askedOf(next) };
      const saved = jsonOf(next.save);
      if (saved !== undefined) body.save = saved;
    } catch {
      return toast('Data, Save and Request are JSON: text stands in quotes.', { bad: true });
    }
    if (how === 'again' && isKept(next)) body.response = tries.answer.response.id;
    setWrong(null);
    tries.run({ ...next }, { source: draft.source, script: draft.script }, body);
  };
  useEffect(() => {
    if (tries.error && lineOfError(tries.error.message).line) refuse(tries.error);
  }, [tries.error]);
  const walk = (follow) => {
    const next = { url: follow.url, rule: follow.rule ?? '', data: textOf(follow.data), more: moreOf(follow.page), save: '' };
    setAsk(next);
    run(next);
  };
  const back = () => {
    const asked = tries.back();
    if (asked) setAsk(asked);
  };
  const save = async () => {
    try {
      const made = await work.save(note.trim());
      setWrong(null);
      setNote('');
      toast(made.isSame ? `It means the same as version ${made.version}: no new one was made.` : `Version ${made.version} is saved, and in force.`);
    } catch (error) {
      if (error.status === 0 || error.status === 401 || error.status === 403) throw error;
      refuse(error);
    }
  };
  const keys = (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    if (event.key === 'Enter') {
      event.preventDefault();
      run();
    } else if (event.key === 's') {
      event.preventDefault();
      if (!project.locked && work.isDirty) save().catch((error) => toast(error.message, { bad: true }));
    }
  };
  const dropAll = () => {
    work.drop();
    setWrong(null);
  };
  const put = (changed, said) => {
    edit({ source: changed.text });
    goTo('source', { at: changed.at, to: changed.text.indexOf('\n', changed.at) < 0 ? changed.text.length : changed.text.indexOf('\n', changed.at) });
    toast(said);
  };
  const hasScript = hasScriptIn(draft);
  if (areas.script.current) caret.current = areas.script.current;
  const tools = {
    rules: ruleNames,
    rule: tries.answer?.rule ?? '',
    addField: (rule, name, value) => put(withField(draft.source, rule, name, value), `${name} is a field of rule ${rule} now. Save when it is right.`),
    addFollow: (rule, pattern) => put(withFollow(draft.source, rule, pattern), `Rule ${rule} follows ${pattern} now.`),
    insert: hasScript
      ? (selector) => {
          const at = caret.current?.selectionStart ?? draft.script.length;
          edit({ script: draft.script.slice(0, at) + selector + draft.script.slice(at) });
          goTo('script', { at, to: at + selector.length });
        }
      : null,
    goToScript: (line) => goTo('script', { line }),
    useSave: () => {
      const next = { ...ask, save: textOf(tries.answer.save) };
      setAsk(next);
      run(next, 'again');
    },
  };
  const lines = useMemo(
    () => (tries.answer?.failure ? linesOfTrace(`${tries.answer.failure.trace ?? ''}\n${tries.answer.failure.where ?? ''}`, processorIn(draft.source) || undefined) : []),
    [tries.answer, draft.source],
  );
  return html`<div class="debug">
    <div class="stack">
      <${Ask} ask=${ask} set=${setAsk} rules=${[...new Set([...ruleNames, ...functionsIn(draft.script)])]} run=${run} tries=${tries} back=${tries.before.length ? back : null}
          kept=${isKept(ask) && { isUsual: isChanged }} />
      ${tries.error && !lineOfError(tries.error.message).line && html`<${Problem} error=${tries.error} retry=${tries.error.isOf('/response') && (() => run(ask, 'anew'))} retryText="Fetch anew" />`}
      ${tries.answer ? html`<${Answer} answer=${tries.answer} tools=${tools} walk=${walk} lines=${lines} />` : html`<section class="card"><${Empty} title="Nothing was tried yet">
          <p>Run fetches one page, by robots.txt and its host's limits, and shows what the draft makes of it.</p><//></section>`}
    </div>
    <div class="stack debug-right"><${Sources} project=${project} work=${{ ...work, change: edit }} view=${view} setView=${setView} wrong=${wrong} places=${places} areas=${areas}
        keys=${keys} save=${save} note=${note} setNote=${setNote} dropAll=${dropAll} /></div>
  </div>`;
}
