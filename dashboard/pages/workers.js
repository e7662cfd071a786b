// Who works: names, queues, leases; and ending the leases of one that is gone.
import * as api from '../api.js';
import { plural } from '../format.js';
import { html } from '../lib.js';
import { useLive, useRefresh } from '../live.js';
import { to } from '../router.js';
import { leaseLine, settleLine } from '../teach.js';
import { Action, ask, Command, Empty, Head, Name, Problem, Time, toast, useResource } from '../ui.js';

function Row({ worker, reload }) {
  const { name, who, queues = [], leases, waiting } = worker;
  const end = async () => {
    const text =
      'Its leases end now, and its jobs go to others. Do this when it is gone for good: if it still works, it can settle nothing.';
    if (!(await ask({ title: `End ${plural(leases, 'lease')} of ${name}?`, text, does: 'End its leases', danger: true })))
      return;
    const { ended } = (await api.del(`/v1/workers/${api.part(name)}`, { who })) ?? {};
    toast(`${plural(ended ?? leases, 'lease')} of ${name} ended.`);
    reload();
  };
  return html`<tr data-row tabindex="-1"><td class="full"><b class="clip" title=${name}><${Name} of=${name} /></b>
      ${api.hasTokens() && who && html` <span class="muted">by ${who}</span>`}</td>
    <td class="full">${queues.map((q, i) => html`${i > 0 && ', '}<a href=${to('queues', q)}><${Name} of=${q} /></a>`)}</td>
    <td class="number" data-name="leases">${leases}</td>
    <td data-name="">${waiting ? html`<span class="state" data-state="ready">waits for jobs</span>` : leases > 0 ? html`<span
        class="state" data-state="running">busy</span>` : html`<span class="muted">silent</span>`}</td>
    <td class="nowrap" data-name="seen"><${Time} at=${worker.seen_at} /></td>
    <td class="full"><div class="row-actions">${leases > 0 && html`<${Action} does=${end} class="danger">End its leases<//>`}
        </div></td></tr>`;
}

const None = () => html`<section class="card"><${Empty} title="No worker is here">
  <p>A worker leases jobs, does them, and says how they ended. In any language, over HTTP:</p>
  <${Command} text=${leaseLine()} />
  <p>It gets a token with each job, and settles it:</p>
  <${Command} text=${settleLine()} /><//>
      </section>`;

export function WorkersPage() {
  const found = useResource((signal) => api.get('/v1/workers', null, signal), []);
  const live = useLive();
  useRefresh(['worker'], () => true, found.reload, [], 1000);
  useRefresh(['counters'], () => true, found.reload, [], 3000);
  const workers = [...(found.data?.workers ?? [])].sort((a, b) => a.name.localeCompare(b.name));
  return html`<${Head} title="Workers" note=${live.snapshot && html`<span class="muted">
      ${plural(live.snapshot.totals.running, 'job')} running</span>`} />
    <${Problem} error=${found.error} retry=${found.reload} />
    ${found.data && !workers.length && html`<${None} />`}
    ${
      workers.length > 0 &&
      html`<section class="card" aria-label="Workers"><div class="scroll" tabindex="0"><table class="cards"><thead><tr>
          <th>Worker</th><th>Queues</th><th class="number">Leases</th><th>Now</th><th>Seen</th><th><span
          class="hidden-text">Actions</span></th></tr></thead>
      <tbody>${workers.map((w) => html`<${Row} key=${`${w.name} ${w.who}`} worker=${w} reload=${found.reload} />`)}</tbody></table></div>
          </section>`
    }`;
}
