// Walks the pages of projects in Chromium: the table, making one, its overview, its versions.
//
//   node --test dashboard/tests/projects.test.mjs
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { closeContexts, launch } from './browser.mjs';
import { Daemon } from './daemon.mjs';
import { projectOptions, putProject, seedProjects, startShop, waitFor } from './seed_projects.mjs';
import { assertFits, clickInToast, openPage, picture, quiet, said, settled, violationsOf } from './support.mjs';

let browser;
let shop;
let daemon;
before(async () => {
  browser = await launch();
  shop = await startShop();
  daemon = await Daemon.start({ options: projectOptions });
  await seedProjects(daemon, shop);
});
afterEach(() => closeContexts(browser));
after(async () => {
  await browser?.close();
  await daemon?.remove();
  shop?.close();
});

const open = (hash, options) => openPage(browser, { origin: daemon.origin, hash, ...options });
const refused = (...codes) => (text) => codes.some((code) => text.includes(`status of ${code}`));
const row = (page, name) => page.locator('table.projects tr[data-row]').filter({ has: page.getByRole('link', { name, exact: true }) });
const show = (name) => daemon.good('GET', `/v1/projects/${name}`);
const isEmpty = (name) => ({ project: { name, start: [`${shop.origin}/`], status: 'STOP' }, rule: [{ name: 'page' }] });

const places = {
  projects: '#/projects',
  'projects-grouped': '#/projects?by=group',
  project: '#/projects/shop',
  'project-stopped': '#/projects/news',
  'project-versions': '#/projects/shop?view=versions',
  'project-version': '#/projects/shop?view=versions&from=none',
  'project-hostile': `#/projects/${'x'.repeat(64)}`,
  'project-hostile-versions': `#/projects/${'x'.repeat(64)}?view=versions`,
  'project-none': '#/projects/nothing',
};
describe('pages of projects', () => {
  for (const look of ['light', 'dark']) {
    for (const width of [360, 1440]) {
      const isExamined = (look === 'light') === (width === 1440);
      it(`fit a screen of ${width}${isExamined ? ', and axe finds nothing wrong with them' : ''}, ${look}`, async () => {
        const { page, wrong, go } = await open('', { width, look, expected: refused(404) });
        for (const [name, hash] of Object.entries(places)) {
          await go(hash);
          await settled(page);
          await quiet(page);
          await assertFits(page, name);
          if (isExamined) assert.deepEqual(await violationsOf(page), [], name);
          assert.ok(!(await page.title()).includes('pwned'), name);
          await picture(page, `${name}-${look}-${width}`);
        }
        assert.deepEqual(wrong, []);
      });
    }
  }
});

describe('the table', () => {
  it('changes status, rate, burst and group where they stand', async () => {
    await putProject(daemon, 'lamps', isEmpty('lamps'));
    const { page, wrong } = await open('#/projects');
    const lamps = row(page, 'lamps');
    await lamps.locator('select').selectOption('DEBUG');
    await waitFor(daemon, 'lamps', (project) => project.status === 'DEBUG');
    await lamps.locator('select[data-status=DEBUG]').waitFor();

    await lamps.getByRole('button', { name: /^Rate and burst of lamps: no limit/ }).click();
    const field = lamps.getByLabel('Rate and burst of lamps');
    await field.fill('fast');
    await field.press('Enter');
    await said(page, 'Visits a second');
    await field.fill('2.5/4');
    await field.press('Enter');
    await lamps.getByText('2.5/4').waitFor();
    const { rate, burst } = await show('lamps');
    assert.deepEqual({ rate, burst }, { rate: 2.5, burst: 4 });
    await lamps.getByText('2.5/4').click();
    await field.fill('9');
    await field.press('Escape');
    await lamps.getByText('2.5/4').click();
    await field.fill('');
    await field.press('Enter');
    await lamps.getByText('no limit').waitFor();

    await lamps.getByRole('button', { name: /^Group of lamps/ }).click();
    await lamps.getByLabel('Group of lamps').fill('lights');
    await lamps.getByLabel('Group of lamps').press('Enter');
    await waitFor(daemon, 'lamps', (project) => project.group === 'lights');
    await page.getByRole('button', { name: 'By group' }).click();
    const head = page.locator('.group-head', { hasText: 'lights' });
    await head.getByRole('button').click();
    await lamps.waitFor({ state: 'detached' });
    await head.getByRole('button').click();
    await lamps.waitFor();
    assert.deepEqual(wrong, []);
  });

  it('has bars with their numbers, and follows what happens', async () => {
    const { page, wrong } = await open('#/projects');
    await row(page, 'shop').getByRole('img', { name: /^a day: 3\d pending, 31 success, \d+ retry, 0 failed$/ }).waitFor();
    await daemon.good('PATCH', '/v1/projects/shop', { rate: 49 });
    await row(page, 'shop').getByText('49/10').waitFor();
    assert.deepEqual(wrong, []);
  });

  it('draws a row again only when its project has changed', async () => {
    await putProject(daemon, 'still', isEmpty('still'));
    await putProject(daemon, 'moving', isEmpty('moving'));
    const { page } = await open('#/projects');
    await row(page, 'still').waitFor();
    await page.evaluate(() => {
      globalThis.drawn = new Set();
      const nameOf = (node) => node.parentElement?.closest('tr')?.querySelector('[data-open]')?.textContent;
      new MutationObserver((changes) => changes.forEach((c) => globalThis.drawn.add(nameOf(c.target) ?? ''))).observe(
        document.querySelector('table.projects tbody'),
        { childList: true, characterData: true, attributes: true, subtree: true },
      );
    });
    await daemon.good('PATCH', '/v1/projects/moving', { rate: 3 });
    await row(page, 'moving').getByText('3/1').waitFor();
    const drawn = await page.evaluate(() => [...globalThis.drawn]);
    assert.ok(drawn.includes('moving'));
    assert.ok(!drawn.includes('still'), drawn);
  });

  it('filters, starts a round, and leads to each view', async () => {
    const { page, wrong } = await open('#/projects');
    await page.locator('[data-filter]').fill('sho');
    await row(page, 'news').waitFor({ state: 'detached' });
    await row(page, 'shop').getByRole('button', { name: 'Run' }).click();
    await said(page, 'of shop is under way');
    for (const view of ['Debug', 'Pages', 'Results']) {
      const href = await row(page, 'shop').getByRole('link', { name: view }).getAttribute('href');
      assert.equal(href, `#/projects/shop?view=${view.toLowerCase()}`);
    }
    await row(page, 'shop').getByRole('link', { name: 'shop' }).click();
    await page.locator('main h1', { hasText: 'shop' }).waitFor();
    assert.deepEqual(wrong, []);
  });

  it('has what was deleted, until it is restored', async () => {
    const { page, wrong } = await open('#/projects');
    const old = page.locator('[aria-labelledby=deleted] li', { hasText: 'old' });
    await old.getByRole('button', { name: 'Restore' }).click();
    await said(page, 'old is back');
    await row(page, 'old').waitFor();
    await old.waitFor({ state: 'detached' });
    assert.deepEqual(wrong, []);
    await daemon.good('DELETE', '/v1/projects/old');
  });
});

describe('a daemon', () => {
  it('without projects says how it gets some; with none yet, how one is made', async () => {
    const without = await Daemon.start();
    const fresh = await Daemon.start({ options: projectOptions });
    try {
      const { page } = await open('#/projects', { origin: without.origin, expected: refused(404) });
      await page.getByText('argiope serve --pages pages.db').waitFor();
      const { page: other, wrong } = await open('#/projects', { origin: fresh.origin });
      await other.getByText('No projects yet').waitFor();
      assert.deepEqual(await violationsOf(other), []);
      assert.deepEqual(wrong, []);
    } finally {
      await without.remove();
      await fresh.remove();
    }
  });
});

describe('a new project', () => {
  it('is written in a form, checked by the daemon, and leads to its debug view', async () => {
    const { page, wrong } = await open('#/projects', { expected: refused(400, 422) });
    await row(page, 'shop').waitFor();
    await page.keyboard.press('n');
    const form = page.locator('dialog form');
    await form.getByLabel('Name').fill('new-shop');
    await form.getByLabel('Where it starts').fill(`${shop.origin}/`);
    const file = form.getByLabel('File');
    const text = await file.inputValue();
    assert.match(text, /^name = "new-shop"$/m);
    assert.ok(text.includes(`start = ["${shop.origin}/"]`));
    await file.fill(text.replace('match =', 'macht ='));
    await form.getByRole('button', { name: 'Make it' }).click();
    await page.locator('dialog .problem', { hasText: 'macht' }).waitFor();
    await page.locator('dialog .wrong-line', { hasText: 'macht = "/item/*"' }).waitFor();
    assert.equal(await file.evaluate((area) => area.value.slice(area.selectionStart, area.selectionEnd)), 'macht = "/item/*"');
    assert.deepEqual(await violationsOf(page), []);
    await picture(page, 'project-new');
    await file.fill(text);
    await form.getByRole('button', { name: 'Make it' }).click();
    await page.waitForURL(/#\/projects\/new-shop\?view=debug$/);
    const made = await show('new-shop');
    assert.equal(made.status, 'TODO');
    assert.equal(made.source, text);
    assert.deepEqual(wrong, []);
  });

  it('may have a script, which is kept with it; a name that is taken is refused', async () => {
    const { page, wrong } = await open('#/projects');
    await page.locator('[data-new]').click();
    const form = page.locator('dialog form');
    await form.getByLabel('Name').fill('shop');
    await form.getByLabel('Where it starts').fill(`${shop.origin}/`);
    await form.getByRole('button', { name: 'Script in Python' }).click();
    await form.getByRole('button', { name: 'Make it' }).click();
    await page.locator('dialog .problem', { hasText: 'There is a project shop already' }).waitFor();
    await form.getByLabel('Name').fill('scripted');
    await form.getByRole('button', { name: 'Make it' }).click();
    await page.waitForURL(/#\/projects\/scripted/);
    const made = await show('scripted');
    assert.ok(made.script.includes(`START = ["${shop.origin}/"]`), made.script);
    assert.deepEqual(wrong, []);
  });
});

describe('a project', () => {
  it('shows what it does, its rounds, rules with coverage, sinks and visits', async () => {
    const { page, wrong } = await open('#/projects/shop');
    await page.locator('.why').waitFor();
    const price = page.locator('.fields dd').nth(1).getByRole('img');
    assert.match(await price.getAttribute('aria-label'), /^in \d+ of \d+ records; at least 90% is wanted$/);
    await page.locator('[aria-labelledby=rounds] tr[data-row]').first().waitFor();
    await page.locator('[aria-labelledby=sinks]', { hasText: 'shop-prices.jsonl' }).waitFor();
    await page.locator('[aria-labelledby=recent] [data-state=success]').first().waitFor();
    await page.locator('[aria-labelledby=counts] td', { hasText: 'all, now' }).waitFor();
    assert.ok((await page.locator('[aria-labelledby=visits] canvas').count()) === 1);
    assert.deepEqual(wrong, []);
  });

  it('has its own hosts beside it', async () => {
    const host = (site, projects, more) => ({ site, projects, doing: 'ready', sentence: 'It is ready.', until: null, trouble: '', ...more });
    const until = new Date(Date.now() + 3_600_000).toISOString();
    const found = [host('https://a.example', ['shop'], { doing: 'resting', until }), host('https://b.example', ['news'])];
    const { page, wrong, go } = await open('#/settings');
    await page.route('**/v1/hosts?*', (route) => {
      const project = new URL(route.request().url()).searchParams.get('project');
      return route.fulfill({ json: { hosts: found.filter((one) => one.projects.includes(project)), next: null } });
    });
    await go('#/projects/shop');
    const own = page.locator('[aria-labelledby=its-hosts] li');
    await own.filter({ hasText: 'resting, again in' }).waitFor();
    assert.equal(await own.count(), 1);
    assert.equal(await own.getByRole('link').getAttribute('href'), '#/hosts/https%3A%2F%2Fa.example');
    assert.deepEqual(wrong, []);
  });

  it('that pauses after failures says so, and is resumed', async () => {
    const start = Array.from({ length: 14 }, (_, n) => `${shop.origin}/broken/${n}`);
    await putProject(daemon, 'bad', { project: { name: 'bad', start, rate: 100, burst: 20 }, rule: [{ name: 'page' }] });
    await daemon.good('POST', '/v1/projects/bad/start', {});
    await waitFor(daemon, 'bad', (project) => project.doing === 'paused');
    const { page, wrong } = await open('#/projects/bad');
    await page.locator('.why', { hasText: 'Its visits kept failing, so it pauses. It tries again in' }).waitFor();
    await page.locator('.head .tag', { hasText: 'paused' }).waitFor();
    await picture(page, 'project-paused');
    await page.getByRole('button', { name: 'Resume' }).click();
    await said(page, 'bad goes on');
    await page.locator('.head .tag', { hasText: 'paused' }).waitFor({ state: 'detached' });
    assert.deepEqual(wrong, []);
    await daemon.good('PATCH', '/v1/projects/bad', { status: 'STOP' });
  });

  it('is stopped, run, deleted and restored', async () => {
    await putProject(daemon, 'cups', isEmpty('cups'));
    // The page may be asking for it while it is deleted.
    const { page, wrong } = await open('#/projects/cups', { expected: refused(404) });
    await page.locator('.why', { hasText: 'It is STOP' }).waitFor();
    assert.ok(await page.getByRole('button', { name: 'Run', exact: true }).isDisabled());
    await page.getByRole('button', { name: 'Set running' }).click();
    await waitFor(daemon, 'cups', (project) => project.status === 'RUNNING');
    await page.getByRole('button', { name: 'Stop' }).click();
    await waitFor(daemon, 'cups', (project) => project.status === 'STOP');
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.locator('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.locator('[aria-labelledby=deleted] li', { hasText: 'cups' }).waitFor();
    await clickInToast(page, 'Undo');
    await said(page, 'cups is back');
    assert.equal((await show('cups')).name, 'cups');
    assert.deepEqual(wrong, []);
  });
});

describe('versions', () => {
  it('are compared, rolled back and made', async () => {
    const { page, wrong } = await open('#/projects/shop?view=versions', { expected: refused(400, 422) });
    await page.locator('.diff tr[data-kind="+"]', { hasText: 'file = "shop-prices.jsonl"' }).waitFor();
    await page.locator('.diff tr[data-kind="-"]', { hasText: 'file = "prices.jsonl"' }).waitFor();
    const first = page.locator('[aria-labelledby=versions] tr[data-row]', { hasText: 'the first one' });
    await first.getByRole('link', { name: 'Compare' }).click();
    await page.getByRole('heading', { name: 'From version 1 to 3' }).waitFor();
    await page.locator('.diff tr[data-kind="+"]', { hasText: '[[sink]]' }).waitFor();
    await page.getByRole('link', { name: 'All of version 3' }).click();
    await page.locator('pre.text', { hasText: 'coverage = { price = 0.9 }' }).waitFor();
    await first.getByRole('button', { name: 'Roll back' }).click();
    await page.locator('dialog').getByRole('button', { name: 'Roll back' }).click();
    await page.locator('tr[data-row]', { hasText: 'back to 1' }).waitFor();
    assert.deepEqual((await show('shop')).sinks, []);

    await page.getByRole('button', { name: 'Edit' }).click();
    const file = page.getByLabel('File', { exact: true });
    const text = await file.inputValue();
    await file.fill(text.replace('rate = 50', 'rate = fifty'));
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('.wrong-line', { hasText: 'rate = fifty' }).waitFor();
    await file.fill(text.replace('rate = 50', 'rate = 60'));
    await page.getByLabel('Why').fill('faster');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('tr[data-row]', { hasText: 'faster' }).waitFor();
    await page.locator('.diff tr[data-kind="+"]', { hasText: 'rate = 60' }).waitFor();
    assert.equal((await show('shop')).version, 5);
    assert.deepEqual(wrong, []);
  });

  it('of a project whose file the configuration names are only looked at', async () => {
    const { writeFile } = await import('node:fs/promises');
    const own = await Daemon.start({ options: projectOptions });
    try {
      await own.stop();
      await writeFile(`${own.folder}/named.toml`, '[project]\nname = "named"\nstart = "https://named.example/"\nstatus = "STOP"\n\n[[rule]]\nname = "page"\n');
      await writeFile(`${own.folder}/argiope.toml`, '[[project]]\nfile = "named.toml"\n');
      await own.again();
      const { page, wrong } = await open('#/projects/named?view=versions', { origin: own.origin });
      await page.locator('.note-line', { hasText: 'The configuration names its file' }).waitFor();
      assert.equal(await page.getByRole('button', { name: 'Edit' }).count(), 0);
      assert.ok(await page.getByRole('button', { name: 'Delete' }).isDisabled());
      assert.deepEqual(wrong, []);
    } finally {
      await own.remove();
    }
  });
});
