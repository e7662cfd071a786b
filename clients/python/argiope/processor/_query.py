"""Query: what of PyQuery most scripts use, where PyQuery is not installed. Argiope itself finds the elements (`select`)."""
from __future__ import annotations

import html
import re
from typing import Any, Callable, Dict, Iterator, List, Optional, Union

GIVE = ["text", "attributes", "name"]
Select = Callable[..., List[Dict[str, Any]]]
# jQuery's places at the end of a selector without combinators: what they mean behind one is PyQuery's own.
_PLACE = re.compile(r"""((?:[^\s>+~,\["':]|\[[^\]]*\]|:(?!first$|last$|even$|odd$|(?:eq|gt|lt)\()[\w-]+(?:\([^()]*\))?)*)"""
                    r""":(first|last|even|odd|(?:eq|gt|lt)(?=\())(?:\(\s*(-?\d+)\s*\))?$""")  # fmt: skip


class _Attributes:
    """query.attr.href, query.attr["href"], query.attr("href"): of the first element."""

    def __init__(self, query: "Query") -> None:
        self._query = query

    def __call__(self, name: str, *value: Any) -> Any:
        if value:
            raise TypeError("attr(name, value): this document is only read; install pyquery to change it")
        first = self._query._first()
        return None if first is None else first.get("attributes", {}).get(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self(name.rstrip("_").replace("_", "-"))

    def __getitem__(self, name: str) -> Any:
        return self(name)


class Query:
    """Some elements of a page. Immutable; ends with the visit.

    query(css), find, children, parent, parents, closest, next, prev, siblings, nextAll, prevAll, contents, filter, not_, is_, eq, items, attr, text, html,
    outer_html, val, hasClass, length, xpath; iteration and [i] give queries of one element.
    Errors: ValueError for a selector that Argiope refuses.
    """

    def __init__(self, select: Select, matches: List[Dict[str, Any]]) -> None:
        self._select = select
        self._matches = matches
        self.attr = _Attributes(self)

    @staticmethod
    def of_document(select: Select, text: Optional[str] = None) -> "Query":
        return Query(select, select(xpath="/*", give=GIVE, **({} if text is None else {"html": text})))

    # Finding.

    def __call__(self, css: Any, context: Any = None) -> "Query":
        if isinstance(css, Query):
            return css
        return (context if isinstance(context, Query) else self).find(css)

    def find(self, css: str) -> "Query":
        place = _PLACE.match(css.strip())
        if place:
            return self._find_place(place[1] or "*", place[2], int(place[3] or 0))
        # What is selected within an element can be the element itself, but for the root, which is no one's descendant.
        own = {match["node"] for match in self._nodes()} if not self._is_root() else set()
        return Query(self._select, [match for match in self._ask(css=css) if match.get("node") not in own])

    def _find_place(self, css: str, which: str, number: int) -> "Query":
        end = number + 1 or None
        places = {
            "first": slice(1), "last": slice(-1, None), "even": slice(0, None, 2), "odd": slice(1, None, 2),
            "eq": slice(number, end), "gt": slice(end, None), "lt": slice(number),
        }  # fmt: skip
        found: List[Dict[str, Any]] = []
        for one in self.items():
            found += [match for match in one.find(css)._matches[places[which]] if match not in found]
        return Query(self._select, found)

    def xpath(self, expression: str) -> "Query":
        return Query(self._select, self._ask(xpath=expression))

    def filter(self, css: Union[str, Callable[[int, "Query"], bool]]) -> "Query":
        if callable(css):
            return Query(self._select, [one._matches[0] for i, one in enumerate(self.items()) if css(i, one)])
        return Query(self._select, [match for match in self._matches if self._fits(match, css)])

    def not_(self, css: str) -> "Query":
        return Query(self._select, [match for match in self._matches if not self._fits(match, css)])

    def is_(self, css: str) -> bool:
        return any(self._fits(match, css) for match in self._matches)

    def children(self, css: Optional[str] = None) -> "Query":
        return self._step("./*", css)

    def parent(self, css: Optional[str] = None) -> "Query":
        return self._step("./parent::*", css)

    def parents(self, css: Optional[str] = None) -> "Query":
        return self._step("./ancestor::*", css)

    def closest(self, css: str) -> "Query":
        found: List[Dict[str, Any]] = []
        for one in self.items():
            chain = [match for match in one._ask(xpath="./ancestor-or-self::*") if self._fits(match, css)]
            found += [match for match in chain[-1:] if match not in found]
        return Query(self._select, found)

    def next(self, css: Optional[str] = None) -> "Query":
        return self._step("./following-sibling::*[1]", css)

    def prev(self, css: Optional[str] = None) -> "Query":
        return self._step("./preceding-sibling::*[1]", css)

    def nextAll(self, css: Optional[str] = None) -> "Query":
        return self._step("./following-sibling::*", css)

    def prevAll(self, css: Optional[str] = None) -> "Query":
        return self._step("./preceding-sibling::*", css)

    def siblings(self, css: Optional[str] = None) -> "Query":
        return self._step("./preceding-sibling::* | ./following-sibling::*", css)

    next_all, prev_all = nextAll, prevAll

    def contents(self) -> List[Any]:
        """What is in the elements: texts as str, with all their characters; elements as queries."""
        found = self._ask(xpath="./node()", give=[*GIVE, "raw"])
        return [Query(self._select, [match]) if "node" in match else match.get("raw", "") for match in found]

    def eq(self, index: int) -> "Query":
        return Query(self._select, self._matches[index : index + 1 or None])

    def first(self) -> "Query":
        return self.eq(0)

    def last(self) -> "Query":
        return self.eq(-1)

    def items(self, css: Optional[str] = None) -> Iterator["Query"]:
        for match in (self if css is None else self.find(css))._matches:
            yield Query(self._select, [match])

    def each(self, function: Callable[..., Any]) -> "Query":
        for index, one in enumerate(self.items()):
            if function(index, one) is False:
                break
        return self

    def map(self, function: Callable[..., Any]) -> List[Any]:
        return [function(index, one) for index, one in enumerate(self.items())]

    # What they are.

    def text(self) -> str:
        """Of all elements, as a reader sees it, in one line."""
        return " ".join(match["text"] for match in self._matches if match.get("text"))

    def html(self) -> Optional[str]:
        """Of the first element, what is in it."""
        return self._markup("inner_html")

    def outer_html(self) -> Optional[str]:
        return self._markup("html")

    outerHtml = outer_html

    def val(self) -> Any:
        first = self._first()
        if first is None:
            return None
        return self.text() if first.get("name") == "textarea" else first.get("attributes", {}).get("value")

    def has_class(self, name: str) -> bool:
        return any(name in match.get("attributes", {}).get("class", "").split() for match in self._matches)

    hasClass = has_class

    @property
    def length(self) -> int:
        return len(self._matches)

    def size(self) -> int:
        return len(self._matches)

    def __len__(self) -> int:
        return len(self._matches)

    def __bool__(self) -> bool:
        return bool(self._matches)

    def __iter__(self) -> Iterator["Query"]:
        return self.items()

    def __getitem__(self, index: int) -> "Query":
        return Query(self._select, [self._matches[index]])

    def __str__(self) -> str:
        return "".join(self[i].outer_html() or html.escape(str(match.get("text", ""))) for i, match in enumerate(self._matches))

    def __repr__(self) -> str:
        return "[" + ", ".join(f"<{match.get('name', '#text')}>" for match in self._matches) + "]"

    # How.

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"response.doc has no {name!r}; it has where pyquery is installed (Debian: python3-pyquery)")

    def _first(self) -> Optional[Dict[str, Any]]:
        return self._matches[0] if self._matches else None

    def _nodes(self) -> List[Dict[str, Any]]:
        return [match for match in self._matches if "node" in match]

    def _is_root(self) -> bool:
        return len(self._matches) == 1 and self._matches[0].get("name") == "html"

    def _ask(self, **what: Any) -> List[Dict[str, Any]]:
        nodes = [match["node"] for match in self._nodes()]
        return self._select(**{"within": nodes, "give": GIVE, **what}) if nodes else []

    def _step(self, xpath: str, css: Optional[str]) -> "Query":
        found = Query(self._select, self._ask(xpath=xpath))
        return found if css is None else found.filter(css)

    def _fits(self, match: Dict[str, Any], css: str) -> bool:
        if "node" not in match:
            return False
        found = self._select(within=[match["node"]], css=css, give=["name"], most=1)
        return bool(found) and found[0].get("node") == match["node"]

    def _markup(self, which: str) -> Optional[str]:
        nodes = self._nodes()
        if not nodes:
            return None
        found = self._select(within=[nodes[0]["node"]], xpath=".", give=[which], most=1)
        return str(found[0].get(which, "")) if found else None
