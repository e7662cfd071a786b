// What a project has found, as a table and as files to take away.
import * as api from '../api.js';
import { count } from '../format.js';
import { html } from '../lib.js';
import { usePoll } from '../live.js';
import { cellOf, columnsOf, lineOf, wholeOf } from '../results.js';
import { go, to } from '../router.js';
import { Copy, Dialog, Empty, Name, Problem, State, Time, useResource } from '../ui.js';
import { Outside, PageCell, pageHref, Pager, Whole } from './project_parts.js';

const kLimit = 50;
const kPollMs = 2000;
const kCountsMs = 5000; // of the project as a whole
const kMostColumns = 30;
const kMostCell = 300; // characters of a cell
const formats = [
  ['csv', 'CSV', 'A table for a spreadsheet'],
  ['array', 'JSON', 'One JSON array'],
  ['jsonl', 'JSON lines', 'A JSON object in each line'],
];
const pathOf = (project, what) => `/v1/projects/${api.part(project.name)}/${what}`;
const placeOf = (project, { show, rule, after, n }, change = {}) =>
  to('projects', project.name, { view: 'results', show, rule, after, n, ...change });

// All results as a file, which the daemon writes as fast as the browser takes it.
function Downloads({ project, rule }) {
  const href = (format) => `${api.base}${pathOf(project, 'results')}?${new URLSearchParams({ format, ...(rule && { rule }) })}`;
  return html`<div class="head-actions" role="group" aria-label="Download"><span class="small muted">Download</span>${formats.map(
    ([format, label, title]) => html`<a key=${format} class="button" href=${href(format)} download title=${title}>${label}</a>`,
  )}</div>`;
}

function Row({ project, params, result, columns, hasParts }) {
  const { page, part, url } = result;
  return html`<tr data-row tabindex="-1">
    <td class="full"><a class="clip" data-open title=${url || page}
        href=${placeOf(project, params, { page, part })}><${Name} of=${url || page} /></a></td>
    ${hasParts && html`<td data-name=${part ? 'part' : undefined}>${part && html`<span class="clip short" title=${part}><${Name} of=${part} /></span>`}</td>`}
    <td class="nowrap" data-name="changed"><${Time} at=${result.changed_at} /></td>
    ${columns.map((column) => {
      const text = cellOf(result, column);
      return html`<td key=${column} data-name=${text ? column : undefined}>${text && html`<span class="clip" title=${text.slice(0, kMostCell)}><${Name}
          of=${text.slice(0, kMostCell)} /></span>`}</td>`;
    })}</tr>`;
}

function Table({ project, params, results, named }) {
  const all = columnsOf(results, named);
  const columns = all.slice(0, kMostColumns);
  const hasParts = results.some((result) => result.part);
  return html`<div class="scroll" tabindex="0"><table class="cards"><thead><tr><th>URL</th>${hasParts && html`<th>Part</th>`}
      <th>Changed</th>${columns.map((column) => html`<th key=${column}><span class="clip short" title=${column}><${Name}
      of=${column} /></span></th>`)}</tr></thead>
    <tbody>${results.map((result) => html`<${Row} key=${`${result.page} ${result.part}`} project=${project} params=${params}
        result=${result} columns=${columns} hasParts=${hasParts} />`)}</tbody></table></div>
    ${all.length > columns.length && html`<p class="calm">${count(all.length - columns.length)} more columns: a result, opened, has
        all it says.</p>`}`;
}

// One result, whole.
function ResultDialog({ project, params }) {
  const { page, part = '' } = params;
  const found = useResource((signal) => api.getExact(pathOf(project, 'results'), { page, limit: 1000 }, signal), [page]);
  const close = () => go(placeOf(project, params));
  const result = found.data?.results.find((one) => one.part === part);
  return html`<${Dialog} title="One result" wide close=${close}><${Problem} error=${found.error} retry=${found.reload} />
    ${
      result &&
      html`<dl class="facts"><dt>URL</dt><dd><${Outside} url=${result.url || page} /></dd>
      ${part && html`<dt>Part</dt><dd><${Name} of=${part} /></dd>`}<dt>Rule</dt><dd><${Name} of=${result.rule} /></dd>
      <dt>Added</dt><dd><${Time} at=${result.added_at} absolute /></dd><dt>Changed</dt><dd><${Time} at=${result.changed_at}
          absolute /></dd></dl>
      <${Whole} value=${result.value} label="The result as JSON" name="text spaced" />
      <footer><${Copy} text=${wholeOf(result.value)} /><a class="button" href=${pageHref(project.name, page)}>Its page</a></footer>`
    }
    ${found.data && !result && html`<p class="muted">It is not there any more: its page gives no such result now.</p>`}<//>`;
}

function Results({ project, params }) {
  const { rule, after } = params;
  const of = [project.name, rule, after];
  const found = useResource((signal) => api.getExact(pathOf(project, 'results'), { rule, after, limit: kLimit }, signal), of);
  usePoll(found.reload, kPollMs, of);
  const { results = [], columns = [], next } = found.data ?? {};
  const none = rule || after || next != null ? 'None here' : 'No results yet';
  return html`<${Problem} error=${found.error} retry=${found.reload} />
    <div aria-busy=${found.loading}>
    ${results.length > 0 && html`<${Table} project=${project} params=${params} results=${results} named=${rule ? [] : columns} />`}
    ${found.data && !results.length && html`<${Empty} title=${none}><p>What the rules and the script of the project find on its
        pages is kept here: a result for each page, or for each part of one.</p><//>`}
    ${found.data && html`<${Pager} params=${params} at=${(change) => placeOf(project, params, change)} next=${next} />`}</div>`;
}

// What became of results, the newest first.
function Changes({ project, params }) {
  const before = params.after;
  const of = [project.name, before];
  const query = { order: 'newest', before, limit: kLimit };
  const found = useResource((signal) => api.getExact(pathOf(project, 'feed'), query, signal), of);
  usePoll(found.reload, kPollMs, of);
  const { feed = [], next } = found.data ?? {};
  return html`<${Problem} error=${found.error} retry=${found.reload} />
    <div aria-busy=${found.loading}>
    ${
      feed.length > 0 &&
      html`<div class="scroll" tabindex="0"><table class="cards" aria-label="Changes of results"><thead><tr><th>When</th><th>What
          </th><th>URL</th><th>Part</th><th>Result</th></tr></thead>
      <tbody>${feed.map((news) => {
        const line = lineOf(news.value);
        return html`<tr key=${news.number} data-row tabindex="-1"><td class="nowrap"><${Time} at=${news.at} /></td>
          <td><${State} of=${news.news} /></td>
          <td class="full"><${PageCell} project=${project.name} page=${news.page} url=${news.url} /></td>
          <td data-name=${news.part ? 'part' : undefined}>${news.part && html`<span class="clip short" title=${news.part}><${Name} of=${news.part} /></span>`}</td>
          <td class="grow"><span class="clip" title=${line}><${Name} of=${line} /></span></td></tr>`;
      })}</tbody></table></div>`
    }
    ${found.data && !feed.length && html`<${Empty} title=${before ? 'Nothing older' : 'Nothing has changed yet'}><p>A result that is
        added, changes, or is gone is told here, and to the project’s sinks. What all sinks have is forgotten after a while.</p><//>`}
    ${found.data && html`<${Pager} params=${params} at=${(change) => placeOf(project, params, change)}
        next=${next} />`}</div>`;
}

export function ProjectResults({ project, params, reload }) {
  usePoll(reload, kCountsMs, [project.name]);
  const isFeed = params.show === 'changes';
  const tab = (show, title) => html`<a href=${placeOf(project, {}, { show })}
      aria-current=${isFeed === Boolean(show) ? 'page' : undefined}>${title}</a>`;
  const byRule = (event) => go(placeOf(project, params, { rule: event.target.value, after: '', n: '' }));
  const rules = [...(project.rules ?? [])];
  if (params.rule && !rules.includes(params.rule)) rules.push(params.rule);
  return html`<section class="card" aria-label="Results"><header><h2>Results <span class="muted small">
      ${count(project.results)}</span></h2><${Downloads} project=${project} rule=${params.rule} /></header>
    <nav class="tabs" aria-label="What is shown">${tab('', 'Results')}${tab('changes', 'What changed')}</nav>
    ${!isFeed && rules.length > 1 && html`<div class="filters"><select aria-label="Rule" value=${params.rule ?? ''}
        onChange=${byRule}><option value="">all rules</option>${rules.map((name) => html`<option key=${name} value=${name}>${name}
        </option>`)}</select></div>`}
    ${isFeed ? html`<${Changes} project=${project} params=${params} />` : html`<${Results} project=${project} params=${params} />`}
    </section>
    ${params.page && html`<${ResultDialog} project=${project} params=${params} />`}`;
}
