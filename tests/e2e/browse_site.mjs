// Opens the documentation site in Chromium from disk: searches, and looks at pages at each width, light and dark. Prints what it found,
// a JSON object a line. Ends with 77 where there is no Chromium.
//
//   node browse_site.mjs SITE WORDS PAGE…
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { launch, program } from '../../dashboard/tests/browser.mjs';

const [site, words, ...pages] = process.argv.slice(2);
if (!program) process.exit(77);
const browser = await launch();
const urlOf = (page) => pathToFileURL(path.join(site, page)).href;

async function open(viewport, colorScheme) {
  const page = await browser.newPage({ viewport, colorScheme });
  page.setDefaultTimeout(300_000);
  const foreign = [];
  page.on('request', (request) => /^(file|data|about|blob):/.test(request.url()) || foreign.push(request.url()));
  return { page, foreign };
}

try {
  const { page } = await open({ width: 1440, height: 900 }, 'light');
  await page.goto(urlOf(pages[0]));
  await page.locator('input[name=query]').click();
  await page.keyboard.type(words); // the theme looks at keys
  const found = page.locator('a.md-search-result__link');
  await found.first().waitFor();
  console.log(JSON.stringify({ found: await found.evaluateAll((links) => links.map((link) => link.href)) }));
  await page.close();
  for (const [width, scheme] of [[360, 'light'], [1440, 'dark']]) {
    for (const name of pages) {
      const { page, foreign } = await open({ width, height: 900 }, scheme);
      await page.goto(urlOf(name), { waitUntil: 'load' });
      // A table or block that is wider than the page has to scroll by itself.
      const scrollWidth = await page.evaluate(() => document.documentElement.scrollWidth);
      const broken = await page.evaluate(() => [...document.images].filter((image) => !image.naturalWidth).map((image) => image.src));
      console.log(JSON.stringify({ name, width, scheme, scrollWidth, foreign, broken }));
      await page.close();
    }
  }
} finally {
  await browser.close();
}
