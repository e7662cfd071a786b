// What the tests in the browser share: a page that fails its test when anything goes wrong in it, and looks at it.
import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const axe = await readFile(new URL('node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const kPatienceMs = Number(process.env.PATIENCE_MS ?? 60_000);
export const enc = encodeURIComponent;

// Messages are shown for some seconds only: the page notes them and what can be pressed in them, for a test that looks late.
const noteToasts = () => {
  globalThis.toastsSeen = [];
  globalThis.toastControls = new Set();
  new MutationObserver(() => {
    for (const toast of document.querySelectorAll('.toast > span')) globalThis.toastsSeen.push(toast.textContent);
    for (const control of document.querySelectorAll('.toast a, .toast button')) globalThis.toastControls.add(control);
  }).observe(document, { childList: true, subtree: true });
};
export const said = (page, text) =>
  page.waitForFunction((t) => globalThis.toastsSeen.some((seen) => seen.includes(t)), text);
export const clickInToast = (page, text) =>
  page.waitForFunction((t) => {
    const found = [...globalThis.toastControls].findLast((control) => control.textContent === t);
    globalThis.toastControls.delete(found);
    found?.click();
    return Boolean(found);
  }, text);

// For work on the dashboard: with FROM_FOLDER=1 its files are those of its folder, not those that the daemon carries.
const folder = fileURLToPath(new URL('../', import.meta.url));
const types = { js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };
const fromFolder = (context) =>
  context.route(/\/ui\/(?!lib\/)[\w/]+\.\w+$/, async (route) => {
    const path = new URL(route.request().url()).pathname.replace('/ui/', '');
    const body = await readFile(folder + path);
    await route.fulfill({ body, contentType: `${types[path.split('.').pop()]}; charset=utf-8` });
  });

// {page, wrong, go}: `wrong` tells what went wrong in the page, and whom else it asked; of the console's errors those that are
// not `expected`. `go` moves to "#/jobs".
export async function openPage(
  browser,
  { origin, width = 1280, height = 800, look = 'light', hash = '', expected = () => false },
) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: look });
  await context.addInitScript(noteToasts);
  if (process.env.FROM_FOLDER) await fromFolder(context);
  const page = await context.newPage();
  page.setDefaultTimeout(kPatienceMs);
  const wrong = [];
  page.on('pageerror', (error) => wrong.push(error.message));
  page.on('dialog', (dialog) => (wrong.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  page.on('console', (message) => message.type() === 'error' && !expected(message.text()) && wrong.push(message.text()));
  page.on('request', (request) => new URL(request.url()).origin !== origin && wrong.push(`asked ${request.url()}`));
  await page.goto(`${origin}/${hash}`);
  await page.locator('main h1').waitFor();
  return { page, wrong, go: (to) => page.evaluate((h) => void (location.hash = h), to) };
}

export const settled = (page) => page.waitForFunction(() => !document.querySelector('main [aria-busy=true]'));
// Until nothing of the page has changed for a moment.
export const quiet = (page, ms = 120) =>
  page.evaluate(
    (wait) =>
      new Promise((done) => {
        let timer = setTimeout(done, wait);
        const watch = new MutationObserver(() => {
          clearTimeout(timer);
          timer = setTimeout(() => (watch.disconnect(), done()), wait);
        });
        watch.observe(document.querySelector('main'), { childList: true, subtree: true });
        setTimeout(() => (watch.disconnect(), done()), 10 * wait);
      }),
    ms,
  );

export async function violationsOf(page) {
  // By the debugger, not as a script of the page, which its policy forbids.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  const told = (node) => `${node.target} ${node.any?.[0]?.message ?? ''}`;
  return violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map(told).join(' | ')}`);
}
export const overflow = (page) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
export async function assertFits(page, what) {
  assert.equal(await overflow(page), 0, `${what} is wider than its screen`);
}

// --- the debug page

// The browser tells what it does not let a fetched page do while it is only read. And what the tests put into every frame cannot run
// there.
const refusals = [
  'Executing inline event handler violates',
  'Applying inline style violates',
  "Setting the document's base URI",
  "Blocked script execution in 'about:srcdoc'",
];
export const isRefusal = (text) => refusals.some((begin) => text.startsWith(begin));

// The fetched page as it is drawn, and a click into it while the selector helper is on.
export const frameOf = (page) => page.frameLocator('.page-frame iframe');
export async function clickInPage(page, selector, index = 0) {
  const position = await frameOf(page).locator(selector).nth(index).evaluate((element) => {
    const { left, top, width, height } = element.getBoundingClientRect();
    return { x: left + width / 2, y: top + height / 2 };
  });
  await page.locator('.page-frame-cover').click({ position });
}

// A picture to look at, in build/dashboard.
const pictures = fileURLToPath(new URL('../../build/dashboard/', import.meta.url));
export async function picture(page, name) {
  await mkdir(pictures, { recursive: true });
  await page.screenshot({ path: `${pictures}${name}.png`, fullPage: true, animations: 'disabled' });
}
