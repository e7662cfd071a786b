"""As much of CSS and XPath as the tests of `select` need, for a stand-in of Argiope without libraries."""
import re
from html.parser import HTMLParser
from urllib.parse import urljoin

VOID = {"br", "img", "hr", "meta", "link", "input", "base", "area", "source"}
LINKS = {"a": "href", "area": "href", "link": "href", "img": "src", "script": "src", "iframe": "src", "form": "action"}
AXES = {
    "/*": lambda e: [e.root()], ".": lambda e: [e], "./*": lambda e: e.elements(), "./node()": lambda e: e.content, "./parent::*": lambda e: e.chain()[-1:],
    "./ancestor::*": lambda e: e.chain(), "./ancestor-or-self::*": lambda e: e.chain() + [e],
    "./following-sibling::*": lambda e: e.siblings()[e.place() + 1 :],
    "./following-sibling::*[1]": lambda e: e.siblings()[e.place() + 1 :][:1],
    "./preceding-sibling::*": lambda e: e.siblings()[: e.place()],
    "./preceding-sibling::*[1]": lambda e: e.siblings()[: e.place()][-1:],
    "./preceding-sibling::* | ./following-sibling::*": lambda e: [s for s in e.siblings() if s is not e],
}  # fmt: skip


class Element:
    def __init__(self, name, attributes, parent):
        self.name, self.attributes, self.parent, self.content = name, attributes, parent, []

    def elements(self):
        return [each for each in self.content if isinstance(each, Element)]

    def all(self):
        yield self
        for each in self.elements():
            yield from each.all()

    def chain(self):
        """Its ancestors, the root first; the document is none."""
        found, at = [], self.parent
        while at is not None and at.name:
            found.insert(0, at)
            at = at.parent
        return found

    def root(self):
        return (self.chain() + [self])[0]

    def siblings(self):
        return self.parent.elements()

    def place(self):
        return next(i for i, each in enumerate(self.siblings()) if each is self)

    def raw(self):
        return "".join(each if isinstance(each, str) else each.raw() for each in self.content)

    def text(self):
        return " ".join(self.raw().split())

    def inner_html(self):
        return "".join(each if isinstance(each, str) else each.html() for each in self.content)

    def html(self):
        attributes = "".join(f' {name}="{value}"' for name, value in self.attributes.items())
        return f"<{self.name}{attributes}>" + ("" if self.name in VOID else f"{self.inner_html()}</{self.name}>")


class Document(HTMLParser):
    def __init__(self, text, url):
        super().__init__()
        self.at = self.top = Element("", {}, None)
        self.feed(text if re.search("<html", text, re.I) else f"<html><body>{text}</body></html>")
        base = next((each.attributes["href"] for each in self.top.all() if each.name == "base"), "")
        for each in self.top.all():
            name = LINKS.get(each.name)
            if name in each.attributes:
                each.attributes[name] = urljoin(urljoin(url, base), each.attributes[name])

    def handle_starttag(self, tag, attrs):
        element = Element(tag, {name: value or "" for name, value in attrs}, self.at)
        self.at.content.append(element)
        if tag not in VOID:
            self.at = element

    def handle_endtag(self, tag):
        open_ones = self.at.chain() + [self.at]
        if any(each.name == tag for each in open_ones):
            while self.at.name != tag:
                self.at = self.at.parent
            self.at = self.at.parent

    def handle_data(self, data):
        self.at.content.append(data)


def fits(element, compound):
    for test in re.findall(r"\[[^\]]*\]|[.#]?[\w-]+|\*", compound):
        value = test[1:]
        if test[0] == "[":
            name, sign, wanted = re.fullmatch(r"([\w-]+)(?:([~^$*]?=)[\"']?(.*?)[\"']?)?", test[1:-1]).groups()
            has = element.attributes.get(name)
            ways = {"=": str.__eq__, "^=": str.startswith, "$=": str.endswith, "*=": str.__contains__}
            if has is None or (sign and not ways[sign](has, wanted)):
                return False
        elif test[0] == ".":
            if value not in element.attributes.get("class", "").split():
                return False
        elif test[0] == "#":
            if element.attributes.get("id") != value:
                return False
        elif test != "*" and element.name != test:
            return False
    return True


def selected(element, words, chain):
    """Whether the element is what the words "ul > li a" say, with its ancestors within `chain`."""
    if not fits(element, words[-1]):
        return False
    if len(words) == 1:
        return True
    if words[-2] == ">":
        return bool(chain) and selected(chain[-1], words[:-2], chain[:-1])
    return any(selected(chain[i], words[:-1], chain[:i]) for i in range(len(chain)))


def select(document, within, css=None, xpath=None):
    """Pairs (element or text). Errors: ValueError."""
    found = []
    if xpath is not None:
        if xpath not in AXES:
            raise ValueError(f"{xpath}: not known")
        for each in within or document.top.elements():
            found += [one for one in AXES[xpath](each) if one not in found]
        return found
    for part in css.split(","):
        words, _, pseudo = part.strip().partition("::")
        if not re.fullmatch(r"[\w\s.#>*\[\]=^$\"':/~-]+", words):
            raise ValueError(f"{css}: wrong at character {len(words)}")
        words = re.sub(r"\s*>\s*", " > ", words).split()
        for top in within or [document.top]:
            inside = top.chain()
            for each in top.all():
                if each.name and each not in found and selected(each, words, each.chain()[len(inside) :]):
                    found.append(each)
        if pseudo:
            name = pseudo[5:-1] if pseudo.startswith("attr(") else None
            found = [each.text() if name is None else each.attributes.get(name, "") for each in found]
    return found
