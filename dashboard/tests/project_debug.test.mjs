// The debug page of a project, in Chromium: what is written and tried, selectors that are picked by a click, and that nothing of a
// crawled page ever runs, or asks anybody for anything.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, afterEach, before, describe, it } from 'node:test';
import { closeContexts, launch } from './browser.mjs';
import { Daemon } from './daemon.mjs';
import { assertFits, clickInPage, frameOf, isRefusal, openPage, picture, quiet, said, settled, violationsOf } from './support.mjs';

const source = `[project]
name = "shop"
status = "STOP"
start = "https://shop.example/"

[[rule]]
name = "item"
match = "/item/*"
follow = false

[rule.fields]
title = "css:h1"

[[rule]]
name = "list"
`;
const scripted = `[project]
name = "scripted"
status = "STOP"
processor = ["python3", "shop.py"]
`;
const script = 'class Handler:\n    def on_start(self):\n        self.crawl("https://shop.example/")\n';

const shop = `<!doctype html><html><head><title>Shop</title><style>.price { color: green } .card { padding: 6px }</style></head><body>
<header id="top"><nav class="menu"><a href="/">Home</a> <a href="/about">About us</a></nav></header>
<main class="list"><h1>Things</h1>
${[1, 2, 3].map((n) => `<article class="card"><h2 class="name"><a href="/item/${n}">Thing ${n}</a></h2><p class="price">${n}.50 €</p><p>About ${n}</p></article>`).join('\n')}
</main><form action="/search"><input name="q"><button>Search</button></form></body></html>`;

let browser;
let daemon;
before(async () => {
  browser = await launch();
  daemon = await Daemon.start({ config: '[serve]\npages = "pages.db"\n' });
  await daemon.good('PUT', '/v1/projects/shop', { source });
  await daemon.good('PUT', '/v1/projects/scripted', { source: scripted, script });
});
afterEach(() => closeContexts(browser));
after(async () => {
  await browser?.close();
  await daemon?.remove();
});

const answerOf = (body, more = {}) => ({
  asked: 'https://shop.example/',
  url: 'https://shop.example/',
  status: 200,
  took_ms: 12.5,
  content_type: 'text/html; charset=utf-8',
  headers: [['Content-Type', 'text/html; charset=utf-8'], ['X-Served-By', '<b>proxy</b>']],
  body,
  body_bytes: body.length,
  is_cut: false,
  error: null,
  rule: 'list',
  becomes: 'new',
  columns: [],
  results: [],
  not_extracted: null,
  follows: [],
  messages: [],
  logs: [],
  failure: null,
  ...more,
});

// {page, wrong, tried}: the debug page of a project, with `answers` (what a try is answered, by what was asked) in the daemon's place;
// `tried` has what was asked.
async function open(answers, { project = 'shop', more = '', expected = () => false, ...options } = {}) {
  const isExpected = (text) => isRefusal(text) || expected(text);
  const opened = await openPage(browser, { origin: daemon.origin, hash: '#/settings', expected: isExpected, ...options });
  const tried = [];
  await opened.page.route('**/v1/projects/try', async (route) => {
    const asked = route.request().postDataJSON();
    tried.push(asked);
    const answer = await answers(asked);
    await route.fulfill({ status: answer.problem ? 400 : 200, contentType: answer.problem ? 'application/problem+json' : 'application/json', body: JSON.stringify(answer.problem ?? answer) });
  });
  await opened.go(`#/projects/${project}?view=debug${more}`);
  await opened.page.locator('.debug').waitFor();
  return { ...opened, tried };
}
const run = (page) => page.locator('.debug').getByRole('button', { name: 'Run', exact: true }).first().click();
const tab = (page, name) => page.getByRole('tab', { name }).click();
// Until the page is drawn in its frame.
const drawn = (page) => frameOf(page).locator('body > *').first().waitFor({ state: 'attached' });
const editor = (page, name = /project's file/) => page.getByRole('textbox', { name });

describe('a page that was tried', () => {
  const full = () =>
    answerOf(shop, {
      columns: ['title', 'price'],
      results: [
        { part: 'a', value: { title: 'Thing 1', price: 1.5 } },
        { part: 'b', value: { title: '<img src=x onerror=alert(1)>', price: null } },
      ],
      follows: [
        { url: 'https://shop.example/item/1', rule: 'item', becomes: 'new', is_followed: true, data: { n: 1 } },
        { url: 'https://shop.example/about', rule: null, becomes: 'no rule matches it', is_followed: false },
      ],
      messages: [{ project: 'stock', message: { sku: 7 }, url: 'data:,on_message' }],
      logs: [{ level: 'info', text: 'began' }, { level: 'error', text: 'odd <b>price</b>' }],
    });
  for (const [look, width] of [['light', 1440], ['dark', 1440], ['light', 360], ['dark', 360]]) {
    it(`is shown in all its parts, ${look}, ${width} wide`, async () => {
      const { page, wrong } = await open(full, { look, width });
      await quiet(page);
      await assertFits(page, 'before a try');
      await run(page);
      await drawn(page);
      const counts = await page.locator('.tabs .tab-count').allInnerTexts();
      assert.deepEqual(counts, ['2', '1', '1', '2']);
      for (const name of ['Web', 'HTML', 'Headers', 'Results', 'Follows', 'Messages', 'Logs']) {
        await tab(page, name);
        if (name === 'Web') await drawn(page);
        await settled(page);
        await assertFits(page, name);
        assert.deepEqual(await violationsOf(page), [], name);
        await picture(page, `debug-${name.toLowerCase()}-${look}-${width}`);
      }
      assert.deepEqual(wrong, []);
    });
  }
  it('leads on to the next, with what was said of it, and back', async () => {
    const { page, wrong, tried } = await open((asked) => (asked.url.endsWith('/1') ? answerOf('<h1>One</h1>', { asked: asked.url, url: asked.url, rule: 'item' }) : full()));
    await run(page);
    await tab(page, 'Follows');
    await page.getByRole('button', { name: 'Run https://shop.example/item/1' }).click();
    await tab(page, 'Web');
    await frameOf(page).getByText('One', { exact: true }).waitFor();
    assert.deepEqual(tried, [
      { project: 'shop', url: 'https://shop.example/' },
      { project: 'shop', url: 'https://shop.example/item/1', rule: 'item', data: { n: 1 } },
    ]);
    assert.equal(await page.locator('input[name=url]').inputValue(), 'https://shop.example/item/1');
    await page.getByRole('button', { name: 'Back', exact: true }).click();
    await frameOf(page).getByText('Things', { exact: true }).waitFor();
    assert.equal(await page.locator('input[name=url]').inputValue(), 'https://shop.example/');
    assert.equal(tried.length, 2);
    assert.deepEqual(wrong, []);
  });
  it('may be none at all', async () => {
    const { page, wrong } = await open(() => answerOf('', { status: 0, headers: [], content_type: '', error: 'robots.txt forbids it', rule: null }));
    await run(page);
    await page.getByText('robots.txt forbids it').waitFor();
    await page.getByText('No page to be shown').waitFor();
    assert.deepEqual(wrong, []);
  });
});

describe('what is written', () => {
  it('is tried as it stands, kept while other pages are looked at, saved, and then no draft any more', async () => {
    const { page, wrong, tried, go } = await open(() => answerOf(shop));
    const text = source.replace('css:h1', 'css:h1.name');
    await editor(page).fill(text);
    await run(page);
    await drawn(page);
    assert.deepEqual(tried, [{ source: text, url: 'https://shop.example/' }]);
    await go('#/settings');
    await said(page, 'is not saved');
    await go('#/projects/shop?view=debug');
    await editor(page).waitFor();
    assert.equal(await editor(page).inputValue(), text);
    await page.getByLabel('Note on this version').fill('names only');
    await editor(page).press('Control+s');
    await said(page, 'Version 2 is saved');
    await page.getByRole('button', { name: 'Saved' }).waitFor();
    const { versions } = await daemon.good('GET', '/v1/projects/shop/versions');
    assert.deepEqual([versions[0].number, versions[0].note], [2, 'names only']);
    assert.equal((await daemon.good('GET', '/v1/projects/shop')).source, text);
    await daemon.good('PUT', '/v1/projects/shop', { source });
    assert.deepEqual(wrong, []);
  });
  it('is told where it is wrong, at its line', async () => {
    const { page, wrong } = await open(() => answerOf(shop), { expected: (t) => t.includes('status of 400') });
    await editor(page).fill(source.replace('css:h1', 'cs:h1'));
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    const told = page.locator('.editor-wrong');
    await told.getByText('begin it with css:').waitFor();
    await told.getByRole('button', { name: /^line \d+$/ }).click();
    const line = Number(/\d+/.exec(await told.getByRole('button').innerText())[0]);
    assert.equal(await page.locator('.editor-side i').innerText(), String(line));
    const chosen = await editor(page).evaluate((area) => area.value.slice(area.selectionStart, area.selectionEnd));
    assert.equal(chosen, source.replace('css:h1', 'cs:h1').split('\n')[line - 1]);
    await picture(page, 'debug-wrong');
    assert.deepEqual(wrong, []);
  });
  it('is told so by a try, too', async () => {
    const problem = { type: 'urn:argiope:problem:invalid_input', title: 'Invalid input', status: 400, detail: 'source:4: project: member "evry": [project] has none' };
    const { page, wrong } = await open(() => ({ problem }), { expected: (t) => t.includes('status of 400') });
    await run(page);
    await page.locator('.editor-wrong').getByText('[project] has none').waitFor();
    assert.equal(await page.locator('.editor-side i').innerText(), '4');
    assert.deepEqual(wrong, []);
  });
  it('is told that another has saved meanwhile', async () => {
    const { page, wrong } = await open(() => answerOf(shop));
    const theirs = source.replace('css:h1', 'css:h1.theirs');
    await editor(page).fill(`${source}# mine`);
    await daemon.good('PUT', '/v1/projects/shop', { source: theirs });
    await page.getByText('was saved meanwhile').waitFor();
    assert.equal(await editor(page).inputValue(), `${source}# mine`);
    await page.getByRole('button', { name: /^Take version/ }).click();
    assert.equal(await editor(page).inputValue(), theirs);
    // Who has changed nothing sees it by itself.
    await daemon.good('PUT', '/v1/projects/shop', { source });
    await page.waitForFunction((text) => document.querySelector('.editor textarea').value === text, source);
    assert.deepEqual(wrong, []);
  });
  it('is indented by the tab key, until Escape leaves', async () => {
    const { page, wrong } = await open(() => answerOf(shop), { project: 'scripted' });
    await page.getByRole('button', { name: 'shop.py' }).click();
    const area = editor(page, /script/);
    await area.fill('def x():');
    await area.press('End');
    await area.press('Enter');
    await area.press('Tab');
    await area.pressSequentially('a = 1');
    await area.press('Enter');
    await area.pressSequentially('b = 2');
    assert.equal(await area.inputValue(), 'def x():\n    a = 1\n    b = 2');
    await area.press('Shift+Tab');
    assert.equal(await area.inputValue(), 'def x():\n    a = 1\nb = 2');
    await area.press('Escape');
    await page.keyboard.press('Tab');
    assert.equal(await area.inputValue(), 'def x():\n    a = 1\nb = 2');
    assert.notEqual(await page.evaluate(() => document.activeElement.localName), 'textarea');
    assert.deepEqual(wrong, []);
  });
  it('is asked for before the page is closed', async () => {
    const { page } = await open(() => answerOf(shop));
    await editor(page).fill(`${source}# more`);
    const asked = new Promise((found) => {
      page.removeAllListeners('dialog');
      page.on('dialog', (dialog) => (found(dialog.type()), dialog.accept()));
    });
    const closed = page.waitForEvent('close', { timeout: 60_000 });
    await page.close({ runBeforeUnload: true });
    assert.equal(await asked, 'beforeunload');
    await closed;
  });
  it('is a script as well, whose failure leads to its line', async () => {
    const trace = 'Traceback (most recent call last):\n  File "/scripts/shop.py", line 3, in on_start\nValueError: <b>no</b>';
    const { page, wrong, tried } = await open(() => answerOf('', { asked: 'data:,on_start', url: 'data:,on_start', content_type: 'text/plain', failure: { text: 'ValueError: <b>no</b>', trace } }), { project: 'scripted' });
    assert.equal(await page.locator('input[name=url]').inputValue(), 'data:,on_start');
    await run(page);
    await page.getByRole('button', { name: 'Line 3 of the script' }).click();
    const chosen = await editor(page, /script/).evaluate((area) => area.value.slice(area.selectionStart, area.selectionEnd));
    assert.equal(chosen, '        self.crawl("https://shop.example/")');
    await editor(page, /script/).fill(`${script}\n`);
    await editor(page, /script/).press('Control+Enter');
    await page.waitForFunction(() => !document.querySelector('.debug [aria-busy=true]'));
    assert.deepEqual(tried, [{ project: 'scripted', url: 'data:,on_start' }, { source: scripted, script: `${script}\n`, url: 'data:,on_start' }]);
    assert.deepEqual(wrong, []);
  });
});

describe('a page that is kept', () => {
  const response = { id: 'f00d', fetched_at: '2026-11-24T12:00:00Z', kept_until: '2026-11-24T12:10:00Z', is_reused: false };
  const told = (asked) => answerOf(shop, { response: { ...response, is_reused: Boolean(asked.response) } });
  const told404 = { type: 'urn:argiope:problem:not_found', title: 'Not found', status: 404, detail: 'response "f00d": it is kept no more: the page has to be fetched anew', errors: [{ pointer: '/response', detail: 'it is kept no more' }] };
  const button = (page, name) => page.locator('.ask-line').getByRole('button', { name, exact: true });
  for (const [look, width] of [['light', 1440], ['dark', 1440], ['light', 360], ['dark', 360]]) {
    it(`is read again when only the project was changed, and fetched anew when it is wanted, ${look}, ${width} wide`, async () => {
      const { page, wrong, tried } = await open(told, { look, width });
      await run(page);
      await page.locator('[data-fetched=now]').waitFor();
      await button(page, 'Read again').waitFor();
      const text = `${source}# other\n`;
      await editor(page).fill(text);
      await button(page, 'Fetch anew').waitFor();
      await run(page);
      await page.locator('[data-fetched=again]').getByText('read again').waitFor();
      await quiet(page);
      await assertFits(page, 'a page that was read again');
      assert.deepEqual(await violationsOf(page), []);
      await picture(page, `debug-kept-${look}-${width}`);
      await button(page, 'Read again').click();
      await settled(page);
      await editor(page).fill(`${text}# more\n`);
      await button(page, 'Fetch anew').click();
      await page.locator('[data-fetched=now]').waitFor();
      // Another page is another request, whatever was changed.
      await editor(page).fill(`${text}# and more\n`);
      await page.locator('input[name=url]').fill('https://shop.example/about');
      await button(page, 'Fetch anew').waitFor({ state: 'detached' });
      await run(page);
      await settled(page);
      assert.deepEqual(tried.map((asked) => asked.response), [undefined, 'f00d', 'f00d', undefined, undefined]);
      assert.deepEqual(wrong, []);
    });
  }
  it('is fetched when it is kept no more', async () => {
    const { page, wrong, tried } = await open((asked) => (asked.response ? { problem: told404 } : told(asked)), { expected: (t) => t.includes('status of 400') });
    await run(page);
    await page.locator('[data-fetched=now]').waitFor();
    await editor(page).fill(`${source}# other\n`);
    await run(page);
    await page.getByRole('alert').getByText('has to be fetched anew').waitFor();
    await picture(page, 'debug-kept-no-more');
    await page.getByRole('alert').getByRole('button', { name: 'Fetch anew' }).click();
    await page.getByRole('alert').waitFor({ state: 'detached' });
    assert.deepEqual(tried.map((asked) => asked.response), [undefined, 'f00d', undefined]);
    assert.deepEqual(wrong, []);
  });
});

describe('a follow of which more is said', () => {
  const post = { url: 'https://shop.example/search', rule: 'item', context: { n: 1 }, name: 'search 1', request: { method: 'POST', headers: { 'X-Shop': 'one' }, body: 'q=lamp' } };
  const cancelled = { url: 'https://shop.example/old', rule: 'item', cancel: true };
  const follows = [
    { url: post.url, rule: 'item', becomes: 'new', is_followed: true, data: { n: 1 }, page: post },
    { url: cancelled.url, rule: 'item', becomes: 'nothing to cancel: it is not known', is_followed: true, page: cancelled },
  ];
  for (const width of [1440, 360]) {
    it(`is tried as its visit would ask for it, ${width} wide`, async () => {
      const { page, wrong, tried } = await open((asked) => answerOf(asked.page ? '<h1>Found</h1>' : shop, { asked: asked.page?.url ?? asked.url, follows }), { width });
      await run(page);
      await tab(page, 'Follows');
      await page.locator('.follows').getByText('POST').waitFor();
      assert.equal(await page.getByRole('button', { name: `Run ${cancelled.url}` }).count(), 0, 'that is no visit');
      await assertFits(page, 'follows');
      await picture(page, `debug-follows-more-${width}`);
      await page.getByRole('button', { name: `Run ${post.url}` }).click();
      await settled(page);
      assert.deepEqual(tried[1], { project: 'shop', page: post });
      const more = page.locator('textarea[name=more]');
      assert.deepEqual(JSON.parse(await more.inputValue()), { name: 'search 1', request: post.request });
      await more.fill('{"request": {"method": "PUT"}}');
      await run(page);
      await settled(page);
      assert.deepEqual(tried[2], { project: 'shop', page: { url: post.url, rule: 'item', context: { n: 1 }, request: { method: 'PUT' } } });
      await more.fill('{');
      await run(page);
      await said(page, 'are JSON');
      await quiet(page);
      await assertFits(page, 'what else is said');
      assert.deepEqual(await violationsOf(page), []);
      assert.deepEqual(wrong, []);
    });
  }
});

describe('a project with a webhook', () => {
  it('has no script to be written, and tells where its pages go', async () => {
    const hooked = '[project]\nname = "hooked"\nstatus = "STOP"\nprocessor = { webhook = "https://scripts.example/shop" }\n';
    await daemon.good('PUT', '/v1/projects/hooked', { source: hooked });
    const { page, wrong, tried, go } = await open(() => answerOf(shop), { project: 'hooked' });
    await page.getByRole('heading', { name: 'Project', exact: true }).waitFor();
    assert.equal(await page.locator('.debug-editor .segments').count(), 0, 'nothing runs a script');
    await editor(page).fill(`${hooked}# mine\n`);
    await run(page);
    await drawn(page);
    assert.deepEqual(tried, [{ source: `${hooked}# mine\n`, url: 'data:,on_start' }]);
    await editor(page).press('Control+s');
    await said(page, 'Version 2 is saved');
    await picture(page, 'debug-webhook');
    await go('#/projects/hooked');
    await page.locator('.facts').getByText('https://scripts.example/shop').waitFor();
    assert.equal(await page.getByText('[object Object]').count(), 0);
    await picture(page, 'project-webhook');
    assert.deepEqual(wrong, []);
  });
});

describe('what a script keeps', () => {
  it('is shown, and given to the next try', async () => {
    const { page, wrong, tried } = await open((asked) => answerOf('<p>x</p>', { save: { n: (asked.save?.n ?? 0) + 1 } }), { project: 'scripted' });
    await page.locator('input[name=rule]').fill('detail_page');
    await run(page);
    await page.getByText('{"n":1}').waitFor();
    await page.getByRole('button', { name: 'Run with it' }).click();
    await page.getByText('{"n":2}').waitFor();
    assert.deepEqual(tried[1], { project: 'scripted', url: 'data:,on_start', rule: 'detail_page', save: { n: 1 } });
    assert.deepEqual(wrong, []);
  });
});

describe('a project that the configuration decides', () => {
  it('is tried with a draft, and never saved', async () => {
    const locked = await Daemon.start({ config: '[serve]\npages = "pages.db"\n\n[[project]]\nfile = "shop.toml"\n', files: { 'shop.toml': source } });
    try {
      const { page, wrong, tried } = await open(() => answerOf(shop), { origin: locked.origin });
      await page.getByText('locked: the configuration decides').waitFor();
      assert.equal(await page.getByRole('button', { name: /^Saved?$/ }).count(), 0);
      await editor(page).fill(`${source}# more\n`);
      await editor(page).press('Control+s');
      await editor(page).press('Control+Enter');
      await drawn(page);
      assert.deepEqual(tried, [{ source: `${source}# more\n`, url: 'https://shop.example/' }]);
      await page.getByRole('button', { name: 'Discard' }).click();
      assert.equal(await editor(page).inputValue(), source);
      assert.equal((await locked.good('GET', '/v1/projects/shop')).version, 1);
      await assertFits(page, 'a locked project');
      assert.deepEqual(await violationsOf(page), []);
      assert.deepEqual(wrong, []);
    } finally {
      await locked.remove();
    }
  });
});

describe('the daemon itself', () => {
  it('tries a page, follows its link, and asks nobody for more', async () => {
    const asked = [];
    const site = createServer((request, answer) => {
      asked.push(request.url);
      const isPage = request.url !== '/robots.txt';
      answer.writeHead(isPage ? 200 : 404, { 'Content-Type': 'text/html; charset=utf-8' });
      answer.end(isPage ? `<h1>Page ${request.url}</h1><img src="/dot.png"><link rel=stylesheet href="/a.css"><script src="/x.js"></script><a href="/item/1">one</a>` : '');
    });
    await new Promise((listening) => site.listen(0, '127.0.0.1', listening));
    const here = `http://127.0.0.1:${site.address().port}`;
    const file = source.replace('https://shop.example/', `${here}/`);
    const real = await Daemon.start({ config: '[serve]\npages = "pages.db"\n\n[[project]]\nfile = "shop.toml"\n', files: { 'shop.toml': file } });
    try {
      const { page, wrong } = await openPage(browser, { origin: real.origin, hash: '#/projects/shop?view=debug', expected: isRefusal });
      await page.locator('.debug').waitFor();
      await run(page);
      await frameOf(page).getByText('Page /', { exact: true }).waitFor();
      await editor(page).fill(file.replace('title = "css:h1"', 'heading = "css:h1"'));
      await tab(page, 'Follows');
      await page.getByRole('button', { name: `Run ${here}/item/1` }).click();
      await tab(page, 'Results');
      await page.getByRole('cell', { name: 'Page /item/1' }).waitFor();
      await page.getByRole('columnheader', { name: 'heading' }).waitFor();
      assert.deepEqual(new Set(asked), new Set(['/robots.txt', '/', '/item/1']));
      await editor(page).fill('[project]\nname = "shop"\nevry = 1\n');
      await run(page);
      await page.locator('.editor-wrong').getByText('did you mean "every"').waitFor();
      assert.equal(await page.locator('.editor-side i').innerText(), '3');
      assert.deepEqual(wrong.filter((text) => !/status of 4\d\d/.test(text)), []);
      assert.equal((await real.good('GET', '/v1/projects/shop/versions')).versions.length, 1);
    } finally {
      await real.remove();
      await new Promise((closed) => site.close(closed).closeAllConnections());
    }
  });
});

describe('a selector', () => {
  const pickable = async (options) => {
    let n = 0;
    const opened = await open(() => answerOf(shop.replace('About 1', `About it, ${++n}`)), options);
    await run(opened.page);
    await drawn(opened.page);
    await opened.page.getByLabel('Enable CSS selector helper').check();
    return { ...opened, field: opened.page.getByLabel('CSS selector', { exact: true }) };
  };
  const marked = (page) => frameOf(page).locator('[data-argiope-match]').count();
  const told = (page, text) => page.locator('.picked [role=status]', { hasText: text }).waitFor();

  for (const [look, width] of [['light', 1440], ['dark', 360]]) {
    it(`is picked by a click, for one or for all alike, and put into the file, ${look}, ${width} wide`, async () => {
      const { page, wrong, field } = await pickable({ look, width });
      await clickInPage(page, '.name a', 1);
      await told(page, '1 element: Thing 2');
      assert.equal(await marked(page), 1);
      await page.getByRole('button', { name: 'All like it' }).click();
      await told(page, '3 elements: Thing 1');
      assert.equal(await field.inputValue(), '.name a');
      assert.equal(await marked(page), 3);
      await page.getByLabel('Name of the field').fill('names');
      await page.getByLabel('Rule that it is put into').selectOption('item');
      await page.getByLabel('all of them').check();
      await quiet(page);
      await assertFits(page, 'a selector');
      assert.deepEqual(await violationsOf(page), []);
      await picture(page, `debug-picked-${look}-${width}`);
      await page.getByRole('button', { name: 'Add the field' }).click();
      await page.waitForFunction(() => document.querySelector('.editor textarea').value.includes('names'));
      assert.match(await editor(page).inputValue(), /\[rule\.fields\]\ntitle = "css:h1"\nnames = \{ css = "\.name a", all = true \}\n/);
      await page.getByLabel('Rule that it is put into').selectOption('list');
      await page.getByRole('button', { name: 'Follow /item/*' }).click();
      await page.waitForFunction(() => document.querySelector('.editor textarea').value.includes('/item/*"]'));
      assert.match(await editor(page).inputValue(), /name = "list"\nfollow = \["\/item\/\*"\]\n/);
      assert.deepEqual(wrong, []);
    });
  }
  it('is picked by keys', async () => {
    const { page, wrong, field } = await pickable();
    await page.getByRole('button', { name: /Choose an element/ }).focus();
    for (const key of ['ArrowDown', 'ArrowRight', 'ArrowDown', 'Enter']) await page.keyboard.press(key);
    assert.equal(await field.inputValue(), 'h1');
    assert.deepEqual(wrong, []);
  });
  it('is written by hand, and is told where it is none', async () => {
    const { page, wrong, field } = await pickable();
    await field.fill('css:.price::text');
    await told(page, '3 elements: 1.50');
    await field.fill('.card >> p[');
    await told(page, 'no selector');
    assert.equal(await field.getAttribute('aria-invalid'), 'true');
    await field.fill('title');
    await told(page, '1 element: Shop');
    // It stays for the next page.
    await field.fill('.price');
    await run(page);
    await frameOf(page).getByText('About it, 2').waitFor();
    await frameOf(page).locator('[data-argiope-match]').nth(2).waitFor();
    assert.equal(await marked(page), 3);
    assert.deepEqual(wrong, []);
  });
  it('is short, finds its element alone, and lasts', async () => {
    const { page, wrong } = await open(() => answerOf(shop));
    const html = `<body><div id="main"><ul class="things is-open x1a2b3c4d"><li><a href=1>a</a></li><li class="active"><a href=2>b</a><a href=3>c</a></li></ul>
      <p>one</p><p>two</p><div id="1st"><span class="a:b">x</span></div><div class="row row--wide"><b>1</b><b>2</b></div><div class="row"><b>3</b><b>4</b></div></div>
      <svg><linearGradient id=g></linearGradient></svg><x-price><i>9</i></x-price></body>`;
    const found = await page.evaluate(async (text) => {
      const { selectorOf, selectorOfAlike } = await import('/ui/pick.js');
      const root = new DOMParser().parseFromString(text, 'text/html');
      const bad = [];
      const out = {};
      for (const element of root.querySelectorAll('*')) {
        const selector = selectorOf(element, root);
        const all = root.querySelectorAll(selector);
        if (all.length !== 1 || all[0] !== element) bad.push(`${element.outerHTML}: ${selector}`);
        if (/is-open|x1a2b|active/.test(selector)) bad.push(selector);
        if (![...root.querySelectorAll(selectorOfAlike(element, root))].includes(element)) bad.push(`alike: ${element.outerHTML}`);
        out[element.textContent.length < 3 ? `${element.localName} ${element.textContent}` : element.localName + element.id] = selector;
      }
      return { bad, out };
    }, html);
    assert.deepEqual(found.bad, []);
    assert.deepEqual(
      ['divmain', 'ul', 'li a', 'a c', 'span x', 'b 1', 'b 4', 'i 9'].map((key) => found.out[key]),
      ['#main', '.things', '.things li:nth-of-type(1)', '.things a:nth-of-type(2)', '.a\\:b', '.row--wide b:nth-of-type(1)', 'div:nth-of-type(3) > b:nth-of-type(2)', 'i'],
    );
    assert.deepEqual(wrong, []);
  });
});

// What pages do to run something, to be asked for, or to lead away.
const evil = 'https://evil.example';
const hostilePages = {
  image: `<img src=x onerror="top.pwned=1"><img src="${evil}/i.png" srcset="${evil}/2.png 2x" onload="top.pwned=1"><picture><source srcset="${evil}/s.png"><img src="${evil}/p.png"></picture>`,
  script: `<script>top.pwned=1</script><script src="${evil}/x.js"></script><script type=module>import "${evil}/m.js"</script>`,
  drawing: `<svg onload="top.pwned=1"><script>top.pwned=1</script><image href="${evil}/i.svg" /><use href="${evil}/u.svg#a" /><a xlink:href="javascript:top.pwned=1"><text>x</text></a><animate attributeName=href values="javascript:top.pwned=1" /><set attributeName=onmouseover to="top.pwned=1" /><foreignObject><img src="${evil}/f.png" onerror="top.pwned=1"></foreignObject><rect fill="url(${evil}/p.svg#a)" filter="url(${evil}/q.svg#a)" width=9 height=9 /><style>rect { fill: url(${evil}/r.svg#a) }</style></svg>`,
  links: `<a id=away href="${evil}/away">away</a><a href="javascript:top.pwned=1" target=_top>run</a><a href="  java\nscript:top.pwned=1">run</a><a href="data:text/html,<script>top.pwned=1</script>" ping="${evil}/ping">d</a>`,
  refresh: `<meta http-equiv=refresh content="0;url=${evil}/r"><meta http-equiv="set-cookie" content="a=b"><base href="${evil}/" target=_top><a href="x">base</a>`,
  style: `<style>@import "${evil}/i.css"; @import url(${evil}/j.css); @font-face { font-family: e; src: url(${evil}/f.woff) } body { font-family: e; background: u\\72l(${evil}/b.png); --x: url(${evil}/v.png); list-style: var(--x) } div { background-image: image-set("${evil}/s.png" 1x); cursor: url(${evil}/c.cur), auto; mask-image: url(${evil}/m.svg) } div { --y: 1; background: var(--y) url(${evil}/y.png); border-image: var(--y) u\\72l(${evil}/z.png) } @layer { p { &:first-child { background: url(${evil}/n.png) } } } div::before { content: url(${evil}/q.png) } @media all { p { background: url(${evil}/w.png) } } @keyframes k { from { background: url(${evil}/k.png) } } p { animation: k 1s infinite }</style><link rel=stylesheet href="${evil}/l.css"><link rel=preload as=image href="${evil}/l.png"><link rel=dns-prefetch href="${evil}"><link rel=prefetch href="${evil}/n"><link rel=icon href="${evil}/icon"><link rel=modulepreload href="${evil}/mod.js"><div style="background:url(${evil}/d.png)">a</div><p style="background-image:u\\72l(${evil}/e.png)">b</p>`,
  frames: `<iframe src="${evil}/f" srcdoc="<script>top.pwned=1</script>"></iframe><iframe src="javascript:top.pwned=1"></iframe><object data="${evil}/o"></object><embed src="${evil}/e"><video src="${evil}/v" poster="${evil}/po" autoplay onerror="top.pwned=1"></video><audio src="${evil}/a" autoplay></audio><applet code=x></applet><portal src="${evil}/po"></portal>`,
  frameset: `<frameset onload="top.pwned=1"><frame src="${evil}/f"><frame src="javascript:top.pwned=1"></frameset>`,
  forms: `<form id=f action="${evil}/post" method=post onsubmit="top.pwned=1"><input name=a autofocus onfocus="top.pwned=1"><input type=image src="${evil}/img"><button formaction="javascript:top.pwned=1">go</button><input type=file><input type=password></form><isindex><keygen autofocus onfocus="top.pwned=1">`,
  handlers: `<body onload="top.pwned=1" onpageshow="top.pwned=1" background="${evil}/bg.png"><details open ontoggle="top.pwned=1"><summary>s</summary></details><marquee onstart="top.pwned=1">m</marquee><div onmouseover="top.pwned=1" onclick="top.pwned=1" onanimationstart="top.pwned=1" style="animation: a 1s">hover</div><input onfocus="top.pwned=1" autofocus><table background="${evil}/t.png"><tr><td background="${evil}/td.png">x</table>`,
  template: `<template><img src=x onerror="top.pwned=1"><script>top.pwned=1</script></template><div><template shadowrootmode=open><img src=x onerror="top.pwned=1"></template></div><slot></slot>`,
  mutation: `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=top.pwned=1&gt;"></table></math><svg></p><style><a id="</style><img src=1 onerror=top.pwned=1>"></svg><noscript><p title="</noscript><img src=x onerror=top.pwned=1>"></noscript><form><math><mtext></form><form><mglyph><style></math><img src onerror=top.pwned=1></style></mglyph></form></mtext></math><textarea><img title="</textarea><img src=x onerror=top.pwned=1>"></textarea><xmp><img src=x onerror=top.pwned=1></xmp><plaintext><img src=x onerror=top.pwned=1>`,
  comments: `<!--><img src=x onerror=top.pwned=1>--><![CDATA[<img src=x onerror=top.pwned=1>]]><?php <img src=x onerror=top.pwned=1> ?><title><img src=x onerror=top.pwned=1></title>`,
  names: `<form name=body></form><img name=documentElement><img name=getElementById><div id=contentDocument></div><form id=defaultView><input name=adoptedStyleSheets></form><p id=createElement class="__proto__">x</p><input name=attributes>`,
  attributes: `<p data-argiope-match data-argiope-box is="x-y" slot=a part=b nonce=n style="position:fixed;inset:0;z-index:99999">cover</p><x-evil onclick=top.pwned=1></x-evil><a"b<c x"y=1 onclick=top.pwned=1>odd</a"b<c>`,
  deep: `${'<div>'.repeat(4000)}deep${'</div>'.repeat(4000)}`,
  policy: `<meta http-equiv=Content-Security-Policy content="default-src *; script-src * 'unsafe-inline'"><script>top.pwned=1</script><img src=x onerror=top.pwned=1>`,
};

describe('a crawled page', () => {
  for (const [what, html] of Object.entries(hostilePages)) {
    it(`runs nothing and asks for nothing: ${what}`, async () => {
      const { page, wrong } = await open(() => answerOf(`${html}<p id="last-of-all">the end</p>`));
      const asked = [];
      page.on('request', (request) => asked.push(request.url()));
      page.context().on('request', (request) => asked.push(request.url()));
      const opened = [];
      page.context().on('page', (other) => opened.push(other.url()));
      const address = page.url();
      await run(page);
      await drawn(page).catch((error) => (what === 'comments' ? null : Promise.reject(error)));
      await page.getByLabel('Enable CSS selector helper').waitFor();
      // Hovering, clicking and keys wake nothing either, with the helper and without.
      const wake = () =>
        page.evaluate(() => {
          const inside = document.querySelector('.page-frame iframe').contentDocument;
          for (const element of inside.querySelectorAll('*')) {
            for (const type of ['mouseover', 'click', 'focus', 'submit', 'load', 'error', 'toggle', 'animationstart']) element.dispatchEvent(new Event(type, { bubbles: true, cancelable: true }));
            element.click?.();
          }
        });
      await wake();
      const box = await page.locator('.page-frame iframe').boundingBox();
      await page.mouse.click(box.x + 12, box.y + 12);
      await page.getByLabel('Enable CSS selector helper').check();
      await page.mouse.click(box.x + 20, box.y + 20);
      await tab(page, 'HTML');
      await tab(page, 'Web');
      await quiet(page);
      const state = await page.evaluate(() => {
        const frame = document.querySelector('.page-frame iframe');
        const inside = frame.contentDocument;
        const odd = [];
        const names = ['href', 'src', 'srcset', 'xlink:href', 'action', 'formaction', 'data', 'ping', 'background', 'poster', 'target', 'name', 'http-equiv', 'autofocus', 'srcdoc', 'nonce', 'is'];
        for (const element of inside.body.querySelectorAll('*')) {
          if (/^(?:script|style|link|meta|base|iframe|object|embed|form|template|source|animate|set|use|image|foreignobject|video|audio|portal|applet)$/i.test(element.localName)) odd.push(element.localName);
          for (const { name } of element.attributes) if (/^on/.test(name) || names.includes(name)) odd.push(`${element.localName} ${name}`);
          if (/url\(|image-set/.test(element.getAttribute('style') ?? '')) odd.push(element.getAttribute('style'));
        }
        const sheets = inside.adoptedStyleSheets.flatMap((sheet) => [...sheet.cssRules].map((rule) => rule.cssText)).filter((text) => /evil/.test(text));
        return { pwned: globalThis.pwned, title: document.title, sandbox: frame.getAttribute('sandbox'), meta: inside.head.querySelectorAll('meta').length, policy: inside.head.querySelector('meta').content, odd, sheets, frames: globalThis.length };
      });
      assert.deepEqual(state, {
        pwned: undefined,
        title: 'shop · Argiope',
        sandbox: 'allow-same-origin',
        meta: 1,
        policy: "default-src 'none'; style-src 'unsafe-inline'; img-src data:",
        odd: [],
        sheets: [],
        frames: 1,
      });
      // Of the daemon itself only its API is asked.
      assert.deepEqual(asked.filter((url) => !url.startsWith(`${daemon.origin}/v1/`)), []);
      assert.deepEqual(opened, []);
      assert.equal(page.url(), address);
      assert.deepEqual(wrong, []);
    });
  }
  it('is drawn with its own plain looks', async () => {
    const { page, wrong } = await open(() => answerOf('<style>@import "x.css"; p { color: rgb(1, 2, 3) }</style><p style="font-weight: 700">styled</p><img alt="a red dot" src="data:image/gif;base64,R0lGODlhAQABAIAAAP8AAP///yH5BAAAAAAALAAAAAABAAEAAAICRAEAOw=="><img alt="elsewhere" src="/a.png">'));
    await run(page);
    const p = frameOf(page).getByText('styled');
    await p.waitFor();
    assert.deepEqual(await p.evaluate((e) => [getComputedStyle(e).color, getComputedStyle(e).fontWeight]), ['rgb(1, 2, 3)', '700']);
    assert.deepEqual(await frameOf(page).locator('img').evaluateAll((all) => all.map((e) => e.getAttribute('src')?.slice(0, 10) ?? null)), ['data:image', null]);
    assert.deepEqual(wrong, []);
  });
  it('cannot be let to run by what a script of it would need', async () => {
    // Were something of it to come into the frame after all, neither the sandbox nor the policy would run it or load it.
    const { page } = await open(() => answerOf('<p>x</p>'), { expected: () => true });
    const asked = [];
    page.on('request', (request) => request.url().startsWith(evil) && !request.failure() && asked.push(request));
    const failed = [];
    page.on('requestfailed', (request) => failed.push(request));
    await run(page);
    await drawn(page);
    const after = await page.evaluate((origin) => {
      const inside = document.querySelector('.page-frame iframe').contentDocument;
      const box = inside.createElement('div');
      box.innerHTML = `<img src="${origin}/a.png" onerror="top.pwned=1"><b onclick="top.pwned=1">b</b>`;
      inside.body.append(box);
      const script = inside.createElement('script');
      script.textContent = 'top.pwned = 1';
      inside.body.append(script);
      box.querySelector('b').click();
      return globalThis.pwned;
    }, evil);
    await quiet(page);
    assert.equal(after, undefined);
    assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
    assert.deepEqual(asked.filter((request) => !failed.includes(request)).map((request) => request.url()), []);
  });
});
