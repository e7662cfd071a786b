// What the tests in the browser share: a page that fails its test when anything goes wrong in it, and looks at it.
import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const axe = await readFile(new URL('node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const kPatienceMs = 60_000;
export const enc = encodeURIComponent;

// Messages are shown for some seconds only: the page notes them, for a test that looks late.
const noteToasts = () => {
  globalThis.toastsSeen = [];
  new MutationObserver(() => {
    for (const toast of document.querySelectorAll('.toast > span')) globalThis.toastsSeen.push(toast.textContent);
  }).observe(document, { childList: true, subtree: true });
};
export const said = (page, text) =>
  page.waitForFunction((t) => globalThis.toastsSeen.some((seen) => seen.includes(t)), text);
export const clickInToast = (page, text) =>
  page.waitForFunction((t) => {
    const found = [...document.querySelectorAll('.toast a, .toast button')].find((e) => e.textContent === t);
    found?.click();
    return Boolean(found);
  }, text);

// {page, wrong, go}: `wrong` tells what went wrong in the page, and whom else it asked; of the console's errors those that are
// not `expected`. `go` moves to "#/jobs".
export async function openPage(
  browser,
  { origin, width = 1280, height = 800, look = 'light', hash = '', expected = () => false },
) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: look });
  await context.addInitScript(noteToasts);
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

// A picture to look at, in build/dashboard.
const pictures = fileURLToPath(new URL('../../build/dashboard/', import.meta.url));
export async function picture(page, name) {
  await mkdir(pictures, { recursive: true });
  await page.screenshot({ path: `${pictures}${name}.png`, fullPage: true, animations: 'disabled' });
}
