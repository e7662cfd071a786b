// Walks the dashboard of a real daemon in Chromium. Pictures of every page go to build/dashboard, to be looked at.
//
//   node --test dashboard/tests/dashboard.test.mjs
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, afterEach, before, describe, it } from 'node:test';
import { closeContexts, launch } from './browser.mjs';
import { Daemon } from './daemon.mjs';
import { config, hostile, seed, seedHostile } from './seed.mjs';
import { assertFits, clickInToast, enc, openPage, picture, quiet, said, settled, violationsOf } from './support.mjs';

let browser;
let daemon; // what most tests look at, and change little of
let known; // the jobs in it: {done, failed}
const own = []; // daemons of one test
async function startOwn(options) {
  own.push(await Daemon.start(options));
  return own.at(-1);
}
before(async () => {
  browser = await launch();
  daemon = await Daemon.start({ config });
  known = await seed(daemon);
});
afterEach(async () => {
  await closeContexts(browser);
  await Promise.all(own.splice(0).map((one) => one.remove()));
});
after(async () => {
  await browser?.close();
  await daemon?.remove();
});

const open = (options) => openPage(browser, { origin: daemon.origin, ...options });
const refused = (...codes) => (text) => codes.some((code) => text.includes(`status of ${code}`));
const isLive = (page) => page.locator('.stream[data-status=live]').first().waitFor({ state: 'attached' });
const title = (page, text) => page.locator('main h1', { hasText: text }).waitFor();
const tile = (page, name, value) =>
  page.locator('.tile', { hasText: name }).locator('.tile-value').getByText(value, { exact: true }).waitFor();
const why = (page, text) => page.locator('.why', { hasText: text }).waitFor();
const state = (page, name) => page.locator(`main .head .state[data-state=${name}]`).waitFor();
const press = (page, ...keys) =>
  page.evaluate((all) => {
    for (const key of all) document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
  }, keys);
const tenTimes = (page, like) =>
  page.waitForFunction((source) => {
    const times = [...document.querySelectorAll('.preview-side li')];
    return times.length === 10 && times.every((time) => new RegExp(source).test(time.textContent));
  }, like.source);

const places = {
  overview: '#/overview',
  jobs: '#/jobs',
  buried: '#/jobs?state=buried',
  'job-done': () => `#/jobs/${known.done}`,
  'job-buried': () => `#/jobs/${known.failed}`,
  'job-waits': '#/jobs/quarter',
  'job-none': '#/jobs/4711',
  queues: '#/queues',
  queue: '#/queues/mail',
  'queue-locked': '#/queues/invoices',
  schedules: '#/schedules',
  schedule: '#/schedules/nightly-backup',
  workers: '#/workers',
  'what-if': '#/what-if',
  log: '#/log',
  changes: '#/log?show=changes',
  settings: '#/settings',
};

describe('every page', () => {
  for (const look of ['light', 'dark']) {
    for (const width of [360, 1440]) {
      // By axe each theme once, and each layout.
      const isExamined = (look === 'light') === (width === 1440);
      it(`fits a screen of ${width}${isExamined ? ', and axe finds nothing wrong with it' : ''}, ${look}`, async () => {
        const { page, wrong, go } = await open({ width, look, expected: refused(404) });
        await isLive(page);
        for (const [name, hash] of Object.entries(places)) {
          await go(typeof hash === 'function' ? hash() : hash);
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
  it('is served with a policy that lets nothing else run, and is not sent twice', async () => {
    for (const path of ['/', '/ui/main.js']) {
      const response = await fetch(daemon.origin + path);
      assert.match(response.headers.get('Content-Security-Policy'), /^default-src 'none'; script-src 'self'; style-src 'self'; /);
      assert.equal(response.headers.get('X-Content-Type-Options'), 'nosniff');
      const again = await fetch(daemon.origin + path, { headers: { 'If-None-Match': response.headers.get('ETag') } });
      assert.equal(again.status, 304);
    }
  });
});

describe('a new daemon', () => {
  it('is told its first job by the line that its page shows, and shows its life as it happens', async () => {
    const fresh = await startOwn();
    const { page, wrong, go } = await open({ origin: fresh.origin });
    await page.getByText('No jobs yet').waitFor();
    assert.deepEqual(await violationsOf(page), []);
    await picture(page, 'empty');
    const line = await page.locator('.command code').first().innerText();
    const shell = spawn('sh', ['-c', line], { stdio: 'ignore' });
    assert.equal(await new Promise((end) => shell.once('close', end)), 0, line);
    await tile(page, 'Ready', '1');
    await page.locator('.stuck', { hasText: 'no worker' }).waitFor();

    await go('#/jobs/1');
    await why(page, 'no worker');
    const [lease] = await fresh.lease('mail', 1);
    await state(page, 'running');
    const leases = [{ token: lease.token, progress: 0.25, message: 'dialling' }];
    await fresh.good('PATCH', '/v1/leases', { leases, worker: 'worker-1:77' });
    await page.getByText('25 % · dialling').waitFor();
    await fresh.settle(lease, { outcome: 'bury', error: 'no such mailbox' });
    await state(page, 'buried');
    await page.locator('.timeline', { hasText: 'no such mailbox' }).waitFor();
    await go('#/overview');
    await page.locator('.stuck', { hasText: '1 buried job' }).getByRole('link').first().click();
    await page.locator('tbody tr', { hasText: 'no such mailbox' }).locator('[data-open]').click();

    await page.getByRole('button', { name: 'Kick' }).click();
    await state(page, 'ready');
    await fresh.good('POST', '/v1/queues/mail/pause', {});
    await why(page, 'paused');
    await fresh.good('POST', '/v1/queues/mail/resume');
    await fresh.good('PATCH', '/v1/queues/mail', { keep_done_ms: 3_600_000 });
    await fresh.work('mail', { outcome: 'done', result: 'sent' });
    await state(page, 'done');
    assert.equal(await page.locator('pre.text').nth(1).innerText(), 'sent');
    await go('#/overview');
    await tile(page, 'Buried', '0');
    assert.deepEqual(wrong, []);
  });

  it('teaches on every page, with the address of this page', async () => {
    const fresh = await startOwn();
    const { page, wrong, go } = await open({ origin: fresh.origin, width: 360, expected: refused(404) });
    for (const [place, text] of [
      ['jobs', 'No jobs yet'],
      ['schedules', 'No schedules yet'],
      ['workers', 'No worker is here'],
      ['log', 'Nothing has happened yet'],
      ['log?show=changes', 'No changes yet'],
    ]) {
      await go(`#/${place}`);
      await page.getByText(text).waitFor();
      await assertFits(page, place);
      assert.deepEqual(await violationsOf(page), [], place);
    }
    await go('#/jobs');
    assert.ok((await page.locator('.command').first().innerText()).includes(`${fresh.origin}/v1/jobs`));
    assert.deepEqual(wrong, []);
  });
});

describe('the keyboard', () => {
  it('goes to pages by g and a letter, to rows by j and k, and opens one by Enter', async () => {
    const { page, wrong } = await open({ expected: refused(404) });
    const letters = { j: 'Jobs', q: 'Queues', s: 'Schedules', w: 'Workers', l: 'Log', t: 'Settings', f: 'What if', o: 'Overview' };
    for (const [key, text] of Object.entries(letters)) {
      await press(page, 'g', key);
      await page.waitForFunction((t) => document.querySelector('main h1')?.textContent === t, text);
    }
    await press(page, 'g', 'q');
    await page.locator('tbody tr').first().waitFor();
    const wanted = await page.locator('tbody a[data-open]').nth(1).innerText();
    for (const key of ['j', 'j', 'k', 'j', 'Enter']) await page.keyboard.press(key);
    await title(page, wanted);
    await page.keyboard.press('?');
    await page.locator('dialog[open] >> text=next row').waitFor();
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    assert.deepEqual(wrong, []);
  });
  it('types into a filter what are keys elsewhere; the filter is in the address', async () => {
    const { page, go } = await open({ hash: '#/jobs' });
    await page.keyboard.press('/');
    await page.keyboard.type('gjq?x');
    assert.equal(await page.locator('[data-filter]').first().inputValue(), 'gjq?x');
    await page.waitForFunction(() => location.hash.endsWith('word=gjq%3Fx'));
    await page.keyboard.press('Escape');
    assert.equal(await page.evaluate(() => document.activeElement === document.body), true);
    await go('#/jobs?state=buried&queue=webhooks');
    // The rows of the list before may stand until the new ones come.
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 4);
    assert.equal(await page.locator('[data-filter]').first().inputValue(), '');
    await page.goBack();
    await page.waitForFunction(() => document.querySelector('[data-filter]').value === 'gjq?x');
  });
  it('reaches every control by Tab, and shows where it is', async () => {
    const { page } = await open({ hash: '#/settings' });
    const seen = new Set();
    for (let n = 0; n < 30; ++n) {
      await page.keyboard.press('Tab');
      if (await page.evaluate(() => document.activeElement === document.body)) break;
      const [name, outline] = await page.evaluate(() => [
        document.activeElement.textContent || document.activeElement.name,
        getComputedStyle(document.activeElement).outlineStyle,
      ]);
      assert.equal(outline, 'solid', name);
      seen.add(name);
    }
    for (const name of ['Skip to the page', 'Jobs', 'Dark', 'Copy']) {
      assert.ok([...seen].some((s) => s.startsWith(name)), name);
    }
  });
});

describe('jobs', () => {
  it('are put, shown to the last digit, and cancelled after a question', async () => {
    const { page, wrong } = await open({ hash: '#/jobs', expected: refused(400, 404) });
    await page.keyboard.press('n');
    await page.getByLabel('Queue', { exact: true }).last().fill('of-the-test');
    await page.getByLabel('Payload').fill('{"n":9007199254740993,"a":[],"b":"<i>"}');
    await page.getByLabel('Delay').fill('soon');
    await page.getByRole('button', { name: 'Put it' }).click();
    await page.locator('dialog [role=alert]').waitFor();
    await page.getByLabel('Delay').fill('1h');
    await page.getByRole('button', { name: 'Put it' }).click();
    await clickInToast(page, 'Show');
    await state(page, 'delayed');
    assert.match(await page.locator('pre.text').first().innerText(), /"n": 9007199254740993,\n\s+"a": \[\],\n\s+"b": "<i>"/);
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Cancel the job' }).click();
    await said(page, 'is cancelled');
    assert.deepEqual(wrong, []);
  });
  it('are kicked several at once, after a question', async () => {
    const { page, wrong } = await open({ hash: '#/jobs?state=buried&queue=webhooks' });
    await page.locator('tbody tr').first().waitFor();
    for (const key of ['j', 'x', 'j', 'x']) await page.keyboard.press(key);
    await page.getByText('2 selected').waitFor();
    await page.getByRole('region', { name: 'Selected jobs' }).getByRole('button', { name: 'Kick' }).click();
    await page.locator('dialog').getByRole('button', { name: 'Kick' }).click();
    await said(page, '2 jobs kicked.');
    assert.equal((await daemon.good('GET', '/v1/queues/webhooks')).counts.buried, 2);
    assert.deepEqual(wrong, []);
  });
  it('are listed from the newest on, buried ones behind the second tab, each with the beginning of its payload', async () => {
    const { page, wrong } = await open({ hash: '#/jobs' });
    const { id } = await daemon.put({ queue: 'mail', payload: `dear reader ${'x'.repeat(5000)} the end` });
    await page.locator('tbody tr').first().getByText(String(id), { exact: true }).waitFor();
    const told = await page.locator('tbody tr').first().locator('.remark').innerText();
    assert.ok(told.startsWith('dear reader x') && !told.includes('the end'), told);
    assert.match(await page.locator('.tabs a').nth(1).innerText(), /^buried/);
    assert.deepEqual(wrong, []);
  });
  it('are found by a word in them, whichever page of the list they are on', async () => {
    const { id } = await daemon.put({ queue: 'mail', payload: '{"to":"Zebedee"}', delay_ms: 3_600_000 });
    const jobs = Array.from({ length: 120 }, () => ({ queue: 'mail', payload: 'of no interest', delay_ms: 3_600_000 }));
    await daemon.good('POST', '/v1/jobs', { jobs });
    const { page, wrong } = await open({ hash: '#/jobs' });
    await page.getByLabel('Word').fill('zebedee');
    await page.waitForFunction((n) => document.querySelectorAll('tbody tr').length === 1 &&
      document.querySelector('tbody a[data-open]').textContent === String(n), id);
    await page.getByLabel('Word').fill('nowhere to be found');
    await page.getByText('Nothing fits these filters.').waitFor();
    await page.getByText('with “nowhere to be found” in them').waitFor();
    assert.deepEqual(wrong, []);
  });
  it('tell what is wrong with a new one once, at its field, which has the focus', async () => {
    const { page } = await open({ hash: '#/jobs', expected: refused(400) });
    await page.keyboard.press('n');
    await page.getByLabel('Queue', { exact: true }).last().fill('mail');
    await page.getByLabel('Delay').fill('soon');
    await page.getByRole('button', { name: 'Put it' }).click();
    await page.locator('dialog .field[data-bad=true]').waitFor();
    assert.equal(await page.locator('dialog [role=alert]').count(), 1);
    assert.equal(await page.evaluate(() => document.activeElement.name), 'delay');
  });
  it('are paged through, there and back', async () => {
    const { page } = await open({ hash: '#/jobs?state=done' });
    await page.locator('tbody tr').first().waitFor();
    const one = Number(await page.locator('tbody a[data-open]').first().innerText());
    await page.getByRole('link', { name: 'Next' }).click();
    await page.waitForFunction((n) => Number(document.querySelector('tbody a[data-open]')?.textContent) < n, one);
    await page.getByText('page 2').waitFor();
    await page.goBack();
    await page.waitForFunction((n) => Number(document.querySelector('tbody a[data-open]')?.textContent) === n, one);
  });
});

describe('queues', () => {
  it('take the members of a policy that were changed, and take them back; the file locks its own', async () => {
    const { page, go } = await open({ hash: '#/queues/mail', expected: refused(400) });
    await page.locator('input[name=rate]').fill('-1');
    await page.locator('input[name=key_delay_ms]').fill('1m30s');
    await page.getByRole('button', { name: 'Save 2 changes' }).click();
    await page.locator('main [role=alert]').waitFor();
    await page.locator('input[name=rate]').fill('7.5');
    await page.getByRole('button', { name: 'Save 2 changes' }).click();
    await said(page, 'The policy holds from now on.');
    const { config: changed } = await daemon.good('GET', '/v1/queues/mail');
    assert.deepEqual([changed.rate, changed.key_delay_ms, changed.keep_done_ms], [7.5, 90_000, 86_400_000]);
    await clickInToast(page, 'Undo');
    await said(page, 'The policy is as it was.');
    const { config: back } = await daemon.good('GET', '/v1/queues/mail');
    assert.deepEqual([back.rate, back.key_delay_ms], ['unlimited', 0]);
    await go('#/queues/invoices');
    await page.getByText('argiope.toml:3 decides this policy').waitFor();
    assert.equal(await page.locator('main :is(input, select, textarea)').count(), 0);
    assert.match(await page.locator('.policy').first().innerText(), /Rate\s+2\s+starts a second/);
    await go('#/schedules/month-end');
    await page.getByText('argiope.toml:8 decides what this schedule is').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Edit' }).count(), 0);
  });
  it('have bars to one scale, which a legend tells', async () => {
    const scaled = await startOwn();
    await scaled.good('POST', '/v1/jobs', { jobs: [...Array(40).fill({ queue: 'much' }), ...Array(10).fill({ queue: 'little' })] });
    const { page } = await open({ origin: scaled.origin, hash: '#/queues' });
    for (const place of ['#/queues', '#/overview']) {
      await page.evaluate((hash) => void (location.hash = hash), place);
      await page.locator('.bar-legend', { hasText: 'a full bar: 40 jobs' }).waitFor();
      const widths = await page.locator('tbody tr').evaluateAll((rows) =>
        Object.fromEntries(rows.map((row) => {
          const bar = row.querySelector('.bar');
          const part = bar.querySelector('span');
          return [row.querySelector('[data-open]').textContent.trim(), Math.round((100 * part.offsetWidth) / bar.offsetWidth)];
        })));
      assert.deepEqual([widths.much, Math.abs(widths.little - 25) <= 2], [100, true], JSON.stringify(widths));
    }
  });
  it('of the daemon’s own are listed where they are asked for', async () => {
    const told = await startOwn({ config: '[[notify]]\nname = "ops"\npush = "http://127.0.0.1:9/"\nallow_private = true\n' });
    await told.put({ queue: 'mail', payload: 'x' });
    await told.good('POST', '/v1/notify/ops/test');
    const { page, wrong, go } = await open({ origin: told.origin, hash: '#/queues' });
    const own = page.locator('tbody tr', { hasText: 'argiope.notify.ops' });
    await page.locator('tbody tr', { hasText: 'mail' }).waitFor();
    assert.equal(await own.count(), 0);
    await go('#/jobs');
    await page.locator('tbody tr').first().waitFor();
    assert.equal(await own.count(), 0);
    await page.getByRole('switch').check();
    await own.first().waitFor();
    await go('#/overview');
    await page.locator('#glance').waitFor();
    await own.first().waitFor();
    await page.getByRole('switch').uncheck();
    await own.first().waitFor({ state: 'detached' });
    assert.deepEqual(wrong, []);
  });
  it('tell how long jobs waited by p50, p90 and p99', async () => {
    const { page } = await open({ hash: '#/queues/mail' });
    await page.getByRole('cell', { name: 'p50', exact: true }).waitFor();
    for (const name of ['p90', 'p99']) assert.equal(await page.getByRole('cell', { name, exact: true }).count(), 1);
  });
});

describe('schedules', () => {
  it('are changed with their next times beside the form, and are seen to fire', async () => {
    const trigger = { type: 'cron', expression: '0 8 * * *', zone: 'Europe/Berlin' };
    await daemon.good('POST', '/v1/schedules', { name: 'greet', trigger, job: { queue: 'mail', payload: 'good morning' } });
    const { page, wrong } = await open({ hash: '#/schedules/greet' });
    await page.getByText('It has not fired yet').waitFor();
    await page.getByRole('button', { name: 'Edit' }).click();
    await tenTimes(page, /08:00/);
    await page.getByLabel('Expression').fill('30 9 * * *');
    await tenTimes(page, /09:30/);
    await page.getByRole('button', { name: 'Every' }).click();
    await page.getByLabel('Every', { exact: true }).fill('1s');
    await tenTimes(page, /\d:\d\d:\d\d/);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('tbody tr [data-open]').first().click();
    await state(page, 'ready');
    const { schedule } = await daemon.good('GET', '/v1/schedules/greet');
    assert.deepEqual([schedule.trigger.type, schedule.job.payload], ['interval', 'good morning']);
    await daemon.good('DELETE', '/v1/schedules/greet');
    assert.deepEqual(wrong, []);
  });
  it('are added, deleted and brought back', async () => {
    const { page, wrong, go } = await open({ hash: '#/schedules', expected: refused(400, 404) });
    await settled(page);
    await page.keyboard.press('n');
    await page.getByLabel('Name', { exact: true }).fill('of the test');
    await page.getByLabel('Expression').fill('61 * * * *');
    await page.locator('.preview-side .bad').waitFor();
    await page.getByLabel('Expression').fill('15 4 * * *');
    await tenTimes(page, /04:15/);
    await page.getByRole('button', { name: 'Add it' }).click();
    await title(page, 'of the test');
    await page.getByRole('button', { name: 'Delete' }).click();
    await clickInToast(page, 'Undo');
    await said(page, 'of the test is back.');
    await go(`#/schedules/${enc('of the test')}`);
    await page.locator('.fire').first().waitFor();
    await page.getByRole('button', { name: 'Delete' }).click();
    await title(page, 'Schedules');
    assert.deepEqual(wrong, []);
  });
});

describe('texts of strangers', () => {
  it('run nothing, and break no layout, on any page', async () => {
    const attacked = await startOwn();
    const ids = await seedHostile(attacked);
    const names = Object.values(hostile);
    const all = [
      ...['overview', 'jobs', 'jobs?state=buried', 'queues', 'schedules', 'workers', 'log?show=changes'],
      ...names.map((name) => `jobs?${new URLSearchParams({ queue: name, key: name })}`),
      ...names.map((name) => `queues/${enc(name)}`),
      ...names.map((name) => `schedules/${enc(name)}`),
      ...ids.map((id) => `jobs/${id}`),
    ];
    const { page, wrong, go } = await open({ origin: attacked.origin, width: 360 });
    for (const [n, place] of all.entries()) {
      const what = place.slice(0, 60);
      await go(`#/${place}`);
      await settled(page);
      await quiet(page, 50);
      for (const width of [360, 1440]) {
        await page.setViewportSize({ width, height: 800 });
        await assertFits(page, `${what} at ${width}`);
        if (n < 7 || n >= all.length - 3) await picture(page, `hostile-${n}-${width}`);
      }
      assert.ok(!(await page.title()).startsWith('pwned'), what);
      assert.equal(await page.locator('main :is(img, script, iframe, object, embed, [onload], [onerror])').count(), 0, what);
      assert.equal(await page.locator('main [role=alert]').count(), 0, what);
    }
    assert.deepEqual(wrong, []);
  });
});

describe('the stream', () => {
  it('begins the log with the last events, also those from before any page was open', async () => {
    const unwatched = await startOwn();
    await unwatched.put({ queue: 'night' });
    await unwatched.work('night', { outcome: 'bury', error: 'the disk was full' });
    const { page, go } = await open({ origin: unwatched.origin, hash: '#/log' });
    await page.locator('.log li', { hasText: 'the disk was full' }).waitFor();
    await unwatched.put({ queue: 'day' });
    await page.locator('.log li', { hasText: 'day' }).waitFor();
    await go('#/overview');
    await title(page, 'Overview');
    await go('#/log');
    await page.locator('.log li', { hasText: 'day' }).waitFor();
    assert.equal(await page.locator('.log li', { hasText: 'the disk was full' }).count(), 1);
  });
  it('is one, and none while the tab is hidden, and goes on where it was', async () => {
    const { page } = await open({ hash: '#/log' });
    let opened = 0;
    page.on('request', (request) => (opened += request.url().includes('/v1/events') ? 1 : 0));
    await isLive(page);
    await daemon.put({ queue: 'seen' });
    await page.locator('.log li', { hasText: 'seen' }).waitFor();
    const hide = (hidden) =>
      page.evaluate((h) => {
        Object.defineProperty(document, 'hidden', { configurable: true, get: () => h });
        document.dispatchEvent(new Event('visibilitychange'));
      }, hidden);
    opened = 0;
    await hide(true);
    await page.locator('.stream[data-status=hidden]').first().waitFor({ state: 'attached' });
    await daemon.put({ queue: 'while-hidden' });
    assert.equal(opened, 0);
    await hide(false);
    await page.locator('.log li', { hasText: 'while-hidden' }).waitFor();
    assert.equal(opened, 1);
  });
  it('brings no number that is older than one that was shown', async () => {
    const { page } = await open();
    await page.locator('.tile').first().waitFor();
    const after = await page.evaluate(async () => {
      const { live } = await import('/ui/live.js');
      live.offer({ at: new Date(live.snapshot.at - 5000).toISOString(), queues: {}, totals: { ready: 123456 } });
      return live.snapshot.totals.ready;
    });
    assert.notEqual(after, 123456);
  });
  it('is missed when the daemon is killed, and found again; no number jumps back meanwhile', async () => {
    const killed = await startOwn();
    for (let n = 0; n < 7; ++n) await killed.put({ queue: 'mail' });
    const { page, wrong } = await open({ origin: killed.origin, expected: (text) => text.includes('ERR_') });
    await tile(page, 'Ready', '7');
    // From here on each value that is shown is noted.
    await page.evaluate(() => {
      globalThis.shown = [];
      const note = () => {
        const ready = [...document.querySelectorAll('.tile')].find((t) => t.textContent.startsWith('Ready'));
        const value = ready?.querySelector('.tile-value').textContent.trim() ?? 'gone';
        if (globalThis.shown.at(-1) !== value) globalThis.shown.push(value);
      };
      note();
      const all = { childList: true, subtree: true, characterData: true };
      new MutationObserver(note).observe(document.querySelector('main'), all);
    });
    await killed.stop('SIGKILL');
    await page.locator('.banner', { hasText: 'does not answer' }).waitFor();
    await killed.again();
    await isLive(page);
    await page.locator('.banner').waitFor({ state: 'detached' });
    await killed.put({ queue: 'mail' });
    await tile(page, 'Ready', '8');
    assert.deepEqual(await page.evaluate(() => globalThis.shown), ['7', '8']);
    assert.deepEqual(wrong, []);
  });
});

describe('a token', () => {
  it('is asked for, and taken for a cookie that no script can read', async () => {
    const guarded = await startOwn({ token: 'read' });
    const { page, go } = await open({ origin: guarded.origin, hash: '#/jobs', expected: refused(401, 403) });
    await title(page, 'Sign in');
    assert.equal(await page.locator('main input').count(), 1);
    assert.equal(await page.locator('[role=alert]').count(), 0, 'it is asked for, not complained about');
    assert.deepEqual(await violationsOf(page), []);
    await page.getByLabel('Token').fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('the token is not known').first().waitFor();
    assert.equal(await page.locator('[role=alert]').count(), 1);
    await page.getByLabel('Token').fill(guarded.token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await isLive(page);
    await title(page, 'Jobs');
    await go('#/settings');
    await page.getByText('You are test, and may look.').waitFor();
    assert.equal(await page.locator('main input').count(), 0);
    await page.reload();
    await isLive(page);
    const kept = await page.evaluate(() => [document.cookie, localStorage.length, sessionStorage.length]);
    assert.deepEqual(kept, ['', 0, 0]);
    await go('#/jobs');
    await page.getByText('No jobs yet').waitFor();
    await page.keyboard.press('n');
    await page.getByLabel('Queue', { exact: true }).last().fill('mail');
    await page.getByRole('button', { name: 'Put it' }).click();
    await page.locator('dialog [role=alert]', { hasText: 'scope' }).waitFor();
    await page.keyboard.press('Escape');
    await go('#/settings');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await title(page, 'Sign in');
  });
});
