"""crawl()'s keywords, as the protocol's pages say them, and back as the task that a callback may look at."""
from __future__ import annotations

import base64
import datetime
import hashlib
import json
from typing import Any, Callable, Dict, Iterable, Mapping, Optional
from urllib.parse import urldefrag

from ._urls import encode_body, encode_multipart
from ._values import plain

SCHEDULE = ("priority", "retries", "exetime", "age", "itag", "force_update", "auto_recrawl", "cancel")
FETCH = (
    "method", "headers", "user_agent", "data", "connect_timeout", "timeout", "allow_redirects", "cookies", "proxy", "etag",
    "last_modifed", "last_modified", "save", "js_run_at", "js_script", "js_viewport_width", "js_viewport_height", "load_images",
    "fetch_type", "use_gzip", "validate_cert", "max_redirects", "robots_txt",
)  # fmt: skip
PROCESS = ("callback", "process_time_limit")
KEYWORDS = frozenset(SCHEDULE + FETCH + PROCESS + ("params", "files", "taskid"))
# What belongs to one page, so that it is said with the page also where it comes from a @config or crawl_config.
OF_THE_PAGE = ("exetime", "force_update", "cancel", "save", "callback")
LONGEST_NAME = 1000
# Headers that scripts have copied from a browser, and that only who sends the request can say.
OF_THE_CONNECTION = frozenset(
    (
        "host",
        "content-length",
        "connection",
        "proxy-connection",
        "keep-alive",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "expect",
    )
)
DEFAULT_PROXY_PORT = 8080
ACTIVE = 1  # the status of a task that is being visited


def md5string(value: Any) -> str:
    return hashlib.md5(value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")).hexdigest()


def check_keywords(given: Iterable[str]) -> None:
    unknown = sorted(set(given) - KEYWORDS)
    if unknown:
        raise TypeError(f"crawl() got unexpected keyword argument: {', '.join(unknown)}")


def with_defaults(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> Dict[str, Any]:
    """What is given counts, also name by name in headers and cookies."""
    both = dict(given)
    for name, value in defaults.items():
        if isinstance(value, Mapping) and isinstance(both.get(name), Mapping):
            # Their order makes URLs: what is given comes first.
            both[name] = {**both[name], **{key: inner for key, inner in value.items() if key not in both[name]}}
        else:
            both.setdefault(name, value)
    return both


def encode_data(given: Dict[str, Any]) -> Dict[str, Any]:
    """Forms and files become a body, with its Content-Type and method; everything else stays."""
    files = given.pop("files", None)
    if files:
        data = given.get("data") or {}
        if not isinstance(data, (Mapping, list, tuple)):
            raise TypeError("data must be a dict where there are files")
        kind, given["data"] = encode_multipart(data, files)
        given["headers"] = {**(given.get("headers") or {}), "Content-Type": kind}
    elif given.get("data"):
        given["data"] = encode_body(given["data"])
    if given.get("data"):
        given.setdefault("method", "POST")
    return given


def page_members(given: Mapping[str, Any]) -> Dict[str, Any]:
    """Of what a page, a rule or the defaults may say, in the protocol's words; encode_data() has been there.

    Errors: ValueError, TypeError for what has the wrong type.
    """
    page: Dict[str, Any] = {}
    for name, value in given.items():
        translate = _MEMBERS.get(name)
        if translate is not None:
            translate(page, value)
    request = _request(given)
    if request:
        page["request"] = request
    return page


def _milliseconds(seconds: Any) -> int:
    return max(0, round(float(seconds) * 1000))


def _age(page: Dict[str, Any], value: Any) -> None:
    page["age_ms"] = None if value is None or float(value) < 0 else _milliseconds(value)


def _due(page: Dict[str, Any], value: Any) -> None:
    if value:
        page["due_at"] = _rfc3339(float(value))


def _rfc3339(seconds: float) -> str:
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds") + "Z"


def _seconds_of(moment: str) -> int:
    """Of a time in UTC as the protocol writes it, whatever fraction it has."""
    return int(datetime.datetime.fromisoformat(moment[:19] + "+00:00").timestamp())


def _tag(page: Dict[str, Any], value: Any) -> None:
    page["tag"] = value if value is None or isinstance(value, str) else json.dumps(plain(value), sort_keys=True)


def _time_limit(page: Dict[str, Any], value: Any) -> None:
    if value:
        page["time_limit_ms"] = max(1, _milliseconds(value))


def _member(name: str, convert: Callable[[Any], Any]) -> Callable[[Dict[str, Any], Any], None]:
    def set_member(page: Dict[str, Any], value: Any) -> None:
        if value is not None:
            page[name] = convert(value)

    return set_member


_MEMBERS: Dict[str, Callable[[Dict[str, Any], Any], None]] = {
    "priority": _member("priority", int),
    "retries": _member("retries", int),
    "exetime": _due,
    "age": _age,
    "itag": _tag,
    "force_update": _member("force", bool),
    "auto_recrawl": _member("recrawl", bool),
    "cancel": _member("cancel", bool),
    "process_time_limit": _time_limit,
    "save": _member("context", plain),
}


def _request(given: Mapping[str, Any]) -> Dict[str, Any]:
    request: Dict[str, Any] = {}
    headers = {
        str(name): _text(value)
        for name, value in (given.get("headers") or {}).items()
        if value is not None and str(name).lower() not in OF_THE_CONNECTION
    }
    if given.get("user_agent"):
        headers = {name: value for name, value in headers.items() if name.lower() != "user-agent"}
        headers["User-Agent"] = str(given["user_agent"])
    if given.get("use_gzip") is False and not any(name.lower() == "accept-encoding" for name in headers):
        headers["Accept-Encoding"] = "identity"
    cookies = _cookies_of(headers)
    cookies.update({str(name): _text(value) for name, value in dict(given.get("cookies") or {}).items()})
    if headers:
        request["headers"] = headers
    if cookies:
        request["cookies"] = cookies
    if given.get("method"):
        request["method"] = str(given["method"]).upper()
    if given.get("data"):
        request.update(_body(encode_body(given["data"])))
    for keyword in ("timeout", "connect_timeout"):
        if given.get(keyword):
            request[keyword + "_ms"] = max(1, _milliseconds(given[keyword]))
    if given.get("allow_redirects") is False:
        request["redirects"] = 0
    elif given.get("max_redirects") is not None:
        request["redirects"] = max(0, int(given["max_redirects"]))
    if given.get("validate_cert") is not None:
        request["verify_certificate"] = bool(given["validate_cert"])
    if given.get("proxy") is not None:
        request["proxy"] = _proxy(given["proxy"])
    for keyword, names in (("etag", ("etag",)), ("last_modified", ("last_modified", "last_modifed"))):
        for name in names:
            if given.get(name) is not None:
                value = given[name]
                request[keyword] = value if isinstance(value, str) else bool(value)
                break
    if given.get("robots_txt") is not None:
        request["robots"] = bool(given["robots_txt"])
    render = _render(given)
    if render:
        request["render"] = render
    return request


def _cookies_of(headers: Dict[str, str]) -> Dict[str, str]:
    """Those of a header Cookie, which is taken out: beside it others are sent."""
    found: Dict[str, str] = {}
    for name in [name for name in headers if name.lower() == "cookie"]:
        for each in headers.pop(name).split(";"):
            key, sign, value = each.strip().partition("=")
            if sign and key:
                found[key] = value
    return found


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(plain(str(value)))


def _body(data: bytes) -> Dict[str, str]:
    try:
        return {"body": data.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(data).decode()}


def _proxy(value: Any) -> Any:
    if not isinstance(value, str):
        return None if value else False
    if not value:
        return False
    url = value if "://" in value else "http://" + value
    scheme, _, rest = url.partition("://")
    if ":" not in rest.rpartition("@")[2].rpartition("]")[2].rstrip("/"):
        url = f"{url.rstrip('/')}:{DEFAULT_PROXY_PORT}"
    return url


def _render(given: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    if given.get("fetch_type") not in ("js", "phantomjs", "splash", "puppeteer"):
        return None
    render: Dict[str, Any] = {"images": bool(given.get("load_images"))}
    if given.get("js_script"):
        render["script"] = str(given["js_script"])
    render["run_at"] = "start" if given.get("js_run_at") == "document-start" else "end"
    for keyword, name in (("js_viewport_width", "width"), ("js_viewport_height", "height")):
        if given.get(keyword):
            render[name] = int(given[keyword])
    return render


def as_task(project: str, url: str, taskid: Any, given: Mapping[str, Any]) -> Dict[str, Any]:
    """What crawl() gives back, and get_taskid() sees."""

    def part(names: Iterable[str]) -> Dict[str, Any]:
        return {name: given[name] for name in names if name in given}

    data = given.get("data")
    fetch = part(FETCH)
    if isinstance(data, bytes):
        fetch["data"] = data.decode("utf-8", "surrogateescape")
    if given.get("user_agent"):
        fetch["headers"] = {**(fetch.get("headers") or {}), "User-Agent": given["user_agent"]}
    return {
        "schedule": part(SCHEDULE),
        "fetch": fetch,
        "process": part(PROCESS),
        "project": project,
        "url": url,
        "taskid": taskid,
    }


def task_of_call(call: Mapping[str, Any]) -> Dict[str, Any]:
    """The task that a callback's third argument is, from a message `page`."""
    page: Mapping[str, Any] = call.get("page") or {}
    url, name = page.get("url", ""), page.get("name", "")
    request: Mapping[str, Any] = page.get("request") or {}
    schedule: Dict[str, Any] = {"retried": max(0, (page.get("attempt") or 1) - 1)}
    for member, keyword in (("priority", "priority"), ("retries", "retries"), ("tag", "itag"), ("recrawl", "auto_recrawl")):
        if member in page:
            schedule[keyword] = page[member]
    if "age_ms" in page:
        schedule["age"] = -1 if page["age_ms"] is None else page["age_ms"] / 1000
    fetch: Dict[str, Any] = {name: request[name] for name in ("method", "headers", "cookies", "proxy") if name in request}
    if "body" in request or "body_base64" in request:
        fetch["data"] = request.get("body") or base64.b64decode(request.get("body_base64") or "")
    if page.get("context") is not None:
        fetch["save"] = page["context"]
    process: Dict[str, Any] = {"callback": call.get("rule")}
    if "time_limit_ms" in page:
        process["process_time_limit"] = page["time_limit_ms"] / 1000
    task: Dict[str, Any] = {
        "taskid": md5string(url) if name in ("", url, urldefrag(url)[0]) else name,
        "project": call.get("project", ""),
        "url": url,
        "schedule": schedule,
        "fetch": fetch,
        "process": process,
        "status": ACTIVE,
        "track": {"save": call.get("save") or {}},
    }
    if page.get("last_at"):
        task["lastcrawltime"] = _seconds_of(page["last_at"])
    return task
