// One schedule: where it stands, its month, its next times with what daylight saving does, its history and last output.
import * as api from '../api.js';
import { bytes, count, instant, moment, span } from '../format.js';
import { html, useState } from '../lib.js';
import { useRefresh } from '../live.js';
import { go, to } from '../router.js';
import { Action, Empty, Head, Name, Problem, State, Time, useResource, Visible } from '../ui.js';
import { Calendar } from './calendar.js';
import { Decided } from './queue.js';
import { prettyTrigger, ScheduleDialog, Times } from './schedule_form.js';
import { PauseSchedule, removeSchedule, RunNow, triggerLine } from './schedules.js';

async function load(name, signal) {
  const path = `/v1/schedules/${api.part(name)}`;
  const [status, history, why, next] = await Promise.all([
    api.get(path, null, signal),
    api.get(`${path}/history`, { limit: 20 }, signal).catch(() => ({ runs: [] })),
    api.get(`${path}/explain`, null, signal).catch(() => null),
    api.get(`${path}/next`, { count: 10 }, signal).catch(() => ({ times: [] })),
  ]);
  const runs = history.runs ?? [];
  const output = runs.some((r) => r.job && instant(r.ended_at)) ? await api.raw(`${path}/output`, signal).catch(() => null) : null;
  return { status, runs, why, times: next.times ?? [], output };
}

const took = (run) =>
  instant(run.fired_at) && instant(run.ended_at) ? span(instant(run.ended_at) - instant(run.fired_at)) : '–';
function Run({ run }) {
  return html`<tr data-row tabindex="-1"><td class="nowrap" data-name="run">${count(run.number ?? run.run)}</td>
    <td class="nowrap" data-name="planned"><${Time} at=${run.planned} absolute />${run.count > 1 && html` <span
        class="muted">and ${count(run.count - 1)} more</span>`}</td>
    <td><${State} of=${run.outcome} /></td>
    <td class="number" data-name="late">${run.lateness_ms == null ? '–' : span(run.lateness_ms)}</td><td class="number"
        data-name="took">${took(run)}</td>
    <td class="nowrap" data-name="job">${run.job ? html`<a data-open href=${to('jobs', run.job)}>${run.job}</a>` : html`<span
        class="muted">–</span>`}</td>
    <td class="grow">${run.error && html`<span class="clip bad" title=${run.error}><${Name} of=${run.error} /></span>`}</td></tr>`;
}

const History = ({
  runs,
}) => html`<section class="card" aria-labelledby="history"><header><h2 id="history">History</h2>
    <p>the last 20: runs, and what was missed or skipped</p></header>
  ${
    runs.length
      ? html`<div class="scroll" tabindex="0" role="group" aria-labelledby="history"><table class="cards"><thead><tr>
          <th>Run</th><th>Planned</th><th>Outcome</th><th class="number">Late</th><th class="number">Took</th><th>Job</th>
          <th>Error</th></tr></thead>
    <tbody>${runs.map((r) => html`<${Run} key=${`${r.number ?? r.run} ${r.planned}`} run=${r} />`)}</tbody></table></div>`
      : html`<p class="calm">It has not fired yet.</p>`
  }</section>`;

function Facts({ status }) {
  const { schedule = {} } = status;
  const { job = {} } = schedule;
  const row = (name, value) => value != null && value !== '' && html`<dt>${name}</dt><dd>${typeof value === 'string' ? html`<${Name} of=${value} />` : value}</dd>`;
  const late = schedule.misfire_grace ? `missed when later than ${schedule.misfire_grace}` : 'however late it is, it is run';
  return html`<section class="card" aria-labelledby="facts"><header><h2 id="facts">Facts</h2></header><div class="body"><dl
      class="facts">
    <dt>Trigger</dt><dd><pre class="mono wrap"><${Visible} text=${prettyTrigger(schedule.trigger)} /></pre></dd>
    <dt>Queue</dt><dd><a href=${to('queues', job.queue ?? 'default')}><${Name} of=${job.queue ?? 'default'} /></a></dd>
    ${row('Function', job.function)}${row('Key', job.key)}${row('Priority', job.priority)}
    ${job.payload != null && job.payload !== '' && html`<dt>Payload</dt><dd><pre class="mono wrap">
        <${Visible} text=${typeof job.payload === 'string' ? job.payload : JSON.stringify(job.payload)} /></pre></dd>`}
    ${row('Late runs', late)}${row('Due together', schedule.coalesce ?? 'latest')}${row('Overlap', `${schedule.overlap ?? 'skip'}, beyond ${schedule.max_instances ?? 1} at once`)}
    ${row('Runs', `${count(status.runs)}, and ${count(status.missed)} planned times not run`)}${status.active > 0 && row('Not ended', count(status.active))}
    ${status.paused && row('Paused', `${status.paused_by ? `by ${status.paused_by}, ` : ''}${instant(status.paused_at) ? moment(instant(status.paused_at)) : ''}`)}
  </dl></div></section>`;
}

function Output({ output }) {
  const text = new TextDecoder().decode(output.bytes.slice(0, 256 * 1024));
  return html`<section class="card" aria-labelledby="output"><header><h2 id="output">Output of its last run <span
      class="muted small">${bytes(output.bytes.length)}</span></h2></header>
    <div class="body"><pre class="text" tabindex="0" aria-labelledby="output"><${Visible} text=${text} /></pre></div>
        </section>`;
}

export function SchedulePage({ arg }) {
  const found = useResource((signal) => load(arg, signal), [arg]);
  const [editing, setEditing] = useState(false);
  const [version, setVersion] = useState(0);
  const again = () => (found.reload(), setVersion((n) => n + 1));
  useRefresh(['schedule'], (e) => !e.data.name || e.data.name === arg, found.reload, [arg]);
  if (found.error?.status === 404) {
    return html`<${Head} title=${arg} back=${to('schedules')} /><section class="card"><${Empty}
        title="There is no such schedule"><p><a href=${to('schedules')}>All schedules</a></p><//></section>`;
  }
  if (!found.data)
    return html`<${Head} title=${arg} back=${to('schedules')} /><${Problem} error=${found.error} retry=${found.reload} />`;
  const { status, runs, why, times, output } = found.data;
  const remove = () => removeSchedule(status, () => go(to('schedules')));
  const note = html`${status.paused && html`<span class="tag" data-kind="warn">paused</span>`}${status.locked && html`<span
      class="tag" title="The configuration file decides what it is">locked</span>`}<code class="muted">
      <${Name} of=${triggerLine(status.schedule?.trigger)} /></code>`;
  return html`<${Head} title=${arg} back=${to('schedules')} note=${note}>
      <${RunNow} name=${arg} done=${again} /><${PauseSchedule} schedule=${status} done=${again} />
      ${!status.locked && html`<button onClick=${() => setEditing(true)} disabled=${!status.schedule}>Edit</button><${Action}
          does=${remove} class="danger">Delete<//>`}<//>
    <${Problem} error=${found.error} retry=${found.reload} />
    ${(why?.sentence || status.trouble) && html`<div class="why"
        data-state=${status.trouble ? 'buried' : status.paused ? 'delayed' : 'ready'}><p>
        <${Name} of=${why?.sentence} />${status.trouble && html`<span class="bad">${why?.sentence ? '; ' : ''}<${Name}
            of=${status.trouble} /></span>`}        </p></div>`}
    ${status.locked && html`<${Decided} by=${status.locked_by}>what this schedule is<//>`}
    <div class="columns"><div class="stack">${status.schedule && html`<${Calendar} schedules=${[status]}
        version=${version} isOne />`}<${History} runs=${runs} />${output && html`<${Output} output=${output} />`}</div>
      <div class="stack"><section class="card" aria-labelledby="times"><header><h2 id="times">Next times</h2></header><div
          class="body"><${Times} times=${times} /></div></section><${Facts} status=${status} /></div></div>
    ${editing && html`<${ScheduleDialog} schedule=${{ ...status.schedule, name: status.name }} close=${() => setEditing(false)}
        done=${again} />`}`;
}
