"""data: URLs."""
from base64 import b64decode, b64encode
from urllib.parse import quote, unquote_to_bytes


def encode(data, mime_type="", charset="utf-8", base64=True):
    is_text = isinstance(data, str)
    content = data.encode(charset) if is_text else bytes(data)
    kind = mime_type + (f";charset={charset}" if is_text and charset else "") + (";base64" if base64 else "")
    return f"data:{kind},{b64encode(content).decode() if base64 else quote(content)}"


def decode(data_url):
    """Text where the URL names a charset or is not in base64, else bytes."""
    head, _, data = data_url.rpartition(",")
    kind = head.partition("data:")[2].split(";")
    content = b64decode(data) if kind[-1] == "base64" else unquote_to_bytes(data)
    for part in kind:
        if part.startswith("charset="):
            return content.decode(part[8:])
    return content if kind[-1] == "base64" else content.decode("utf-8", "replace")
