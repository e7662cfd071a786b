// A project's first view: what it does and why, how visits go, its rounds, its rules with how often each field is found, its sinks and
// hosts, and the visits that ended lately.
import * as api from '../api.js';
import { brief, count, instant, plural, rate, span } from '../format.js';
import { html, useMemo, useState } from '../lib.js';
import { usePoll } from '../live.js';
import { Plot } from '../plot.js';
import { countsOf, doingSentence, ratesOf } from '../project_text.js';
import { to } from '../router.js';
import { Name, Problem, Time, useResource } from '../ui.js';
import { CountsBar, GroupInPlace, projectPath, RateInPlace } from './project_controls.js';
import { outcome, PageCell } from './project_parts.js';

const kPollMs = 2000;
const kHostsPollMs = 10_000;
const kFewVisits = 15; // that are shown at first
const kMostHostsShown = 20;

const tones = { visiting: 'running', waiting: 'ready', paused: 'delayed', probing: 'delayed', standing: 'buried', stopped: 'cancelled' };

const untils = { paused: 'It tries again', probing: 'The probe ends' };
function Why({ project }) {
  const until = instant(project.until);
  return html`<div class="why" data-state=${tones[project.doing]}><div><p><${Name} of=${doingSentence(project)} />${
    until && html` <span class="small">${untils[project.doing] ?? 'It goes on'} <${Time} at=${until} past="now" /></span>`
  }</p>${project.alarms?.length > 0 && html`<ul class="alarms">${project.alarms.map((alarm) => html`<li key=${alarm}><span class="tag" data-kind="warn">alarm</span> 
      <${Name} of=${alarm} /></li>`)}</ul>`}</div></div>`;
}

// --- how visits go

const kPlotted = ['success', 'retry', 'failed'];
const series = [
  { label: 'success', color: '--done', fill: true },
  { label: 'retry', color: '--running' },
  { label: 'failed', color: '--buried' },
];
const kPlots = { '5m': '5 min', '1h': '1 h', '1d': '1 d' };

function Visits({ project }) {
  const [of, setOf] = useState('5m');
  const columns = useMemo(() => ratesOf(project.history?.[of], kPlotted), [project, of]);
  if (!columns) return null;
  const { began, ended } = project.history[of];
  return html`<section class="card" aria-labelledby="visits"><header><h2 id="visits">Visits a second</h2><div class="segments" role="group"
      aria-label="How far back">${Object.entries(kPlots).map(([key, title]) => html`<button key=${key} type="button" aria-pressed=${key === of}
      onClick=${() => setOf(key)}>${title}</button>`)}</div></header>
    <${Plot} key=${of} data=${columns} series=${series} format=${rate} seconds=${(instant(ended) - instant(began)) / 1000} label="" version=${project} /></section>`;
}

const kSpanHeads = [
  ['5m', '5 minutes'],
  ['1h', 'an hour'],
  ['1d', 'a day'],
  ['all', 'all, now'],
];
function Counts({ project }) {
  const states = countsOf(project.counts, 'all').map((part) => part.state);
  return html`<section class="card" aria-labelledby="counts"><header><h2 id="counts">What became of pages</h2></header><div class="scroll" tabindex="0"
      role="group" aria-labelledby="counts"><table class="counts-table"><thead><tr><th><span class="hidden-text">In the last</span></th>${states.map(
        (state) => html`<th key=${state} class="number"><span class="legend"><i data-state=${state}></i>${state}</span></th>`,
      )}<th class="wide-bar"><span class="hidden-text">Shares</span></th></tr></thead><tbody>${kSpanHeads.map(
        ([of, title]) => html`<tr key=${of}><td class="nowrap">${title}</td>${countsOf(project.counts, of).map(
          (part) => html`<td key=${part.state} class="number" title=${count(part.value)}>${brief(part.value)}</td>`,
        )}<td class="wide-bar"><${CountsBar} counts=${project.counts} span=${of} /></td></tr>`,
      )}</tbody></table></div></section>`;
}

// --- what it is

function Facts({ project, reload }) {
  const { definition, mean_ms: mean = {} } = project;
  const own = definition?.project ?? {};
  const list = (value) => (Array.isArray(value) ? value : value == null ? [] : [value]);
  const row = (name, value) => value && html`<dt>${name}</dt><dd>${value}</dd>`;
  const starts = list(own.start);
  return html`<section class="card" aria-labelledby="facts"><header><h2 id="facts">Facts</h2></header><div class="body"><dl class="facts">
    <dt>Group</dt><dd><${GroupInPlace} project=${project} changed=${reload} /></dd>
    <dt>Rate/burst</dt><dd><${RateInPlace} project=${project} changed=${reload} /></dd>
    <dt>Next start</dt><dd><${Time} at=${project.next_start} empty="when it is told to" past="due" />${own.every != null && html`, every <${Name}
        of=${String(own.every)} />`}</dd>
    <dt>Pages</dt><dd><a href=${to('projects', project.name, { view: 'pages' })}>${count(project.pages)}</a></dd>
    <dt>Results</dt><dd><a href=${to('projects', project.name, { view: 'results' })}>${count(project.results)}</a></dd>
    ${row('Mean time', (mean.fetch > 0 || mean.process > 0) && `${span(mean.fetch)} to fetch, ${span(mean.process)} to process`)}
    ${row(
      'Starts',
      starts.length > 0 &&
        html`${starts.slice(0, 5).map((start) => html`<div key=${start}><${Name} of=${start} /></div>`)}${
          starts.length > 5 && html`<span class="muted">and ${count(starts.length - 5)} more</span>`
        }`,
    )}
    ${row('Scope', own.scope && html`<${Name} of=${list(own.scope).join(', ')} />`)}
    ${row('Script', Array.isArray(own.processor) && html`<code><${Name} of=${own.processor.join(' ')} /></code>`)}
    ${row('Webhook', own.processor?.webhook && html`<${Name} of=${own.processor.webhook} />`)}
    <dt>Version</dt><dd><a href=${to('projects', project.name, { view: 'versions' })}>${project.version}</a>, <${Time} at=${project.changed_at} /></dd>
    </dl></div></section>`;
}

const kAges = [
  ['age', (age) => `fresh for ${age}`],
  ['auto_recrawl', (is) => is && 'visited again by itself'],
  ['revisit', (how) => `revisited: ${Array.isArray(how) ? how.join('..') : how}`],
  ['follow', (what) => (what === false ? 'follows no links' : Array.isArray(what) || typeof what === 'string' ? `follows ${[what].flat().join(', ')}` : null)],
  ['priority', (n) => n && `priority ${n}`],
  ['retries', (n) => `${n} retries`],
  ['tag', (tag) => `tag ${tag}`],
  ['each', (what) => `a result for each ${typeof what === 'string' ? what : JSON.stringify(what)}`],
];
const termsOf = (rule) => kAges.map(([name, words]) => (rule[name] === undefined ? null : words(rule[name]))).filter(Boolean);

function Coverage({ found, wanted }) {
  if (!found?.records) return html`<span class="muted">–</span>`;
  const share = found.found / found.records;
  const isLow = wanted != null && share < wanted;
  const title = `in ${count(found.found)} of ${plural(found.records, 'record')}${found.dropped ? `, ${count(found.dropped)} of them dropped` : ''}${
    wanted == null ? '' : `; at least ${Math.round(wanted * 100)}% is wanted`
  }`;
  return html`<span class="coverage" title=${title}><span class="bar" role="img" aria-label=${title}><span data-state=${isLow ? 'failed' : 'success'}
      style=${{ flexGrow: share }}></span><i style=${{ flexGrow: 1 - share }}></i></span><span class=${isLow ? 'bad' : ''}>${Math.floor(share * 100)}%</span></span>`;
}

function Rules({ project }) {
  const { definition } = project;
  const rules = Array.isArray(definition?.rule) ? definition.rule : [];
  const found = new Map((project.coverage ?? []).map((one) => [one.field, one]));
  const least = definition?.alarm?.coverage;
  const wanted = (field) => (typeof least === 'object' && least ? least[field] : least);
  const fieldsOf = (rule) => (rule.fields && typeof rule.fields === 'object' ? Object.keys(rule.fields) : []);
  return html`<section class="card" aria-labelledby="rules"><header><h2 id="rules">Rules</h2>${found.size > 0 && html`<p>how often each field was found, ${
    project.round ? 'in this round' : 'in the last round'
  }</p>`}</header>
    ${!rules.length && html`<p class="calm">Its script says what its rules are.</p>`}
    <ul class="rules">${rules.map(
      (rule) => html`<li key=${rule.name}><div class="rule-head"><b><${Name} of=${rule.name} /></b> <code><${Name}
        of=${rule.match === undefined ? 'all URLs' : [rule.match].flat().join('  ')} /></code></div>
      ${termsOf(rule).length > 0 && html`<p class="muted small"><${Name} of=${termsOf(rule).join(' · ')} /></p>`}
      ${fieldsOf(rule).length > 0 && html`<dl class="fields">${fieldsOf(rule).map(
        (field) => html`<dt><${Name} of=${field} /></dt><dd><${Coverage} found=${found.get(field)} wanted=${wanted(field)} /></dd>`,
      )}</dl>`}</li>`,
    )}</ul></section>`;
}

// --- what happened

const took = (round) => (instant(round.ended) ? span(instant(round.ended) - instant(round.began)) : html`<span class="state" data-state="running">under way</span>`);
function Rounds({ project }) {
  const ended = project.rounds ?? [];
  const now = project.round;
  const all = now ? [now, ...ended.filter((round) => round.number !== now.number)] : ended;
  return html`<section class="card" aria-labelledby="rounds"><header><h2 id="rounds">Rounds</h2><p>from a start until nothing it led to is left</p></header>
    ${
      all.length
        ? html`<div class="scroll" tabindex="0" role="group" aria-labelledby="rounds"><table class="cards"><thead><tr><th>Round</th><th>Began</th><th>By</th>
      <th class="number">Took</th><th class="number">Visits</th><th class="number">Failed</th><th class="number">Results</th></tr></thead>
      <tbody>${all.map(
        (round) => html`<tr key=${round.number} data-row tabindex="-1"><td data-name="round">${count(round.number)}</td><td class="nowrap" data-name="began">
        <${Time} at=${round.began} /></td><td data-name="by"><${Name} of=${round.cause} /></td><td class="number" data-name="took">${took(round)}</td>
        <td class="number" data-name="visits">${count(round.pages)}</td><td class="number" data-name="failed">${
          round.failed > 0 ? html`<span class="bad">${count(round.failed)}</span>` : '0'
        }</td><td class="number" data-name="results">${count(round.results)}</td></tr>`,
      )}</tbody></table></div>`
        : html`<p class="calm">It has had none yet.</p>`
    }</section>`;
}

function Sinks({ sinks }) {
  return html`<section class="card" aria-labelledby="sinks"><header><h2 id="sinks">Sinks</h2><p>who gets its results</p></header><ul class="list sinks">${sinks.map(
    (sink, place) => html`<li key=${place}><span><${Name} of=${sink.name} />${sink.trouble && html`<span class="bad small"><${Name} of=${sink.trouble} /></span>`}</span>
      <span title="Of the feed of its results, the last that this sink has">has ${count(sink.cursor)}</span></li>`,
  )}</ul></section>`;
}

// Where the daemon tells of hosts.
function Hosts({ name }) {
  const found = useResource(
    (signal) => api.get('/v1/hosts', { project: name, limit: kMostHostsShown }, signal).catch((error) => (error.name === 'AbortError' ? Promise.reject(error) : null)),
    [name],
  );
  usePoll(found.reload, kHostsPollMs, [name]);
  const hosts = found.data?.hosts ?? [];
  if (!hosts.length) return null;
  return html`<section class="card" aria-labelledby="its-hosts"><header><h2 id="its-hosts">Hosts</h2><a class="small" href=${to('hosts', '', { project: name })}>All its hosts</a></header>
    <ul class="list hosts">${hosts.map(
      (host) => html`<li key=${host.site} title=${host.sentence}><span><a href=${to('hosts', host.site)}><${Name} of=${host.site} /></a></span><span>${
        host.trouble ? html`<span class="bad"><${Name} of=${host.doing} /></span>` : html`<${Name} of=${host.doing} />`
      }${instant(host.until) && html`, again <${Time} at=${host.until} past="now" />`}</span></li>`,
    )}</ul>${found.data.next != null && html`<p class="pager"><a href=${to('hosts', '', { project: name })}>More</a></p>`}</section>`;
}

function Recent({ name }) {
  const found = useResource((signal) => api.get(projectPath(name, '/recent'), null, signal), [name]);
  usePoll(found.reload, kPollMs, [name]);
  const [isAll, setIsAll] = useState(false);
  const all = found.data?.visits ?? [];
  const visits = isAll ? all : all.slice(0, kFewVisits);
  return html`<section class="card" aria-labelledby="recent"><header><h2 id="recent">Recent visits</h2><p>since the daemon began</p></header>
    <${Problem} error=${found.error} retry=${found.reload} />
    ${
      visits.length
        ? html`<div class="scroll" tabindex="0" role="group" aria-labelledby="recent"><table class="cards"><thead><tr><th>Ended</th><th>Page</th><th>Rule</th>
      <th>Outcome</th><th class="number">Fetch / process</th><th class="number">Pages</th><th class="number">Results</th><th><span class="hidden-text">Actions</span></th></tr></thead><tbody>${visits.map(
        (visit) => html`<tr key=${`${visit.at} ${visit.page}`} data-row tabindex="-1"><td class="nowrap" data-name="ended"><${Time} at=${visit.at} /></td>
        <td class="grow"><${PageCell} project=${name} page=${visit.page} url=${visit.url} />${visit.error && html`<span class="clip bad small" title=${visit.error}><${Name} of=${visit.error} /></span>`}</td>
        <td data-name="rule"><span class="clip short" title=${visit.rule}><${Name} of=${visit.rule} /></span></td>
        <td class="nowrap" data-name=""><span class="state" data-state=${outcome(visit)}>${outcome(visit)}</span> <span class="muted">${visit.status_code || ''}</span></td>
        <td class="number" data-name="fetch, process">${span(visit.fetch_ms)} <span class="muted">/ ${span(visit.process_ms)}</span></td>
        <td class="number" data-name="pages">${count(visit.pages)}</td><td class="number" data-name="results">${count(visit.results)}</td>
        <td class="nowrap" data-name=""><a href=${to('projects', name, { view: 'debug', url: visit.url, rule: visit.rule })}>Debug</a></td></tr>`,
      )}</tbody></table></div>`
        : found.data && html`<p class="calm">None has ended yet.</p>`
    }
    ${all.length > visits.length && html`<p class="pager"><span></span><button class="quiet" onClick=${() => setIsAll(true)}>Show all ${count(all.length)}</button></p>`}</section>`;
}

export function ProjectOverview({ project, reload }) {
  return html`<${Why} project=${project} />
    <div class="columns"><div class="stack"><${Visits} project=${project} /><${Counts} project=${project} /><${Rounds} project=${project} /></div>
      <div class="stack"><${Facts} project=${project} reload=${reload} /><${Rules} project=${project} />
        ${project.sinks?.length > 0 && html`<${Sinks} sinks=${project.sinks} />`}<${Hosts} name=${project.name} /></div></div>
    <div class="below"><${Recent} name=${project.name} /></div>`;
}
