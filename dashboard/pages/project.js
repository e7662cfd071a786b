// One project: what all its views have in common.
import * as api from '../api.js';
import { html, useEffect, useRef } from '../lib.js';
import { usePoll } from '../live.js';
import { isVisited } from '../project_text.js';
import { go, to } from '../router.js';
import { Action, ask, Empty, Head, Problem, toast, useResource } from '../ui.js';
import { ProjectDebug } from './project_debug.js';
import { ProjectOverview } from './project_overview.js';
import { ProjectPages } from './project_pages.js';
import { DoingTags, projectPath, removeProject, StartRound, StatusSelect } from './project_controls.js';
import { ProjectResults } from './project_results.js';
import { ProjectVersions } from './project_versions.js';

const kPollMs = 2000;

const views = [
  ['', 'Overview', ProjectOverview],
  ['pages', 'Pages', ProjectPages],
  ['results', 'Results', ProjectResults],
  ['versions', 'Versions', ProjectVersions],
  ['debug', 'Debug', ProjectDebug],
];

function Views({ name, view }) {
  const nav = useRef(null);
  useEffect(() => nav.current.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' }), [view]);
  return html`<nav class="views" aria-label="Views of the project" ref=${nav}>${views.map(
  ([key, title]) => html`<a key=${key} href=${to('projects', name, { view: key })} aria-current=${
    key === view ? 'page' : undefined
  }>${title}</a>`,
)}</nav>`;
}

function StopOrRun({ project, changed }) {
  const runs = isVisited(project.status);
  const turn = async () => changed(await api.patch(projectPath(project.name), { status: runs ? 'STOP' : 'RUNNING' }));
  return html`<${Action} does=${turn} icon=${runs ? 'pause' : 'play'}
      title=${runs ? 'Visit no more pages; those under way are ended' : 'Visit its pages'}>${runs ? 'Stop' : 'Set running'}<//>`;
}

function Resume({ project, changed }) {
  const resume = async () => {
    changed(await api.post(projectPath(project.name, '/resume'), {}, api.once()));
    toast(`${project.name} goes on.`);
  };
  return html`<${Action} does=${resume} icon="play" title="End the pause after failures now">Resume<//>`;
}

function Remove({ project }) {
  const remove = async () => {
    const text = 'Its pages are visited no more, and its results are not shown. For 24 hours it can be restored, with all it has.';
    if (await ask({ title: `Delete ${project.name}?`, text, does: 'Delete', danger: true }))
      await removeProject(project.name, () => go(to('projects')));
  };
  return html`<${Action} does=${remove} class="danger" disabled=${project.locked}
      title=${project.locked ? 'The configuration names its file: take it out there' : ''}>Delete<//>`;
}

// Each view is given `project` (as GET /v1/projects/{project} tells it), `reload` of it, and the place's `params`.
export function ProjectPage({ arg, params }) {
  const found = useResource((signal) => api.get(projectPath(arg), null, signal), [arg]);
  const [view, , View] = views.find(([key]) => key === (params.view ?? '')) ?? views[0];
  const project = found.data;
  usePoll(() => view === '' && found.reload(), kPollMs);
  if (found.error?.status === 404) {
    return html`<${Head} title=${arg} back=${to('projects')} /><section class="card"><${Empty} title="There is no such project">
        <p>One that was deleted can be restored for 24 hours. <a href=${to('projects')}>All projects</a></p><//></section>`;
  }
  const changed = (now) => (found.put(now), found.reload());
  const isPaused = project && (project.doing === 'paused' || project.doing === 'probing');
  const note = project && html`<${DoingTags} project=${project} />`;
  return html`<${Head} title=${arg} back=${to('projects')} note=${note}>
      ${
        project &&
        html`<${StatusSelect} project=${project} changed=${changed} /><${StartRound} project=${project} changed=${changed} />${
          isPaused && html`<${Resume} project=${project} changed=${changed} />`
        }<${StopOrRun} project=${project} changed=${changed} /><${Remove} project=${project} />`
      }<//><${Views} name=${arg} view=${view} />
    <${Problem} error=${found.error} retry=${found.reload} />
    ${project && html`<${View} project=${project} reload=${found.reload} params=${params} />`}`;
}
