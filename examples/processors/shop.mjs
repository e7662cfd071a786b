// A shop's prices, as shop.py: the list again every hour, an item after ten days, or at once when the list names it otherwise.
//
// From elsewhere: import { Project } from "argiope/processor";
import { Project } from "../../clients/js/src/processor/index.js";

const HOUR = 3_600_000;

await new Project({ concurrency: 8 })
  .start((visit) => visit.crawl("https://shop.example/", "list", { force: true }))
  .every(HOUR, "on_start")
  .rule("list", { ageMs: HOUR }, async (visit) => {
    for (const item of await visit.select("a.item")) visit.crawl(item.attributes.href, "item", { tag: item.text });
    for (const next of await visit.select("a.next")) visit.crawl(next.attributes.href, "list");
  })
  .rule("item", { ageMs: 240 * HOUR, priority: 1 }, async (visit) => {
    const [name, price] = await Promise.all([visit.first("h1"), visit.first(".price")]);
    return { name: name.text, price: Number(price.text) };
  })
  .run();
