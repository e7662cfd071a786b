// Who asks, the look, and what the daemon runs with.
import * as api from '../api.js';
import { prettyJson } from '../format.js';
import { html, useState } from '../lib.js';
import { TokenForm } from './sign_in.js';
import { Action, Copy, Head, Name, Problem, Since, toast, useResource } from '../ui.js';

function themeNow() {
  return document.documentElement.dataset.theme ?? 'system';
}
function setTheme(theme) {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (theme === 'system') localStorage.removeItem('argiope.theme');
    else localStorage.setItem('argiope.theme', theme);
  } catch {
    // Storage is switched off; it lasts until the page is loaded again.
  }
}

function Theme() {
  const [theme, set] = useState(themeNow);
  const choose = (name) => () => (setTheme(name), set(name));
  return html`<section class="card" aria-labelledby="look"><header><h2 id="look">Look</h2></header><div class="body"><div
      class="segments" role="group" aria-label="Theme">
    ${[
      ['system', 'As the system'],
      ['light', 'Light'],
      ['dark', 'Dark'],
    ].map(
      ([name, label]) => html`<button key=${name} aria-pressed=${theme === name} onClick=${choose(name)}>${label}</button>`,
    )}</div></div></section>`;
}

// Who asks, in a sentence.
function Caller({ caller }) {
  if (caller.by === 'nothing') return html`<p class="muted">The daemon has no tokens: whoever reaches it may do everything.</p>`;
  const names = caller.prefixes.map((p, i) => html`${i > 0 && ', '}<code><${Name} of=${p} />…</code>`);
  return html`<p>You are <b><${Name} of=${caller.name} /></b>, and may ${does[caller.scope] ?? caller.scope}${names.length > 0 &&
      html`, of what is named ${names}`}.</p>`;
}
const does = { read: 'look', work: 'look, and put and work jobs', admin: 'do everything' };

function Session() {
  const found = useResource(api.whoAsks, []);
  const leave = async () => {
    await api.signOut();
    found.put(null);
    toast('Signed out.');
  };
  const caller = found.data;
  return html`<section class="card" aria-labelledby="token"><header><h2 id="token">Token</h2>
      ${caller?.by === 'session' && html`<${Action} does=${leave}>Sign out<//>`}</header>
    <div class="body">${caller && html`<${Caller} caller=${caller} />`}
      ${caller && caller.by !== 'nothing' && caller.by !== 'session' && html`<div class="spaced"><${TokenForm} done=${found.put} /></div>`}</div></section>`;
}

function Version() {
  const found = useResource((signal) => api.get('/v1/version', null, signal), []);
  const v = found.data;
  return html`<section class="card" aria-labelledby="daemon"><header><h2 id="daemon">Daemon</h2></header><div class="body">
      <${Problem} error=${found.error} />
    ${
      v &&
      html`<dl class="facts"><dt>Address</dt><dd><code>${api.base}</code></dd><dt>Version</dt><dd>${v.version}, API ${v.api}
          </dd><dt>Store</dt><dd><code>${v.store}</code></dd><dt>Up for</dt><dd><${Since} at=${v.started_at} /></dd>
      <dt>For tools</dt><dd><a href="v1/openapi.json">OpenAPI</a>, <a href="metrics">Prometheus</a></dd><dt>This page</dt>
          <dd>is made with preact, htm and uPlot (<a href="ui/licenses.txt">licenses</a>)</dd></dl>`
    }</div></section>`;
}

function Config() {
  const found = useResource((signal) => api.get('/v1/config', null, signal), []);
  const text = found.data ? prettyJson(JSON.stringify(found.data)) : '';
  return html`<section class="card" aria-labelledby="config"><header><h2 id="config">Configuration in force</h2>
      ${text && html`<${Copy} text=${text} />`}</header>
    <div class="body"><${Problem} error=${found.error} retry=${found.reload} />${text && html`<pre class="text" tabindex="0"
        aria-labelledby="config">${text}</pre>`}</div></section>`;
}

export function SettingsPage() {
  return html`<${Head} title="Settings" /><div class="columns even"><div class="stack"><${Session} /><${Theme} /><${Version} />
      </div><${Config} /></div>`;
}
