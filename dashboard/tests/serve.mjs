// For work on the dashboard: a daemon with jobs that live, fail and pile up, behind a server that takes the dashboard's files
// from their folder, so that an edit is seen when the page is loaded again.
//
//   node dashboard/tests/serve.mjs [PORT]        # http://127.0.0.1:7799
import { readFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { Daemon } from './daemon.mjs';
import { config, seed, seedHostile } from './seed.mjs';
import { projectOptions, seedMany, seedProjects, startShop } from './seed_projects.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const types = { html: 'text/html', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };
const port = Number(process.argv[2] ?? 7799);

const daemon = await Daemon.start({ config, options: projectOptions });
await seedProjects(daemon, await startShop());
await seedMany(daemon, 30);
await seed(daemon);
await seedHostile(daemon);

// Jobs come and are worked off, some of them badly, until the daemon ends.
async function live() {
  const { jobs } = await daemon.good('GET', '/v1/jobs?queue=mail&state=ready&limit=100');
  const most = Math.floor(Math.random() * 12);
  if (jobs.length < 100) await daemon.good('POST', '/v1/jobs', { jobs: Array(most + 1).fill({ queue: 'mail', key: 'customer-1' }) });
  for (const lease of await daemon.lease('mail', most + 1, 'smtp-1:4711')) {
    const isBad = Math.random() < 0.02;
    await daemon.settle(lease, isBad ? { outcome: 'retry', error: '450 greylisted' } : { outcome: 'done', result: 'sent' });
  }
  setTimeout(live, 300);
}
live();

async function fileOf(path) {
  const name = path === '/' ? 'index.html' : path.replace(/^\/ui\//, '');
  if (name.startsWith('lib/') || name.includes('..') || (path !== '/' && !path.startsWith('/ui/'))) return null;
  const bytes = await readFile(root + name).catch(() => null);
  return bytes && { bytes, type: types[name.split('.').pop()] };
}
// The daemon answers all else, and gives its headers for the files too.
createServer(async (incoming, answer) => {
  const file = await fileOf(incoming.url);
  const headers = { ...incoming.headers, host: `127.0.0.1:${daemon.port}` };
  if (headers.origin) headers.origin = daemon.origin;
  const passed = request(daemon.origin + incoming.url, { method: incoming.method, headers }, (response) => {
    if (!file) return answer.writeHead(response.statusCode, response.headers), response.pipe(answer);
    response.resume();
    const policy = response.headers['content-security-policy'];
    answer.writeHead(200, { 'Content-Type': `${file.type}; charset=utf-8`, ...(policy && { 'Content-Security-Policy': policy }) });
    answer.end(file.bytes);
  });
  passed.on('error', () => answer.destroy());
  answer.on('close', () => passed.destroy());
  incoming.pipe(passed);
}).listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}/ before ${daemon.origin}`));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => daemon.remove().then(() => process.exit(0)));
