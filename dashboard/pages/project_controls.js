// What several pages of projects show: a status as a select, a value that is edited in its place, bars of counts, and the buttons.
import * as api from '../api.js';
import { brief, instant, moment } from '../format.js';
import { html, useEffect, useRef, useState } from '../lib.js';
import { countedIn, countsOf, countsText, isVisited, kStatuses, rateText, readRate } from '../project_text.js';
import { to } from '../router.js';
import { Action, Name, toast } from '../ui.js';

export const projectPath = (name, what = '') => `/v1/projects/${api.part(name)}${what}`;

// `changed` is given the project as it is afterwards.
export function StatusSelect({ project, changed }) {
  const [busy, setBusy] = useState(false);
  const set = async ({ target }) => {
    setBusy(true);
    try {
      changed(await api.patch(projectPath(project.name), { status: target.value }));
    } catch (error) {
      target.value = project.status;
      toast(error.message, { bad: true });
    }
    setBusy(false);
  };
  return html`<select class="status" data-status=${project.status} aria-label="Status of ${project.name}" value=${project.status}
      disabled=${busy} onChange=${set}>${kStatuses.map((s) => html`<option key=${s} value=${s}>${s}</option>`)}</select>`;
}

// A text that becomes a field when it is pressed. Enter and leaving it saves, Escape does not. `save` may throw.
function InPlace({ value, shown = value, label, hint, title, save }) {
  const [text, setText] = useState(null);
  const at = useRef(null);
  const again = useRef(null);
  const isOpen = useRef(false); // a field that is taken away is left, too, and Enter is not to save twice
  useEffect(() => void (text !== null && at.current.select()), [text === null]);
  const open = () => {
    isOpen.current = true;
    setText(value);
  };
  const close = (isLeft) => {
    setText(null);
    if (!isLeft) requestAnimationFrame(() => again.current?.focus());
  };
  const end = async (event, isLeft) => {
    event.preventDefault();
    if (!isOpen.current) return;
    isOpen.current = false;
    try {
      if (text !== value) await save(text);
      close(isLeft);
    } catch (error) {
      isOpen.current = true;
      toast(error.message, { bad: true });
    }
  };
  const key = (event) => {
    if (event.key !== 'Escape') return;
    event.preventDefault();
    event.stopPropagation();
    isOpen.current = false;
    close(false);
  };
  if (text === null)
    return html`<button type="button" class="in-place" ref=${again} title=${title} aria-label="${label}: ${shown || 'none'}, change it"
        onClick=${open}>${shown ? html`<${Name} of=${shown} />` : html`<span class="muted">–</span>`}</button>`;
  return html`<form class="in-place" onSubmit=${(e) => end(e, false)}><input ref=${at} aria-label=${label} placeholder=${hint} value=${text}
      onInput=${(e) => setText(e.target.value)} onKeyDown=${key} onBlur=${(e) => end(e, true)} autocomplete="off" /></form>`;
}

const kRateHint = 'Visits a second, and how many at once after a rest: 2/5. Nothing: as its file says.';
export function RateInPlace({ project, changed }) {
  const save = async (text) => {
    const members = readRate(text);
    if (!members) throw new Error(kRateHint);
    changed(await api.patch(projectPath(project.name), members));
  };
  return html`<${InPlace} value=${rateText(project)} shown=${rateText(project) || 'no limit'} label="Rate and burst of ${project.name}"
      hint="2/5" title=${kRateHint} save=${save} />`;
}

export function GroupInPlace({ project, changed }) {
  const save = async (text) => changed(await api.patch(projectPath(project.name), { group: text.trim() }));
  return html`<${InPlace} value=${project.group} label="Group of ${project.name}" title="A word by which projects are sorted" save=${save} />`;
}

// Pending, success, retry and failed of a span as one bar, with how many there are; each number is in its title.
export function Counts({ counts, span }) {
  const all = countedIn(counts, span);
  return html`<span class="counted" aria-hidden="true">${all ? brief(all) : '\u00a0'}</span><${CountsBar} counts=${counts} span=${span} />`;
}
export function CountsBar({ counts, span }) {
  const text = countsText(counts, span);
  const parts = countsOf(counts, span).filter((part) => part.value > 0);
  return html`<span class="bar" role="img" aria-label=${text} title=${text}>${parts.map((part) => html`<span key=${part.state}
      data-state=${part.state} style=${{ flexGrow: part.value }}></span>`)}</span>`;
}

// What is to be known besides its status: paused, probing, in trouble, locked.
export function DoingTags({ project }) {
  const { doing, trouble, locked } = project;
  const until = instant(project.until);
  const untilText = until ? `until ${moment(until)}` : '';
  return html`${doing === 'paused' && html`<span class="tag" data-kind="warn" title=${`Its visits kept failing; ${untilText}`}>paused</span>`}${
    doing === 'probing' && html`<span class="tag" data-kind="warn" title="Three visits are let through after a pause">probing</span>`
  }${(doing === 'standing' || trouble) && html`<span class="tag" data-kind="bad" title=${trouble}>trouble</span>`}${
    locked && html`<span class="tag" title="The configuration names its file, which decides what it is">locked</span>`
  }`;
}

export function StartRound({ project, changed }) {
  const start = async () => {
    const now = await api.post(projectPath(project.name, '/start'), {}, api.once());
    toast(now.round ? `Round ${now.round.number} of ${project.name} is under way.` : `${project.name} has started.`);
    changed(now);
  };
  return html`<${Action} does=${start} icon="play" disabled=${!isVisited(project.status)}
      title=${isVisited(project.status) ? 'Begin a round: visit its starts' : 'Its status must be DEBUG or RUNNING'}>Run<//>`;
}

export async function restoreProject(name) {
  await api.post(projectPath(name, '/restore'), {}, api.once());
}

// For 24 hours it can be restored.
export async function removeProject(name, done) {
  await api.del(projectPath(name));
  toast(`${name} is deleted. For 24 hours it can be restored.`, {
    undo: async () => (await restoreProject(name), done()),
    undone: `${name} is back.`,
  });
  done();
}

export const viewOf = (name, view) => to('projects', name, { view });
