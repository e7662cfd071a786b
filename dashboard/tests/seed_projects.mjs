// Projects for the tests of their pages: a small shop on this machine, and projects that visit it.
import { createServer } from 'node:http';
import { once } from 'node:events';
import { hostile } from './seed.mjs';

const kItems = 30;

// Pages of a shop: "/" lists its items, every third of them without a price; "/broken/N" fails, "/hostile" means harm.
const answers = {
  '/': () => `<h1>Shop</h1>${Array.from({ length: kItems }, (_, n) => `<a href="/item/${n}">Item ${n}</a>`).join(' ')}<a href="/broken/1">x</a>`,
  '/item/': (n) => `<title>Item ${n}</title><h1>Item ${n}</h1>${n % 3 ? `<p class="price">${n}.50</p>` : ''}`,
  '/hostile': () => `<h1><img src=x onerror="document.title='pwned'"></h1>`,
};
export async function startShop() {
  const server = createServer((request, answer) => {
    const [, path, rest] = /^(\/(?:item\/|broken\/)?)(.*)$/.exec(request.url);
    if (request.url === '/robots.txt') return answer.writeHead(404).end();
    if (path === '/broken/') return answer.writeHead(500).end('no');
    const page = answers[request.url] ?? answers[path];
    return answer.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end(`<!doctype html>${page(rest)}`);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { origin: `http://127.0.0.1:${server.address().port}`, close: () => (server.closeAllConnections(), server.close()) };
}

// Of a daemon that is to have projects.
export const projectOptions = ['--pages', 'pages.db', '--allow-private'];

export const shopFile = (name, origin, more = '') => `[project]
name = "${name}"
start = ["${origin}/"]
group = "shops"
rate = 50
burst = 10

[[rule]]
name = "item"
match = "/item/*"
follow = false
age = "10d"

[rule.fields]
title = "css:h1"
price = { css = ".price", type = "number" }

[[rule]]
name = "list"
match = ["/", "/broken/*", "/hostile"]
age = "1h"
${more}
[alarm]
coverage = { price = 0.9 }
`;

export const putProject = (daemon, name, body) => daemon.good('PUT', `/v1/projects/${encodeURIComponent(name)}`, body);

// Until what the API tells of that project is so.
export async function waitFor(daemon, name, isSo) {
  for (;;) {
    const project = await daemon.good('GET', `/v1/projects/${name}`);
    if (isSo(project)) return project;
    await new Promise((again) => setTimeout(again, 20));
  }
}

// "shop", which has had a round and three versions; "news", which stands, as one that means harm; "old", which was deleted.
export async function seedProjects(daemon, shop) {
  await putProject(daemon, 'shop', { source: shopFile('shop', shop.origin), note: 'the first one' });
  await daemon.good('POST', '/v1/projects/shop/start', {});
  await waitFor(daemon, 'shop', (project) => project.results >= kItems && project.counts['1d'].retry > 0);
  await putProject(daemon, 'shop', { source: shopFile('shop', shop.origin, '\n[[sink]]\nfile = "prices.jsonl"\n') });
  await putProject(daemon, 'shop', { source: shopFile('shop', shop.origin, '\n[[sink]]\nfile = "shop-prices.jsonl"\n'), note: 'another file' });
  await putProject(daemon, 'news', { project: { name: 'news', start: [`${shop.origin}/`], status: 'STOP' }, rule: [{ name: 'page' }] });
  await daemon.good('PATCH', '/v1/projects/news', { group: hostile.wide });
  const harm = { name: 'x'.repeat(64), start: [`${shop.origin}/hostile`], status: 'STOP', group: hostile.markup };
  const file = `[project]\n${Object.entries(harm).map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`).join('')}[[rule]]\nname = "page"\n`;
  await putProject(daemon, harm.name, { source: file, note: hostile.script });
  await putProject(daemon, 'old', { project: { name: 'old', start: [`${shop.origin}/`], status: 'STOP' }, rule: [{ name: 'page' }] });
  await daemon.good('DELETE', '/v1/projects/old');
}

// So many more that stand, in ten groups.
export async function seedMany(daemon, n) {
  for (let i = 0; i < n; ++i) {
    const name = `project-${String(i).padStart(4, '0')}`;
    const own = { name, start: [`https://${name}.example/`], status: i % 4 ? 'STOP' : 'TODO', group: `group ${i % 10}`, rate: 1 + (i % 5) };
    await putProject(daemon, name, { project: own, rule: [{ name: 'page' }] });
  }
}
