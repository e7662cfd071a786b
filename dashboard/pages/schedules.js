// All schedules: what fires when, as a list and as a month.
import * as api from '../api.js';
import { count } from '../format.js';
import { html, useState } from '../lib.js';
import { useRefresh } from '../live.js';
import { go, to } from '../router.js';
import { scheduleLine } from '../teach.js';
import { Action, ask, Command, Empty, Filter, fits, Head, Icon, Name, Problem, Time, toast, useResource } from '../ui.js';
import { Calendar } from './calendar.js';
import { ScheduleDialog } from './schedule_form.js';

const kMostShown = 200;
const kMostBoth = 20; // that are shown as a list and as a calendar on one page

// A trigger in a line.
export function triggerLine(trigger) {
  if (typeof trigger === 'string') return trigger;
  if (!trigger) return '–';
  if (trigger.type === 'cron') return `${trigger.expression ?? JSON.stringify(trigger.fields)} ${trigger.zone ?? 'UTC'}`;
  if (trigger.type === 'interval' && trigger.every) return `every ${trigger.every}`;
  if (trigger.type === 'date') return `once, ${trigger.time}`;
  return JSON.stringify(trigger);
}

const path = (name, what = '') => `/v1/schedules/${api.part(name)}${what}`;

export function PauseSchedule({ schedule, done }) {
  const turn = async () => {
    if (!schedule.paused) return done(await api.post(path(schedule.name, '/pause')));
    const from = await ask({
      title: `Resume ${schedule.name}?`,
      text: 'From now: the planned times of the pause are missed, and counted.\nWhere it was: they are due now, and its misfire policy decides.',
      does: 'From now',
      other: 'Where it was',
    });
    return from && done(await api.post(path(schedule.name, '/resume'), { from: from === 'other' ? 'where_it_was' : 'now' }));
  };
  return html`<${Action} does=${turn} icon=${schedule.paused ? 'play' : 'pause'}>${schedule.paused ? 'Resume' : 'Pause'}<//>`;
}

export function RunNow({ name, done = () => {} }) {
  const run = async () => {
    const { job } = await api.post(path(name, '/run'), {}, api.once());
    toast(`Job ${job} is put.`, { link: to('jobs', job), linkText: 'Show' });
    done();
  };
  return html`<${Action} does=${run}>Run now<//>`;
}

// Deletes it, and offers to add it again as it was; its history does not come back.
export async function removeSchedule(status, done) {
  await api.del(path(status.name));
  const addAgain = async () => {
    await api.put(path(status.name), { ...status.schedule, name: status.name });
    done();
  };
  toast(`${status.name} is deleted.`, { undo: status.schedule && addAgain, undone: `${status.name} is back.` });
  done();
}

function Row({ status, changed }) {
  const { name, schedule, paused, trouble } = status;
  return html`<tr data-row tabindex="-1">
    <td class="grow"><a data-open class="clip" title=${name} href=${to('schedules', name)}><${Name} of=${name} /></a>${' '}
      ${paused && html`<span class="tag" data-kind="warn">paused${status.paused_by && html` by <${Name} of=${status.paused_by} />`}</span>`}${status.locked && html`<span class="tag"
          title="The configuration file decides what it is">locked</span>`}${trouble && html`<span class="tag" data-kind="bad"
          title=${trouble}>trouble</span>`}</td>
    <td class="full"><code class="clip" title=${triggerLine(schedule?.trigger)}><${Name} of=${triggerLine(schedule?.trigger)} /></code></td>
    <td data-name="queue"><span class="clip short"><${Name} of=${schedule?.job?.queue ?? 'default'} /></span></td>
    <td class="nowrap" data-name="next"><${Time} at=${status.next} empty=${paused ? 'paused' : 'never again'} past="due" /></td>
    <td class="nowrap" data-name="last"><${Time} at=${status.last} /></td>
    <td class="number" data-name="runs">${count(status.runs)}</td>
    <td class="number" data-name="missed">${status.missed > 0 ? html`<span class="bad">${count(status.missed)}</span>` : '0'}
        </td>
    <td class="full"><div class="row-actions"><${RunNow} name=${name} /><${PauseSchedule} schedule=${status} done=${changed} />
        </div></td></tr>`;
}

const None = () => html`<section class="card"><${Empty} title="No schedules yet">
  <p>A schedule puts a job at its times; each planned time fires once, even across restarts. Add one from here (<kbd>n</kbd>), or from a shell:</p>
  <${Command} text=${scheduleLine()} /><//></section>`;

const matches = (s, text) => fits(`${s.name} ${triggerLine(s.schedule?.trigger)} ${s.schedule?.job?.queue ?? ''}`, text);

// All of them, which are asked for in pages.
export async function loadSchedules(signal) {
  const schedules = [];
  for (let after; after !== null;) {
    const page = await api.get('/v1/schedules', { after, limit: 1000 }, signal);
    schedules.push(...page.schedules);
    after = page.next ?? null;
  }
  return { schedules };
}

export function SchedulesPage({ params }) {
  const found = useResource(loadSchedules, []);
  const [adding, setAdding] = useState(false);
  const [version, setVersion] = useState(0);
  const again = () => (found.reload(), setVersion((n) => n + 1));
  useRefresh(['schedule'], () => true, found.reload, []);
  const all = found.data?.schedules ?? [];
  const shown = all.filter((s) => matches(s, params.filter));
  // Where they are many, the calendar would be far below them.
  const isLong = all.length > kMostBoth;
  const isCalendar = isLong && params.show === 'calendar';
  const tab = (name, show) =>
    html`<a href=${to('schedules', '', { ...params, show })} aria-current=${isCalendar === Boolean(show) ? 'page' : undefined}>${name}</a>`;
  const changed = (status) => found.put({ ...found.data, schedules: all.map((s) => (s.name === status.name ? status : s)) });
  return html`<${Head} title="Schedules">${isLong && html`<nav class="tabs" aria-label="Views">${tab('List', '')}
      ${tab('Calendar', 'calendar')}</nav>`}<button class="primary" data-new onClick=${() => setAdding(true)}><${Icon}
      name="plus" />Add a schedule</button><//>
    <${Problem} error=${found.error} retry=${found.reload} />
    ${found.data && !all.length && html`<${None} />`}
    ${
      all.length > 0 &&
      html`<section class="card" aria-label="Schedules">
      ${(all.length > 6 || params.filter) && html`<div class="filters"><${Filter} hint="filter by name, trigger or queue"
          value=${params.filter} apply=${(filter) => go(to('schedules', '', { ...params, filter }), { replace: true })} /></div>`}
      ${!isCalendar && html`<div class="scroll" tabindex="0"><table class="cards"><thead><tr><th>Schedule</th><th>Trigger</th><th>Queue</th>
          <th>Next</th><th>Last</th><th class="number">Runs</th><th class="number">Missed</th><th><span
          class="hidden-text">Actions</span></th></tr></thead>
      <tbody>${shown.slice(0, kMostShown).map((s) => html`<${Row} key=${s.name} status=${s} changed=${changed} />`)}</tbody>
          </table></div>`}
      ${!shown.length && html`<p class="calm">None fits the filter.</p>`}
      ${!isCalendar && shown.length > kMostShown && html`<p class="pager">${count(shown.length - kMostShown)} more: filter by name.</p>`}</section>
      ${(isCalendar || !isLong) && html`<${Calendar} schedules=${shown.filter((s) => !s.paused && s.schedule)}
          version=${version} />`}`
    }
    ${adding && html`<${ScheduleDialog} close=${() => setAdding(false)}
        done=${(name) => (again(), go(to('schedules', name)))} />`}`;
}
