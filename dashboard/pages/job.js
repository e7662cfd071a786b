// One job: why it does or does not run, its life as a timeline, what it carries and what it has left.
import * as api from '../api.js';
import { bytes, instant, moment, plural, prettyJson, readSpan, span } from '../format.js';
import { html, useState } from '../lib.js';
import { useNow, useRefresh } from '../live.js';
import { go, to } from '../router.js';
import {
  Action,
  ask,
  Copy,
  Dialog,
  Empty,
  Field,
  Head,
  Name,
  Problem,
  State,
  Time,
  toast,
  useResource,
  Visible,
} from '../ui.js';

const kMostShown = 256 * 1024; // characters of a payload or result

async function load(id, signal) {
  const path = `/v1/jobs/${api.part(id)}`;
  const [job, why, history] = await Promise.all([
    api.get(path, null, signal),
    api.get(`${path}/explain`, null, signal).catch(() => null),
    api.get(`${path}/history`, null, signal).catch(() => ({ attempts: [] })),
  ]);
  return { job, why, attempts: history.attempts ?? [] };
}

// Text as it is, or on several lines where it is JSON; of bytes that are no text, their beginning in hex.
function Text({ text, name }) {
  const pretty = prettyJson(text);
  const [asIs, setAsIs] = useState(false);
  const whole = pretty && !asIs ? pretty : text;
  const shown = whole.slice(0, kMostShown);
  return html`<section class="card" aria-label=${name}><header><h2>${name} <span class="muted small">
      ${bytes(new Blob([text]).size)}</span></h2><div class="head-actions">
      ${pretty && html`<div class="segments" role="group" aria-label="How it is shown"><button aria-pressed=${!asIs}
          onClick=${() => setAsIs(false)}>JSON</button><button aria-pressed=${asIs}
          onClick=${() => setAsIs(true)}>as it is</button></div>`}
      ${text && html`<${Copy} text=${text} />`}</div></header>
    <div class="body">${text ? html`<pre class="text" tabindex="0" aria-label=${name}><${Visible} text=${shown} />
        ${whole.length > shown.length && '\n…'}</pre>` : html`<p class="muted">empty</p>`}</div></section>`;
}

function hexOf(data) {
  const lines = [];
  for (let at = 0; at < Math.min(data.length, 1024); at += 16) {
    const row = [...data.slice(at, at + 16)];
    const hex = row.map((b) => b.toString(16).padStart(2, '0')).join(' ');
    lines.push(
      `${at.toString(16).padStart(6, '0')}  ${hex.padEnd(48)} ${row.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : '.')).join('')}`,
    );
  }
  return lines.join('\n');
}
function Bytes({ data, name }) {
  return html`<section class="card" aria-label=${name}><header><h2>${name} <span class="muted small">
      ${bytes(data.length)}, no text</span></h2></header>
    <div class="body"><pre class="text" tabindex="0">${hexOf(data)}${data.length > 1024 && '\n…'}</pre></div></section>`;
}

const fromBase64 = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
// `text` and `base64`: a member of a job in its two forms.
function Carried({ name, text = '', base64 }) {
  return base64 != null
    ? html`<${Bytes} name=${name} data=${fromBase64(base64)} />`
    : html`<${Text} name=${name} text=${text} />`;
}

// What came of an attempt, in the store's words: what is said of it, and the state whose colour it has.
const outcomes = {
  retry: ['failed, tried again', 'failed'],
  buried: ['failed for good', 'buried'],
  cancelled: ['cancelled', 'cancelled'],
  released: ['given back', 'delayed'],
  'lease expired': ['lost its lease', 'failed'],
  'owner died': ['ended with the daemon', 'failed'],
};

// The steps of a job's life, in order: [{at, title, state, error, worker, now}].
function lifeOf({ job, attempts, why }) {
  const steps = [{ at: instant(job.created_at), title: 'Put', state: 'ready' }];
  for (const a of attempts) {
    steps.push({
      at: instant(a.ended_at),
      title: `Attempt ${a.number} ${outcomes[a.outcome]?.[0] ?? a.outcome}`,
      state: outcomes[a.outcome]?.[1] ?? 'failed',
      error: a.error,
      worker: a.worker,
    });
  }
  const last = {
    ready: () => ({ at: instant(job.due_at), title: 'Ready', state: 'ready' }),
    delayed: () =>
      job.pending > 0
        ? { at: null, title: `Waits for ${plural(job.pending, 'job')}`, state: 'delayed' }
        : { at: instant(job.due_at), title: attempts.length ? 'Tried again' : 'Due', state: 'delayed' },
    running: () => ({
      at: null,
      title: `Attempt ${job.attempts + 1} runs`,
      state: 'running',
      worker: job.worker,
      until: instant(job.lease_until),
      progress: why?.progress,
      message: why?.progress_message,
    }),
    done: () => ({ at: instant(job.ended_at), title: 'Done', state: 'done' }),
    cancelled: () => ({ at: instant(job.ended_at), title: 'Cancelled', state: 'cancelled', error: job.error }),
    buried: () => ({ at: instant(job.ended_at), title: 'Buried', state: 'buried' }),
  }[job.state]?.();
  const isToldAlready = job.state === 'buried' && attempts.at(-1)?.outcome === 'buried';
  if (last && !isToldAlready) steps.push({ ...last, now: true });
  else if (steps.length) steps.at(-1).now = true;
  if (job.state === 'buried' && isToldAlready) steps.at(-1).title += ': buried';
  return steps.sort((a, b) => (a.at ?? Infinity) - (b.at ?? Infinity));
}

function Step({ step, before, now }) {
  const gap = step.at != null && before?.at != null ? step.at - before.at : null;
  return html`<li data-state=${step.state} data-now=${step.now}>
    <div class="when"><b>${step.title}</b>${step.at != null && html`<span class="muted"><${Time} at=${step.at} now=${now} />
        ${gap != null && gap > 0 && html`<span class="gap">+${span(gap)}</span>`}</span>`}</div>
    ${step.worker && html`<div class="small muted">by <${Name} of=${step.worker} /></div>`}
    ${step.until && html`<div class="small muted">its lease ends <${Time} at=${step.until} now=${now} /></div>`}
    ${
      step.progress > 0 &&
      html`<div class="progress" role="progressbar" aria-label="Progress" aria-valuemin="0" aria-valuemax="100"
          aria-valuenow=${Math.round(step.progress * 100)}><i style=${{ width: `${Math.min(100, step.progress * 100)}%` }}></i>
          </div>
      <div class="small muted">${Math.round(step.progress * 100)} %${step.message && html` · <${Name} of=${step.message} />`}</div>`
    }
    ${step.error && html`<div class="error"><${Visible} text=${step.error} /></div>`}</li>`;
}

function Life({ data }) {
  const now = useNow();
  const steps = lifeOf(data);
  return html`<section class="card" aria-labelledby="life"><header><h2 id="life">Life</h2></header>
    <ol class="timeline">${steps.map((step, i) => html`<${Step} key=${i} step=${step} before=${steps[i - 1]} now=${now} />`)}
        </ol></section>`;
}

const Fact = ({ name, children }) =>
  html`<dt>${name}</dt><dd>${typeof children === 'string' ? html`<${Name} of=${children} />` : children}</dd>`;
function Facts({ job, why }) {
  const most = job.max_attempts || why?.max_attempts;  // 0: its queue's
  const text = (name, value) => value != null && value !== '' && html`<${Fact} name=${name}>${value}<//>`;
  const time = (name, at) =>
    instant(at) && html`<${Fact} name=${name}><span title=${at}>${moment(instant(at), true)}</span><//>`;
  return html`<section class="card" aria-labelledby="facts"><header><h2 id="facts">Facts</h2></header><div class="body"><dl
      class="facts">
    <${Fact} name="Id">${job.id}<//>${text('Name', job.name)}
    <${Fact} name="Queue"><a href=${to('queues', job.queue)}><${Name} of=${job.queue} /></a><//>
    ${job.key && html`<${Fact} name="Key"><a href=${to('jobs', '', { queue: job.queue, key: job.key })}><${Name} of=${job.key} /></a><//>`}
    ${text('Unique', job.unique)}${text('Function', job.function)}
    <${Fact} name="Priority">${job.priority}<//><${Fact} name="Failed attempts">
        ${job.attempts}${most > 0 && ` of ${most}`}${job.expiries > 0 && `, ${plural(job.expiries, 'lease')} ran out`}<//>
    ${
      why?.waits_for?.length > 0 &&
      html`<${Fact} name="Waits for">${why.waits_for.map((id, i) => html`${i > 0 && ', '}<a href=${to('jobs', id)}>${id}
          </a>`)}${job.pending > why.waits_for.length && ' …'}<//>
      <${Fact} name="If they fail">${job.if_failed === 'run' ? 'it runs anyway' : 'it is cancelled'}<//>`
    }
    ${time('Put', job.created_at)}${time('Due', job.due_at)}${time('Ended', job.ended_at)}${time('Lease ends', job.lease_until)}${text('Worker', job.worker)}
  </dl></div></section>`;
}

function ChangeDialog({ job, close, done }) {
  const [error, setError] = useState(null);
  const send = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const body = {};
    if (Number(form.get('priority')) !== job.priority) body.priority = Number(form.get('priority'));
    const delay = form.get('delay').trim();
    if (delay) body.delay_ms = readSpan(delay) ?? delay;
    if (!Object.keys(body).length) return close();
    try {
      await api.patch(`/v1/jobs/${job.id}`, body);
      done();
      close();
    } catch (wrong) {
      setError(wrong);
    }
  };
  return html`<${Dialog} title=${`Change job ${job.id}`} close=${close}><${Problem} error=${error} />
    <form onSubmit=${send}><div class="form">
      <${Field} label="Priority" hint="Higher first." error=${error?.at('/priority')}><input name="priority" type="number"
          step="1" defaultValue=${job.priority} autofocus /><//>
      <${Field} label="Due in" hint="90s, 2h; 0s: now. Empty: as it is." error=${error?.at('/delay_ms')}><input name="delay"
          autocomplete="off" /><//>
    </div><footer class="form-foot"><button class="primary">Change</button><button type="button" class="quiet"
        onClick=${close}>Cancel</button></footer></form><//>`;
}

function Actions({ job, reload }) {
  const [changing, setChanging] = useState(false);
  const path = `/v1/jobs/${job.id}`;
  const kick = async () => (await api.post(`${path}/kick`), toast(`Job ${job.id} is ready.`), reload());
  const cancel = async () => {
    const text = job.state === 'running' ? 'It runs: its worker is asked to stop.' : 'What waits for it is cancelled, too.';
    if (!(await ask({ title: `Cancel job ${job.id}?`, text, does: 'Cancel the job', danger: true }))) return;
    const { outcome } = await api.post(`${path}/cancel`, {});
    toast(outcome === 'asked' ? 'Its worker is asked to stop.' : `Job ${job.id} is cancelled.`);
    reload();
  };
  const erase = async () => {
    if (
      !(await ask({
        title: `Erase job ${job.id}?`,
        text: 'Its record, payload and result go, for good.',
        does: 'Erase',
        danger: true,
      }))
    )
      return;
    await api.del(path);
    toast(`Job ${job.id} is erased.`);
    go(to('jobs', '', { queue: job.queue }), { replace: true });
  };
  const waits = job.state === 'ready' || job.state === 'delayed';
  return html`${(job.state === 'buried' || job.state === 'delayed') && html`<${Action} does=${kick} class="primary">Kick<//>`}
    ${waits && html`<button onClick=${() => setChanging(true)}>Change</button>`}
    ${(waits || job.state === 'running') && html`<${Action} does=${cancel} class="danger">Cancel<//>`}
    ${job.state !== 'running' && html`<${Action} does=${erase} class="danger">Erase<//>`}
    ${changing && html`<${ChangeDialog} job=${job} close=${() => setChanging(false)} done=${reload} />`}`;
}

function Gone({ arg }) {
  return html`<${Head} title=${`Job ${arg}`} back=${to('jobs')} /><section class="card"><${Empty} title="There is no such job">
    <p>It was erased, or it has ended and its queue keeps no records: set <code>keep_done_ms</code> of the queue to keep them.</p>
    <p><a href=${to('jobs')}>All jobs</a></p><//></section>`;
}

export function JobPage({ arg }) {
  const found = useResource((signal) => load(arg, signal), [arg]);
  const { id, queue, state } = found.data?.job ?? {};
  const concerns = (e) => (e.kind === 'job' ? e.data.id === id : [e.data.queue, e.data.name].includes(queue));
  useRefresh(['job', 'queue'], concerns, found.reload, [id, queue], 700);
  // Why it waits depends on others, too.
  useRefresh(['counters'], () => ['ready', 'delayed', 'running'].includes(state), found.reload, [id, state], 4000);
  const { data } = found;
  const isGone = found.error?.status === 404;
  if (isGone && !data) return html`<${Gone} arg=${arg} />`;
  if (!data)
    return html`<${Head} title=${`Job ${arg}`} back=${to('jobs')} /><${Problem} error=${found.error} retry=${found.reload} />`;
  const { job, why } = data;
  const hasResult = Boolean(job.result || job.result_base64);
  const note = isGone ? html`<span class="tag">forgotten</span>` : html`<${State} of=${job.state} />`;
  return html`<${Head} title=${job.name || `Job ${job.id}`} back=${to('jobs', '', { queue: job.queue, state: job.state })} note=${note}>
      ${!isGone && html`<${Actions} job=${job} reload=${found.reload} />`}<//>
    ${!isGone && html`<${Problem} error=${found.error} retry=${found.reload} />`}
    ${isGone && html`<div class="why" data-state="cancelled"><p>It is not known any more: it has ended and its queue keeps no
      records, or it was erased. This is how it was.</p></div>`}
    ${!isGone && why?.sentence && html`<div class="why" data-state=${job.state}><p><${Visible} text=${why.sentence} /></p></div>`}
    <div class="columns"><div class="stack"><${Carried} name="Payload" text=${job.payload} base64=${job.payload_base64} />
        ${hasResult && html`<${Carried} name=${job.state === 'done' ? 'Result' : 'Output'}
            text=${job.result} base64=${job.result_base64} />`}</div>
      <div class="stack"><${Life} data=${data} /><${Facts} job=${job} why=${why} /></div></div>`;
}
