// The hosts that projects visit: what is done at each, and why nothing is.
import * as api from '../api.js';
import { clock, count, instant, plural, rate, span } from '../format.js';
import { html, useEffect, useRef } from '../lib.js';
import { usePoll } from '../live.js';
import { go, to } from '../router.js';
import { Empty, Filter, Head, Name, Problem, Time, useResource, Visible } from '../ui.js';
import { Pager } from './project_parts.js';

const kLimit = 50;
const kPollMs = 2000;
const kMostLooks = 20; // for one page, where few of many hosts fit
const kMostNamed = 3; // projects of a row

const kDoings = ['busy', 'waiting', 'resting', 'ready'];
const tones = { busy: 'running', waiting: 'delayed', resting: 'buried', ready: 'ready' };
export const HostDoing = ({ of }) => html`<span class="state" data-state=${tones[of]}>${of}</span>`;
const hints = {
  busy: 'Requests are under way.',
  waiting: 'Its pace, or what is asked before, lets no request begin yet.',
  resting: 'It has failed, or has asked for a rest.',
  ready: 'It may be asked as soon as a page of it is due.',
};

// A place among the hosts: what of `params` stays, and what changes.
const placeOf = ({ doing, filter, project, after, n }, change = {}) => to('hosts', '', { doing, filter, project, after, n, ...change });
const again = { after: '', n: '' };

// Of few that fit among many, an answer may have none: it is asked on from there.
async function loadHosts({ doing, filter, project, after }, signal) {
  let found = { hosts: [], next: after };
  for (let looks = 0; looks < kMostLooks; ++looks) {
    found = await api.get('/v1/hosts', { doing, filter, project, after: found.next, limit: kLimit }, signal);
    if (found.hosts.length || found.next == null) break;
  }
  return found;
}

function Tabs({ params }) {
  const nav = useRef(null);
  const tab = (doing) => html`<a key=${doing} href=${placeOf(params, { doing, ...again })} title=${hints[doing]}
      aria-current=${(params.doing ?? '') === doing ? 'page' : undefined}>${doing || 'all'}</a>`;
  useEffect(
    () => nav.current.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' }),
    [params.doing],
  );
  return html`<nav class="tabs" aria-label="What is done there" ref=${nav}>${tab('')}${kDoings.map(tab)}</nav>`;
}

const projectLink = (name) => html`<a class="clip short" title=${name} href=${to('projects', name)}><${Name} of=${name} /></a>`;
function Projects({ host }) {
  const shown = host.projects.slice(0, kMostNamed);
  const more = (host.project_count ?? host.projects.length) - shown.length;
  return html`<span class="project-links">${shown.map((name) => html`<span key=${name}>${projectLink(name)}</span>`)}${
    more > 0 && html`<span class="muted nowrap">${count(more)} more</span>`
  }</span>`;
}

const delayOf = (host) => (host.delay_ms > 0 ? span(host.delay_ms) : 'none');
const rateOf = (host) => (host.rate == null ? 'no limit' : `${rate(host.rate)} /s`);
// In a table, what says nothing is not read.
const Quiet = ({ of, none }) => (of === none ? html`<span class="muted">${of}</span>` : of);

function Row({ host }) {
  return html`<tr data-row tabindex="-1">
    <td class="full"><a data-open class="clip" title=${host.site} href=${to('hosts', host.site)}><${Name} of=${host.site} /></a>
      ${host.trouble && html`<span class="clip small bad" title=${host.trouble}><${Name} of=${host.trouble} /></span>`}</td>
    <td title=${host.sentence}><${HostDoing} of=${host.doing} /></td>
    <td class="nowrap" data-name=${instant(host.until) ? 'until' : undefined}>${instant(host.until) && html`<${Time} at=${host.until} past="now" />`}</td>
    <td class="number nowrap" data-name="under way">${count(host.under_way)} <span class="muted">of ${count(host.at_most)}</span></td>
    <td class="number nowrap" data-name="delay"><${Quiet} of=${delayOf(host)} none="none" /></td>
    <td class="number nowrap" data-name="rate"><${Quiet} of=${rateOf(host)} none="no limit" /></td>
    <td class="nowrap" data-name="robots.txt"><${Quiet} of=${host.robots_known ? 'known' : 'not read'} none="not read" /></td>
    <td data-name="projects"><${Projects} host=${host} /></td></tr>`;
}

const Table = ({ hosts }) => html`<div class="scroll" tabindex="0"><table class="cards hosts"><thead><tr><th>Site</th><th>Doing</th>
    <th>Until</th><th class="number">Under way</th><th class="number">Delay</th><th class="number">Rate</th><th>robots.txt</th>
    <th>Projects</th></tr></thead>
  <tbody>${hosts.map((host) => html`<${Row} key=${host.site} host=${host} />`)}</tbody></table></div>`;

function NoHosts({ params, next }) {
  if (next != null)
    return html`<${Empty} title="None so far"><p>Many hosts were looked at, and none fits. There are more to look at: go on by
        “Next”.</p><//>`;
  if (params.doing || params.filter || params.project)
    return html`<${Empty} title="No such hosts"><p>Nothing fits these filters. <a href=${to('hosts')}>Look at all.</a></p><//>`;
  return html`<${Empty} title="No hosts yet"><p>The hosts of a project’s pages are here as soon as it asks for them. All projects
      together are no harder on a host than one. <a href=${to('projects')}>Look at the projects.</a></p><//>`;
}

// Of one whose configuration has no projects.
const NoProjects = () => html`<section class="card"><${Empty} title="This daemon visits no pages"><p>It has no projects. <a
    href=${to('projects')}>How it gets some.</a></p><//></section>`;

export function HostsPage({ params }) {
  const { doing, filter, project, after } = params;
  const of = [doing, filter, project, after];
  const found = useResource((signal) => loadHosts(params, signal), of);
  usePoll(found.reload, kPollMs, of);
  const hosts = found.data?.hosts ?? [];
  if (found.error?.status === 404 && !project) return html`<${Head} title="Hosts" /><${NoProjects} />`;
  return html`<${Head} title="Hosts" />
    <${Problem} error=${found.error} retry=${found.reload} />
    <section class="card" aria-label="Hosts" aria-busy=${found.loading}><${Tabs} params=${params} />
    <div class="filters"><${Filter} label="Site" hint="filter by a piece of the site" value=${filter}
        apply=${(text) => go(placeOf(params, { filter: text, ...again }))} />
      ${project && html`<span class="muted">of project <b><${Name} of=${project} /></b> · <a
          href=${placeOf(params, { project: '', ...again })}>of all projects</a></span>`}</div>
    ${hosts.length > 0 && html`<${Table} hosts=${hosts} />`}
    ${found.data && !hosts.length && html`<${NoHosts} params=${params} next=${found.data.next} />`}
    ${found.data && html`<${Pager} params=${params} at=${(change) => placeOf(params, change)} next=${found.data.next} />`}</section>`;
}

// --- one host

const explained = { soon: 'ready', not_due: 'delayed', nothing_due: 'ready', project_stopped: 'cancelled', unknown: 'cancelled' };
const Why = ({ why }) => html`<div class="why" data-state=${explained[why.reason] ?? tones[why.host.doing]}><p><${Visible}
    text=${why.words} />.${instant(why.until) && html` <span class="small">Until ${clock(instant(why.until))} (<${Time} at=${why.until}
    past="now" />).</span>`}</p></div>`;

const Fact = ({ name, children }) => html`<dt>${name}</dt><dd>${children}</dd>`;
const Facts = ({ host }) => html`<section class="card" aria-labelledby="facts"><header><h2 id="facts">Limits</h2><p>of all projects
    together</p></header><div class="body"><dl class="facts">
  <${Fact} name="Doing"><${HostDoing} of=${host.doing} /> <span class="muted small">${hints[host.doing]}</span><//>
  <${Fact} name="Requests under way">${count(host.under_way)} of ${count(host.at_most)} at most<//>
  <${Fact} name="Rate">${rateOf(host)}<//>
  <${Fact} name="Delay between requests">${delayOf(host)}<//>
  <${Fact} name="robots.txt">${host.robots_known ? 'known' : 'not read'}<//>
  ${host.trouble && html`<${Fact} name="Trouble"><span class="bad"><${Visible} text=${host.trouble} /></span><//>`}</dl></div></section>`;

const Queued = ({ site, its }) => html`<tr data-row tabindex="-1">
  <td class="grow"><a data-open class="clip" title=${its.project} href=${to('projects', its.project)}><${Name} of=${its.project} /></a></td>
  <td class="nowrap">${its.doing}${instant(its.until) && html` <span class="muted">again <${Time} at=${its.until} past="now" /></span>`}</td>
  <td class="number" data-name="visits">${count(its.under_way)}</td>
  <td class="number" data-name="due">${count(its.ready)}</td>
  <td class="number" data-name="due later">${count(its.delayed)}</td>
  <td class="nowrap" data-name=${instant(its.first_due) ? 'first due' : undefined}>${instant(its.first_due) && html`<${Time} at=${its.first_due} past="now" />`}</td>
  <td class="full nowrap"><a href=${to('projects', its.project, { view: 'pages', filter: site })}>Pages</a></td></tr>`;

function Queues({ why }) {
  const more = why.host.project_count - why.projects.length;
  return html`<section class="card" aria-labelledby="queues"><header><h2 id="queues">Projects</h2><p>and what their queues have of
      it: the most important of the pages that wait</p></header>
    <div class="scroll" tabindex="0" role="group" aria-labelledby="queues"><table class="cards"><thead><tr><th>Project</th><th>Doing</th><th
        class="number">Visits there</th><th class="number">Due</th><th class="number">Due later</th><th>First due</th><th><span
        class="hidden-text">Pages</span></th></tr></thead>
      <tbody>${why.projects.map((its) => html`<${Queued} key=${its.project} site=${why.site} its=${its} />`)}</tbody></table></div>
    ${more > 0 && html`<p class="pager">${plural(more, 'more project', 'more projects')}</p>`}</section>`;
}

export function HostPage({ arg }) {
  const found = useResource((signal) => api.get('/v1/hosts/explain', { site: arg }, signal), [arg]);
  usePoll(found.reload, kPollMs, [arg]);
  const why = found.data;
  return html`<${Head} title=${why?.site ?? arg} back=${to('hosts')} />
    <${Problem} error=${found.error} retry=${found.reload} />
    ${why && !why.known && html`<section class="card"><${Empty} title="No project has pages there"><p><a href=${to('hosts')}>All
        hosts</a></p><//></section>`}
    ${why?.known && html`<${Why} why=${why} /><${Queues} why=${why} /><${Facts} host=${why.host} />`}`;
}
