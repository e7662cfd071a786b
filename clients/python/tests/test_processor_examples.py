"""The processors of examples/processors crawl a small shop."""
import os
import re
import shutil
import subprocess
import sys
import unittest
from urllib.parse import urldefrag

from .running_processor import PACKAGE, ProcessorTest, resolved
from .small_dom import Document, select

EXAMPLES = PACKAGE.parents[1] / "examples" / "processors"
ORIGIN = "https://shop.example"
ITEMS = {1: ('A "small" pan', "9.5"), 2: ("Caf\u00e9 & cup", "3.25"), 3: ("Spoon \\ fork", "1")}


def page(title, body):
    return f"<html><head><title>{title}</title></head>\n<body><h1>{title}</h1>\n{body}</body></html>".encode()


WEB = {
    "/": page("Shop", '<a class="item" href="/item/1">One</a> <a class="item" href="item/2?a=1&amp;b">Two</a> <a class="next" href="/page2">Next</a>'),
    "/page2": page("Page 2", '<a class="item" href="https://shop.example/item/3">Three</a><a href="#top">Top</a>'),
    "/item/1": page(ITEMS[1][0], '<b class="price">9.5</b>'),
    "/item/2?a=1&b": page(ITEMS[2][0], '<b class="price">3.25</b>'),
    "/item/3": page(ITEMS[3][0], '<b class="price">1</b>'),
}  # fmt: skip


class Examples(ProcessorTest):
    def crawl(self, processor, fields_of=lambda url, content: None):
        """As Argiope does: from a start to its end. Results by page."""
        results = {}

        def take(answer, base):
            self.assertNotIn("error", answer, answer.get("error"))
            for value in answer.get("results", []):
                results[base[len(ORIGIN) :]] = value["value"]
            return [(resolved(each, base), each["rule"]) for each in answer["pages"]]

        told = processor.describe()
        self.assertNotIn("error", told, told.get("error"))
        start = told["on"]["start"]
        waiting, known = take(processor.visit("data:,start", start, event="start"), "data:,start"), set()
        while waiting:
            url, rule = waiting.pop(0)
            url = urldefrag(url)[0]
            if url not in known:
                known.add(url)
                content = WEB[url[len(ORIGIN) :]]
                answer = processor.visit(url, rule, content, fields=fields_of(url, content))
                waiting += take(answer, url)
        self.assertEqual(sorted(url[len(ORIGIN) :] for url in known), sorted(WEB))
        self.assertEqual(processor.close(), 0)
        return results

    def test_bash(self):
        results = self.crawl(self.start(["bash", EXAMPLES / "links.sh", ORIGIN + "/"]))
        titles = {url: re.search("<title>(.*)</title>", content.decode())[1] for url, content in WEB.items()}
        self.assertEqual(results, {url: {"title": title} for url, title in titles.items()})

    def test_python_without_the_helper(self):
        results = self.crawl(self.start([sys.executable, EXAMPLES / "prices.py", ORIGIN + "/"]))
        self.assertEqual(
            [results[url] for url in ("/item/1", "/item/2?a=1&b", "/item/3")],
            [{"name": name, "price": float(price)} for name, price in ITEMS.values()],
        )
        self.assertIn(b"bytes from https://shop.example/item/3", self.last.stderr)

    def test_python_with_the_helper(self):
        results = self.crawl(self.start([sys.executable, "-m", "argiope.processor", EXAMPLES / "shop.py"]))
        self.assertEqual(results["/item/3"], {"name": ITEMS[3][0], "price": 1.0})
        self.assertEqual(len(results), 3)

    @unittest.skipUnless(shutil.which("node"), "node is not installed")
    def test_javascript_with_the_helper(self):
        results = self.crawl(self.start(["node", EXAMPLES / "shop.mjs"]))
        self.assertEqual(results["/item/3"], {"name": ITEMS[3][0], "price": 1})
        self.assertEqual(len(results), 3)

    @unittest.skipUnless(shutil.which("node"), "node is not installed")
    def test_javascript(self):
        def fields_of(url, content):
            document = Document(content.decode(), url)
            found = [each.attributes["href"] for each in select(document, None, css="a")]
            return {"title": select(document, None, css="h1")[0].text(), "links": found or None}  # null: nothing was found

        results = self.crawl(self.start(["node", EXAMPLES / "titles.mjs", ORIGIN + "/"]), fields_of)
        self.assertEqual(results["/item/2?a=1&b"], {"title": ITEMS[2][0]})

    @unittest.skipUnless(shutil.which("node"), "node is not installed")
    def test_javascript_reads_bodies_in_pieces(self):
        processor = self.start(["node", EXAMPLES / "titles.mjs", ORIGIN + "/"])
        processor.describe()
        for size in (0, 1, 100_000, 20_000_000, 3):
            processor.visit("https://shop.example/", content=b"\n" * size)
        processor.close()
        self.assertEqual(re.findall(rb"(\d+) bytes", processor.stderr), [b"0", b"1", b"100000", b"20000000", b"3"])

    @unittest.skipUnless(shutil.which("go"), "go is not installed")
    def test_go(self):
        environment = {
            **os.environ,
            "GOCACHE": str(self.folder / "cache"),
            "GOFLAGS": "-mod=mod",
            "GO111MODULE": "off",
            "CGO_ENABLED": "0",
        }
        subprocess.run(
            ["go", "build", "-o", self.folder / "titles", EXAMPLES / "titles.go"], cwd=self.folder, env=environment, check=True
        )
        results = self.crawl(self.start([self.folder / "titles", ORIGIN + "/"]))
        self.assertEqual((results["/item/2?a=1&b"], len(results)), ({"title": ITEMS[2][0]}, 5))

    def test_what_the_readme_shows(self):
        text = (EXAMPLES / "README.md").read_text()
        command, shown = re.search(r"```\n\$ (.*)\n((?:.*\n)+?)```", text).groups()
        done = subprocess.run(["bash", "-c", command], cwd=EXAMPLES, capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), (shown, ""))


if __name__ == "__main__":
    unittest.main()
