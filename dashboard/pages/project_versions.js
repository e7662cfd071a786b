// What the file and the script of a project were: differences, the way back, and the way on.
import * as api from '../api.js';
import { bytes, count } from '../format.js';
import { html, useEffect, useMemo, useRef, useState } from '../lib.js';
import { differences, hunks } from '../project_text.js';
import { go, to } from '../router.js';
import { Action, ask, Field, Name, Problem, Time, toast, useResource, Visible } from '../ui.js';
import { projectPath } from './project_controls.js';
import { showWrongLine, Source, WrongLine } from './project_form.js';

const kMostVersions = 200;
const kMostLines = 4000; // of a text or difference that is shown

// Its file as it was written; of one that came as JSON that.
const fileOf = (version) => version.source ?? (version.definition ? `${JSON.stringify(version.definition, null, 2)}\n` : '');

function Lines({ lines }) {
  return html`<div class="diff" tabindex="0" role="group" aria-label="Differences"><table><tbody>${lines
    .slice(0, kMostLines)
    .map((line, i) =>
      line.skipped
        ? html`<tr key=${i} class="skipped"><td colspan="3">${count(line.skipped)} ${line.skipped === 1 ? 'line is' : 'lines are'} the same</td></tr>`
        : html`<tr key=${i} data-kind=${line.kind}><td class="at">${line.before ?? ''}</td><td class="at">${line.after ?? ''}</td><td><span
            class="hidden-text">${{ '+': 'added: ', '-': 'removed: ' }[line.kind] ?? ''}</span><${Visible} text=${line.text || ' '} /></td></tr>`,
    )}</tbody></table>${lines.length > kMostLines && html`<p class="pager">${count(lines.length - kMostLines)} more lines</p>`}</div>`;
}

function Text({ title, before, after }) {
  const lines = useMemo(() => (before === null ? null : hunks(differences(before, after))), [before, after]);
  if (before === null) return html`<h3>${title}</h3><pre class="text" tabindex="0"><${Visible} text=${after} /></pre>`;
  const isSame = lines.every((line) => line.skipped);
  return html`<h3>${title}</h3>${isSame ? html`<p class="muted small">It is the same.</p>` : html`<${Lines} lines=${lines} />`}`;
}

// One version beside another: what changed from `from` to `number`. Without `from` it is shown as it is.
function Shown({ name, number, from }) {
  const load = (n, signal) => (n ? api.get(projectPath(name, `/versions/${n}`), null, signal) : null);
  const found = useResource((signal) => Promise.all([load(from, signal), load(number, signal)]), [name, number, from]);
  const [before, after] = found.data ?? [];
  if (!after) return html`<${Problem} error=${found.error} retry=${found.reload} />`;
  const hasScript = after.script != null || before?.script != null;
  return html`<div class="body texts" aria-busy=${found.loading}><${Problem} error=${found.error} />
    <${Text} title="File" before=${before ? fileOf(before) : null} after=${fileOf(after)} />
    ${hasScript && html`<${Text} title="Script" before=${before ? (before.script ?? '') : null} after=${after.script ?? ''} />`}</div>`;
}

function RollBack({ name, number, done }) {
  const back = async () => {
    const text = `A new version is made that is as version ${number} was. The versions between stay.`;
    if (!(await ask({ title: `Roll ${name} back to version ${number}?`, text, does: 'Roll back' }))) return;
    const now = await api.post(projectPath(name, '/roll-back'), { version: number }, api.once());
    toast(`Version ${now.version} of ${name} is as version ${number} was.`);
    done(now.version);
  };
  return html`<${Action} does=${back}>Roll back<//>`;
}

// The newest version, to be changed: what is saved is a new one.
function Edit({ project, close, done }) {
  const isJson = project.source == null;
  const [source, setSource] = useState(() => fileOf(project));
  const [script, setScript] = useState(project.script);
  const [why, setWhy] = useState('');
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const [began] = useState(project.version);
  const area = useRef(null);
  const save = async (event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      const now = await api.get(projectPath(project.name));
      const text = 'Someone has made another version meanwhile. What is saved now takes its place; it stays in the list.';
      if (now.version !== began && !(await ask({ title: `Save over version ${now.version}?`, text, does: 'Save' }))) return void setBusy(false);
      const body = isJson ? JSON.parse(source) : { source, ...(script != null && { script }), ...(why.trim() && { note: why.trim() }) };
      const made = await api.put(projectPath(project.name), body);
      toast(made.version === now.version ? 'Nothing has changed.' : `Version ${made.version} of ${project.name} is made.`);
      done(made.version);
    } catch (wrong) {
      setError(wrong);
      setBusy(false);
      showWrongLine(area.current, wrong, source);
    }
  };
  return html`<section class="card" aria-labelledby="edit"><header><h2 id="edit">A new version</h2><p>from version ${began}; it is in force when it is saved</p></header>
    <form class="body" onSubmit=${save}><${Problem} error=${error} /><${WrongLine} error=${error} source=${source} /><div class="form">
      <${Field} label="File" wide hint=${isJson ? 'JSON: docs/projects.md' : 'TOML: docs/projects.md'}><${Source} area=${area} value=${source} set=${setSource} required /><//>
      ${script != null && html`<${Field} label="Script" wide><${Source} value=${script} set=${setScript} required /><//>`}
      ${!isJson && html`<${Field} label="Why" wide hint="is shown in the list; who it was, if it is empty"><input value=${why} maxlength="200"
          onInput=${(e) => setWhy(e.target.value)} /><//>`}</div>
      <footer class="form-foot"><button class="primary" disabled=${busy}>Save</button><button type="button" class="quiet" onClick=${close}>Cancel</button>
        <a class="small" href=${to('projects', project.name, { view: 'debug' })}>Try it first in Debug</a></footer></form></section>`;
}

function Row({ version, name, newest, locked, shown, from, show, compare, done }) {
  const { number } = version;
  return html`<tr data-row tabindex="-1" data-selected=${number === shown}><td class="nowrap" data-name="version"><a data-open href=${show(number)}>${number}</a>${
    number === newest && html` <span class="tag">in force</span>`
  }</td>
    <td class="nowrap" data-name="made"><${Time} at=${version.made_at} /></td><td class="grow"><span class="clip" title=${version.note}><${Name} of=${version.note} /></span></td>
    <td class="number" data-name="file">${bytes(version.source_bytes)}</td><td class="number" data-name="script">${version.script_bytes ? bytes(version.script_bytes) : '–'}</td>
    <td class="full"><div class="row-actions">${number !== shown && html`<a class="button" aria-current=${number === from ? 'true' : undefined}
        href=${compare(number)}>${number === from ? 'Compared' : 'Compare'}</a>`}${
      number !== newest && !locked && html`<${RollBack} name=${name} number=${number} done=${done} />`
    }</div></td></tr>`;
}

export function ProjectVersions({ project, reload, params }) {
  const { name, locked } = project;
  const found = useResource((signal) => api.get(projectPath(name, '/versions'), { limit: kMostVersions }, signal), [name, project.version]);
  const [editing, setEditing] = useState(false);
  useEffect(() => setEditing(false), [name]);
  const versions = found.data?.versions ?? [];
  const known = versions.map((version) => version.number);
  const shown = known.find((n) => n === Number(params.version)) ?? known[0];
  // The version before, unless another one was chosen; "as it is" compares with none.
  const before = known[known.indexOf(shown) + 1] ?? null;
  const from = params.from === 'none' ? null : (known.find((n) => n === Number(params.from)) ?? before);
  const at = (more) => to('projects', name, { view: 'versions', ...more });
  const done = (number) => {
    setEditing(false);
    reload();
    go(at({ version: number }), { replace: true });
  };
  return html`${locked && html`<p class="note-line">The configuration names its file, which decides what it is: change it there. The daemon reads it again at SIGHUP.</p>`}
    <${Problem} error=${found.error} retry=${found.reload} />
    ${editing && html`<${Edit} project=${project} close=${() => setEditing(false)} done=${done} />`}
    <section class="card" aria-labelledby="versions"><header><h2 id="versions">Versions</h2><div class="head-actions">${
      !locked && !editing && html`<button onClick=${() => setEditing(true)} data-new>Edit</button>`
    }</div></header>
    <div class="scroll" tabindex="0" role="group" aria-labelledby="versions"><table class="cards"><thead><tr><th>Version</th><th>Made</th><th>By, or why</th>
      <th class="number">File</th><th class="number">Script</th><th><span class="hidden-text">Actions</span></th></tr></thead>
    <tbody>${versions.map(
      (version) => html`<${Row} key=${version.number} version=${version} name=${name} newest=${known[0]} locked=${locked} shown=${shown} from=${from} done=${done}
        show=${(n) => at({ version: n })} compare=${(n) => at({ version: shown, from: n })} />`,
    )}</tbody></table></div></section>
    ${
      shown !== undefined &&
      html`<section class="card" aria-labelledby="texts"><header><h2 id="texts">${from ? `From version ${from} to ${shown}` : `Version ${shown}`}</h2>${
        from
          ? html`<a class="small" href=${at({ version: shown, from: 'none' })}>All of version ${shown}</a>`
          : before && html`<a class="small" href=${at({ version: shown })}>What has changed</a>`
      }</header><${Shown} key=${`${from} ${shown}`} name=${name} number=${shown} from=${from} /></section>`
    }`;
}
