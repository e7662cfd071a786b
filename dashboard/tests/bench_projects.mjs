// How soon the table of projects is seen, and how long it is busy when it looks again. Asserts nothing.
//
//   node dashboard/tests/bench_projects.mjs [PROJECTS]        # 500
import { launch } from './browser.mjs';
import { Daemon } from './daemon.mjs';
import { projectOptions, seedMany } from './seed_projects.mjs';

const kProjects = Number(process.argv[2] ?? 500);
const kTurns = 7;
const kPolls = 3;

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const told = (name, values, unit = 'ms') =>
  console.log(`${name}: ${Math.round(median(values))} ${unit} (median of ${values.length}; ${values.map(Math.round).sort((a, b) => a - b).join(', ')})`);

const daemon = await Daemon.start({ options: projectOptions });
const browser = await launch();
try {
  await seedMany(daemon, kProjects);
  const [first, all, polls] = [[], [], []];
  for (let turn = 0; turn < kTurns; ++turn) {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    await page.addInitScript(() => {
      globalThis.longTasks = [];
      new PerformanceObserver((list) => globalThis.longTasks.push(...list.getEntries().map((e) => [e.startTime, e.duration]))).observe({
        type: 'longtask',
        buffered: true,
      });
      // The first frame in which there are rows.
      const watch = new MutationObserver(() => {
        if (!document.querySelector('table.projects tr[data-row]')) return;
        watch.disconnect();
        requestAnimationFrame(() => setTimeout(() => (globalThis.firstRows = performance.now())));
      });
      watch.observe(document, { childList: true, subtree: true });
    });
    await page.goto(`${daemon.origin}/#/projects`);
    await page.waitForFunction(() => globalThis.firstRows);
    await page.waitForFunction((n) => document.querySelectorAll('table.projects tr[data-row]').length === n, kProjects, { polling: 20 });
    all.push(await page.evaluate(() => performance.now()));
    first.push(await page.evaluate(() => globalThis.firstRows));
    const since = await page.evaluate(() => performance.now());
    const looks = () => performance.getEntriesByType('resource').filter((entry) => entry.name.endsWith('/v1/projects')).length;
    for (const enough = (await page.evaluate(looks)) + kPolls; (await page.evaluate(looks)) < enough; ) await page.waitForTimeout(200);
    const tasks = await page.evaluate((from) => globalThis.longTasks.filter(([at]) => at > from).map(([, length]) => length), since);
    polls.push(Math.max(0, ...tasks));
    await context.close();
  }
  console.log(`${kProjects} projects, from the beginning of the navigation`);
  told('first rows painted', first);
  told('all rows there', all);
  told(`longest task in ${kPolls} polls (0: none above 50 ms)`, polls);
} finally {
  await browser.close();
  await daemon.remove();
}
