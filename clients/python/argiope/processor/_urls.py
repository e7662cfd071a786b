"""What crawl() is given, as a request needs it: URLs with parameters, and bodies of forms."""
from __future__ import annotations

import hashlib
import mimetypes
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union
from urllib.parse import urlencode, urljoin, urlparse, urlsplit, urlunparse

Data = Union[str, bytes]


def quote_non_ascii(url: Data) -> str:
    """The bytes of UTF-8 above 127 as %XX; nothing else changes."""
    given = url.encode("utf-8", "surrogatepass") if isinstance(url, str) else bytes(url)
    return "".join(chr(byte) if byte < 128 else f"%{byte:02X}" for byte in given)


def build_url(url: str, params: Any = None) -> str:
    """With the parameters added, an international name of a host as DNS has it, and at least "/" as its path.

    Errors: ValueError, UnicodeError for what is no URL.
    """
    scheme, host, path, parameters, query, fragment = urlparse(url)
    if not host.isascii():
        host = host.encode("idna").decode()
    added = encode_params(params)
    if isinstance(added, bytes):
        added = added.decode()
    if added:
        query = f"{query}&{added}" if query else str(added)
    return urlunparse([scheme, host, path or "/", parameters, query, fragment])


def resolve(url: str, base: Optional[str]) -> str:
    """Against the page's URL where it is relative. Errors: ValueError outside of a page."""
    if urlsplit(url).scheme:
        return url
    if base is None or base.startswith("data:"):
        raise ValueError(f"crawl({url!r}): relative, and there is no page that it could be relative to")
    return urljoin(base, url)


def encode_params(data: Any) -> Any:
    """Pairs or a mapping as of a form, values may be lists, and None leaves one out; text, bytes and files as they are."""
    if data is None:
        return ""
    if isinstance(data, (str, bytes, bytearray)) or hasattr(data, "read") or not hasattr(data, "__iter__"):
        return data
    pairs: List[Tuple[Data, Data]] = []
    for name, values in _items(data):
        if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
            values = [values]
        pairs += [(_form_text(name), _form_text(value)) for value in values if value is not None]
    return urlencode(pairs)


def encode_body(data: Any) -> bytes:
    encoded = encode_params(data)
    if hasattr(encoded, "read"):
        encoded = encoded.read()
    if isinstance(encoded, str):
        return encoded.encode("utf-8", "replace")
    if isinstance(encoded, (bytes, bytearray)):
        return bytes(encoded)
    return str(encoded).encode()


def encode_multipart(fields: Any, files: Any) -> Tuple[str, bytes]:
    """The content type and the body of a form with files.

    A field is as of a form: values may be lists, and None leaves one out. A file is its content (text, bytes, something with read()),
    a tuple (name, content[, type]), or {name: content}. Errors: TypeError for a field that is a mapping, or a list within a list.
    """
    parts: List[Tuple[str, bytes]] = []
    for name, values in _items(fields or {}):
        if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__iter__"):
            values = [values]
        for value in values:
            if hasattr(value, "__iter__") and not isinstance(value, (str, bytes)):
                raise TypeError(f"data[{name!r}]: a field of a form with files is text, a number or a list of them")
            if value is not None:
                parts.append((f'form-data; name="{_in_quotes(name)}"', encode_body(_form_text(value))))
    for name, file in _items(files):
        for file_name, content, kind in _files(name, file):
            header = f'form-data; name="{_in_quotes(name)}"; filename="{_in_quotes(file_name)}"'
            parts.append((header + (f"\r\nContent-Type: {kind}" if kind else ""), content))
    # From the content, so that the same form is always the same body.
    boundary = hashlib.sha256(b"\0".join(header.encode() + content for header, content in parts)).hexdigest()[:32]
    body = b"".join(
        f"--{boundary}\r\nContent-Disposition: {header}\r\n\r\n".encode() + content + b"\r\n" for header, content in parts
    )
    return f"multipart/form-data; boundary={boundary}", body + f"--{boundary}--\r\n".encode()


def content_type_of(file_name: str) -> str:
    return mimetypes.guess_type(file_name)[0] or "application/octet-stream"


def _items(data: Any) -> Iterable[Tuple[Any, Any]]:
    items = list(data.items() if isinstance(data, Mapping) or hasattr(data, "items") else data)
    if any(isinstance(each, (str, bytes)) for each in items):
        raise TypeError("data: a mapping, or pairs of a name and a value")
    return items


def _form_text(value: Any) -> Data:
    return value if isinstance(value, (str, bytes)) else str(value)


def _in_quotes(name: Any) -> str:
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
    return text.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")


def _files(name: Any, file: Any) -> List[Tuple[str, bytes, Optional[str]]]:
    if isinstance(file, Mapping):
        return [(str(key), encode_body(content), None) for key, content in file.items()]
    if isinstance(file, (tuple, list)):
        kind = file[2] if len(file) > 2 else None
        return [(str(file[0]), encode_body(file[1]), kind)]
    return [(str(getattr(file, "name", None) or name).rpartition("/")[2], encode_body(file), None)] if file is not None else []
