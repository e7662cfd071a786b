// Opens saved pages in Chromium from disk; prints what each has asked for and did not get, a JSON object a line.
// Ends with 77 where there is no Chromium.
//
//   node browse_mirror.mjs LIST_OF_PAGES
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { launch, program } from '../../dashboard/tests/browser.mjs';

const [list] = process.argv.slice(2);
if (!program) process.exit(77);
const browser = await launch();
try {
  const page = await browser.newPage();
  let seen;
  page.on('request', (request) => {
    const url = request.url();
    if (url.startsWith('data:') || request.isNavigationRequest()) return;
    if (url.startsWith('file:')) seen.assets += 1;
    else seen.elsewhere.push(url);
  });
  page.on('requestfailed', (request) => {
    if (request.url().startsWith('file:')) seen.failed.push(`${request.url()}: ${request.failure().errorText}`);
  });
  for (const file of readFileSync(list, 'utf8').split('\n')) {
    seen = { page: file, assets: 0, elsewhere: [], failed: [], broken: [] };
    await page.goto(pathToFileURL(file).href, { waitUntil: 'load', timeout: 60_000 });
    seen.title = await page.title();
    // What was asked for and came, and is no picture all the same.
    seen.broken = await page.evaluate(() => [...document.images].filter((image) => image.src && image.complete && image.naturalWidth === 0
      && !image.src.endsWith('.svg')).map((image) => image.src));
    console.log(JSON.stringify(seen));
  }
} finally {
  await browser.close();
}
