// A small shop on loopback for projects to visit, whose texts a test can change, and which counts how often it was asked for what.
import { createServer } from 'node:http';

export const escaped = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

export class Site {
  // path -> its HTML, or a number: the status that it answers with.
  pages = new Map();
  asked = new Map();
  // Until it is done, nothing but the front page is answered.
  held = null;

  static async start() {
    const site = new Site();
    site.server = createServer(async (request, answer) => {
      const path = new URL(request.url, 'http://a').pathname;
      site.asked.set(path, (site.asked.get(path) ?? 0) + 1);
      if (path !== '/' && path !== '/robots.txt') await site.held;
      const page = site.pages.get(path);
      if (typeof page !== 'string') return answer.writeHead(page ?? 404).end();
      answer.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' });
      answer.end(page);
    });
    await new Promise((listening) => site.server.listen(0, '127.0.0.1', listening));
    site.origin = `http://127.0.0.1:${site.server.address().port}`;
    return site;
  }
  close() {
    this.server.closeAllConnections();
    return new Promise((closed) => this.server.close(closed));
  }

  // The front page links to it.
  put(path, page) {
    this.pages.set(path, page);
    const paths = [...this.pages.keys()].filter((one) => one !== '/');
    this.pages.set('/', `<!doctype html><h1>Shop</h1>${paths.map((one) => `<a href="${one}">${one}</a>`).join('\n')}`);
  }
}

export const projectOf = (site) => `
[project]
name = "shop"
start = "${site.origin}/"

[[rule]]
name = "front"
match = "${site.origin}/"

[[rule]]
name = "item"
match = "/item/*"
fields = { title = "css:h1", price = { css = "b", type = "number" }, note = "css:i" }

[[rule]]
name = "sizes"
match = "/sizes/*"
each = "css:li"
part = "size"
fields = { size = "css:b", stock = { css = "i", type = "number" } }

[[rule]]
name = "broken"
match = "/broken/*"
retries = 0
`;

export const item = (title, price, note = '') =>
  `<!doctype html><h1>${escaped(title)}</h1><b>${escaped(String(price))}</b><i>${escaped(note)}</i>`;
export const sizes = (stock) =>
  `<!doctype html><ul>${Object.entries(stock).map(([size, n]) => `<li><b>${size}</b><i>${n}</i></li>`).join('')}</ul>`;

// What there is to see: items, a page in parts, one that fails; and the texts of strangers who mean harm.
export function fill(site, { items = 60, hostile = {} } = {}) {
  for (let n = 1; n <= items; ++n) site.put(`/item/${n}`, item(`Lamp ${n}`, n + 0.5, n % 3 ? '' : `note ${n}`));
  site.put('/sizes/shoe', sizes({ 41: 3, 42: 0 }));
  site.put('/broken/1', 500);
  for (const [what, text] of Object.entries(hostile)) site.put(`/item/${what}`, item(text, 1, `=1+1${text}`));
}

// Makes the project of the site and has its first round go by.
export async function seedProject(daemon, site) {
  await daemon.good('PUT', '/v1/projects/shop', { source: projectOf(site) });
  await daemon.good('POST', '/v1/projects/shop/start');
  await roundOver(daemon);
}
export async function until(is, what) {
  for (let tries = 0; !(await is()); ++tries) {
    if (tries > 6000) throw new Error(`it did not come to ${what}`);
    await new Promise((soon) => setTimeout(soon, 20));
  }
}
export const roundOver = (daemon) =>
  until(async () => {
    const project = await daemon.good('GET', '/v1/projects/shop');
    return project.round === null && project.rounds.length > 0;
  }, 'the end of its round');
