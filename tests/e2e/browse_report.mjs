// Opens a report in Chromium from disk at each width, light and dark; prints what it found, a JSON object a line.
// Ends with 77 where there is no Chromium.
//
//   node browse_report.mjs REPORT [FOLDER FOR PICTURES]
import { statSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { launch, program } from '../../dashboard/tests/browser.mjs';

const [report, pictures] = process.argv.slice(2);
if (!program) process.exit(77);
const browser = await launch();
const url = pathToFileURL(report).href;
try {
  for (const [width, scheme] of [[360, 'light'], [360, 'dark'], [1440, 'light'], [1440, 'dark']]) {
    const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme });
    const requests = [];
    const errors = [];
    page.on('request', (request) => request.url() === url || request.url().startsWith('data:') || requests.push(request.url()));
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
    page.on('pageerror', (error) => errors.push(String(error)));
    const begin = performance.now();
    await page.goto(url, { waitUntil: 'load' });
    await page.evaluate(() => new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(painted))));
    const milliseconds = Math.round(performance.now() - begin);
    const scrollWidth = await page.evaluate(() => document.documentElement.scrollWidth);
    console.log(JSON.stringify({ width, scheme, milliseconds, bytes: statSync(report).size, requests, errors, scrollWidth }));
    if (pictures) {
      await page.setViewportSize({ width, height: 5000 });
      await page.screenshot({ path: path.join(pictures, `report-${width}-${scheme}.png`), timeout: 100_000 });
    }
    await page.close();
  }
} finally {
  await browser.close();
}
