// All projects, as a table: group, name, status, rate and burst edited in place, and what became of pages lately.
import * as api from '../api.js';
import { count, instant, moment, plural, span } from '../format.js';
import { html, useEffect, useMemo, useRef, useState } from '../lib.js';
import { usePoll } from '../live.js';
import { isVisited, keepSame } from '../project_text.js';
import { go, to } from '../router.js';
import { Action, Command, Empty, Filter, fits, Head, Icon, Name, Problem, Time, toast, useResource } from '../ui.js';
import { NewProject } from './project_form.js';
import { Counts, DoingTags, GroupInPlace, RateInPlace, restoreProject, StartRound, StatusSelect, viewOf } from './project_controls.js';

const kPollMs = 2000;
const kMostShown = 2000;
const kScreenful = 20; // rows; those beyond are drawn after it was seen
const kSpans = ['5m', '1h', '1d', 'all'];
const kHeads = { '5m': '5 min', '1h': '1 h', '1d': '1 d', all: 'All' };
const kKeptMs = 24 * 3_600_000;

function Row({ project, changed }) {
  const { name, mean_ms: mean = {}, under_way: underWay } = project;
  return html`<tr data-row tabindex="-1">
    <td data-name="group"><${GroupInPlace} project=${project} changed=${changed} /></td>
    <td class="grow first"><a data-open class="clip" title=${name} href=${to('projects', name)}><${Name} of=${name} /></a>
      <${DoingTags} project=${project} />${underWay > 0 && html`<span class="muted small">${plural(underWay, 'visit')} under way</span>`}</td>
    <td data-name=""><${StatusSelect} project=${project} changed=${changed} /></td>
    <td data-name="rate"><${RateInPlace} project=${project} changed=${changed} /></td>
    <td class="number" data-name="fetch, process" title="Of the visits of the last five minutes: fetched in, processed in">${
      mean.fetch > 0 ? span(mean.fetch) : '–'
    } <span class="muted">/ ${mean.process > 0 ? span(mean.process) : '–'}</span></td>
    ${kSpans.map((of) => html`<td key=${of} class="counts" data-name=${kHeads[of]}><${Counts} counts=${project.counts} span=${of} /></td>`)}
    <td class="full"><div class="row-actions"><${StartRound} project=${project} changed=${changed} /><a href=${viewOf(name, 'debug')}>Debug</a><a
        href=${viewOf(name, 'pages')}>Pages</a><a href=${viewOf(name, 'results')}>Results</a></div></td></tr>`;
}

// Rows of projects; of one that has not changed it is the same as before, and so it is not drawn again.
function useRows(changed) {
  const rows = useRef(new Map());
  const current = useRef(changed);
  current.current = changed;
  return (project) => {
    const known = rows.current.get(project.name);
    if (known?.project === project) return known.row;
    const row = html`<${Row} key=${project.name} project=${project} changed=${(now) => current.current(now)} />`;
    rows.current.set(project.name, { project, row });
    return row;
  };
}

// How many rows are drawn: a screenful, and soon all.
function useSoon(all) {
  const [n, set] = useState(kScreenful);
  useEffect(() => {
    if (n >= all) return undefined;
    const timer = setTimeout(() => set((old) => old + 100), 10);
    return () => clearTimeout(timer);
  }, [n, all]);
  return n;
}

// By group; those without one come last.
function grouped(projects) {
  const groups = new Map();
  for (const project of projects) {
    if (!groups.has(project.group)) groups.set(project.group, []);
    groups.get(project.group).push(project);
  }
  return [...groups].sort(([a], [b]) => (a === '') - (b === '') || a.localeCompare(b));
}

function GroupHead({ name, projects, isOpen, turn }) {
  const running = projects.filter((p) => isVisited(p.status)).length;
  return html`<tr class="group-head"><th colspan="10" scope="rowgroup"><button type="button" class="quiet" aria-expanded=${isOpen} onClick=${turn}><${Icon}
      name="forward" /><span class="group-name" title=${name}><${Name} of=${name || 'no group'} /></span> <span class="muted">${plural(projects.length, 'project')}${
        running ? `, ${count(running)} running` : ''
      }</span></button></th></tr>`;
}

function Table({ projects, isGrouped, changed }) {
  const rowOf = useRows(changed);
  const [closed, setClosed] = useState(() => new Set());
  const turn = (name) =>
    setClosed((old) => {
      const now = new Set(old);
      if (!now.delete(name)) now.add(name);
      return now;
    });
  const shown = projects.slice(0, kMostShown);
  let left = useSoon(shown.length);
  const some = (of) => {
    const taken = of.slice(0, Math.max(0, left));
    left -= taken.length;
    return taken.map(rowOf);
  };
  const rows = isGrouped
    ? grouped(shown).map(
        ([name, of]) => html`<${GroupHead} key=${`group ${name}`} name=${name} projects=${of} isOpen=${!closed.has(name)} turn=${() => turn(name)} />
          ${!closed.has(name) && some(of)}`,
      )
    : some(shown);
  return html`<div class="scroll" tabindex="0"><table class="cards projects"><thead><tr><th>Group</th><th>Project</th><th>Status</th>
      <th title="Visits a second, and how many at once after a rest">Rate/burst</th><th class="number">Fetch / process</th>
      ${kSpans.map((of) => html`<th key=${of} title=${of === 'all' ? 'Its pages as they are now' : 'Visits that have ended'}>${kHeads[of]}</th>`)}<th><span class="hidden-text">Actions</span></th></tr></thead>
    <tbody>${rows}</tbody></table></div>
    ${projects.length > kMostShown && html`<p class="pager">${count(projects.length - kMostShown)} more: filter by name.</p>`}`;
}

const Legend = () => html`<p class="legends small">${[
  ['pending', 'asked for'],
  ['success', 'visited well'],
  ['retry', 'failed, and tried again'],
  ['failed', 'failed for good'],
].map(([state, words]) => html`<span key=${state} class="legend" title=${words}><i data-state=${state}></i>${state}</span>`)}</p>`;

function Deleted({ projects, restored }) {
  const restore = async (name) => {
    await restoreProject(name);
    toast(`${name} is back.`);
    restored();
  };
  return html`<section class="card" aria-labelledby="deleted"><header><h2 id="deleted">Deleted</h2><p>for 24 hours they can be restored</p>
    </header><ul class="list">${projects.map(({ name, deleted_at: at }) => html`<li key=${name}><span><${Name} of=${name} /></span><span
        class="list-actions"><span>for good <${Time} at=${instant(at) + kKeptMs} /></span> <${Action} does=${() => restore(name)}>Restore<//></span></li>`)}</ul></section>`;
}

const None = () => html`<section class="card"><${Empty} title="No projects yet">
  <p>A project visits pages again and again, and takes results from them: by rules in a file, or by a script. Make one here (<kbd>n</kbd>).</p><//></section>`;
const Without = () => html`<section class="card"><${Empty} title="This daemon has no projects">
  <p>It keeps them in a database of their own, which it is given at its start:</p>
  <${Command} text="argiope serve --pages pages.db" /><//></section>`;

// What is a list's member, of what is told of one project.
const only = (like, all) => Object.fromEntries(Object.keys(like).map((member) => [member, all[member]]));

export function ProjectsPage({ params }) {
  const last = useRef(null);
  const found = useResource(async (signal) => {
    const { projects, deleted } = await api.get('/v1/projects', null, signal);
    return { projects: keepSame(last.current?.projects, projects), deleted };
  }, []);
  last.current = found.data;
  usePoll(found.reload, kPollMs);
  const [adding, setAdding] = useState(false);
  const all = found.data?.projects ?? [];
  const deleted = found.data?.deleted ?? [];
  // A look that is under way may have been answered before.
  const changed = (now) => {
    found.put({ ...last.current, projects: last.current.projects.map((p) => (p.name === now.name ? only(p, now) : p)) });
    found.reload();
  };
  const shown = useMemo(
    () => all.filter((p) => fits(`${p.name} ${p.group} ${p.status} ${p.doing}`, params.filter)),
    [found.data, params.filter],
  );
  const hasNone = found.error?.status === 404;
  const running = all.filter((p) => isVisited(p.status)).length;
  const isGrouped = params.by === 'group';
  const order = (by) => () => go(to('projects', '', { ...params, by }), { replace: true });
  const note = all.length > 0 && html`<span class="muted">${count(running)} of ${count(all.length)} running</span>`;
  return html`<${Head} title="Projects" note=${note}>${!hasNone && html`<button class="primary" data-new onClick=${() => setAdding(true)}><${Icon}
      name="plus" />New project</button>`}<//>
    ${hasNone ? html`<${Without} />` : html`<${Problem} error=${found.error} retry=${found.reload} />`}
    ${found.data && !all.length && html`<${None} />`}
    ${
      all.length > 0 &&
      html`<section class="card" aria-label="Projects"><div class="filters"><${Filter} hint="filter by name, group or status" value=${params.filter}
          apply=${(filter) => go(to('projects', '', { ...params, filter }), { replace: true })} />
        <div class="segments" role="group" aria-label="Order"><button type="button" aria-pressed=${!isGrouped} onClick=${order('')}>By name</button><button
            type="button" aria-pressed=${isGrouped} onClick=${order('group')}>By group</button></div><${Legend} /></div>
        ${shown.length ? html`<${Table} projects=${shown} isGrouped=${isGrouped} changed=${changed} />` : html`<p class="calm">None fits the filter.</p>`}</section>`
    }
    ${deleted.length > 0 && html`<${Deleted} projects=${deleted} restored=${found.reload} />`}
    ${adding && html`<${NewProject} names=${all.map((p) => p.name)} close=${() => setAdding(false)} done=${(name) => go(viewOf(name, 'debug'))} />`}`;
}
