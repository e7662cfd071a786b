// All queues: what is in them, how fast they go, and the switches.
import * as api from '../api.js';
import { brief, count, plural, rate, span } from '../format.js';
import { html } from '../lib.js';
import { useLive, useRefresh } from '../live.js';
import { isOwn, OwnSwitch, useOwn } from '../own.js';
import { go, to } from '../router.js';
import { policyLine, putLine } from '../teach.js';
import { Action, ask, Bar, BarLegend, barScale, Command, Empty, Filter, fits, Head, Name, Problem, Spark, toast, useResource } from '../ui.js';

const kMostShown = 200;
const kStates = ['ready', 'running', 'delayed', 'buried', 'done', 'cancelled'];

// The limits of a policy in a few words; none: "no limits".
function limitsOf(config) {
  const has = (name) => config[name] != null && config[name] !== 'unlimited' && config[name] !== 0;
  const parts = [];
  if (config.rate != null && config.rate !== 'unlimited') parts.push(`${config.rate}/s`);
  if (has('concurrency')) parts.push(`${config.concurrency} at once`);
  if (config.key_rate != null && config.key_rate !== 'unlimited') parts.push(`${config.key_rate}/s a key`);
  if (has('key_concurrency')) parts.push(`${config.key_concurrency} at once a key`);
  if (has('key_delay_ms')) parts.push(`${span(config.key_delay_ms)} between a key’s jobs`);
  if (has('capacity')) parts.push(`room for ${count(config.capacity)}`);
  return parts.join(' · ') || 'no limits';
}

export function PauseSwitch({ queue, done }) {
  const path = `/v1/queues/${api.part(queue.name)}`;
  const isPaused = queue.config?.paused;
  const turn = async () => done(await api.post(`${path}/${isPaused ? 'resume' : 'pause'}`));
  return html`<${Action} does=${turn} icon=${isPaused ? 'play' : 'pause'}
      title=${isPaused ? 'Start jobs again' : 'Start no more jobs; those that run go on'}>${isPaused ? 'Resume' : 'Pause'}<//>`;
}

export function KickButton({ name, buried }) {
  const kick = async () => {
    const text = 'Buried jobs are ready at once, with all their attempts again: at most 1,000 at a time.';
    if (!(await ask({ title: `Kick ${plural(Math.min(buried, 1000), 'buried job')} of ${name}?`, text, does: 'Kick' }))) return;
    const { kicked } = await api.post(`/v1/queues/${api.part(name)}/kick`, { limit: 1000 }, api.once());
    toast(`${plural(kicked, 'job')} kicked.`);
  };
  return html`<${Action} does=${kick}>Kick<//>`;
}

function Row({ queue, counts, history, changed, scale }) {
  const { name, config = {}, locked } = queue;
  const cell = (state) =>
    html`<td key=${state} class="number" data-name=${state}>${counts?.[state] ? html`<a
        class=${state === 'buried' ? 'bad' : ''} title=${count(counts[state])} href=${to('jobs', '', { queue: name, state })}>
        ${brief(counts[state])}</a>` : html`<span class="muted">0</span>`}</td>`;
  return html`<tr data-row tabindex="-1">
    <td class="grow"><a data-open class="clip" title=${name} href=${to('queues', name)}><${Name} of=${name} /></a>
      ${config.paused && html`<span class="tag" data-kind="warn">paused</span> `}${locked && html`<span class="tag"
          title="The configuration file decides its policy">locked</span> `}<span class="muted small">
          ${config.rate === undefined ? '' : limitsOf(config)}</span></td>
    <td class="full"><${Bar} counts=${counts} scale=${scale} /></td>
    ${kStates.map(cell)}
    <td class="number" data-name="done /s">${rate(counts?.doneRate)}</td>
    <td class="spare">${history && html`<${Spark} values=${history.of('doneRate')[1]} />`}</td>
    <td class="full"><div class="row-actions"><${PauseSwitch} queue=${queue} done=${changed} />
        ${counts?.buried > 0 && html`<${KickButton} name=${name} buried=${counts.buried} />`}</div></td></tr>`;
}

function None() {
  return html`<section class="card"><${Empty} title="No queues yet"><p>The first job that is put into a queue makes it:</p>
      <${Command} text=${putLine()} />
    <p>A policy can come first: at most 5 mails a second, one at a time to each customer.</p>
    <${Command} text=${policyLine()} /><//></section>`;
}

export function QueuesPage({ params }) {
  const live = useLive();
  const found = useResource((signal) => api.get('/v1/queues', null, signal), []);
  useRefresh(['queue'], () => true, found.reload, []);
  const queues = found.data?.queues ?? [];
  const names = live.snapshot ? [...live.snapshot.queues.keys()] : [];
  const known = new Set(queues.map((q) => q.name));
  const all = [...queues, ...names.filter((n) => !known.has(n)).map((name) => ({ name }))];
  const [showsOwn, setShowsOwn] = useOwn();
  const shown = all
    .filter((q) => (showsOwn || !isOwn(q.name)) && fits(q.name, params.filter))
    .sort((a, b) => a.name.localeCompare(b.name));
  const countsOf = (q) => live.snapshot?.queues.get(q.name) ?? q.counts;
  const scale = barScale(shown.slice(0, kMostShown).map(countsOf));
  const changed = (queue) => found.put({ queues: queues.map((q) => (q.name === queue.name ? queue : q)) });
  return html`<${Head} title="Queues" />
    <${Problem} error=${found.error} retry=${found.reload} />
    ${found.data && !all.length && html`<${None} />`}
    ${
      all.length > 0 &&
      html`<section class="card" aria-label="Queues">
      <div class="filters">${all.length > 8 && html`<${Filter} label="Filter by name" hint="filter by name"
          value=${params.filter} apply=${(filter) => go(to('queues', '', { ...params, filter }), { replace: true })} />`}
        <${OwnSwitch} names=${all.map((q) => q.name)} shows=${showsOwn} set=${setShowsOwn} /><${BarLegend} scale=${scale} /></div>
      <div class="scroll" tabindex="0"><table class="cards"><thead><tr><th>Queue</th><th>Now</th>${kStates.map((s) => html`<th
          key=${s} class="number">${s[0].toUpperCase() + s.slice(1)}</th>`)}<th class="number">Done /s</th><th>Last minute</th>
          <th><span class="hidden-text">Actions</span></th></tr></thead>
      <tbody>${shown.slice(0, kMostShown).map((q) => html`<${Row} key=${q.name} queue=${q}
          counts=${countsOf(q)} scale=${scale} history=${live.queues.get(q.name)} changed=${changed} />`)}
          </tbody></table></div>
      ${!shown.length && html`<p class="calm">${params.filter ? 'None fits the filter.' : 'There are only queues of the daemon’s own.'}</p>`}
      ${shown.length > kMostShown && html`<p class="pager">${count(shown.length - kMostShown)} more: filter by name.</p>`}
          </section>`
    }`;
}
