// A project's whole life in the dashboard of a real daemon, which visits a site on loopback that means harm: it is made, tried,
// written, saved, run, watched, its results are taken away; it is stopped, explained, and rolled back.
//
//   node --test dashboard/tests/project_flow.test.mjs
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, it } from 'node:test';
import { launch } from './browser.mjs';
import { Daemon } from './daemon.mjs';
import { escaped, Site, until } from './site.mjs';
import { assertFits, clickInPage, enc, frameOf, isRefusal, openPage, picture, quiet, said, settled, violationsOf } from './support.mjs';

const kItems = 12;
const harm = '<img src=x onerror="top.pwned = 1; document.title = \'pwned\'">';
// What it says, too, is markup that wants to run.
const itemPage = (n) => `<!doctype html><title>Lamp ${n}</title>${harm}<h1>Lamp ${n} ${escaped(harm)}</h1>
  <p class="price">${n}.25</p><p class="stock">${n} left</p>`;

let browser;
let site;
let daemon;
before(async () => {
  browser = await launch();
  site = await Site.start();
  for (let n = 1; n <= kItems; ++n) site.pages.set(`/item/${n}`, itemPage(n));
  const links = Array.from({ length: kItems }, (_, n) => `<li><a class="item" href="/item/${n + 1}">Lamp ${n + 1}</a></li>`);
  site.pages.set('/', `<!doctype html><title>Shop</title>${harm}<h1>Shop</h1><ul>${links.join('')}</ul>`);
  daemon = await Daemon.start({ options: ['--pages', 'pages.db', '--allow-private'] });
});
after(async () => {
  await browser?.close();
  await daemon?.remove();
  await site?.close();
});

// A step of the walk: on each of these screens the page as it is now fits, axe finds nothing wrong, and nothing of the site has run.
const screens = ['light', 'dark'].flatMap((look) => [1440, 360].map((width) => ({ look, width })));
async function examine(page, name) {
  await settled(page);
  for (const { look, width } of screens) {
    await page.emulateMedia({ colorScheme: look, reducedMotion: 'reduce' });
    await page.setViewportSize({ width, height: 800 });
    await quiet(page, 60);
    const what = `${name}, ${look}, ${width} wide`;
    await assertFits(page, what);
    assert.deepEqual(await violationsOf(page), [], what);
    if ((look === 'light') === (width === 1440)) await picture(page, `flow-${name}-${look}-${width}`);
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1440, height: 800 });
  const [pwned, title, strangers] = await page.evaluate(() => [globalThis.pwned, document.title, document.querySelectorAll('main img, main script').length]);
  assert.deepEqual([pwned, title.includes('pwned'), strangers], [undefined, false, 0], name);
}

it('a project is made, tried, picked, followed, saved, run, watched, read, stopped, explained and rolled back', { timeout: 1_200_000 }, async () => {
  const { page, wrong } = await openPage(browser, { origin: daemon.origin, hash: '#/projects', width: 1440, expected: isRefusal });
  const asked = [];
  page.on('request', (request) => asked.push(request.url()));
  const button = (name, within = page) => within.getByRole('button', { name, exact: true });
  const view = (name) => page.getByRole('navigation', { name: 'Views of the project' }).getByRole('link', { name }).click();
  const tab = (name) => page.getByRole('tab', { name }).click();
  const shop = () => daemon.good('GET', '/v1/projects/shop');
  const editor = page.getByRole('textbox', { name: /project's file/ });
  const inFile = (text) => page.waitForFunction((t) => document.querySelector('.editor textarea').value.includes(t), text);
  const tryIt = () => button('Run', page.locator('.ask-line')).click();

  // Made, from nothing.
  await page.getByText('No projects yet').waitFor();
  await examine(page, 'none');
  await page.locator('[data-new]').click();
  const form = page.locator('dialog form');
  await form.getByLabel('Name').fill('shop');
  await form.getByLabel('Where it starts').fill(`${site.origin}/`);
  await examine(page, 'new');
  await button('Make it', form).click();
  await page.waitForURL(/#\/projects\/shop\?view=debug$/);

  // Tried: its start. A link is picked by a click, and with it those that are alike.
  assert.equal(await page.locator('input[name=url]').inputValue(), `${site.origin}/`);
  await tryIt();
  await frameOf(page).getByRole('heading', { name: 'Shop' }).waitFor();
  await page.getByLabel('Enable CSS selector helper').check();
  await clickInPage(page, 'a.item', 1);
  await button('All like it').click();
  await page.locator('.picked [role=status]', { hasText: `${kItems} elements: Lamp 1` }).waitFor();
  await page.getByLabel('Rule that it is put into').selectOption('list');
  await button('Follow /item/*').click();
  await inFile('follow = ["/item/*"]');
  await examine(page, 'picked');

  // A link is followed from the try; there a field is picked for its rule, and tried at once.
  await tab('Follows');
  await page.getByRole('button', { name: `Run ${site.origin}/item/3` }).click();
  await tab('Web');
  await frameOf(page).getByText('3 left', { exact: true }).waitFor();
  await page.getByLabel('Enable CSS selector helper').check();
  await clickInPage(page, '.stock');
  await page.locator('.picked [role=status]', { hasText: '1 element: 3 left' }).waitFor();
  await page.getByLabel('Name of the field').fill('stock');
  await page.getByLabel('Rule that it is put into').selectOption('item');
  await button('Add the field').click();
  await inFile('stock = "css:.stock"');
  await examine(page, 'item');
  await tryIt();
  await tab('Results');
  await page.getByRole('cell', { name: '3 left', exact: true }).waitFor();
  await page.getByRole('cell', { name: `Lamp 3 ${harm}`, exact: true }).waitFor();
  await examine(page, 'tried');
  const { counts, version } = await shop();
  assert.deepEqual([version, counts.all.pending + counts.all.success], [1, 0], 'a try stores nothing');

  // Saved.
  await page.getByLabel('Note on this version').fill('with the stock');
  await button('Save').click();
  await said(page, 'Version 2 is saved');
  assert.equal((await shop()).source, await editor.inputValue());

  // Run, with the site in no hurry: of its pages only the first is there at once, which the first start and Run may both ask for.
  let letGo;
  site.held = new Promise((go) => (letGo = go));
  await button('Set running').click();
  await button('Stop').waitFor();
  await button('Run', page.locator('.head')).click();
  await said(page, 'of shop is under way.');

  // Watched: the bars and their numbers in the table, before and after.
  await page.locator('.head').getByRole('link', { name: 'Back' }).click();
  const row = page.locator('table.projects tr[data-row]', { hasText: 'shop' });
  const bar = (name) => row.getByRole('img', { name });
  const shares = (of) => of.locator('span').evaluateAll((all) => all.map((part) => part.dataset.state));
  const before = bar(/^pages as they are now: 1[23] pending, [01] success, 0 retry, 0 failed$/);
  await before.waitFor();
  assert.equal((await shares(before))[0], 'pending');
  await examine(page, 'running');
  letGo();
  const done = bar(`pages as they are now: 0 pending, ${kItems + 1} success, 0 retry, 0 failed`);
  await done.waitFor();
  assert.deepEqual(await shares(done), ['success']);
  for (const span of ['5 minutes', 'an hour', 'a day']) {
    await bar(new RegExp(`^${span}: 1[34] pending, 1[34] success, 0 retry, 0 failed$`)).waitFor();
  }
  await until(async () => (await shop()).round === null, 'the end of its round');
  await row.getByRole('link', { name: 'shop', exact: true }).click();
  await page.locator('[aria-labelledby=rounds] tbody tr').first().waitFor();
  await page.locator('[aria-labelledby=recent] [data-state=success]').first().waitFor();
  await examine(page, 'overview');

  // Its results are read, and taken away as CSV.
  await view('Results');
  await page.waitForFunction((n) => document.querySelectorAll('main tbody tr').length === n, kItems);
  assert.deepEqual(await page.locator('main thead th').allInnerTexts(), ['URL', 'Changed', 'title', 'price', 'stock']);
  await page.locator('main tbody tr', { hasText: 'Lamp 7' }).getByText(`Lamp 7 ${harm}`, { exact: true }).waitFor();
  await examine(page, 'results');
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'CSV', exact: true }).click()]);
  assert.equal(download.suggestedFilename(), 'shop-results.csv');
  const [head, ...lines] = (await readFile(await download.path(), 'utf8')).trimEnd().split('\r\n');
  assert.equal(head, 'url,part,title,price,stock');
  const csvLine = (n) => `${site.origin}/item/${n},,"Lamp ${n} ${harm.replaceAll('"', '""')}",${n}.25,${n} left`;
  assert.deepEqual(lines.toSorted(), Array.from({ length: kItems }, (_, n) => csvLine(n + 1)).toSorted());

  // Stopped; and a page that is asked for then says why it is not visited.
  await button('Stop').click();
  await button('Set running').waitFor();
  assert.equal((await shop()).status, 'STOP');
  await view('Overview');
  await page.locator('.why', { hasText: 'It is STOP: its pages are not visited' }).waitFor();
  await examine(page, 'stopped');
  await view('Pages');
  await page.locator('main tbody tr', { hasText: '/item/5' }).first().waitFor();
  await examine(page, 'pages');
  await page.locator('main tbody tr', { hasText: '/item/5' }).locator('[data-open]').click();
  await page.waitForURL((url) => url.hash.includes(enc(`${site.origin}/item/5`)));
  const visits = site.asked.get('/item/5');
  await button('Ask again').click();
  await said(page, 'It is visited again: it is asked for by force.');
  await page.locator('.why', { hasText: /stopped|STOP/ }).waitFor();
  await examine(page, 'explained');
  assert.equal(site.asked.get('/item/5'), visits);

  // Rolled back to what it was at first.
  await view('Versions');
  await page.locator('.diff tr[data-kind="+"]', { hasText: 'stock = "css:.stock"' }).waitFor();
  await examine(page, 'versions');
  const first = page.locator('[aria-labelledby=versions] tbody tr').last();
  await button('Roll back', first).click();
  await button('Roll back', page.locator('dialog')).click();
  await said(page, 'Version 3 of shop is as version 1 was.');
  await page.locator('.diff tr[data-kind="-"]', { hasText: 'stock = "css:.stock"' }).waitFor();
  const [last, one] = await Promise.all([shop(), daemon.good('GET', '/v1/projects/shop/versions/1')]);
  assert.deepEqual([last.version, last.source, last.status], [3, one.source, 'STOP']);

  // Nothing went wrong in the page, and only the daemon's own files and its API were asked for.
  assert.deepEqual(wrong, []);
  assert.deepEqual(asked.filter((url) => !/^\/(?:v1|ui)\//.test(new URL(url).pathname)), []);
});
