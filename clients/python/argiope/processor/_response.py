"""Response: what came of a request, as pyspider's scripts know it."""
from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import MutableMapping
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple, Type, Union
from urllib.parse import urldefrag, urljoin

NO_ANSWER = 599  # the status of what no server has answered, as in pyspider

_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([^\s"'/>;]+)""", re.I)
_META = re.compile(r"<meta[^>]*>", re.I)
_XML = re.compile(r"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([^"']+)["']""", re.I)
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# Names that mean a larger set wherever they are met.
_WIDER = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso-8859-1": "cp1252",
    "latin-1": "cp1252",
    "us-ascii": "cp1252",
    "ascii": "cp1252",
}


class HTTPError(OSError):
    """There was no success. `response` is what there was. Where `requests` is loaded, it is a requests.HTTPError, too."""

    response: "Optional[Response]" = None


class ParserError(ValueError):  # named as lxml's
    """There is nothing in the document."""


class Headers(MutableMapping):  # type: ignore[type-arg]
    """A dict whose names count without case, and are given as they came. Several of one name are joined by commas."""

    def __init__(self, given: Any = ()) -> None:
        self._all: Dict[str, Tuple[str, Any]] = {}
        for name, value in given.items() if hasattr(given, "items") else given:
            known = self._all.get(name.lower())
            self[name] = value if known is None else f"{known[1]},{value}"

    def __getitem__(self, name: str) -> Any:
        return self._all[name.lower()][1]

    def __setitem__(self, name: str, value: Any) -> None:
        self._all[name.lower()] = (name, value)

    def __delitem__(self, name: str) -> None:
        del self._all[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._all.values())

    def __len__(self) -> int:
        return len(self._all)

    def __repr__(self) -> str:
        return repr(dict(self))

    def copy(self) -> "Headers":
        return Headers(self)


class Response:
    """What came of a request.

    `url`: where it came from, behind redirects; `orig_url`: what was asked for. `status_code`: 599 where there was no answer.
    `headers`: names count without case. `content`: bytes, or text that was made here. `cookies`: a dict of those that
    were sent and those that were set on the way, for the requests that follow. `error`: why there was
    no success, or None. `save`: what crawl(save=…) gave. `time`: seconds of fetching. `js_script_result`: of `js_script`.
    A response is true if it is `ok`.
    """

    # Reads the document for scripts without PyQuery; set by what runs the script.
    _select: Optional[Callable[..., Any]] = None

    def __init__(
        self,
        status_code: Optional[int] = None,
        url: Optional[str] = None,
        orig_url: Optional[str] = None,
        headers: Any = (),
        content: Union[bytes, str] = b"",
        cookies: Optional[Mapping[str, str]] = None,
        error: Optional[str] = None,
        traceback: Optional[str] = None,
        save: Any = None,
        js_script_result: Any = None,
        time: float = 0,
    ) -> None:
        self.status_code: int = NO_ANSWER if status_code is None else status_code
        self.url: str = url or ""
        self.orig_url: str = self.url if orig_url is None else orig_url
        self.headers = Headers(headers)
        self.content = content
        self.cookies: Dict[str, str] = dict(cookies or {})
        self.error = error
        self.traceback = traceback
        self.save = save
        self.js_script_result = js_script_result
        self.time = time
        self._known: Dict[str, Any] = {}  # what was computed from the content
        self._told_encoding: Optional[str] = None  # by Argiope

    def __repr__(self) -> str:
        return f"<Response [{self.status_code}]>"

    def __bool__(self) -> bool:
        return self.ok

    @property
    def ok(self) -> bool:
        """Whether raise_for_status() raises nothing."""
        return self._trouble(True) is None

    def isok(self) -> bool:
        return self.ok

    def raise_for_status(self, allow_redirects: bool = True) -> None:
        """Raises HTTPError for a status from 400 on, and where there was no answer; without `allow_redirects` for 3xx but 304, too."""
        trouble = self._trouble(allow_redirects)
        if trouble is not None:
            error = _http_error_type()(trouble)
            error.response = self
            raise error

    def _trouble(self, allow_redirects: bool) -> Optional[str]:
        status = self.status_code
        if status == 304:
            return None
        if self.error:
            return str(self.error)
        if status >= 400:
            return f"{status} {'Client' if status < 500 else 'Server'} Error"
        if 300 <= status < 400 and not allow_redirects:
            return f"{status} Redirection"
        return None

    @property
    def encoding(self) -> str:
        """Of the content: as the server or the page says, else as it looks. May be set."""
        if "encoding" not in self._known:
            self._known["encoding"] = self._find_encoding()
        return str(self._known["encoding"])

    @encoding.setter
    def encoding(self, value: str) -> None:
        self._known = {"encoding": value}

    def _find_encoding(self) -> str:
        content = self.content
        if isinstance(content, str):
            return "unicode"
        for found in (get_encoding(self.headers, content), self._told_encoding, _guess(content)):
            if found:
                return _WIDER.get(found.lower(), found)
        return "utf-8"

    @property
    def text(self) -> str:
        """The content as text; bytes that are none in its encoding become U+FFFD."""
        if isinstance(self.content, str):
            return self.content
        if "text" not in self._known:
            encoding = self.encoding
            try:
                text = self.content.decode(encoding, "replace")
            except LookupError:
                text = self.content.decode("utf-8", "replace")
            self._known["text"] = text[1:] if text.startswith("\ufeff") else text
        return str(self._known["text"])

    @property
    def json(self) -> Any:
        """The content's value if it is JSON, else None."""
        if "json" not in self._known:
            try:
                self._known["json"] = json.loads(self.text)
            except ValueError:
                self._known["json"] = None
        return self._known["json"]

    @property
    def etree(self) -> Any:
        """The content as an element of lxml. Errors: ImportError where lxml is not installed; ParserError where there is nothing in it,
        so that such a page is tried again."""
        if "etree" not in self._known:
            self._known["etree"] = self._parse()
        return self._known["etree"]

    def _parse(self) -> Any:
        try:
            import lxml.etree
            import lxml.html
        except ImportError as error:
            raise ImportError("response.etree needs lxml (Debian: python3-lxml)") from error
        content = self.content
        try:
            parser = lxml.html.HTMLParser(encoding=None if isinstance(content, str) else self.encoding)
            root = lxml.html.fromstring(content, parser=parser)
        except (LookupError, ValueError):  # an encoding that lxml does not know, or text that declares one
            root = lxml.html.fromstring(self.text.encode(), parser=lxml.html.HTMLParser(encoding="utf-8"))
        return root.getroot() if isinstance(root, lxml.etree._ElementTree) else root

    @property
    def doc(self) -> Any:
        """The content to select from by CSS, links absolute: a PyQuery where that is installed, else a Query, which Argiope answers."""
        if "doc" not in self._known:
            self._known["doc"] = self._make_doc()
        return self._known["doc"]

    def _make_doc(self) -> Any:
        try:
            from pyquery import PyQuery
        except ImportError:
            from ._query import Query

            if self._select is None:
                raise ImportError("response.doc needs pyquery (Debian: python3-pyquery) outside of a processor") from None
            content = self.content
            if not content.strip():
                raise _parser_error_type()("Document is empty") from None
            return Query.of_document(self._select, content if isinstance(content, str) else None)
        doc = PyQuery(self.etree)
        base = doc("base[href]").attr("href")
        doc.make_links_absolute(urljoin(self.url, base.strip()) if base else self.url)
        return doc


def rebuild_response(given: Mapping[str, Any]) -> Response:
    """From a dict of Response's arguments."""
    return Response(
        status_code=given.get("status_code", NO_ANSWER),
        url=given.get("url", ""),
        orig_url=given.get("orig_url", given.get("url", "")),
        headers=given.get("headers") or {},
        content=given.get("content", ""),
        cookies=given.get("cookies") or {},
        error=given.get("error"),
        traceback=given.get("traceback"),
        save=given.get("save"),
        js_script_result=given.get("js_script_result"),
        time=given.get("time", 0),
    )


def response_of_call(call: Mapping[str, Any], select: Optional[Callable[..., Any]] = None) -> Response:
    """From a message `page` of the protocol."""
    page, answer = call.get("page") or {}, call.get("response") or {}
    error = answer.get("error")
    asked, url = page.get("url", ""), answer.get("url")
    if not url or url == urldefrag(asked)[0]:
        url = asked  # nothing has led elsewhere: with its fragment, by which scripts tell pages apart
    response = Response(
        status_code=(0 if error and error.get("kind") == "redirects" else answer.get("status")) or NO_ANSWER,
        url=url,
        orig_url=asked,
        headers=answer.get("headers") or (),
        content=call.get("content", b""),
        cookies={**((page.get("request") or {}).get("cookies") or {}), **(answer.get("cookies") or {})},
        error=error.get("text") or error.get("kind") if error else None,
        save=page.get("context"),
        js_script_result=answer.get("script_result"),
        time=(answer.get("time_ms") or 0) / 1000,
    )
    response._told_encoding = answer.get("encoding")
    response._select = select
    return response


def get_encoding(headers: Mapping[str, str], content: Union[bytes, str]) -> Optional[str]:
    """What the content's mark, the server, or the page's beginning says, in this order."""
    if isinstance(content, bytes):
        for mark, name in _MARKS:
            if content.startswith(mark):
                return name
    told = _CHARSET.search(headers.get("content-type") or "")
    if told:
        return told[1]
    head = content[:1024] if isinstance(content, str) else content[:1024].decode("latin-1")
    for tag in _META.findall(head):
        told = _CHARSET.search(tag)
        if told:
            return str(told[1])
    told = _XML.match(head)
    return told[1] if told else None


def _guess(content: bytes) -> Optional[str]:
    try:
        content.decode()
        return "utf-8"
    except UnicodeDecodeError:
        pass
    try:
        import chardet
    except ImportError:
        return "cp1252"
    found = chardet.detect(content[:4096])["encoding"]
    return str(found) if found else "cp1252"


_error_types: List[Type[HTTPError]] = []


def _parser_error_type() -> Type[Exception]:
    """Scripts catch lxml.etree.ParserError; lxml itself is not loaded for that."""
    return getattr(sys.modules.get("lxml.etree"), "ParserError", None) or ParserError


def _http_error_type() -> Type[HTTPError]:
    """Scripts catch requests.HTTPError; requests itself, which takes long to load, is not loaded for that."""
    requests = sys.modules.get("requests")
    theirs = getattr(requests, "HTTPError", None)
    if theirs is None:
        return HTTPError
    if not _error_types:
        _error_types.append(type("HTTPError", (HTTPError, theirs), {"__module__": __name__}))
    return _error_types[0]
