// What happens, the newest first; and who changed what.
import * as api from '../api.js';
import { clock, count, instant, moment, plural } from '../format.js';
import { html, useEffect, useRef, useState } from '../lib.js';
import { live, useEvents } from '../live.js';
import { go, to } from '../router.js';
import { eventsLine } from '../teach.js';
import { Empty, Filter, fits, Head, Icon, Name, Problem, useResource } from '../ui.js';

const kKept = 500;
const kBefore = 50; // what was before the page was opened
const kShown = 200;
const bad = new Set(['buried', 'expired', 'retrying', 'job_error', 'job_missed', 'schedule_marked', 'gone']);
const good = new Set(['done', 'job_executed']);
const kinds = [
  ['', 'all'],
  ['job', 'jobs'],
  ['schedule', 'schedules'],
  ['queue', 'queues'],
  ['worker', 'workers'],
  ['trouble', 'trouble'],
];

let number = 0;
function entryOf({ kind, data }) {
  const what = String(data.event ?? kind);
  return {
    number: ++number,
    kind,
    what,
    at: instant(data.at) ?? Date.now(),
    data,
    tone: bad.has(what) ? 'bad' : good.has(what) ? 'good' : '',
  };
}

// Events are shown a few times a second, however many there are: [entries, paused, setPaused, seen].
function useLog() {
  const kept = useRef([]);
  const [shown, setShown] = useState([]);
  const [paused, setPaused] = useState(false);
  const isPaused = useRef(false);
  isPaused.current = paused;
  const timer = useRef(0);
  const start = useRef(number);
  useEvents(
    ['job', 'schedule', 'queue', 'worker'],
    (event) => {
      kept.current.unshift(entryOf(event));
      if (kept.current.length > kKept * 2) kept.current.length = kKept;
      if (timer.current || isPaused.current) return;
      timer.current = setTimeout(() => {
        timer.current = 0;
        if (!isPaused.current) setShown(kept.current.slice(0, kKept));
      }, 250);
    },
    [],
  );
  useEffect(() => {
    live.goBack(kBefore);
    return () => clearTimeout(timer.current);
  }, []);
  const pause = (on) => {
    setPaused(on);
    if (!on) setShown(kept.current.slice(0, kKept));
  };
  return [shown, paused, pause, (shown[0]?.number ?? start.current) - start.current];
}

function Text({ entry }) {
  const { data, kind } = entry;
  const job = data.id != null && kind === 'job' ? data.id : data.job;
  const queue = data.queue;
  const name = kind === 'schedule' ? data.name : kind === 'worker' ? (data.name ?? data.worker) : null;
  const fraction = data.progress > 0 ? `${Math.round(data.progress * 100)} % ` : '';
  const said = data.error ?? data.message ?? data.text ?? (kind === 'job' ? data.worker : '') ?? '';
  return html`<span>${kind === 'schedule' && name && html`<a href=${to('schedules', name)}><${Name} of=${name} /></a> `}${kind === 'worker' && name && html`<b><${Name} of=${name} /></b> `}
    ${job ? html`job <a data-open href=${to('jobs', job)}>${job}</a> ` : ''}${queue && html`<span class="muted">in</span> <a
        href=${to('queues', queue)}><${Name} of=${queue} /></a> `}
    ${data.attempt > 1 && html`<span class="muted">attempt ${data.attempt} </span>`}${(said || fraction) && html`<span
        class=${entry.tone === 'bad' ? 'bad' : 'muted'}>${fraction}<${Name} of=${said} /></span>`}</span>`;
}

const isWanted = (entry, { kind, filter }) =>
  (!kind || (kind === 'trouble' ? entry.tone === 'bad' : entry.kind === kind)) &&
  (!filter || fits(JSON.stringify(entry.data), filter));
const look = (params) => go(to('log', '', params), { replace: true });

function Events({ params }) {
  const [entries, paused, pause, seen] = useLog();
  const shown = entries.filter((e) => isWanted(e, params)).slice(0, kShown);
  return html`<section class="card" aria-label="Events">
    <div class="filters"><select aria-label="Kind" value=${params.kind ?? ''}
        onChange=${(e) => look({ ...params, kind: e.target.value })}>
        ${kinds.map(([k, name]) => html`<option key=${k} value=${k}>${name}</option>`)}</select>
      <${Filter} hint="id, queue, word" value=${params.filter} apply=${(filter) => look({ ...params, filter })} />
      <button aria-pressed=${paused} onClick=${() => pause(!paused)}><${Icon} name=${paused ? 'play' : 'pause'} />
          ${paused ? 'Go on' : 'Hold'}</button></div>
    ${
      shown.length
        ? html`<ol class="log">${shown.map((e) => html`<li key=${e.number} data-row tabindex="-1" data-tone=${e.tone}><time
            class="muted" datetime=${new Date(e.at).toISOString()} title=${moment(e.at, true)}>${clock(e.at, true)}</time><span
            class="kind">${e.what.replaceAll('_', ' ')}</span><${Text} entry=${e} /></li>`)}</ol>`
        : html`<${Empty} title=${seen ? 'Nothing fits' : 'Nothing has happened yet'}>
            <p>What happens is shown here as it happens, the newest first, below it the last ${kBefore} events from before: jobs put, leased, done and buried, schedules that fire, queues that change.</p>
      <p>From a shell: <code>${eventsLine()}</code></p><//>`
    }
    <div class="pager"><span>${plural(seen, 'event')}, up to ${kBefore} of them from before this page was opened; the last ${count(kKept)} are kept</span></div>
        </section>`;
}

// "/v1/queues/mail/pause" by POST: ["pause", "queues", "mail"]. A name may have any characters, "/" too.
export function deedOf({ method, path }) {
  const [, kind = '', rest = ''] = /^\/v1\/([^/]*)\/?(.*)$/s.exec(path) ?? [];
  const does = { PUT: 'set', PATCH: 'change', DELETE: 'delete', POST: 'add' }[method] ?? method;
  if (method !== 'POST') return [does, kind, rest];
  if (rest === 'change') return ['change several', kind, ''];
  const [, name = rest, verb = does] = /^(.*)\/(pause|resume|kick|run|cancel)$/s.exec(rest) ?? [];
  return [verb, kind, name];
}
const pageOf = { jobs: 'jobs', queues: 'queues', schedules: 'schedules' };
function Deed({ entry }) {
  const [does, kind, name] = deedOf(entry);
  return html`<tr data-row tabindex="-1"><td class="nowrap" title=${entry.at}>
      ${instant(entry.at) ? moment(instant(entry.at)) : '–'}</td>
    <td class="nowrap" data-name="who" title=${entry.from}><${Name} of=${entry.who} /></td>
    <td class="nowrap"><b>${does}</b> <span class="muted">${kind.replace(/s$/, '')}</span></td>
    <td>${name && pageOf[kind] ? html`<a data-open class="clip" title=${name}
        href=${to(pageOf[kind], name)}><${Name} of=${name} /></a>` : html`<${Name} of=${name} />`}</td>
    <td class="grow"><code class="clip muted" title=${entry.request}><${Name} of=${entry.request} /></code></td></tr>`;
}

// All that the daemon remembers; it is asked for in pages, and shown with the newest first.
async function loadAudit(signal) {
  const all = [];
  for (let after = 0; after != null;) {
    const { entries, next } = await api.get('/v1/audit', { after, limit: 1000 }, signal);
    all.push(...entries);
    after = next;
  }
  return all.reverse();
}
function Audit({ params }) {
  const found = useResource(loadAudit, []);
  const all = found.data ?? [];
  const shown = all
    .filter((e) => fits(`${e.who} ${e.method} ${e.path} ${e.request}`, params.filter))
    .slice(0, kKept);
  return html`<${Problem} error=${found.error} retry=${found.reload} />
    <section class="card" aria-label="Changes">${
      all.length > 0 &&
      html`<div class="filters"><${Filter} hint="filter: who, name, word" value=${params.filter} apply=${(filter) => look({ ...params, filter })} /></div>
      <div class="scroll" tabindex="0"><table class="cards"><thead><tr><th>When</th><th>Who</th><th>What</th><th>Of</th>
          <th>Request</th></tr></thead>
      <tbody>${shown.map((e) => html`<${Deed} key=${e.number} entry=${e} />`)}</tbody></table></div>`
    }
    ${found.data && !all.length && html`<${Empty} title="No changes yet">
        <p>Who pauses, edits, kicks or deletes is written down here, from when the daemon began.</p><//>`}</section>`;
}

export function LogPage({ params }) {
  const isAudit = params.show === 'changes';
  return html`<${Head} title="Log"><nav class="tabs" aria-label="Kinds of log"><a href=${to('log')}
      aria-current=${isAudit ? undefined : 'page'}>Events</a><a href=${to('log', '', { show: 'changes' })}
      aria-current=${isAudit ? 'page' : undefined}>Changes</a></nav><//>
    ${isAudit ? html`<${Audit} params=${params} />` : html`<${Events} params=${params} />`}`;
}
