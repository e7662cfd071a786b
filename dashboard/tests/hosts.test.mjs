// Walks the pages of hosts in Chromium: the table, its filters and pages, and why nothing is asked of one.
//
//   node --test dashboard/tests/hosts.test.mjs
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { closeContexts, launch } from './browser.mjs';
import { Daemon } from './daemon.mjs';
import { hostile } from './seed.mjs';
import { projectOptions, seedProjects, startShop } from './seed_projects.mjs';
import { assertFits, openPage, picture, quiet, settled, violationsOf } from './support.mjs';

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
const later = (ms) => new Date(Date.now() + ms).toISOString();
const host = (site, more) => ({
  site,
  doing: 'ready',
  sentence: 'nothing holds it up',
  until: null,
  under_way: 0,
  at_most: 1,
  delay_ms: null,
  rate: 5,
  robots_known: true,
  trouble: '',
  projects: ['shop'],
  project_count: 1,
  ...more,
});
const many = (n) => Array.from({ length: n }, (_, i) => `project-${String(i).padStart(4, '0')}`);
const trouble = 'https://down.example: connecting to 192.0.2.7:443: no route to the host';
// What a large daemon would say.
const hosts = [
  host('https://a.example', { doing: 'busy', under_way: 1, sentence: '1 of 1 requests are under way' }),
  host('https://busy.example', { doing: 'busy', under_way: 7, at_most: 8, rate: null, projects: many(20), project_count: 41 }),
  host('https://slow.example:8443', { doing: 'waiting', until: later(4000), delay_ms: 10_000, sentence: 'rests for 4s' }),
  host('https://down.example', { doing: 'resting', until: later(1_500_000), trouble, sentence: `it is asked again in 25m: ${trouble}` }),
  host(`https://${'x'.repeat(240)}.example`, { robots_known: false, projects: [hostile.markup, hostile.wide], project_count: 2 }),
  host(`https://${hostile.markup}`, { doing: 'resting', trouble: hostile.script, sentence: hostile.script, until: later(60_000) }),
];
const its = (project, more) => ({ project, doing: 'waiting', until: null, under_way: 0, ready: 0, delayed: 0, first_due: null, ...more });
const explained = {
  site: 'https://down.example',
  known: true,
  reason: 'resting',
  words: `it is asked again in 25m: ${trouble}`,
  until: later(1_500_000),
  host: { ...hosts[3], projects: many(2), project_count: 3 },
  projects: [its('shop', { ready: 40, delayed: 1200, first_due: later(90_000) }), its(hostile.markup, { doing: 'paused', until: later(300_000) })],
};
// Hosts as above, in pages of `limit`.
async function withMany(page) {
  await page.route('**/v1/hosts?*', (route) => {
    const { searchParams } = new URL(route.request().url());
    const doing = searchParams.get('doing');
    const found = hosts.filter((one) => (!doing || one.doing === doing) && one.site.includes(searchParams.get('filter') ?? ''));
    return route.fulfill({ json: { hosts: found, next: searchParams.get('after') ? null : 6 } });
  });
  await page.route('**/v1/hosts/explain?*', (route) => route.fulfill({ json: explained }));
}

const places = { hosts: '#/hosts', 'hosts-none': '#/hosts?filter=nowhere', host: '#/hosts/https%3A%2F%2Fdown.example' };
describe('pages of hosts', () => {
  for (const look of ['light', 'dark']) {
    for (const width of [360, 1440]) {
      it(`fit a screen of ${width}, and axe finds nothing wrong with them, ${look}`, async () => {
        const { page, wrong, go } = await open('#/settings', { width, look });
        await withMany(page);
        for (const [name, hash] of Object.entries(places)) {
          await go(hash);
          await settled(page);
          await quiet(page);
          await assertFits(page, name);
          assert.deepEqual(await violationsOf(page), [], name);
          assert.ok(!(await page.title()).includes('pwned'), name);
          await picture(page, `${name}-${look}-${width}`);
        }
        assert.deepEqual(wrong, []);
      });
    }
  }
});

describe('the hosts of a daemon', () => {
  it('are told with what is done there, and a row opens why', async () => {
    const { page, wrong } = await open('#/hosts');
    const row = page.locator('tr[data-row]').filter({ hasText: shop.origin });
    await row.getByRole('link', { name: 'shop', exact: true }).waitFor();
    await page.locator('body').press('j');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: shop.origin }).waitFor();
    await page.locator('.why').waitFor();
    const queued = page.locator('tr[data-row]').filter({ has: page.getByRole('link', { name: 'shop', exact: true }) });
    await queued.getByRole('link', { name: 'Pages' }).click();
    await page.getByRole('region', { name: 'Pages' }).locator('tr[data-row]').first().waitFor();
    assert.deepEqual(wrong, []);
  });

  it('are filtered by a piece of the site, by what is done and by project', async () => {
    const { page, wrong, go } = await open('#/hosts');
    await page.locator('tr[data-row]').first().waitFor();
    await page.getByLabel('Site').fill('nowhere.example');
    await page.getByText('No such hosts').waitFor();
    await page.getByRole('link', { name: 'Look at all.' }).click();
    await page.locator('tr[data-row]').first().waitFor();
    await go('#/hosts?project=news');
    await page.getByText('No such hosts').waitFor();
    await page.getByRole('link', { name: 'of all projects' }).click();
    await page.locator('tr[data-row]').first().waitFor();
    assert.deepEqual(wrong, []);
  });

  it('come in pages, and where few fit it looks on', async () => {
    const { page, wrong } = await open('#/settings');
    const asked = [];
    await page.route('**/v1/hosts?*', (route) => {
      const { searchParams } = new URL(route.request().url());
      const at = Number(searchParams.get('after') ?? 0);
      asked.push(at);
      const found = at === 50_000 ? [hosts[0]] : at === 100_000 ? [hosts[2]] : [];
      return route.fulfill({ json: { hosts: found, next: at < 100_000 ? at + 50_000 : null } });
    });
    await page.evaluate(() => void (location.hash = '#/hosts?doing=busy'));
    await page.getByRole('link', { name: hosts[0].site }).waitFor();
    assert.deepEqual(asked.slice(0, 2), [0, 50_000]);
    await page.getByRole('link', { name: 'Next' }).click();
    await page.getByRole('link', { name: hosts[2].site }).waitFor();
    await page.getByRole('button', { name: 'Back' }).click();
    await page.getByRole('link', { name: hosts[0].site }).waitFor();
    assert.deepEqual(wrong, []);
  });
});

describe('a daemon without projects', () => {
  it('says that it visits no pages', async () => {
    const plain = await Daemon.start({});
    try {
      const { page, wrong } = await openPage(browser, { origin: plain.origin, hash: '#/hosts', expected: (text) => text.includes('status of 404') });
      await page.getByText('This daemon visits no pages').waitFor();
      assert.deepEqual(wrong, []);
    } finally {
      await plain.remove();
    }
  });

  it('knows no host that no project has met', async () => {
    const { page, wrong } = await open('#/hosts/https%3A%2F%2Felsewhere.example');
    await page.getByText('No project has pages there').waitFor();
    assert.deepEqual(wrong, []);
  });
});
