// What will happen: the queues and schedules that are there, from now on, by the real scheduler in virtual time; and what would,
// with other workers, other limits, more jobs, without a schedule or with one more.
import * as api from '../api.js';
import { brief, count, instant, moment, plural, readSpan, span, writeSpan, writtenClock, writtenDay } from '../format.js';
import { html, useEffect, useMemo, useRef, useState } from '../lib.js';
import { Plot } from '../plot.js';
import { go, to } from '../router.js';
import { Command, Empty, Head, Icon, Name, Problem } from '../ui.js';
import { ScheduleDialog } from './schedule_form.js';

const kSpans = [
  ['1d', 'a day'],
  ['7d', 'a week'],
  ['30d', '30 days'],
];
const kMostRows = 100;
const kMostPlotted = 4;
const kColors = ['--ready', '--running', '--delayed', '--buried'];
const kRuns = [
  { label: 'runs begun', color: '--done', fill: true },
  { label: 'running', color: '--running' },
];

// What is asked: {queues: {name: {workers: "2"}}, without: Set of names, added: [schedule]}. Fields hold text, as it was typed.
const kNothing = { queues: {}, without: new Set(), added: [] };
// To a tenth of a second, or to a millisecond below.
const shortSpan = (ms) => writeSpan(ms < 1000 ? Math.round(ms) : Math.round(ms / 100) * 100);
const fields = [
  { name: 'workers', label: 'Workers', textOf: (a) => String(a.workers) },
  { name: 'arrivals_per_second', label: 'Jobs put /s', textOf: (a) => String(Number(a.arrivals_per_second.toPrecision(3))) },
  { name: 'duration_ms', label: 'A job takes', textOf: (a) => shortSpan(a.duration_ms ?? 1000), read: readSpan },
  { name: 'failures', label: 'Fail, %', textOf: (a) => String(Number((a.failures * 100).toPrecision(3))), read: (t) => t / 100 },
  { name: 'rate', label: 'Rate /s', isPolicy: true },
  { name: 'concurrency', label: 'Concurrency', isPolicy: true },
];

function changeOf(name, texts) {
  const out = { name };
  for (const field of fields) {
    const text = texts[field.name]?.trim();
    if (!text) continue;
    const value = (field.read ?? Number)(text);
    const told = value == null || Number.isNaN(value) ? text : value;
    if (field.isPolicy) out.config = { ...out.config, [field.name]: told };
    else out[field.name] = told;
  }
  return out;
}
export function questionOf(changes, forSpan) {
  const queues = Object.entries(changes.queues)
    .map(([name, texts]) => changeOf(name, texts))
    .filter((change) => Object.keys(change).length > 1);
  const question = { for_ms: readSpan(forSpan), zone: Intl.DateTimeFormat().resolvedOptions().timeZone };
  if (queues.length) question.queues = queues;
  if (changes.without.size) question.without_schedules = [...changes.without];
  if (changes.added.length) question.schedules = changes.added;
  return question;
}

// Asks, one question at a time; a later one takes the place of the one before: {answer, error, asking, ask, leave}.
function useAnswer() {
  const [state, set] = useState({ answer: null, error: null, asking: false });
  const abort = useRef(null);
  const leave = () => {
    abort.current?.abort();
    set((old) => ({ ...old, asking: false }));
  };
  const ask = async (question) => {
    abort.current?.abort();
    const mine = (abort.current = new AbortController());
    set((old) => ({ ...old, asking: true }));
    const end = (next) => abort.current === mine && !mine.signal.aborted && set((old) => ({ ...old, asking: false, ...next }));
    for (let tries = 0; ; ++tries) {
      try {
        return end({ answer: await api.post('/v1/simulate', question, { signal: mine.signal }), error: null });
      } catch (error) {
        // The question before may not have noticed yet that nobody waits for it.
        if (error.status !== 429 || tries === 5 || mine.signal.aborted) return end({ error });
        await new Promise((done) => setTimeout(done, 300));
      }
    }
  };
  useEffect(() => () => abort.current?.abort(), []);
  return { ...state, ask, leave };
}

const trends = {
  piles_up: (q) => `piles up, by ${brief(Math.round(q.growth_per_day))} jobs a day`,
  not_worked: () => 'is worked by nobody',
  never_empty: () => 'is never empty',
};
const Line = ({ kind = 'warn', children }) => html`<li data-kind=${kind}><${Icon} name="alert" /><div>${children}</div></li>`;
// By the clocks that the page's head names; and by the schedule's own, where those are others.
const At = ({ at, zone, shownIn }) => html`<div><span class="nowrap">${instant(at) ? moment(instant(at)) : '–'}</span>
  ${instant(at) && zone !== shownIn && html`<div class="muted small">${writtenDay(at)} ${writtenClock(at)} in ${zone}</div>`}</div>`;

// What is worth a sentence, the worst first.
function findingsOf(report) {
  const list = [];
  if (report.stopped) list.push(html`<${Line} kind="bad">It ended early: <${Name} of=${report.stopped} />.<//>`);
  for (const q of report.queues) {
    if (!trends[q.trend]) continue;
    list.push(html`<${Line} kind=${q.trend === 'never_empty' ? 'warn' : 'bad'}><a href=${to('queues', q.name)}><${Name}
        of=${q.name} /></a> ${trends[q.trend](q)}; ${plural(q.waiting, 'job')} wait at the end.<//>`);
  }
  for (const s of report.never) {
    list.push(html`<${Line}><a href=${to('schedules', s.name)}><${Name} of=${s.name} /></a> never runs: <span
        class="muted"><${Name} of=${s.why.replace(/^never: /, '')} /></span><//>`);
  }
  for (const s of report.schedules) {
    const lost = [s.missed && `${count(s.missed)} missed`, s.skipped && `${count(s.skipped)} skipped`].filter(Boolean);
    if (lost.length)
      list.push(html`<${Line}><a href=${to('schedules', s.name)}><${Name} of=${s.name} /></a>: ${lost.join(', ')} of
          ${' '}${plural(s.runs + s.missed + s.skipped, 'planned time')}.<//>`);
  }
  for (const d of report.daylight_saving) {
    list.push(html`<${Line}><a href=${to('schedules', d.schedule)}><${Name} of=${d.schedule} /></a>: the clocks of ${d.zone}
        ${d.kind === 'gap' ? 'leave out' : 'repeat'} ${d.first.replace('T', ' ')}: <span class="muted">${d.effect}</span><//>`);
  }
  return list;
}

function Findings({ report }) {
  const all = findingsOf(report);
  const together = report.collisions[0];
  return html`<section class="card" aria-labelledby="findings"><header><h2 id="findings">What to know</h2></header>
    ${all.length ? html`<ul class="stuck">${all.slice(0, 30)}</ul>` : html`<p class="calm"><${Icon}
        name="play" />Every queue keeps up, and every schedule runs as planned.</p>`}
    ${all.length > 30 && html`<p class="calm">and ${count(all.length - 30)} more</p>`}
    ${together && html`<p class="calm"><span>Most often together, in ${plural(together.seconds, 'second')}: ${together.schedules
        .slice(0, 4)
        .map((n, i) => html`${i > 0 && ', '}<${Name} of=${n} />`)}${together.schedules.length > 4 && ' …'}</span></p>`}
    ${report.assumed_durations.length > 0 && html`<p class="calm">How long the jobs of
        ${' '}${plural(report.assumed_durations.length, 'schedule')} take is not known yet: a second, here.</p>`}
  </section>`;
}

const Tile = ({ name, value, alarm = false, title }) => html`<div class="tile" data-alarm=${alarm} title=${title}><div
    class="tile-name">${name}</div><div class="tile-value">${value}</div></div>`;
const titleOf = (peak) => instant(peak.at) && `at ${moment(instant(peak.at))}`;
const Tiles = ({ report }) => html`<div class="tiles">
  <${Tile} name="Runs" value=${brief(report.runs)} /><${Tile} name="Done" value=${brief(report.done)} />
  <${Tile} name="Failed" value=${brief(report.failed)} alarm=${report.failed > 0} /><${Tile} name="Missed"
      value=${brief(report.missed)} alarm=${report.missed > 0} /><${Tile} name="Skipped" value=${brief(report.skipped)}
      alarm=${report.skipped > 0} />
  <${Tile} name="At once, most" value=${brief(report.peaks.running.most)} title=${titleOf(report.peaks.running)} />
  <${Tile} name="In a minute, most" value=${brief(report.peaks.minute.most)} title=${titleOf(report.peaks.minute)} /></div>`;

function Plots({ report, version }) {
  const { timeline, from, until } = report;
  const begin = Date.parse(from) / 1000;
  const seconds = Date.parse(until) / 1000 - begin;
  const steps = timeline.fires.map((_, i) => begin + (i + 1) * timeline.step_s);
  const fullest = [...report.queues].sort((a, b) => b.most_waiting - a.most_waiting).slice(0, kMostPlotted);
  const waiting = fullest.filter((q) => q.most_waiting > 0);
  return html`<div class="columns even"><section class="card"><header><h2>Runs</h2><p>in columns of
      ${' '}${span(timeline.step_s * 1000)}</p></header><${Plot} data=${[steps, timeline.fires, timeline.running]} series=${kRuns}
      seconds=${seconds} format=${brief} label="" version=${version} /></section>
    <section class="card"><header><h2>Waiting</h2><p>the fullest queues</p></header>${waiting.length ? html`<${Plot}
      data=${[steps, ...waiting.map((q) => q.waiting_by_step)]} series=${waiting.map((q, i) => ({ label: q.name, color: kColors[i] }))}
      seconds=${seconds} format=${brief} label="" version=${version} />` : html`<p class="calm">Nothing ever waits.</p>`}</section></div>`;
}

// From what its numbers are reckoned. `perSecond`: what was made of it; null where another number was written.
function reckonedFrom({ put, minutes, runs }, perSecond) {
  const once = put > 0 && perSecond === 0 ? `, in ${plural(minutes, 'minute')}: no rate is made of that` : '';
  return put + runs === 0 ? 'nothing counted yet' : `${plural(put, 'job')} put${once}; ${plural(runs, 'run')}`;
}

function QueueRow({ assumed, found, texts, change }) {
  const edit = (field) => html`<td key=${field.name} data-name=${field.label}><input class="narrow" aria-label=${`${field.label} of ${assumed.name}`}
      value=${texts[field.name] ?? ''} placeholder=${field.textOf?.(assumed) ?? 'as it is'} autocomplete="off"
      data-changed=${Boolean(texts[field.name]?.trim())} onInput=${(e) => change({ ...texts, [field.name]: e.target.value })} /></td>`;
  const isBad = found && (found.trend === 'piles_up' || found.trend === 'not_worked');
  return html`<tr data-row tabindex="-1"><td class="full"><div><a data-open class="clip short" title=${assumed.name}
      href=${to('queues', assumed.name)}><${Name} of=${assumed.name} /></a><div class="muted small">
      ${reckonedFrom(assumed.counted, texts.arrivals_per_second?.trim() ? null : assumed.arrivals_per_second)}</div></div></td>
    <td class="number" data-name="waiting now">${brief(assumed.waiting)}</td>${fields.map(edit)}
    <td class="number" data-name="put">${brief(found?.put)}</td>
    <td class="number" data-name="most waiting" title=${found?.most_waiting_at}>${brief(found?.most_waiting)}</td>
    <td class="number" data-name="late, p99">${span(found?.lateness.p99_ms)}</td>
    <td class="nowrap" data-name="">${!found ? '' : isBad ? html`<span class="tag" data-kind="bad">
        ${found.trend === 'piles_up' ? 'piles up' : 'no workers'}</span>` : found.trend === 'never_empty' ? html`<span
        class="tag" data-kind="warn">never empty</span>` : html`<span class="muted">keeps up</span>`}</td></tr>`;
}

function Queues({ answer, changes, set }) {
  const found = useMemo(() => new Map(answer.report.queues.map((q) => [q.name, q])), [answer]);
  const weight = (a) => (found.get(a.name)?.most_waiting ?? 0) + (found.get(a.name)?.put ?? 0);
  const shown = useMemo(() => [...answer.assumed].sort((a, b) => weight(b) - weight(a)).slice(0, kMostRows), [answer]);
  const change = (name) => (texts) => set({ ...changes, queues: { ...changes.queues, [name]: texts } });
  return html`<section class="card" aria-labelledby="queues"><header><h2 id="queues">Queues</h2><p>as counted in
      ${' '}${span(answer.counted_s * 1000)}, since the daemon began; write another number, and ask again</p></header>
    <div class="scroll" tabindex="0" role="group" aria-labelledby="queues"><table class="cards close"><thead><tr><th>Queue</th>
      <th class="number">Waiting now</th>${fields.map((f) => html`<th key=${f.name}>${f.label}</th>`)}<th class="number">Put</th>
      <th class="number">Most waiting</th><th class="number">Late, p99</th><th>So</th></tr></thead>
    <tbody>${shown.map((a) => html`<${QueueRow} key=${a.name} assumed=${a} found=${found.get(a.name)}
        texts=${changes.queues[a.name] ?? {}} change=${change(a.name)} />`)}</tbody></table></div>
    ${answer.assumed.length > shown.length && html`<p class="pager">and ${count(answer.assumed.length - shown.length)} quieter ones</p>`}
  </section>`;
}

function ScheduleRow({ found, shownIn, isOut, turn }) {
  return html`<tr data-row tabindex="-1" data-out=${isOut}><td class="grow"><a data-open class="clip" title=${found.name}
      href=${to('schedules', found.name)}><${Name} of=${found.name} /></a></td>
    <td class="full"><code class="clip"><${Name} of=${found.trigger} /></code></td>
    <td class="number" data-name="runs">${brief(found.runs)}</td>
    <td class="number" data-name="missed">${found.missed ? html`<span class="bad">${brief(found.missed)}</span>` : '0'}</td>
    <td class="number" data-name="skipped">${found.skipped ? html`<span class="bad">${brief(found.skipped)}</span>` : '0'}</td>
    <td class="number" data-name="late, p99">${span(found.lateness.p99_ms)}</td>
    <td data-name="first"><${At} at=${found.first} zone=${found.zone} shownIn=${shownIn} /></td>
    <td class="full"><div class="row-actions"><button aria-pressed=${isOut} onClick=${turn}>${isOut ? 'Take in' : 'Leave out'}
        </button></div></td></tr>`;
}

function Schedules({ report, changes, set }) {
  const [adding, setAdding] = useState(false);
  const turn = (name) => () => {
    const without = new Set(changes.without);
    without.delete(name) || without.add(name);
    // One that was only tried is gone.
    set({ ...changes, without: changes.added.some((s) => s.name === name) ? changes.without : without, added: changes.added.filter((s) => s.name !== name) });
  };
  const gone = [...changes.without].filter((name) => !report.schedules.some((s) => s.name === name));
  const shown = [...report.schedules].sort((a, b) => b.runs - a.runs).slice(0, kMostRows);
  return html`<section class="card" aria-labelledby="schedules"><header><h2 id="schedules">Schedules</h2><button
      data-new onClick=${() => setAdding(true)}><${Icon} name="plus" />Try one more</button></header>
    ${gone.length > 0 && html`<p class="calm">Left out: ${gone.map((name) => html`<button class="quiet" onClick=${turn(name)}
        title="Take it in again"><${Name} of=${name} /></button>`)}</p>`}
    ${
      shown.length
        ? html`<div class="scroll" tabindex="0" role="group" aria-labelledby="schedules"><table class="cards"><thead><tr>
      <th>Schedule</th><th>Trigger</th><th class="number">Runs</th><th class="number">Missed</th><th class="number">Skipped</th>
      <th class="number">Late, p99</th><th>First</th><th><span class="hidden-text">Actions</span></th></tr></thead>
    <tbody>${shown.map((s) => html`<${ScheduleRow} key=${s.name} found=${s} shownIn=${report.zone} isOut=${changes.without.has(s.name)}
        turn=${turn(s.name)} />`)}</tbody></table></div>`
        : html`<p class="calm">There is none.</p>`
    }
    ${report.schedules.length > shown.length && html`<p class="pager">and ${count(report.schedules.length - shown.length)} that
        run less often</p>`}
    ${adding && html`<${ScheduleDialog} close=${() => setAdding(false)} attempt=${(made) => set({
      ...changes,
      added: [...changes.added.filter((s) => s.name !== made.name), made],
    })} />`}</section>`;
}

const Absent = () => html`<section class="card"><${Empty} title="Not in this daemon">
  <p>A month of the real scheduler in virtual time: what will fire, wait, pile up and collide, before it does. This daemon does not answer that; the command does, from a configuration file:</p>
  <${Command} text="argiope simulate argiope.toml --for 30d" /><//></section>`;

// How long it takes nobody knows, but the daemon ends it after a while and answers with what it has come to.
const kLongest = 10;
function Simulating({ spanText, isFirst }) {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const began = Date.now();
    const timer = setInterval(() => setSeconds(Math.floor((Date.now() - began) / 1000)), 1000);
    return () => clearInterval(timer);
  }, []);
  const bar = seconds > 0 && html`<p class="calm"><progress max=${kLongest} value=${Math.min(seconds, kLongest)}
      aria-label="Time taken" /><span>${plural(seconds, 'second')} of ${kLongest} at most; then it ends early, and says how far it came.</span></p>`;
  if (!isFirst) return bar && html`<section class="card simulating">${bar}</section>`;
  return html`<section class="card"><${Empty} title="Simulating …"><p>The real scheduler runs through ${spanText} in virtual time.</p>${bar}<//></section>`;
}

export function WhatIfPage({ params }) {
  const forSpan = kSpans.some(([s]) => s === params.for) ? params.for : '1d';
  const [changes, set] = useState(kNothing);
  const { answer, error, asking, ask, leave } = useAnswer();
  const question = JSON.stringify(questionOf(changes, forSpan));
  const [asked, setAsked] = useState('');
  const version = useRef(0);
  const askNow = () => (setAsked(question), ++version.current, ask(JSON.parse(question)));
  useEffect(() => void askNow(), [forSpan]);
  if (error?.status === 404 && !answer) return html`<${Head} title="What if" /><${Absent} />`;
  const hasChanges = changes !== kNothing;
  return html`<${Head} title="What if" note=${answer && html`<span class="muted">from now on, for ${span(readSpan(forSpan))}, by the clocks of ${answer.report.zone}</span>`}>
      <div class="segments" role="group" aria-label="For how long">${kSpans.map(([s, name]) => html`<button key=${s}
          aria-pressed=${s === forSpan} onClick=${() => go(to('what-if', '', { ...params, for: s }), { replace: true })}>${name}</button>`)}</div>
      ${hasChanges && html`<button class="quiet" onClick=${() => set(kNothing)}>As it is</button>`}
      ${asking ? html`<button onClick=${leave}>Stop</button>` : html`<button class=${question === asked ? '' : 'primary'}
          onClick=${askNow}>${question === asked ? 'Ask again' : 'Ask'}</button>`}<//>
    <${Problem} error=${error} retry=${askNow} />
    ${asking && html`<${Simulating} spanText=${span(readSpan(forSpan))} isFirst=${!answer} />`}
    ${answer && html`<div class="answer" aria-busy=${asking}><${Tiles} report=${answer.report} /><${Findings} report=${answer.report} />
      <${Plots} report=${answer.report} version=${answer} /><${Queues} answer=${answer} changes=${changes} set=${set} />
      <${Schedules} report=${answer.report} changes=${changes} set=${set} /></div>`}`;
}
