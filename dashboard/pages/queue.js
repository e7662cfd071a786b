// One queue: how deep, how fast, how long things take, and its policy as a form.
import * as api from '../api.js';
import { brief, count, rate, readSpan, span, writeSpan } from '../format.js';
import { html, useEffect, useMemo, useState } from '../lib.js';
import { useLive, useRefresh } from '../live.js';
import { Plot } from '../plot.js';
import { go, to } from '../router.js';
import { Action, ask, Empty, Field, Head, Name, Problem, toast, useResource } from '../ui.js';
import { KickButton, PauseSwitch } from './queues.js';

const kDepth = [
  { label: 'ready', color: '--ready', fill: true },
  { label: 'running', color: '--running' },
  { label: 'delayed', color: '--delayed' },
  { label: 'buried', color: '--buried' },
];
const kRates = [
  { label: 'put', color: '--ready' },
  { label: 'done', color: '--done', fill: true },
  { label: 'failed', color: '--buried' },
];
const kStates = ['ready', 'running', 'delayed', 'buried', 'done', 'cancelled'];

// The members of a policy, as docs/configuration.md has them. `none`: the word for "unlimited".
const policy = [
  [
    'Limits',
    [
      { name: 'rate', label: 'Rate', unit: 'starts a second', none: 'unlimited' },
      { name: 'burst', label: 'Burst', unit: 'starts at once after a rest' },
      { name: 'concurrency', label: 'Concurrency', unit: 'jobs at once', none: 'unlimited' },
      { name: 'weight', label: 'Weight', unit: 'its share beside other queues of a worker, 1 to 1,000' },
    ],
  ],
  [
    'Limits of each key',
    [
      { name: 'key_rate', label: 'Rate', unit: 'starts a second', none: 'unlimited' },
      { name: 'key_burst', label: 'Burst', unit: 'starts at once after a rest' },
      { name: 'key_concurrency', label: 'Concurrency', unit: 'jobs at once', none: 'unlimited' },
      { name: 'key_delay_ms', label: 'Rest', unit: 'between a key’s jobs' },
    ],
  ],
  [
    'Attempts',
    [
      { name: 'max_attempts', label: 'Attempts', unit: 'before a job is buried' },
      { name: 'retry_first_ms', label: 'First wait', unit: 'after the first failure' },
      { name: 'retry_factor', label: 'Factor', unit: 'each wait is so many times the one before' },
      { name: 'retry_longest_ms', label: 'Longest wait' },
      { name: 'retry_jitter', label: 'Jitter', unit: '0 to 1: the share of a wait that is drawn' },
      { name: 'retry_table_ms', label: 'Waits, one by one', unit: 'instead: 1s, 1m, 1h' },
    ],
  ],
  [
    'Leases',
    [
      { name: 'lease_time_ms', label: 'Lease time' },
      { name: 'max_lease_expiries', label: 'Lost leases', unit: 'before a job is buried' },
    ],
  ],
  [
    'Room',
    [
      { name: 'capacity', label: 'Capacity', unit: 'jobs that have not ended', none: 'unlimited' },
      { name: 'at_capacity', label: 'When full, a put', choices: ['refuse', 'wait'] },
      { name: 'max_payload_bytes', label: 'Payload', unit: 'bytes at most' },
      { name: 'ageing_ms', label: 'Ageing', unit: 'one priority more for each such wait; 0s: none' },
    ],
  ],
  [
    'Records',
    [
      { name: 'keep_done_ms', label: 'Done jobs', unit: 'are kept so long', none: 'for ever' },
      { name: 'keep_cancelled_ms', label: 'Cancelled jobs', unit: 'are kept so long', none: 'for ever' },
      { name: 'keep_buried_ms', label: 'Buried jobs', unit: 'are kept so long', none: 'for ever' },
    ],
  ],
];
const isSpan = (name) => name.endsWith('_ms');

// A member as it stands in its field, and back. What cannot be read goes to the daemon as it is, which says what is wrong.
function textOf(name, value) {
  if (value == null || value === 'unlimited') return '';
  if (Array.isArray(value)) return value.map(writeSpan).join(', ');
  return isSpan(name) ? writeSpan(value) : String(value);
}
function valueOf({ name, none, choices }, text) {
  const given = text.trim();
  if (choices) return given;
  if (name === 'retry_table_ms') return given ? given.split(/\s*,\s*/).map((t) => readSpan(t) ?? t) : [];
  if (given === '' && none) return 'unlimited';
  if (isSpan(name)) return readSpan(given) ?? given;
  return given !== '' && Number.isFinite(Number(given)) ? Number(given) : given;
}

function Member({ member, config, draft, set, error }) {
  const { name, label, unit, none, choices } = member;
  const value = draft[name] ?? textOf(name, config[name]);
  const change = (event) => set({ ...draft, [name]: event.target.value });
  const hint = [unit, none && `empty: ${none}`].filter(Boolean).join('; ');
  return html`<${Field} label=${label} hint=${hint} error=${error?.at(`/${name}`)}>${
    choices
      ? html`<select name=${name} value=${value} onChange=${change}>${choices.map((c) => html`<option
          key=${c} value=${c}>${c}</option>`)}</select>`
      : html`<input name=${name} value=${value} placeholder=${none} onInput=${change} autocomplete="off"
          inputmode=${isSpan(name) ? 'text' : 'decimal'} />`
  }<//>`;
}

// What decides, where the page does not.
export function Decided({ by, children }) {
  return html`<p class="note-line">${by ? html`<code><${Name} of=${by} /></code>` : 'The configuration file'} decides ${children}. Change it
      there; the daemon reads it again at SIGHUP, or when it starts.</p>`;
}

// A policy that is not changed here, to be read.
function LockedPolicy({ queue }) {
  const value = ({ name, none }) => html`<code>${textOf(name, queue.config[name]) || none || 'none'}</code>`;
  return html`<section class="card" aria-labelledby="policy"><header><h2 id="policy">Policy</h2><span class="tag">locked</span></header>
    <div class="body"><${Decided} by=${queue.locked_by}>this policy<//>
      ${policy.map(
        ([title, members]) => html`<h3 key=${title} class="facts-title">${title}</h3><dl class="facts policy">
          ${members.filter((m) => queue.config[m.name] !== undefined).map((m) => html`<dt key=${m.name}>${m.label}</dt><dd>
              <${value} ...${m} />${m.unit && html` <span class="muted small">${m.unit}</span>`}</dd>`)}</dl>`,
      )}</div></section>`;
}

function changesOf(config, draft) {
  const out = {};
  for (const member of policy.flatMap(([, members]) => members)) {
    const text = draft[member.name];
    if (text !== undefined && text !== textOf(member.name, config[member.name])) out[member.name] = valueOf(member, text);
  }
  return out;
}

function Policy({ queue, changed }) {
  const [draft, setDraft] = useState({});
  const [error, setError] = useState(null);
  const changes = useMemo(() => changesOf(queue.config, draft), [queue.config, draft]);
  const n = Object.keys(changes).length;
  const set = async (members) => changed(await api.patch(`/v1/queues/${api.part(queue.name)}`, members));
  const save = async (event) => {
    event.preventDefault();
    const before = Object.fromEntries(Object.keys(changes).map((name) => [name, queue.config[name]]));
    try {
      await set(changes);
      setDraft({});
      setError(null);
      toast('The policy holds from now on.', { undo: () => set(before), undone: 'The policy is as it was.' });
    } catch (wrong) {
      setError(wrong);
    }
  };
  return html`<section class="card" aria-labelledby="policy"><header><h2 id="policy">Policy</h2><p>spans are written 250ms, 90s, 1h30m</p></header>
    <form class="body" onSubmit=${save}><${Problem} error=${error} />
      ${policy.map(
        ([title, members]) => html`<fieldset key=${title}><legend>${title}</legend><div class="form tight">
        ${members.filter((m) => queue.config[m.name] !== undefined).map((m) => html`<${Member} key=${m.name} member=${m}
            config=${queue.config} draft=${draft} set=${setDraft} error=${error} />`)}</div>
            </fieldset>`,
      )}
      <div class="form-foot"><button class="primary" disabled=${n === 0}>
            ${n ? `Save ${n} ${n === 1 ? 'change' : 'changes'}` : 'Nothing changed'}</button>
        ${n > 0 && html`<button type="button" class="quiet" onClick=${() => (setDraft({}), setError(null))}>Discard</button>
            <span class="muted small">${Object.keys(changes).join(', ')}</span>`}</div>
    </form></section>`;
}

// How long jobs waited and ran, and how often what happened, since the daemon began.
const kSpans = [
  ['p50_ms', 'p50'],
  ['p90_ms', 'p90'],
  ['p99_ms', 'p99'],
  ['mean_ms', 'mean'],
];
const kEnds = ['added', 'leased', 'done', 'retried', 'buried', 'cancelled', 'expired', 'released'];
function Stats({ name }) {
  const found = useResource((signal) => api.get(`/v1/queues/${api.part(name)}/stats`, null, signal), [name]);
  useRefresh(['counters'], () => true, found.reload, [name], 5000);
  if (!found.data) return null; // what was refused is told of the queue
  const { waits = {}, runs = {}, totals = {} } = found.data;
  return html`<div class="stack"><section class="card" aria-labelledby="times"><header><h2 id="times">How long</h2>
      <p>since the daemon began</p></header><table>
    <thead><tr><th><span class="hidden-text">Share</span></th><th class="number">Waited</th><th class="number">Ran</th></tr>
        </thead>
    <tbody>${kSpans.map(([member, label]) => html`<tr key=${member}><td>${label}</td><td class="number">${span(waits[member])}
        </td><td class="number">${span(runs[member])}</td></tr>`)}</tbody></table></section>
    <section class="card" aria-labelledby="ends"><header><h2 id="ends">How many</h2><p>since the daemon began</p></header>
        <table>
    <tbody>${kEnds.filter((e) => e in totals).map((e) => html`<tr key=${e}><td>${e}</td><td class="number">${count(totals[e])}
        </td></tr>`)}</tbody></table></section></div>`;
}

function Remove({ name, counts }) {
  const remove = async () => {
    if (
      !(await ask({
        title: `Delete queue ${name}?`,
        text: 'Its policy goes. The next put makes it again, with the defaults.',
        does: 'Delete',
        danger: true,
      }))
    )
      return;
    await api.del(`/v1/queues/${api.part(name)}`);
    toast(`Queue ${name} is deleted.`);
    go(to('queues'), { replace: true });
  };
  return kStates.every((s) => !counts?.[s]) && html`<${Action} does=${remove} class="danger">Delete<//>`;
}

export function QueuePage({ arg }) {
  const live = useLive();
  live.keep(arg);
  useEffect(() => void live.begin(arg), [arg]);
  const found = useResource((signal) => api.get(`/v1/queues/${api.part(arg)}`, null, signal), [arg]);
  useRefresh(['queue'], (e) => e.data.queue === arg || e.data.name === arg, found.reload, [arg]);
  const queue = found.data;
  const counts = live.snapshot?.queues.get(arg) ?? queue?.counts;
  const history = live.queues.get(arg);
  if (found.error?.status === 404) {
    return html`<${Head} title=${arg} back=${to('queues')} /><section class="card"><${Empty} title="There is no such queue">
        <p>The first job that is put into it makes it. <a href=${to('queues')}>All queues</a></p><//></section>`;
  }
  const note = html`${queue?.config.paused && html`<span class="tag"
      data-kind="warn">paused</span>`}${queue?.locked && html`<span class="tag">locked</span>`}`;
  return html`<${Head} title=${arg} back=${to('queues')} note=${note}>
      ${queue && html`<${PauseSwitch} queue=${queue} done=${found.put} />${counts?.buried > 0 && html`<${KickButton}
          name=${arg} buried=${counts.buried} />`}<${Remove} name=${arg} counts=${counts} />`}
      <a class="button" href=${to('jobs', '', { queue: arg })}>Jobs</a><//>
    <${Problem} error=${found.error} retry=${found.reload} />
    ${
      counts &&
      html`<div class="tiles">${kStates.map((s) => html`<a key=${s} class="tile"
          href=${to('jobs', '', { queue: arg, state: s })} data-alarm=${s === 'buried' && counts[s] > 0}><div class="tile-name">
          ${s[0].toUpperCase() + s.slice(1)}</div><div class="tile-value" title=${count(counts[s])}>${brief(counts[s])}</div>
          </a>`)}
      <div class="tile"><div class="tile-name">Done a second</div><div class="tile-value">${rate(counts.doneRate)}
          </div></div></div>`
    }
    ${
      history?.at.length > 0 &&
      html`<div class="columns even"><section class="card"><header><h2>Depth</h2></header><${Plot}
          data=${history.of('ready', 'running', 'delayed', 'buried')} series=${kDepth} format=${brief} label=""
          version=${live.snapshot.at} /></section>
      <section class="card"><header><h2>Jobs a second</h2></header><${Plot}
          data=${history.of('putRate', 'doneRate', 'failedRate')} series=${kRates} format=${rate} label=""
          version=${live.snapshot.at} /></section></div>`
    }
    ${queue && html`<div class="columns"><${queue.locked ? LockedPolicy : Policy} queue=${queue} changed=${found.put} /><${Stats} name=${arg} /></div>`}`;
}
