// A project's file and script as a form: of a new one, and of a new version.
import * as api from '../api.js';
import { html, useRef, useState } from '../lib.js';
import { startsOf, templateOf, withMember, wrongLine } from '../project_text.js';
import { Dialog, Field, Problem, toast, Visible } from '../ui.js';
import { projectPath } from './project_controls.js';

// The line that the daemon speaks of, as it is in the file.
export function WrongLine({ error, source }) {
  const wrong = error && wrongLine(error.message, source);
  return wrong && html`<pre class="wrong-line" aria-label="Line ${wrong.line} of the file"><span>${wrong.line}</span><code><${Visible}
      text=${wrong.text} /></code></pre>`;
}

// Puts the caret where the daemon found something wrong.
export function showWrongLine(area, error, source) {
  const wrong = wrongLine(error.message, source);
  if (!wrong || !area) return;
  const before = source.split('\n').slice(0, wrong.line - 1);
  const at = before.reduce((sum, line) => sum + line.length + 1, 0);
  area.focus();
  area.setSelectionRange(at, at + wrong.text.length);
  area.scrollTop = Math.max(0, before.length - 3) * parseFloat(getComputedStyle(area).lineHeight);
}

// A text in lines: Tab leaves it, as of any field.
export function Source({ area, value, set, rows = 18, ...more }) {
  return html`<textarea ref=${area} class="source" rows=${rows} spellcheck=${false} autocapitalize="off" value=${value}
      onInput=${(e) => set(e.target.value)} ...${more}></textarea>`;
}

const kinds = [
  ['rules', 'Rules in a file'],
  ['script', 'Script in Python'],
];

// What is written for each kind stays while the other one is looked at.
function useDraft() {
  const [draft, set] = useState(() => {
    const texts = Object.fromEntries(kinds.map(([kind]) => [kind, templateOf(kind, '', [])]));
    return { kind: 'rules', name: '', starts: '', texts };
  });
  const rewrite = (of) => (old, more) => {
    const texts = Object.fromEntries(Object.entries(old.texts).map(([kind, text]) => [kind, of(text)]));
    return { ...old, ...more, texts };
  };
  return {
    draft: { ...draft, ...draft.texts[draft.kind] },
    // The fields are told to the texts, whatever else was written there.
    name: (name) => set((old) => rewrite((text) => ({ ...text, source: withMember(text.source, 'name', name) }))(old, { name })),
    starts: (starts) => {
      const list = startsOf(starts);
      const told = ({ source, script }) => ({ source: withMember(source, 'start', list), script: withMember(script, 'START', list) });
      set((old) => rewrite(told)(old, { starts }));
    },
    kind: (kind) => set((old) => ({ ...old, kind })),
    write: (change) => set((old) => ({ ...old, texts: { ...old.texts, [old.kind]: { ...old.texts[old.kind], ...change } } })),
  };
}

// `names`: those that are taken.
export function NewProject({ names, close, done }) {
  const { draft, name, starts, kind, write } = useDraft();
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const area = useRef(null);
  const save = async (event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      if (names.includes(draft.name.trim())) throw new Error(`There is a project ${draft.name.trim()} already.`);
      await api.put(projectPath(draft.name.trim()), { source: draft.source, ...(draft.script && { script: draft.script }) });
      toast(`${draft.name.trim()} is made. Try a page, then set its status.`);
      close();
      done(draft.name.trim());
    } catch (wrong) {
      setError(wrong);
      setBusy(false);
      showWrongLine(area.current, wrong, draft.source);
    }
  };
  return html`<${Dialog} title="New project" close=${close} wide><${Problem} error=${error} /><${WrongLine} error=${error} source=${draft.source} />
    <form onSubmit=${save}><div class="form">
      <${Field} label="Name" hint="letters, digits, _, - and ." error=${error?.at?.('/project/name')}><input value=${draft.name}
          onInput=${(e) => name(e.target.value)} required maxlength="64" pattern="[A-Za-z0-9_.\\-]+" autofocus autocomplete="off" spellcheck=${false} /><//>
      <div class="field"><span class="label">What reads its pages</span><div class="segments" role="group" aria-label="What reads its pages">${kinds.map(
        ([key, title]) => html`<button key=${key} type="button" aria-pressed=${draft.kind === key} onClick=${() => kind(key)}>${title}</button>`,
      )}</div></div>
      <${Field} label="Where it starts" wide hint="URLs, one a line"><textarea class="starts" rows="2" spellcheck=${false} value=${draft.starts}
          placeholder="https://shop.example/" onInput=${(e) => starts(e.target.value)}></textarea><//>
      ${draft.kind === 'script' && html`<${Field} label="Script" wide hint="docs/processors.md; scripts of pyspider’s run as they are"><${Source}
          value=${draft.script} set=${(script) => write({ script })} required /><//>`}
      <${Field} label="File" wide hint="TOML: docs/projects.md"><${Source} area=${area} rows=${draft.kind === 'script' ? 6 : 18} value=${draft.source}
          set=${(source) => write({ source })} required /><//></div>
      <footer class="form-foot"><button class="primary" disabled=${busy}>Make it</button><button type="button" class="quiet" onClick=${close}>Cancel</button>
        <span class="muted small">Nothing is visited yet: its status is what the file says.</span></footer></form><//>`;
}
