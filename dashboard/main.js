// The frame around the pages: navigation, keyboard, the state of the stream, and which page is shown.
import * as api from './api.js';
import { brief } from './format.js';
import { html, render, useEffect, useRef, useState } from './lib.js';
import { live, useLive } from './live.js';
import { go, to, usePlace } from './router.js';
import { Dialog, Icon, Mark, Overlays } from './ui.js';
import { HostPage, HostsPage } from './pages/hosts.js';
import { JobPage } from './pages/job.js';
import { JobsPage } from './pages/jobs.js';
import { LogPage } from './pages/log.js';
import { OverviewPage } from './pages/overview.js';
import { ProjectPage } from './pages/project.js';
import { ProjectsPage } from './pages/projects.js';
import { QueuePage } from './pages/queue.js';
import { QueuesPage } from './pages/queues.js';
import { SchedulePage } from './pages/schedule.js';
import { SchedulesPage } from './pages/schedules.js';
import { SettingsPage } from './pages/settings.js';
import { SignInPage } from './pages/sign_in.js';
import { WhatIfPage } from './pages/what_if.js';
import { WorkersPage } from './pages/workers.js';

// `key`: what follows g. `one`: the page of one of them.
const pages = [
  { name: 'overview', title: 'Overview', key: 'o', all: OverviewPage },
  { name: 'jobs', title: 'Jobs', key: 'j', all: JobsPage, one: JobPage },
  { name: 'queues', title: 'Queues', key: 'q', all: QueuesPage, one: QueuePage },
  { name: 'schedules', title: 'Schedules', key: 's', all: SchedulesPage, one: SchedulePage },
  { name: 'projects', title: 'Projects', key: 'p', all: ProjectsPage, one: ProjectPage },
  { name: 'hosts', title: 'Hosts', key: 'h', all: HostsPage, one: HostPage },
  { name: 'workers', title: 'Workers', key: 'w', all: WorkersPage },
  { name: 'what-if', title: 'What if', key: 'f', all: WhatIfPage },
  { name: 'log', title: 'Log', key: 'l', all: LogPage },
  { name: 'settings', title: 'Settings', key: 't', all: SettingsPage },
];

const keys = [
  ...pages.map((p) => [`g ${p.key}`, p.title]),
  ['/', 'filter'],
  ['j  k', 'next row, row before'],
  ['Enter', 'open the row'],
  ['x', 'select the row'],
  ['n', 'put or add'],
  ['?', 'these keys'],
  ['Esc', 'close, leave a field'],
];

function Nav({ current }) {
  const { snapshot } = useLive((l) => l.snapshot?.totals.buried);
  const buried = snapshot?.totals.buried ?? 0;
  return html`<nav class="nav" aria-label="Pages">${pages.map(
    (p) => html`
    <a key=${p.name} href=${to(p.name)} aria-current=${p.name === current ? 'page' : undefined}>
      <${Icon} name=${p.name} />${p.title}
      ${p.name === 'jobs' && buried > 0 && html`<span class="nav-count" title="buried jobs">${brief(buried)}<span
          class="hidden-text"> buried</span></span>`}
    </a>`,
  )}</nav>`;
}

const words = {
  live: 'live',
  connecting: 'connecting …',
  waiting: 'no connection',
  hidden: 'paused while hidden',
  refused: 'not allowed',
};
const Stream = ({ status }) => html`<span class="stream" data-status=${status} role="status"><i></i>${words[status]}</span>`;

// Whether a daemon of another version answers than the one that this page came from.
function useNewer(status) {
  const [newer, setNewer] = useState(false);
  const known = useRef(null);
  useEffect(() => {
    if (status !== 'live') return;
    api.get('/v1/version').then(
      ({ version }) => setNewer(version !== (known.current ??= version)),
      () => {},
    );
  }, [status]);
  return newer;
}

function Banner() {
  const { status, problem } = useLive((l) => l.problem);
  const [late, setLate] = useState(false);
  const newer = useNewer(status);
  useEffect(() => {
    const timer = setTimeout(() => setLate(status === 'waiting'), status === 'waiting' ? 1200 : 0);
    return () => clearTimeout(timer);
  }, [status]);
  if (status === 'refused') {
    if (problem?.status === 401) return null; // the page asks for a token
    return html`<div class="banner" role="alert"><span>${problem?.message}</span><a href=${to('settings')}>Who you are</a></div>`;
  }
  if (newer && status === 'live') {
    return html`<div class="banner" role="status"><span>The daemon has another version than this page.</span><button
        class="quiet" onClick=${() => location.reload()}>Load it again</button></div>`;
  }
  if (!late || status !== 'waiting') return null;
  return html`<div class="banner" role="alert"><span>
      ${problem?.message ?? 'The daemon does not answer.'} What is shown is from before; trying again.</span>
    <button class="quiet" onClick=${() => live.restart()}>Try now</button></div>`;
}

function More({ close, current }) {
  return html`<${Dialog} title="More" close=${close}><div class="more-nav" onClick=${(e) => e.target.closest('a') && close()}>
      <${Nav} current=${current} /></div><//>`;
}
function Bottom({ current }) {
  const [open, setOpen] = useState(false);
  const first = pages.slice(0, 4);
  return html`<nav class="bottom" aria-label="Main pages">
    ${first.map((p) => html`<a key=${p.name} href=${to(p.name)} aria-current=${p.name === current ? 'page' : undefined}>
        <${Icon} name=${p.name} />${p.title}</a>`)}
    <button onClick=${() => setOpen(true)} aria-current=${first.some((p) => p.name === current) ? undefined : 'page'}><${Icon}
        name="more" />More</button>
    ${open && html`<${More} close=${() => setOpen(false)} current=${current} />`}
  </nav>`;
}

const Keys = ({ close }) => html`<${Dialog} title="Keyboard" close=${close}><div class="keys">
  ${keys.map(([key, does]) => html`<div key=${key}><span>${does}</span><span>${key.split(/ +/).map((k) => html`<kbd>${k}
      </kbd> `)}</span></div>`)}
</div><//>`;

const isTyping = (target) => target.closest?.('input:not([type=checkbox]), textarea, select, [contenteditable]');
const rows = () =>
  [...document.querySelectorAll('main [data-row]')].filter((row) => row.offsetParent !== null || row.getClientRects().length);

function moveRow(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(document.activeElement?.closest('[data-row]'));
  const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by))];
  next.focus();
  next.scrollIntoView({ block: 'nearest' });
}

// What a key does, while nothing is typed into.
function press(event, showKeys) {
  const row = document.activeElement?.closest?.('main [data-row]');
  const does = {
    '/': () => document.querySelector('main [data-filter]')?.focus(),
    '?': showKeys,
    j: () => moveRow(1),
    k: () => moveRow(-1),
    n: () => document.querySelector('main [data-new]')?.click(),
    x: () => row?.querySelector('input[type=checkbox]')?.click(),
  }[event.key];
  if (does) {
    event.preventDefault();
    does();
  } else if (event.key === 'Enter' && row && document.activeElement === row) {
    row.querySelector('[data-open]')?.click();
  }
}

function useKeyboard(showKeys) {
  const chord = useRef(0);
  useEffect(() => {
    const down = (event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (document.querySelector('dialog[open]')) return;
      if (isTyping(event.target)) return void (event.key === 'Escape' && event.target.blur());
      if (Date.now() - chord.current < 1200) {
        chord.current = 0;
        const page = pages.find((p) => p.key === event.key);
        if (page) {
          event.preventDefault();
          return go(to(page.name));
        }
      }
      if (event.key === 'g') chord.current = Date.now();
      else press(event, showKeys);
    };
    document.addEventListener('keydown', down);
    return () => document.removeEventListener('keydown', down);
  }, []);
}

// A new page begins at its top, with its heading read out.
function useArrival(place) {
  const known = useRef(null);
  useEffect(() => {
    const name = `${place.page}/${place.arg}`;
    if (known.current !== null && known.current !== name) {
      window.scrollTo(0, 0);
      document.querySelector('main h1')?.focus({ preventScroll: true });
    }
    known.current = name;
  });
}

function Missing() {
  return html`<div class="empty"><h1>There is no such page</h1><p><a href=${to('overview')}>Overview</a></p></div>`;
}

function App() {
  const place = usePlace();
  const { status, problem } = useLive((l) => l.problem);
  const [session, setSession] = useState(0);
  const [showsKeys, setShowsKeys] = useState(false);
  useKeyboard(() => setShowsKeys(true));
  useArrival(place);
  useEffect(() => {
    api.whoAsks().catch(() => {});
    return api.onSession(() => setSession((n) => n + 1));
  }, []);
  const page = pages.find((p) => p.name === place.page);
  const mustSignIn = status === 'refused' && problem?.status === 401;
  const Page = mustSignIn ? SignInPage : place.arg && page?.one ? page.one : (page?.all ?? Missing);
  useEffect(() => void (document.title = `${place.arg || page?.title || 'Not found'} · Argiope`), [place.page, place.arg]);
  const skip = (event) => {
    event.preventDefault();
    document.querySelector('main').focus();
  };
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the page</a>
    <div class="frame">
      <header class="side">
        <a class="brand" href=${to('overview')}><${Mark} />Argiope</a>
        <${Nav} current=${page?.name} />
        <div class="side-foot"><${Stream} status=${status} />
          <button class="quiet" onClick=${() => setShowsKeys(true)}><${Icon} name="help" />Keyboard <kbd>?</kbd></button></div>
      </header>
      <div>
        <${Banner} />
        <main id="main" tabindex="-1"><${Page} key=${`${place.page}/${place.arg}/${place.page === 'settings' ? '' : session}`}
            arg=${place.arg} params=${place.params} /></main>
      </div>
      <${Bottom} current=${page?.name} />
    </div>
    ${showsKeys && html`<${Keys} close=${() => setShowsKeys(false)} />`}
    <${Overlays} />`;
}

live.start();
const app = document.getElementById('app');
app.textContent = '';
render(html`<${App} />`, app);
