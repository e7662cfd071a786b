// The dashboard's first page, light and dark, of a daemon whose workers are at work: docs/pictures/dashboard-{light,dark}.png for README.md.
//
//   ARGIOPE=build/release/bin/argiope node tools/pictures/dashboard.mjs      # needs what dashboard/tests needs
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { program } from '../../dashboard/tests/browser.mjs';
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

const ended = (child) => new Promise((end) => child.once('exit', end));
try {
  await seed(daemon);
  const living = live();
  for (const [look, number] of [['dark', 0], ['light', 1]]) {
    const path = fileURLToPath(new URL(`../../docs/pictures/dashboard-${look}.png`, import.meta.url));
    const flags = ['--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--window-size=1200,760', '--timeout=30000'];
    const child = spawn(program, [...flags, `--blink-settings=preferredColorScheme=${number}`, `--screenshot=${path}`, daemon.origin],
      { stdio: 'ignore' });
    if (await ended(child)) throw new Error('Chromium failed');
  }
  open = false;
  await living;
} finally {
  await daemon.remove();
}
