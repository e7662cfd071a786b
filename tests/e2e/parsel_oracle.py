"""What parsel, the selectors of Scrapy, finds in pages: the second opinion of extraction_test.py. Run by the system's Python.

Standard input: a JSON object with `selectors` ([["css", "h1"], …]) and `files`. Standard output: a line for each file, a list
with a list of texts for each selector."""
import json
import sys

from parsel import Selector


def text_of(found):
    root = found.root
    if isinstance(root, str):
        return root
    if not isinstance(root.tag, str):  # a comment
        return root.text or ''
    return found.xpath('string(.)').get()


def main():
    asked = json.load(sys.stdin)
    for file in asked['files']:
        with open(file, encoding='utf-8', errors='replace') as source:
            page = Selector(text=source.read())
        found = [[text_of(one) for one in getattr(page, kind)(text)] for kind, text in asked['selectors']]
        print(json.dumps(found))


main()
