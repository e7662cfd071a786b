"""A curl command, as browsers copy it ("Copy as cURL"), as what crawl() is given.

The JavaScript client's src/processor/curl.js does the same; tests/data/curl_commands.json says what both make of which command.
"""
from __future__ import annotations

import base64
import re
from typing import Any, Dict, Iterator, List, Optional, Tuple
from urllib.parse import quote_plus

# Options with a value, and what they say; those without one; those that say nothing about a request.
_TAKES = {
    "-H": "header", "--header": "header", "-X": "method", "--request": "method", "--url": "url",
    "-d": "data", "--data": "data", "--data-raw": "data", "--data-binary": "data", "--data-ascii": "data",
    "--data-urlencode": "data", "-A": "User-Agent", "--user-agent": "User-Agent", "-b": "cookie", "--cookie": "cookie",
    "-e": "Referer", "--referer": "Referer", "-x": "proxy", "--proxy": "proxy", "-m": "timeout", "--max-time": "timeout",
    "--connect-timeout": "connect_timeout", "-u": "user", "--user": "user",
}  # fmt: skip
_NOTHING = """-L --location -s --silent -S --show-error -v --verbose -i --include -f --fail -g --globoff -N --no-buffer
    -# --progress-bar --http1.1 --http2"""
_FLAGS: Dict[str, Dict[str, Any]] = {
    **{option: {} for option in _NOTHING.split()},
    "--compressed": {"use_gzip": True}, "-k": {"validate_cert": False}, "--insecure": {"validate_cert": False},
    "-I": {"method": "HEAD"}, "--head": {"method": "HEAD"}, "-G": {"get": True}, "--get": {"get": True},
}  # fmt: skip
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]*)?")
_NAMED = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
# One piece of a word: $'with escapes', 'as it is', "with some", \c, or characters.
_PIECE = re.compile(
    r"""\$'((?:[^'\\]|\\.)*)'|'([^']*)'|\$?"((?:[^"\\]|\\.)*)"|\\(\r?\n|.)|((?:[^ \t\r\n'"\\$]|\$(?!['"]))+)""", re.S
)
_BETWEEN = re.compile(r"[ \t\r\n]*")
# What Bash's manual lists; before it two \u that are one character, which is how browsers write those beyond \uffff.
_ESCAPED = re.compile(
    r"""\\u([dD][89abAB]H{2})\\u([dD][c-fC-F]H{2})|\\x(H{1,2})|\\([0-7]{1,3})|\\u(H{1,4})|\\U(H{1,8})|\\c(\\\\|[\x00-\x7f])"""
    r"""|\\([abeEfnrtv\\'"?])""".replace("H", "[0-9A-Fa-f]"),
    re.S,
)


class _Said:
    def __init__(self) -> None:
        self.urls: List[str] = []
        self.data: List[bytes] = []
        self.cookies: List[str] = []
        self.headers: Dict[str, str] = {}
        self.own: Dict[str, str] = {}  # headers that other options make; those of -H count more
        self.found: Dict[str, Any] = {}


def curl_to_arguments(command: str) -> Dict[str, Any]:
    """The arguments of crawl() that a curl command amounts to; `urls` is a list.

    Errors: TypeError for an option that is not known or without its value, and without a URL; ValueError for a value that cannot
    be read or names a file, and for quotes that do not end.
    """
    said = _Said()
    words = iter(_words(command)[1:])
    for word in words:
        if not word.startswith(b"-") or word == b"-":
            said.urls.append(_text(word))
        else:
            for option, value in _options(word, words):
                _take(said, option, value)
    if not said.urls:
        raise TypeError("curl: no URL")
    found = said.found
    data = b"&".join(said.data)
    if found.pop("get", False):
        said.urls = [_with_query(url, data) for url in said.urls]
    elif said.data:
        found["data"] = _body(data)
        found.setdefault("method", "POST")  # also where the data is empty
    found["urls"] = said.urls
    if any(said.cookies):
        said.own["Cookie"] = "; ".join(each for each in said.cookies if each)
    names = {name.lower() for name in said.headers}
    headers = {**said.headers, **{name: value for name, value in said.own.items() if name.lower() not in names}}
    if headers:
        found["headers"] = headers
    return found


def _options(word: bytes, words: Iterator[bytes]) -> Iterator[Tuple[str, Optional[bytes]]]:
    """Each option of a word with its value: what is behind it in the word, else the next word."""
    text = word.decode("latin-1")
    is_long = text.startswith("--")
    long, sign, _ = text.partition("=")
    if is_long and sign and long in _TAKES:
        yield long, word[len(long) + 1 :]
        return
    for at in range(1, 2 if is_long else len(word)):
        option = text if is_long else "-" + text[at]
        if option in _TAKES:
            value = next(words, None) if is_long or at + 1 == len(word) else word[at + 1 :]
            if value is None:
                raise TypeError(f"curl: option {option} without a value")
            yield option, value
            return
        if option not in _FLAGS:
            raise TypeError(f"curl: there is no option {_text(option.encode('latin-1'))} here")
        yield option, None


def _take(said: _Said, option: str, value: Optional[bytes]) -> None:
    if value is None:
        said.found.update(_FLAGS[option])
        return
    meaning, text = _TAKES[option], _text(value)
    if meaning == "data":
        said.data.append(_data(option, value))
    elif meaning == "user":
        said.own["Authorization"] = "Basic " + base64.b64encode(value).decode()
    elif meaning == "url":
        said.urls.append(text)
    elif meaning == "header":
        _take_header(said, option, text)
    elif meaning == "cookie":
        if text and "=" not in text:
            _refuse_file(option, text)
        said.cookies.append(text)
    elif meaning in ("User-Agent", "Referer"):
        said.own.pop(meaning, None)
        if text:
            said.own[meaning] = text
    elif meaning.endswith("timeout"):
        if not _SECONDS.fullmatch(text):
            raise ValueError(f"curl: {option} {text}: not a number of seconds")
        said.found.pop(meaning, None)
        if float(text) > 0:
            said.found[meaning] = float(text)
    else:
        said.found[meaning] = text


def _take_header(said: _Said, option: str, text: str) -> None:
    """`Name: value`, `Name;` for one without a value. `Name:` takes a header of curl's own away, and nothing is said here.

    Nor is it for one without a name.
    """
    if text.startswith("@"):
        _refuse_file(option, text)
    name, sign, value = text.partition(":")
    if sign and name.strip() and value.strip():
        said.headers[name.strip()] = value.strip()
    empty = re.fullmatch(r"([^:;]*);\s*", text)
    if empty and empty[1].strip():
        said.headers[empty[1].strip()] = ""


def _data(option: str, value: bytes) -> bytes:
    """Of --data-urlencode the content alone is encoded: what is behind the first "=", or all of it."""
    is_encoded = option == "--data-urlencode"
    if (b"@" in value and b"=" not in value) if is_encoded else (option != "--data-raw" and value.startswith(b"@")):
        _refuse_file(option, _text(value))
    if not is_encoded:
        return value
    name, sign, content = value.partition(b"=") if b"=" in value else (b"", b"", value)
    return (name + sign if name else b"") + quote_plus(content).encode()


def _refuse_file(option: str, value: str) -> None:
    instead = "put the content there (--data-raw and --data-urlencode =… take text with an @)"
    raise ValueError(f"curl: {option} {value}: files are not read; {instead}")


def _with_query(url: str, data: bytes) -> str:
    if not data:
        return url
    before, sign, fragment = url.partition("#")
    join = "?" if "?" not in before else "" if before[-1] in "?&" else "&"
    return before + join + "".join(chr(byte) if byte < 128 else f"%{byte:02X}" for byte in data) + sign + fragment


def _text(word: bytes) -> str:
    """Words are bytes, because $'\\xe4' may be a part of a character."""
    return word.decode("utf-8", "replace")


def _body(data: bytes) -> Any:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _words(line: str) -> List[bytes]:
    """As Bash takes a line apart."""
    words: List[bytes] = []
    at = _BETWEEN.match(line).end()  # type: ignore[union-attr]
    while at < len(line):
        word: Optional[bytes] = None
        while at < len(line) and line[at] not in " \t\r\n":
            piece = _PIECE.match(line, at)
            if not piece:
                raise ValueError("curl: a quote or a backslash without its end")
            at = piece.end()
            if not (piece[4] or "").endswith("\n"):  # else the line goes on
                word = (word or b"") + _piece(piece)
        if word is not None:
            words.append(word)
        at = _BETWEEN.match(line, at).end()  # type: ignore[union-attr]
    return words


def _piece(piece: "re.Match[str]") -> bytes:
    escapes, literal, some, one, plain = piece.groups()
    if escapes is not None:
        return _unescaped(escapes)
    if some is not None:
        return _utf8(re.sub(r'\\(\r?\n|[$`"\\])', lambda found: found[1].strip("\r\n"), some))
    return _utf8(next(each for each in (literal, one, plain) if each is not None))


def _unescaped(text: str) -> bytes:
    """What is escaped in another way stays, with its backslash."""
    parts: List[bytes] = []
    at = 0
    for found in _ESCAPED.finditer(text):
        parts += [_utf8(text[at : found.start()]), _escape(found)]
        at = found.end()
    return b"".join(parts) + _utf8(text[at:])


def _escape(found: "re.Match[str]") -> bytes:
    high, low, hexadecimal, octal, short, long, control, named = found.groups()
    if high:
        return _utf8(chr(0x10000 + (int(high, 16) - 0xD800) * 0x400 + int(low, 16) - 0xDC00))
    if hexadecimal:
        return bytes([int(hexadecimal, 16)])
    if octal:
        return bytes([int(octal, 8) & 0xFF])
    if short or long:
        number = int(short or long, 16)
        return _utf8(chr(number) if number <= 0x10FFFF else "\ufffd")
    if control:
        return b"\x7f" if control == "?" else bytes([ord(control[0]) & 0x1F])
    return _utf8(_NAMED.get(named, named))


def _utf8(text: str) -> bytes:
    """Half a surrogate pair is U+FFFD."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text).encode()
