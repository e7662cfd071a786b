// A schedule as a form, with the times that it would have beside it while it is written.
import * as api from '../api.js';
import { distance, prettyJson, writtenClock, writtenDay } from '../format.js';
import { html, useEffect, useState } from '../lib.js';
import { useNow } from '../live.js';
import { Dialog, Field, Problem, toast } from '../ui.js';

const kinds = [
  ['cron', 'Cron'],
  ['interval', 'Every'],
  ['date', 'Once'],
  ['json', 'JSON'],
];
const dialects = ['argiope', 'vixie', 'quartz', 'apscheduler', 'systemd'];
const kOwn = ['type', 'expression', 'zone', 'dialect', 'dst_gap', 'dst_overlap', 'jitter', 'start', 'end', 'every', 'time'];

// What the fields hold at first. A trigger that has members without a field is shown as JSON.
function draftOf(schedule) {
  let trigger = schedule?.trigger ?? {
    type: 'cron',
    expression: '0 8 * * *',
    zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  };
  if (typeof trigger === 'string')
    trigger = trigger.startsWith('@every ')
      ? { type: 'interval', every: trigger.slice(7) }
      : { type: 'cron', expression: trigger };
  const isPlain =
    ['cron', 'interval', 'date'].includes(trigger.type) &&
    Object.keys(trigger).every((k) => kOwn.includes(k) || k === 'anchor') &&
    (trigger.type !== 'cron' || trigger.expression);
  const job = schedule?.job ?? {};
  const payload = typeof job.payload === 'string' ? job.payload : job.payload == null ? '' : JSON.stringify(job.payload);
  return {
    name: schedule?.name ?? '',
    kind: isPlain ? trigger.type : 'json',
    json: JSON.stringify(trigger, null, 2),
    expression: '',
    every: '',
    time: '',
    zone: '',
    dialect: '',
    dst_gap: '',
    dst_overlap: '',
    jitter: '',
    start: '',
    end: '',
    ...trigger,
    queue: job.queue ?? 'default',
    function: job.function ?? '',
    key: job.key ?? '',
    payload,
    fill_in: job.fill_in === true,
    priority: String(job.priority ?? 0),
    max_attempts: job.max_attempts ? String(job.max_attempts) : '',
    misfire_grace: schedule?.misfire_grace ?? '',
    coalesce: schedule?.coalesce ?? 'latest',
    overlap: schedule?.overlap ?? 'skip',
    max_instances: String(schedule?.max_instances ?? 1),
    max_runs: schedule?.max_runs ? String(schedule.max_runs) : '',
  };
}

const given = (draft, names) => Object.fromEntries(names.filter((n) => draft[n]?.trim()).map((n) => [n, draft[n].trim()]));
function triggerOf(draft) {
  if (draft.kind === 'json') return JSON.parse(draft.json);
  const common = given(draft, ['zone', 'jitter', 'start', 'end']);
  if (draft.kind === 'interval') return { type: 'interval', every: draft.every.trim(), ...given(draft, ['anchor']), ...common };
  if (draft.kind === 'date') return { type: 'date', time: draft.time.trim(), ...common };
  return {
    type: 'cron',
    expression: draft.expression.trim(),
    ...given(draft, ['dialect', 'dst_gap', 'dst_overlap']),
    ...common,
  };
}
const number = (text) => (/^-?\d+$/.test(text.trim()) ? Number(text) : text.trim());
function scheduleOf(draft) {
  const job = {
    queue: draft.queue.trim(),
    priority: number(draft.priority || '0'),
    payload: draft.payload,
    key: draft.key.trim(),
    function: draft.function.trim(),
    fill_in: draft.fill_in,
  };
  if (draft.max_attempts.trim()) job.max_attempts = number(draft.max_attempts);
  const out = {
    name: draft.name.trim(),
    trigger: triggerOf(draft),
    job,
    coalesce: draft.coalesce,
    overlap: draft.overlap,
    max_instances: number(draft.max_instances || '1'),
  };
  if (draft.misfire_grace.trim()) out.misfire_grace = draft.misfire_grace.trim();
  if (draft.max_runs.trim()) out.max_runs = number(draft.max_runs);
  return out;
}

// The next times of the trigger that is being written, asked for when the writing pauses: {times, error, fresh}.
function usePreview(draft) {
  let trigger = null;
  let error = null;
  try {
    trigger = triggerOf(draft);
  } catch (wrong) {
    error = { message: `This is no JSON: ${wrong.message}`, errors: [], at: () => null };
  }
  const text = JSON.stringify(trigger);
  const [state, set] = useState({ times: null, error: null, of: '' });
  const isBlank = { cron: !draft.expression, interval: !draft.every, date: !draft.time }[draft.kind];
  useEffect(() => {
    if (!trigger || isBlank) return undefined;
    const abort = new AbortController();
    const timer = setTimeout(
      () =>
        api.post('/v1/next', { trigger, count: 10 }, { signal: abort.signal }).then(
          ({ times }) => set({ times, error: null, of: text }),
          (wrong) => wrong.name !== 'AbortError' && set((old) => ({ ...old, error: wrong, of: text })),
        ),
      200,
    );
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  return { times: state.times, error: error ?? (state.of === text ? state.error : null), fresh: state.of === text };
}

const weekday = (local) =>
  ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'][new Date(`${writtenDay(local)}T12:00:00Z`).getUTCDay()] ?? '';
export function Times({ times }) {
  const now = useNow();
  if (!times.length) return html`<p class="muted">It has no more times.</p>`;
  const offset = (local) => /([+-]\d\d:\d\d|Z)$/.exec(local)?.[0] ?? '';
  const locals = times.map((t) => t.local || t.at);
  const clocks = locals.map(writtenClock);
  const shown = clocks.every((time) => /:00$/.test(time)) ? clocks.map((time) => time.slice(0, -3)) : clocks;
  return html`<ol class="preview">${times.map((t, i) => {
    const local = locals[i];
    const isNew = i === 0 || offset(local) !== offset(locals[i - 1]);
    return html`<li key=${t.at}><span title=${local}>${weekday(local)} ${writtenDay(local)} <b>
        ${shown[i]}</b>${isNew && html` <span class="muted small">${offset(local)}</span>`}
        </span>
      <span class="muted small">${distance(Date.parse(t.at), now)}</span>${t.note && html`<span class="dst">${t.note}</span>`}
          </li>`;
  })}</ol>`;
}

function Preview({ preview }) {
  const { times, error, fresh } = preview;
  return html`<div class="preview-side" aria-live="polite" aria-busy=${!fresh}><h3>Its next times</h3>
    ${error ? html`<p class="bad small">${error.message}</p>` : times && html`<${Times} times=${times} />`}</div>`;
}

function When({ draft, set, error }) {
  const field = (name) => ({
    name,
    value: draft[name],
    onInput: (e) => set({ [name]: e.target.value }),
    autocomplete: 'off',
    spellcheck: false,
  });
  const pick = (name, ...choices) =>
    html`<select name=${name} value=${draft[name]} onChange=${(e) => set({ [name]: e.target.value })}><option
        value="">default</option>${choices.map((c) => html`<option key=${c} value=${c}>${c}</option>`)}</select>`;
  const zones = Intl.supportedValuesOf?.('timeZone') ?? [];
  return html`<fieldset><legend>When</legend>
    <div class="segments" role="group" aria-label="Kind of trigger">${kinds.map(([kind, name]) => html`<button key=${kind}
        type="button" aria-pressed=${draft.kind === kind}
        onClick=${() => set(kind === 'json' ? { kind, json: jsonOf(draft) } : { kind })}>${name}</button>`)}</div>
    <div class="form spaced">
      ${draft.kind === 'cron' && html`<${Field} label="Expression" hint="minute hour day month weekday, or @daily"
          error=${error?.at('/trigger/expression')}><input ...${field('expression')} required class="mono" data-first /><//>`}
      ${draft.kind === 'interval' && html`<${Field} label="Every" hint="90s, 1h30m; counts elapsed time"
          error=${error?.at('/trigger/every')}><input ...${field('every')} required placeholder="15m" /><//>`}
      ${draft.kind === 'date' && html`<${Field} label="At" hint="2026-12-24T18:00:00, in its zone"
          error=${error?.at('/trigger/time')}><input ...${field('time')} required placeholder="2026-12-24T18:00:00Z" /><//>`}
      ${draft.kind === 'json' && html`<${Field} label="Trigger" wide hint="docs/cron.md, “Triggers as JSON”"
          error=${error?.at('/trigger')}><textarea ...${field('json')} required rows="8"></textarea><//>`}
      ${draft.kind !== 'json' && html`<${Field} label="Zone" error=${error?.at('/trigger/zone')}><input ...${field('zone')}
          list="zones" placeholder="UTC" /><//>`}
      ${draft.kind === 'cron' && html`<${Field} label="Skipped hour" hint="spring: next, shift, skip">
          ${pick('dst_gap', 'next', 'shift', 'skip')}<//><${Field} label="Repeated hour" hint="autumn">
          ${pick('dst_overlap', 'vixie', 'first', 'second', 'both')}<//><${Field} label="Dialect">
          ${pick('dialect', ...dialects)}<//>`}
      ${draft.kind !== 'json' && html`<${Field} label="Jitter" hint="each run later by up to this"
          error=${error?.at('/trigger/jitter')}><input ...${field('jitter')} placeholder="none" /><//>`}
    </div><datalist id="zones">${zones.map((z) => html`<option key=${z} value=${z} />`)}</datalist></fieldset>`;
}
function jsonOf(draft) {
  try {
    return JSON.stringify(triggerOf(draft), null, 2);
  } catch {
    return draft.json;
  }
}

function Job({ draft, set, error }) {
  const field = (name) => ({ name, value: draft[name], onInput: (e) => set({ [name]: e.target.value }), autocomplete: 'off' });
  return html`<fieldset><legend>Which job</legend><div class="form">
    <${Field} label="Queue" error=${error?.at('/job/queue')}><input ...${field('queue')} required maxlength="512" /><//>
    <${Field} label="Function" error=${error?.at('/job/function')}><input ...${field('function')} maxlength="512" /><//>
    <${Field} label="Key" error=${error?.at('/job/key')}><input ...${field('key')} maxlength="512" /><//>
    <${Field} label="Priority" error=${error?.at('/job/priority')}><input ...${field('priority')} inputmode="numeric" /><//>
    <${Field} label="Attempts, at most" error=${error?.at('/job/max_attempts')}><input ...${field('max_attempts')}
        placeholder="the queue’s" inputmode="numeric" /><//>
    <${Field} label="Payload" wide error=${error?.at('/job/payload')}><textarea ...${field('payload')} spellcheck=${false}>
        </textarea><//>
    </div><label class="check"><input type="checkbox" checked=${draft.fill_in}
        onChange=${(e) => set({ fill_in: e.target.checked })} />Fill in {name}, {planned_at}, {fired_at}, {run}</label>
        </fieldset>`;
}

function Policies({ draft, set, error }) {
  const field = (name) => ({ name, value: draft[name], onInput: (e) => set({ [name]: e.target.value }), autocomplete: 'off' });
  const pick = (name, ...choices) =>
    html`<select name=${name} value=${draft[name]} onChange=${(e) => set({ [name]: e.target.value })}>
        ${choices.map((c) => html`<option key=${c} value=${c}>${c}</option>`)}</select>`;
  return html`<fieldset><legend>When it is late, or the run before has not ended</legend><div class="form">
    <${Field} label="Misfire grace" hint="later than this it is missed" error=${error?.at('/misfire_grace')}><input
        ...${field('misfire_grace')} placeholder="however late" /><//>
    <${Field} label="Of several due together" error=${error?.at('/coalesce')}>${pick('coalesce', 'latest', 'earliest', 'all')}
        <//>
    <${Field} label="Runs at once" error=${error?.at('/max_instances')}><input ...${field('max_instances')}
        inputmode="numeric" /><//>
    <${Field} label="Beyond that" error=${error?.at('/overlap')}>
        ${pick('overlap', 'skip', 'queue_one', 'queue_all', 'cancel_running')}<//>
    <${Field} label="Ends after" hint="runs" error=${error?.at('/max_runs')}><input ...${field('max_runs')} placeholder="never"
        inputmode="numeric" /><//></div></fieldset>`;
}

// Only what differs is sent, so that a policy without a field here stays; null takes one away.
function changesOf(before, after) {
  const out = {};
  for (const name of Object.keys(before)) if (!(name in after)) out[name] = null;
  for (const [name, value] of Object.entries(after))
    if (name !== 'name' && JSON.stringify(value) !== JSON.stringify(before[name])) out[name] = value;
  return out;
}

// Changes those members, and offers to set the schedule as it was.
async function change(schedule, members, done) {
  const path = `/v1/schedules/${api.part(schedule.name)}`;
  await api.patch(path, members);
  const undo = async () => {
    await api.put(path, schedule);
    done(schedule.name);
  };
  toast(`${schedule.name} is changed.`, { undo, undone: `${schedule.name} is as it was.` });
}

// `schedule`: what is edited; without one, a new one is added. `attempt`: is given the new one instead.
export function ScheduleDialog({ schedule, close, done, attempt }) {
  const [draft, setDraft] = useState(() => draftOf(schedule));
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const set = (change) => setDraft((old) => ({ ...old, ...change }));
  const preview = usePreview(draft);
  const save = async (event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      const made = scheduleOf(draft);
      if (attempt) return attempt(made), close();
      if (schedule) await change(schedule, changesOf(scheduleOf(draftOf(schedule)), made), done);
      else await api.post('/v1/schedules', made);
      if (!schedule) toast(`${made.name} is added.`);
      done(made.name);
      close();
    } catch (wrong) {
      setError(wrong.at ? wrong : { message: wrong.message, errors: [], at: () => null });
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${attempt ? 'Try a schedule' : schedule ? `Edit ${schedule.name}` : 'Add a schedule'} close=${close} wide>
    <${Problem} error=${error} />
    <form class="with-preview" onSubmit=${save}><div>
      ${!schedule && html`<${Field} label="Name" error=${error?.at('/name')}><input value=${draft.name}
          onInput=${(e) => set({ name: e.target.value })} required maxlength="512" autofocus autocomplete="off" /><//>`}
      <${When} draft=${draft} set=${set} error=${error ?? preview.error} /><${Job} draft=${draft} set=${set} error=${error} />
          <${Policies} draft=${draft} set=${set} error=${error} />
      <footer class="form-foot"><button class="primary" disabled=${busy}>${attempt ? 'Try it' : schedule ? 'Save' : 'Add it'}</button><button
          type="button" class="quiet" onClick=${close}>Cancel</button>
        ${schedule && html`<span class="muted small">A new trigger begins now.</span>`}</footer></div>
      <${Preview} preview=${preview} /></form><//>`;
}
export const prettyTrigger = (trigger) => prettyJson(JSON.stringify(trigger)) ?? String(trigger);
