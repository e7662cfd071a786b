// The dashboard's first page, light and dark, of a daemon whose workers are at work: docs/pictures/dashboard-{light,dark}.png for README.md.
//
//   ARGIOPE=build/release/bin/argiope node tools/pictures/dashboard.mjs      # needs what dashboard/tests needs
import { fileURLToPath } from 'node:url';
import { launch } from '../../dashboard/tests/browser.mjs';
import { Daemon } from '../../dashboard/tests/daemon.mjs';
import { config, seed } from '../../dashboard/tests/seed.mjs';

const daemon = await Daemon.start({ config });
const pause = (milliseconds) => new Promise((next) => setTimeout(next, milliseconds));
let open = true;

// Jobs come and are done, a few badly, a round a second.
async function live() {
  for (let round = 0; open; ++round, await pause(1000)) {
    const jobs = Array.from({ length: 40 + ((round * 7) % 20) }, (_, n) => ({ queue: 'mail', key: `customer-${n % 7}` }));
    await daemon.good('POST', '/v1/jobs', { jobs });
    const leases = await daemon.lease('mail', 40 + ((round * 11) % 25), 'smtp-1:4711');
    const settlements = leases.map(({ token }, n) =>
      round % 6 || n ? { token, outcome: 'done', result: 'sent' } : { token, outcome: 'retry', error: '450 greylisted' });
    await daemon.good('POST', '/v1/leases/settle', { settlements });
  }
}

const browser = await launch();
try {
  await seed(daemon);
  const living = live();
  for (const colorScheme of ['light', 'dark']) {
    const page = await (await browser.newContext({ viewport: { width: 1200, height: 760 }, colorScheme })).newPage();
    await page.goto(daemon.origin);
    await page.getByText('1 min', { exact: true }).click();
    await pause(65_000); // curves are drawn of what a page has seen
    const path = fileURLToPath(new URL(`../../docs/pictures/dashboard-${colorScheme}.png`, import.meta.url));
    await page.screenshot({ path, animations: 'disabled' });
    await page.close();
  }
  open = false;
  await living;
} finally {
  await browser.close();
  await daemon.remove();
}
