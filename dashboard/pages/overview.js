// How it goes: rates, lateness, what is stuck and why, queues, what comes next, the store.
import * as api from '../api.js';
import { brief, count, plural, rate } from '../format.js';
import { html, useEffect, useMemo, useState } from '../lib.js';
import { isEmpty, useLive, useNow, useRefresh } from '../live.js';
import { isOwn, OwnSwitch, useOwn } from '../own.js';
import { Plot } from '../plot.js';
import { to } from '../router.js';
import { leaseLine, putLine, scheduleLine, settleLine } from '../teach.js';
import { loadSchedules } from './schedules.js';
import { Bar, BarLegend, barScale, Command, Empty, Head, Icon, Name, Problem, Since, Spark, Time, useResource } from '../ui.js';

const kRateSeries = [
  { label: 'put', color: '--ready' },
  { label: 'done', color: '--done', fill: true },
  { label: 'failed', color: '--buried' },
];
const kMostStuck = 6; // queues that are asked about
const kMostTold = 12; // troubles

function Tile({ name, value, unit, href, alarm = false, exact }) {
  const inner = html`<div class="tile-name">${name}</div><div class="tile-value" title=${exact}>
      ${value}${unit && html`<small> ${unit}</small>`}</div>`;
  return href
    ? html`<a class="tile" href=${href} data-alarm=${alarm}>${inner}</a>`
    : html`<div class="tile" data-alarm=${alarm}>${inner}</div>`;
}

function Tiles({ totals }) {
  const states = ['ready', 'running', 'delayed', 'buried'];
  return html`<div class="tiles">
    <${Tile} name="Put" value=${rate(totals.putRate)} unit="/s" />
    <${Tile} name="Done" value=${rate(totals.doneRate)} unit="/s" />
    <${Tile} name="Failed" value=${rate(totals.failedRate)} unit="/s" />
    ${states.map((s) => html`<${Tile} key=${s} name=${s[0].toUpperCase() + s.slice(1)} value=${brief(totals[s])}
        exact=${count(totals[s])} href=${to('jobs', '', { state: s })} alarm=${s === 'buried' && totals[s] > 0} />`)}
  </div>`;
}

// Queues in which something waits and nothing ends or runs, the fullest first.
function standing(snapshot) {
  if (!snapshot) return [];
  const stands = ([, q]) => q.ready > 0 && q.running === 0 && !(q.doneRate > 0);
  return [...snapshot.queues]
    .filter(stands)
    .sort((a, b) => b[1].ready - a[1].ready)
    .slice(0, kMostStuck)
    .map(([name]) => name);
}

// The first job of a queue says what holds up the queue.
async function reasonOf(queue, signal) {
  const { jobs } = await api.get('/v1/jobs', { queue, state: 'ready', limit: 1 }, signal);
  if (!jobs.length) return null;
  const why = await api.get(`/v1/jobs/${jobs[0].id}/explain`, null, signal);
  return { queue, job: jobs[0].id, reason: why.reason, sentence: why.sentence ?? why.reason };
}

function useReasons(queues) {
  const wanted = queues.join('\n');
  const found = useResource(
    async (signal) => {
      const all = await Promise.all(queues.map((q) => reasonOf(q, signal).catch(() => null)));
      return all.filter(Boolean);
    },
    [wanted],
  );
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && queues.length && found.reload(), 10_000);
    return () => clearInterval(timer);
  }, [wanted]);
  return found.data ?? [];
}

const Stuck = ({ kind = 'warn', children }) => html`<li data-kind=${kind}><${Icon} name="alert" /><div>${children}</div></li>`;

function troubles(snapshot, schedules, reasons) {
  const list = reasons.map((r) => {
    const ready = snapshot.queues.get(r.queue)?.ready ?? 0;
    return html`<${Stuck} key=${`q${r.queue}`}><a href=${to('queues', r.queue)}><${Name} of=${r.queue} /></a>: ${plural(ready, 'ready job')}, and none runs.
      <span class="muted"> Job <a href=${to('jobs', r.job)}>${r.job}</a>: <${Name} of=${r.sentence} /></span><//>`;
  });
  const withBuried = [...snapshot.queues].filter(([, q]) => q.buried).sort((a, b) => b[1].buried - a[1].buried);
  for (const [name, q] of withBuried) {
    list.push(html`<${Stuck} key=${`b${name}`} kind="bad"><a href=${to('jobs', '', { state: 'buried', queue: name })}>
        ${plural(q.buried, 'buried job')}</a> in <a href=${to('queues', name)}><${Name} of=${name} /></a>
      <span class="muted"> failed for good; each is kept until it is kicked or erased.</span><//>`);
  }
  for (const s of schedules.filter((one) => one.trouble)) {
    list.push(
      html`<${Stuck} key=${`s${s.name}`} kind="bad"><a href=${to('schedules', s.name)}><${Name} of=${s.name} /></a> <span
          class="muted">cannot run: <${Name} of=${s.trouble} /></span><//>`,
    );
  }
  return list;
}

function StuckCard({ snapshot, schedules }) {
  const reasons = useReasons(standing(snapshot));
  const list = troubles(snapshot, schedules, reasons);
  return html`<section class="card first" aria-labelledby="stuck"><header><h2 id="stuck">Stuck, and why</h2></header>
    ${list.length ? html`<ul class="stuck">${list.slice(0, kMostTold)}</ul>${list.length > kMostTold && html`<p class="calm muted">
        and ${count(list.length - kMostTold)} more</p>`}` : html`<p class="calm"><${Icon}
        name="play" />Nothing is stuck: what is ready runs, and nothing is buried.</p>`}</section>`;
}

function QueueRow({ name, counts, history, scale }) {
  return html`<tr data-row tabindex="-1">
    <td class="grow"><a data-open class="clip" title=${name} href=${to('queues', name)}><${Name} of=${name} /></a></td>
    <td class="full"><${Bar} counts=${counts} scale=${scale} /></td>
    <td class="number" data-name="ready">${brief(counts.ready)}</td>
    <td class="number" data-name="running">${brief(counts.running)}</td>
    <td class="number" data-name="done /s">${rate(counts.doneRate)}</td>
    <td class="spare">${history && html`<${Spark} values=${history.of('doneRate')[1]} />`}</td></tr>`;
}

function Glance({ live }) {
  const [showsOwn, setShowsOwn] = useOwn();
  const every = [...live.snapshot.queues];
  const all = every.filter(([name]) => showsOwn || !isOwn(name)).sort(
    ([a, x], [b, y]) => (y.doneRate ?? 0) + y.ready - (x.doneRate ?? 0) - x.ready || a.localeCompare(b),
  );
  // Rows keep their places: the order is that of the moment at which the set of queues last changed.
  const names = useMemo(() => all.map(([name]) => name), [all.length]);
  const shown = names.filter((n) => live.snapshot.queues.has(n)).slice(0, 12);
  const scale = barScale(shown.map((name) => live.snapshot.queues.get(name)));
  return html`<section class="card" aria-labelledby="glance"><header><h2 id="glance">Queues</h2><div class="head-actions">
      <${OwnSwitch} names=${every.map(([name]) => name)} shows=${showsOwn} set=${setShowsOwn} /><a class="small"
      href=${to('queues')}>all ${count(all.length)}</a></div></header>
    <div class="scroll" tabindex="0" role="group" aria-labelledby="glance"><table class="cards close"><thead><tr><th>Queue</th>
        <th>Now</th><th class="number">Ready</th><th class="number">Running</th><th class="number">Done /s</th>
        <th>Last minute</th></tr></thead>
    <tbody>${shown.map((name) => html`<${QueueRow} key=${name} name=${name} counts=${live.snapshot.queues.get(name)}
        history=${live.queues.get(name)} scale=${scale} />`)}</tbody></table></div><${BarLegend} scale=${scale} /></section>`;
}

function Upcoming({ schedules }) {
  const now = useNow();
  const next = schedules
    .filter((s) => s.next && !s.paused)
    .map((s) => ({ ...s, at: Date.parse(s.next) }))
    .sort((a, b) => a.at - b.at)
    .slice(0, 6);
  return html`<section class="card" aria-labelledby="next"><header><h2 id="next">Next to fire</h2><a class="small"
      href=${to('schedules')}>all ${count(schedules.length)}</a></header>
    ${
      next.length
        ? html`<ul class="list">${next.map((s) => html`<li key=${s.name}><a href=${to('schedules', s.name)}><${Name} of=${s.name} /></a>
            <${Time} at=${s.at} now=${now} past="due" /></li>`)}</ul>`
        : html`<p class="calm">No schedule has a next time.</p>`
    }</section>`;
}

function Store({ version }) {
  return html`<section class="card" aria-labelledby="store"><header><h2 id="store">Daemon</h2></header><div class="body"><dl
      class="facts">
    <dt>Store</dt><dd><code>${version?.store ?? '–'}</code></dd><dt>Up for</dt><dd><${Since} at=${version?.started_at} /></dd>
        <dt>Version</dt><dd>${version?.version ?? '–'}</dd></dl></div></section>`;
}

function NoJobs() {
  return html`<section class="card"><${Empty} title="No jobs yet">
    <p>A job is a piece of work that is kept until a worker has done it. Put the first one:</p>
    <${Command} text=${putLine()} />
    <p>Then do it: lease it, work, and say that it is done. The token comes with the lease.</p>
    <${Command} text=${`${leaseLine()}\n${settleLine()}`} />
    <p>Or have it put at a time, again and again:</p>
    <${Command} text=${scheduleLine()} />
  <//></section>`;
}

export function OverviewPage() {
  const live = useLive();
  const version = useResource((signal) => api.get('/v1/version', null, signal), []);
  const schedules = useResource(loadSchedules, []);
  const [seconds, setSeconds] = useState(300);
  useRefresh(['schedule'], () => true, schedules.reload, [], 5000);
  useEffect(() => void live.begin(), []);
  const { snapshot } = live;
  const list = schedules.data?.schedules ?? [];
  const hasNone = snapshot && isEmpty(snapshot);
  return html`<${Head} title="Overview" />
    <${Problem} error=${version.error ?? schedules.error} retry=${() => (version.reload(), schedules.reload())} />
    ${hasNone && html`<${NoJobs} />`}
    ${
      snapshot &&
      !hasNone &&
      html`
      <${Tiles} totals=${snapshot.totals} />
      <section class="card"><header><h2>Jobs a second</h2><div class="segments" role="group" aria-label="Time shown">
        ${[
          [60, '1 min'],
          [300, '5 min'],
          [1800, '30 min'],
        ].map(
          ([s, name]) => html`<button key=${s} aria-pressed=${seconds === s} onClick=${() => setSeconds(s)}>${name}</button>`,
        )}</div></header>
        <${Plot} data=${live.totals.of('putRate', 'doneRate', 'failedRate')} series=${kRateSeries} seconds=${seconds}
            format=${rate} label="" version=${snapshot.at} /></section>
      <div class="columns"><div class="stack"><${Glance} live=${live} /><${Upcoming} schedules=${list} /></div>
        <div class="stack"><${StuckCard} snapshot=${snapshot} schedules=${list} /><${Store} version=${version.data} /></div>
            </div>`
    }
    ${hasNone && html`<div class="columns"><${Upcoming} schedules=${list} /><${Store} version=${version.data} /></div>`}`;
}
