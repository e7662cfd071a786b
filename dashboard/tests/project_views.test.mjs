// Walks the pages and the results of a project that has visited a site on loopback, in the dashboard of a real daemon.
//
//   node --test dashboard/tests/project_views.test.mjs
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, afterEach, before, describe, it } from 'node:test';
import { closeContexts, launch } from './browser.mjs';
import { Daemon } from './daemon.mjs';
import { hostile } from './seed.mjs';
import { fill, item, seedProject, Site, sizes, until } from './site.mjs';
import { assertFits, enc, openPage, picture, quiet, said, settled, violationsOf } from './support.mjs';

let browser;
let daemon;
let site;
before(async () => {
  browser = await launch();
  site = await Site.start();
  fill(site, { hostile });
  daemon = await Daemon.start({ options: ['--pages', 'pages.db', '--allow-private'] });
  await seedProject(daemon, site);
});
afterEach(() => closeContexts(browser));
after(async () => {
  await browser?.close();
  await daemon?.remove();
  await site?.close();
});

const open = (hash, options) => openPage(browser, { origin: daemon.origin, hash, ...options });
const refused = (text) => text.includes('status of 404');
const pages = (more = '') => `#/projects/shop?view=pages${more}`;
const results = (more = '') => `#/projects/shop?view=results${more}`;
const onePage = (path) => pages(`&page=${enc(site.origin + path)}`);
const rows = (page) => page.locator('main tbody tr');
const row = (page, text) => rows(page).filter({ hasText: text });
// By its link: behind a URL of a row stands a time, "/item/1" and "2 min ago".
const rowOf = (page, path) => rows(page).filter({ has: page.locator('a', { hasText: new RegExp(`${path}$`) }) });
const state = (page, name) => page.locator(`main .head .state[data-state=${name}]`).first().waitFor();
const why = (page, text) => page.locator('.why', { hasText: text }).waitFor();
const countIs = (page, n) => page.waitForFunction((m) => document.querySelectorAll('main tbody tr').length === m, n);
const form = (page) => page.locator('dialog form');
const asked = (path) => site.asked.get(path) ?? 0;
const inMain = (page, text) => page.waitForFunction((t) => document.querySelector('main').textContent.includes(t), text);

describe('the views of a project’s pages and results', () => {
  const places = {
    'project-pages': () => pages(),
    'project-pages-lately': () => pages('&state=lately'),
    'project-pages-none': () => pages('&state=cancelled&rule=none'),
    'project-page': () => onePage('/item/3'),
    'project-page-failed': () => onePage('/broken/1'),
    'project-page-parts': () => onePage('/sizes/shoe'),
    'project-page-hostile': () => onePage('/item/wide'),
    'project-page-unknown': () => pages('&page=nothing'),
    'project-results': () => results(),
    'project-result': () => results(`&page=${enc(`${site.origin}/item/markup`)}`),
    'project-changes': () => results('&show=changes'),
  };
  for (const look of ['light', 'dark']) {
    for (const width of [360, 1440]) {
      const isExamined = (look === 'light') === (width === 1440);
      it(`fit a screen of ${width}${isExamined ? ', and axe finds nothing wrong with them' : ''}, ${look}`, async () => {
        const { page, wrong, go } = await open('', { width, look, expected: refused });
        for (const [name, hash] of Object.entries(places)) {
          await go(hash());
          await page.locator('main section').first().waitFor();
          await settled(page);
          await quiet(page);
          await assertFits(page, name);
          if (isExamined) assert.deepEqual(await violationsOf(page), [], name);
          await picture(page, `${name}-${look}-${width}`);
        }
        assert.deepEqual(wrong, []);
      });
    }
  }
});

describe('the pages of a project', () => {
  it('are listed by cursor, and by state, rule and text, which are part of the address', async () => {
    const { page, wrong, go } = await open(pages());
    await countIs(page, 50);
    await page.getByRole('link', { name: 'Next' }).click();
    await page.getByText('page 2', { exact: true }).waitFor();
    await rowOf(page, '/sizes/shoe').waitFor();
    await page.getByRole('button', { name: 'Back' }).click();
    await countIs(page, 50);

    await page.getByRole('link', { name: 'failed', exact: true }).click();
    await countIs(page, 1);
    await rowOf(page, '/broken/1').getByText('500', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'all', exact: true }).click();
    await page.getByLabel('Rule').selectOption('sizes');
    await countIs(page, 1);
    await go(pages());
    await page.getByLabel('URL').fill('ITEM/17');
    await countIs(page, 1);
    await rowOf(page, '/item/17').locator('[data-open]').click();
    await page.locator('main h2', { hasText: '/item/17' }).waitFor();
    assert.deepEqual(wrong, []);
  });

  it('tell of one all that is known, and why it is not visited now', async () => {
    const { page, wrong, go } = await open(onePage('/sizes/shoe'));
    await state(page, 'done');
    await why(page, 'waits to be asked for');
    await page.locator('article').nth(1).waitFor();
    assert.match(await page.locator('article').first().innerText(), /part 41[\s\S]*"stock": 3/);
    const facts = await page.locator('dl.facts').innerText();
    for (const text of ['sizes', 'Last success', '200', `${site.origin}/`]) assert.ok(facts.includes(text), text);
    await go(onePage('/broken/1'));
    await state(page, 'failed');
    await page.locator('.error-card', { hasText: '500' }).waitFor();
    assert.deepEqual(wrong, []);
  });

  // No script runs here: what one would have said is put into the daemon's answer.
  for (const [look, width] of [['light', 1440], ['dark', 1440], ['light', 360], ['dark', 360]]) {
    it(`tell what the last visit did, ${look}, ${width} wide`, async () => {
      const { page, wrong, go } = await open(onePage('/item/4'), { look, width });
      await page.getByRole('heading', { name: 'What its last visit did' }).waitFor();
      await inMain(page, '1 result');
      await page.getByText('It has logged nothing.').waitFor();
      const said = {
        logs: [{ level: 'print', text: `item <b>4</b> ${'x'.repeat(200)}` }, { level: 'error', text: hostile.markup }],
        logs_left_out: 12,
        failure: { text: 'ValueError: no', kind: 'ValueError', where: 'shop.py:3', trace: `Traceback (most recent call last):\n  File "shop.py", line 3, in page\n${hostile.markup}` },
      };
      await page.route('**/pages/one*', async (route) => {
        const answer = await route.fetch();
        const told = await answer.json();
        await route.fulfill({ json: { ...told, last_visit: { ...told.last_visit, ...said } } });
      });
      await go(onePage('/item/5'));
      await page.getByText('12 earlier lines of its log were not kept.').waitFor();
      await inMain(page, 'line 3, in page');
      await page.getByRole('list', { name: 'Log' }).getByText('item <b>4</b>').waitFor();
      await quiet(page);
      assert.equal(await page.locator('main img').count(), 0);
      await assertFits(page, 'a last visit');
      assert.deepEqual(await violationsOf(page), []);
      await picture(page, `project-page-visit-${look}-${width}`);
      assert.deepEqual(wrong, []);
    });
  }

  it('are asked for again by force, and are visited', async () => {
    const { page, wrong } = await open(onePage('/item/5'));
    await state(page, 'done');
    const before = asked('/item/5');
    await page.getByRole('button', { name: 'Ask again' }).click();
    await said(page, 'It is visited again: it is asked for by force.');
    await until(() => asked('/item/5') === before + 1, 'a visit');
    await state(page, 'done');

    await page.getByRole('button', { name: 'With priority' }).click();
    await form(page).getByLabel('Priority').fill('7');
    await page.getByRole('button', { name: 'Ask for it' }).click();
    await page.locator('dialog').waitFor({ state: 'detached' });
    await until(() => asked('/item/5') === before + 2, 'another visit');
    await page.waitForFunction(() => /Priority\s*7/.test(document.querySelector('dl.facts').innerText));
    assert.deepEqual(wrong, []);
  });

  it('are asked for by a form, wait until they are due, and are cancelled', async () => {
    site.pages.set('/item/later', item('Later', 1));
    const { page, wrong, go } = await open(pages());
    await page.keyboard.press('n');
    await form(page).getByLabel('URL', { exact: true }).fill('nothing');
    await page.getByRole('button', { name: 'Ask for it' }).click();
    await page.locator('dialog .problem', { hasText: 'nothing' }).waitFor();
    await form(page).getByLabel('URL', { exact: true }).fill(`${site.origin}/item/later`);
    await form(page).getByLabel('Context').fill('{');
    await page.getByRole('button', { name: 'Ask for it' }).click();
    await page.locator('dialog .field[data-bad=true]').waitFor();
    await form(page).getByLabel('Context').fill('{"from":"a form"}');
    await form(page).getByLabel('Not before').fill('2h');
    await form(page).getByLabel('Tag').fill('v2');
    await page.getByRole('button', { name: 'Ask for it' }).click();
    await said(page, 'The page is added: it is new.');
    await go(pages('&state=waiting'));
    await rowOf(page, '/item/later').getByText('v2', { exact: true }).waitFor();
    await rowOf(page, '/item/later').locator('[data-open]').click();
    await why(page, 'it was asked for then, at');
    await inMain(page, '"from": "a form"');
    await picture(page, 'project-page-waiting');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Cancel the page' }).click();
    await said(page, 'It is cancelled.');
    await state(page, 'cancelled');
    assert.equal(asked('/item/later'), 0);
    assert.deepEqual(wrong.filter((text) => !text.includes('400')), []);
  });

  it('are shown as they are visited', async () => {
    const { page, wrong } = await open(pages('&state=lately'));
    await rows(page).first().waitFor();
    await daemon.good('POST', '/v1/projects/shop/pages', { url: `${site.origin}/item/9`, force: true });
    await rows(page).first().filter({ hasText: '/item/9' }).filter({ hasText: 'success' }).waitFor();
    assert.deepEqual(wrong, []);
  });
});

describe('the results of a project', () => {
  it('are a table of their fields, and one is shown whole', async () => {
    const { page, wrong } = await open(results());
    await countIs(page, 50);
    const heads = await page.locator('main thead th').allInnerTexts();
    assert.deepEqual(heads, ['URL', 'Changed', 'title', 'price', 'note', 'size', 'stock']);
    await rowOf(page, '/item/12').getByText('12.5', { exact: true }).waitFor();
    await rowOf(page, '/item/12').locator('[data-open]').click();
    await page.locator('dialog pre', { hasText: '"price": 12.5' }).waitFor();
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    await page.getByLabel('Rule').selectOption('sizes');
    await countIs(page, 2);
    await rows(page).getByText('42', { exact: true }).first().waitFor();
    assert.deepEqual(wrong, []);
  });

  it('keep numbers to the letter', async () => {
    const { page } = await open(results());
    const shown = await page.evaluate(async () => {
      const { cellOf, parseExact, wholeOf } = await import('/ui/results.js');
      const value = parseExact('{"id":12345678901234567890,"price":1.50,"n":7}');
      return [cellOf({ value }, 'id'), cellOf({ value }, 'price'), value.n, wholeOf(value)];
    });
    assert.deepEqual(shown, ['12345678901234567890', '1.50', 7, '{\n  "id": 12345678901234567890,\n  "price": 1.50,\n  "n": 7\n}']);
  });

  it('tell what was added, has changed and is gone, the newest first', async () => {
    const { page, wrong } = await open(results('&show=changes'));
    await countIs(page, 50);
    await page.getByRole('link', { name: 'Next' }).click();
    await page.getByText('page 2', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'First' }).click();
    site.pages.set('/sizes/shoe', sizes({ 41: 2 }));
    await daemon.good('POST', '/v1/projects/shop/pages', { url: `${site.origin}/sizes/shoe`, force: true });
    await row(page, 'gone').filter({ hasText: 'size: 42' }).waitFor();
    await row(page, 'changed').filter({ hasText: 'stock: 2' }).waitFor();
    assert.deepEqual(wrong, []);
  });

  it('are taken away as CSV, JSON and JSON lines', async () => {
    const { page, wrong } = await open(results());
    const taken = async (name) => {
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name, exact: true }).click()]);
      return { name: download.suggestedFilename(), text: await readFile(await download.path(), 'utf8') };
    };
    const csv = await taken('CSV');
    assert.equal(csv.name, 'shop-results.csv');
    assert.match(csv.text, /^url,part,title,price,note,size,stock\r\n/);
    assert.ok(csv.text.includes("\"'=1+1<img"), 'a formula is text');
    const json = await taken('JSON');
    assert.equal(json.name, 'shop-results.json');
    const all = JSON.parse(json.text);
    const lines = await taken('JSON lines');
    assert.equal(lines.name, 'shop-results.jsonl');
    assert.deepEqual(lines.text.trim().split('\n').map(JSON.parse), all);
    assert.ok(all.some(({ value }) => value.title === 'Lamp 60'));
    assert.deepEqual(wrong, []);
  });

  it('are taken away by who has signed in, too', async () => {
    const own = await Daemon.start({ token: 'admin', options: ['--pages', 'pages.db', '--allow-private'] });
    const small = await Site.start();
    try {
      fill(small, { items: 1 });
      await seedProject(own, small);
      const noRight = (text) => text.includes('status of 401');
      const { page, wrong, go } = await openPage(browser, { origin: own.origin, hash: '#/settings', expected: noRight });
      await page.locator('input[type=password]').fill(own.token);
      await page.keyboard.press('Enter');
      await page.locator('.stream[data-status=live]').first().waitFor({ state: 'attached' });
      await go(results());
      await row(page, 'Lamp 1').waitFor();
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'CSV' }).click()]);
      assert.match(await readFile(await download.path(), 'utf8'), /Lamp 1/);
      assert.deepEqual(wrong, []);
    } finally {
      await own.remove();
      await small.close();
    }
  });

  it('show the texts of strangers as text', async () => {
    for (const text of Object.values(hostile)) {
      const page = { url: `${site.origin}/item/never`, name: text.trim() || 'blank', tag: text, context: { [text]: text }, delay_ms: 86_400_000 };
      await daemon.good('POST', '/v1/projects/shop/pages', page);
    }
    const { page, wrong, go } = await open(results(), { expected: refused });
    const looked = [results(), results('&after=60/'), results('&show=changes'), pages('&after=50'), pages('&state=lately')];
    for (const what of Object.keys(hostile)) {
      looked.push(onePage(`/item/${what}`), results(`&page=${enc(`${site.origin}/item/${what}`)}`));
    }
    for (const text of Object.values(hostile)) {
      const name = enc(text.trim() || 'blank');
      looked.push(pages(`&page=${name}`), results(`&page=${name}`), pages(`&state=waiting&filter=${name}`), pages(`&rule=${name}`));
    }
    for (const place of looked) {
      await go(place);
      await settled(page);
      await quiet(page);
      const found = await page.evaluate(() => [document.title, document.querySelectorAll('main img, main script').length]);
      assert.deepEqual(found, ['shop · Argiope', 0], place);
    }
    await go(onePage('/item/markup'));
    await inMain(page, '<img src=x onerror=');
    assert.deepEqual(wrong, []);
  });
});
