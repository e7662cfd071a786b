// Jobs by state, queue and key, a page at a time; what can be done to several at once; and putting one.
import * as api from '../api.js';
import { brief, count, plural, readSpan } from '../format.js';
import { html, useEffect, useRef, useState } from '../lib.js';
import { isEmpty, useLive, useRefresh } from '../live.js';
import { isOwn, OwnSwitch, useOwn } from '../own.js';
import { go, to } from '../router.js';
import { putLine } from '../teach.js';
import { Action, ask, Command, Dialog, Empty, Field, Filter, Head, Icon, Name, Problem, State, Time, toast, useResource } from '../ui.js';

const kStates = ['buried', 'ready', 'running', 'delayed', 'done', 'cancelled'];
const kLimit = 50;
const kMostListed = 200; // queues that can be chosen from a list
const kNumber = /^(0|[1-9]\d*)$/; // 00123 is a name

// The counts of all queues that are listed.
function totalsOf({ totals, queues }, showsOwn) {
  const counts = { ...totals };
  for (const [name, own] of queues) {
    if (showsOwn || !isOwn(name)) continue;
    for (const state of kStates) counts[state] -= own[state];
  }
  return counts;
}

function Tabs({ params, totals }) {
  const tab = (
    state,
    n,
  ) => html`<a key=${state} href=${to('jobs', '', { ...params, state, after: '', page: '' })}
      aria-current=${(params.state ?? '') === state ? 'page' : undefined}>
    ${state || 'all'}${n != null && html` <span class="tab-count" title=${count(n)}>${brief(n)}</span>`}</a>`;
  const nav = useRef(null);
  useEffect(
    () => nav.current.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' }),
    [params.state],
  );
  return html`<nav class="tabs" aria-label="States" ref=${nav}>${tab('')}${kStates.map((s) => tab(s, totals?.[s]))}</nav>`;
}

function Filters({ params, queues }) {
  const [showsOwn, setShowsOwn] = useOwn();
  const filter = (change) => go(to('jobs', '', { ...params, ...change, after: '', page: '' }));
  const open = (event) => {
    event.preventDefault();
    const wanted = new FormData(event.target).get('job').trim();
    if (wanted) go(to('jobs', wanted));
  };
  const all = [...queues];
  const names = all.filter((name) => showsOwn || !isOwn(name));
  if (params.queue && !names.includes(params.queue)) names.push(params.queue);
  return html`<div class="filters">
    ${
      names.length <= kMostListed
        ? html`<select aria-label="Queue" value=${params.queue ?? ''} onChange=${(e) => filter({ queue: e.target.value })}>
      <option value="">all queues</option>${names.sort().map((name) => html`<option key=${name} value=${name}>${name}
          </option>`)}</select>`
        : html`<input type="search" aria-label="Queue" placeholder="queue, exactly" value=${params.queue ?? ''} list="queues"
            onChange=${(e) => filter({ queue: e.target.value })} /><datalist id="queues">${names.map((name) => html`<option
            key=${name} value=${name} />`)}</datalist>`
    }
    <${Filter} label="Word" hint="a word in them" value=${params.word} apply=${(word) => filter({ word })} />
    <${Filter} label="Key" hint="key, exactly" value=${params.key} apply=${(key) => filter({ key })} />
    <form onSubmit=${open}><input type="search" name="job" aria-label="Id or name" placeholder="id or name ↵"
        autocomplete="off" /></form>
    <${OwnSwitch} names=${all} shows=${showsOwn} set=${setShowsOwn} />
  </div>`;
}

// What is said of a job of that state, in the last column; where there is nothing to say, what it carries, or is to call.
function remark(job) {
  if (job.state === 'running') return html`<span class="clip long" title=${job.worker}><${Name} of=${job.worker} /></span>`;
  if (job.error)
    return html`<span class=${`clip long ${job.state === 'buried' ? 'bad' : 'muted'}`} title=${job.error}><${Name} of=${job.error} /></span>`;
  if (job.pending > 0) return html`<span class="muted">waits for ${plural(job.pending, 'job')}</span>`;
  const carried = job.payload_base64 != null ? 'bytes that are no text' : job.payload;
  if (!job.function && !carried) return html`<span class="muted">–</span>`;
  return html`<code class="muted clip long" title=${carried}><${Name} of=${[job.function, carried].filter(Boolean).join(' ')} /></code>`;
}
const timeOf = (job) =>
  ({ running: job.lease_until, done: job.ended_at, cancelled: job.ended_at, buried: job.ended_at })[job.state] ?? job.due_at;
const timeNames = { running: 'lease ends', done: 'ended', cancelled: 'ended', buried: 'ended', ready: 'due', delayed: 'due' };

function Row({ job, chosen, choose, withState }) {
  return html`<tr data-row tabindex="-1" data-selected=${chosen}>
    <td class="check-cell"><input type="checkbox" aria-label=${`Select job ${job.id}`} checked=${chosen} onChange=${choose} />
        </td>
    <td class="full"><a data-open class="id" href=${to('jobs', job.id)}>${job.id}</a>${job.name && html` <span
        class="clip muted" title=${job.name}><${Name} of=${job.name} /></span>`}</td>
    ${withState && html`<td><${State} of=${job.state} /></td>`}
    <td data-name="queue"><a class="clip" title=${job.queue} href=${to('queues', job.queue)}><${Name} of=${job.queue} /></a></td>
    <td data-name="key"><span class="clip" title=${job.key}>${job.key && html`<${Name} of=${job.key} />`}</span></td>
    <td class="number" data-name="priority">${job.priority}</td>
    <td class="number" data-name="failures">${job.attempts}${job.max_attempts > 0 && `/${job.max_attempts}`}</td>
    <td class="nowrap" data-name=${timeNames[job.state]}><${Time} at=${timeOf(job)} empty="at once" /></td>
    <td class="full remark">${remark(job)}</td></tr>`;
}

const changes = {
  kick: {
    does: 'Kick',
    title: (n) => `Kick ${plural(n, 'job')}?`,
    text: 'Buried and delayed jobs are ready at once; buried ones have all their attempts again.',
  },
  cancel: {
    does: 'Cancel jobs',
    title: (n) => `Cancel ${plural(n, 'job')}?`,
    text: 'What waits is cancelled, and so is what waits for it. What runs is asked to stop.',
    danger: true,
  },
  erase: {
    does: 'Erase',
    title: (n) => `Erase ${plural(n, 'job')}?`,
    text: 'Their records, payloads and results go, for good. Jobs that run stay.',
    danger: true,
  },
};

// Does `change` to the jobs, and says what became of them, in the daemon's words where it refused.
async function changeAll(change, ids) {
  const { title, ...of } = changes[change];
  if (!(await ask({ ...of, title: title(ids.length) }))) return false;
  const { replies } = await api.post('/v1/jobs/change', { change, ids }, api.once());
  const refused = replies.filter((r) => r.error);
  const done = replies.length - refused.length;
  const asked = replies.filter((r) => r.outcome === 'asked').length;
  const said = { kick: 'kicked', cancel: 'cancelled', erase: 'erased' }[change];
  if (done) toast(`${plural(done - asked, 'job')} ${said}${asked ? `, ${asked} asked to stop` : ''}.`);
  const details = [...new Set(refused.map((r) => r.error.detail))];
  if (refused.length)
    toast(`${plural(refused.length, 'job')} refused: ${details.slice(0, 3).join('; ')}${details.length > 3 ? ' …' : ''}`, {
      bad: true,
    });
  return true;
}

function Batch({ ids, done }) {
  const act = (change) => async () => (await changeAll(change, ids)) && done();
  return html`<div class="batch" role="region" aria-label="Selected jobs"><b>${count(ids.length)} selected</b>
    <${Action} does=${act('kick')}>Kick<//><${Action} does=${act('cancel')} class="danger">Cancel<//><${Action}
        does=${act('erase')} class="danger">Erase<//>
    <button class="quiet" onClick=${done}>Select none</button></div>`;
}

function Table({ jobs, chosen, setChosen, state }) {
  const all = jobs.length > 0 && jobs.every((j) => chosen.has(j.id));
  const toggle = (id) => {
    const next = new Set(chosen);
    next.delete(id) || next.add(id);
    setChosen(next);
  };
  const toggleAll = () => setChosen(all ? new Set() : new Set(jobs.map((j) => j.id)));
  return html`<div class="scroll" tabindex="0"><table class="cards jobs"><thead><tr>
    <th class="check-cell"><input type="checkbox" aria-label="Select all jobs of this page" checked=${all}
        onChange=${toggleAll} /></th>
    <th>Job</th>${!state && html`<th>State</th>`}<th>Queue</th><th>Key</th><th class="number">Priority</th><th
        class="number">Failures</th><th>${state ? timeNames[state][0].toUpperCase() + timeNames[state].slice(1) : 'When'}</th>
        <th>${state === 'running' ? 'Worker' : state === 'buried' ? 'Error' : 'Remark, or payload'}</th></tr></thead>
    <tbody>${jobs.map((job) => html`<${Row} key=${job.id} job=${job} withState=${!state} chosen=${chosen.has(job.id)}
        choose=${() => toggle(job.id)} />`)}</tbody></table></div>`;
}

function NoneHere({ params, isNew, next }) {
  if (isNew) {
    return html`<${Empty} title="No jobs yet"><p>Put the first one from here (<kbd>n</kbd>), or from a shell:</p><${Command}
        text=${putLine()} /><//>`;
  }
  const texts = {
    ready: 'What is due and allowed to run would be here. Workers keep up.',
    running: 'No worker holds a lease now.',
    delayed: 'Jobs with a later time, jobs that are tried again, and jobs that wait for others are delayed.',
    buried: 'Jobs that have failed for good are kept here until they are kicked or erased. There are none.',
    done: 'Jobs that have ended well are kept for their queue’s keep_done_ms, which is 0 unless it is set.',
    cancelled: 'Cancelled jobs are kept for their queue’s keep_cancelled_ms.',
  };
  const where = [
    params.queue && `queue “${params.queue}”`,
    params.key && `key “${params.key}”`,
    params.word && `with “${params.word}” in them`,
  ].filter(Boolean).join(', ');
  if (next != null) {
    return html`<${Empty} title="None so far"><p>Many jobs were looked at, and none has “<${Name} of=${params.word} />” in it. There are more
        to look at: go on by “Next”.</p><//>`;
  }
  return html`<${Empty} title=${`No ${params.state ?? ''} jobs`.replace('  ', ' ')}>
    <p>${(!params.word && texts[params.state]) || 'Nothing fits these filters.'}</p>${where && html`<p>Looked at: ${where}. <a
        href=${to('jobs', '', { state: params.state })}>Look at all.</a></p>`}<//>`;
}

function Pager({ params, next, shown }) {
  const page = Number(params.page ?? 1);
  return html`<div class="pager"><span>${shown ? `page ${page}` : ''}</span><div>
    ${page > 1 && html`<a class="button" href=${to('jobs', '', { ...params, after: '', page: '' })}>First</a><button
        onClick=${() => history.back()}><${Icon} name="back" />Back</button>`}
    ${next != null && html`<a class="button" href=${to('jobs', '', { ...params, after: next, page: page + 1 })}>Next<${Icon}
        name="forward" /></a>`}</div></div>`;
}

export function JobsPage({ params }) {
  const { snapshot } = useLive();
  const [chosen, setChosen] = useState(new Set());
  const [putting, setPutting] = useState(false);
  const [showsOwn] = useOwn();
  const { state, queue, key, word, after } = params;
  const of = [state, queue, key, word, after, showsOwn];
  const asked = { state, queue, key, word, after, limit: kLimit, order: 'newest', beginnings: true, own: showsOwn };
  const found = useResource((signal) => api.get('/v1/jobs', asked, signal), of);
  useEffect(() => setChosen(new Set()), of);
  // A search goes through many jobs: it is asked for once.
  useRefresh(['job'], (e) => !word && (!queue || e.data.queue === queue), found.reload, of, 2000);
  const jobs = found.data?.jobs ?? [];
  const totals = queue ? snapshot?.queues.get(queue) : snapshot && totalsOf(snapshot, showsOwn);
  const ids = jobs.filter((j) => chosen.has(j.id)).map((j) => j.id);
  const again = () => (setChosen(new Set()), found.reload());
  return html`<${Head} title="Jobs"><button class="primary" data-new onClick=${() => setPutting(true)}><${Icon}
      name="plus" />Put a job</button><//>
    <${Problem} error=${found.error} retry=${found.reload} />
    <section class="card" aria-label="Jobs" aria-busy=${found.loading}>
      <${Tabs} params=${params} totals=${totals} /><${Filters} params=${params} queues=${snapshot?.queues.keys() ?? []} />
      ${ids.length > 0 && html`<${Batch} ids=${ids} done=${again} />`}
      ${jobs.length > 0 && html`<${Table} jobs=${jobs} chosen=${chosen} setChosen=${setChosen} state=${state} />`}
      ${found.data && !jobs.length && html`<${NoneHere} params=${params} next=${found.data.next}
          isNew=${snapshot && isEmpty(snapshot)} />`}
      ${(found.data?.next != null || after) && html`<${Pager} params=${params} next=${found.data?.next}
          shown=${jobs.length} />`}
    </section>
    ${putting && html`<${PutDialog} queue=${queue} queues=${[...(snapshot?.queues.keys() ?? [])]}
        close=${() => setPutting(false)} done=${found.reload} />`}`;
}

// The members of a new job that were filled in. A payload that is JSON goes as the text it is.
function newJobOf(form) {
  const job = { queue: form.get('queue'), payload: form.get('payload') };
  for (const name of ['key', 'function', 'unique']) if (form.get(name)) job[name] = form.get(name);
  const id = form.get('id').trim();
  if (id) job.id = kNumber.test(id) ? Number(id) : id;
  for (const name of ['priority', 'max_attempts']) if (form.get(name)) job[name] = Number(form.get(name));
  const delay = form.get('delay').trim();
  if (delay) job.delay_ms = readSpan(delay) ?? delay;
  const waits = form.get('waits_for').trim();
  if (waits) job.waits_for = waits.split(/[\s,]+/).map((w) => (kNumber.test(w) ? Number(w) : w));
  return job;
}

function PutDialog({ queue = '', queues, close, done }) {
  const [error, setError] = useState(null);
  const sent = useRef({}); // the same request again has the same key, so that a lost answer puts nothing twice
  const [busy, setBusy] = useState(false);
  const send = async (event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      const job = newJobOf(new FormData(event.target));
      const text = JSON.stringify(job);
      if (sent.current.text !== text) sent.current = { text, key: api.once() };
      const reply = await api.post('/v1/jobs', job, sent.current.key);
      toast(`Job ${reply.id}: ${reply.outcome}.`, { link: to('jobs', reply.id), linkText: 'Show' });
      done();
      close();
    } catch (wrong) {
      setError(wrong);
      setBusy(false);
    }
  };
  const at = (name) => error?.at(`/${name}`);
  return html`<${Dialog} title="Put a job" close=${close}>
    <${Problem} error=${error} />
    <form onSubmit=${send}><div class="form">
      <${Field} label="Queue" hint="It is made if it is not there." error=${at('queue')}><input name="queue" required
          maxlength="512" list="queue-names" autofocus defaultValue=${queue} autocomplete="off" /><//>
      <${Field} label="Key" hint="What it is aimed at; limits hold per key." error=${at('key')}><input name="key"
          maxlength="512" autocomplete="off" /><//>
      <${Field} label="Payload" wide error=${at('payload')}><textarea name="payload"
          spellcheck=${false} placeholder='{"to":"ann"}'></textarea><//>
      <${Field} label="Priority" hint="Higher first." error=${at('priority')}><input name="priority" type="number" step="1"
          placeholder="0" /><//>
      <${Field} label="Delay" hint="90s, 1h30m" error=${at('delay_ms')}><input name="delay" placeholder="none"
          autocomplete="off" /><//>
      <${Field} label="Name" hint="Put again under it, nothing happens twice." error=${at('id')}><input name="id"
          maxlength="512" autocomplete="off" /><//>
      <${Field} label="Unique" hint="One of that name in its queue at a time." error=${at('unique')}><input name="unique"
          maxlength="512" autocomplete="off" /><//>
      <${Field} label="Function" hint="What a worker is to call." error=${at('function')}><input name="function"
          maxlength="512" autocomplete="off" /><//>
      <${Field} label="Attempts, at most" error=${at('max_attempts')}><input name="max_attempts" type="number" min="0" step="1"
          placeholder="the queue’s" /><//>
      <${Field} label="Waits for" hint="Ids or names of other jobs." error=${at('waits_for')} wide><input name="waits_for"
          autocomplete="off" /><//>
    </div><datalist id="queue-names">${queues.map((q) => html`<option key=${q} value=${q} />`)}</datalist>
    <footer class="form-foot"><button class="primary" disabled=${busy}>Put it</button><button type="button" class="quiet"
        onClick=${close}>Cancel</button></footer></form><//>`;
}
