"""Projects: crawls that go on (docs/projects.md)."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Union

from .._wire import Call
from ._requests import Page, body_of, call, given, json_of, member, new_key, nothing, page_of, path, query

_LONGEST_TRY = 70.0  # seconds: the daemon's limit, and some


def list_all() -> Call[List[Dict[str, Any]]]:
    """All projects, with what they are doing and their counts."""
    return call("GET", "/v1/projects", member("projects"))


def get(project: str) -> Call[Dict[str, Any]]:
    """The same of one, with its definition, history of visits, rounds, alarms, rules, coverage of fields and sinks. Errors: NotFound."""
    return call("GET", path("projects", project), json_of)


def set(project: str, definition: Dict[str, Any]) -> Call[Dict[str, Any]]:
    """Makes it, or a new version of it: the members of its file as a dict, or {"source": TOML, "script": …, "note": …}.

    Errors: InvalidInput; Conflict where the configuration file decides, or a project of that name can still be restored.
    """
    return call("PUT", path("projects", project), json_of, definition)


def change(project: str, **members: Any) -> Call[Dict[str, Any]]:
    """Changes what is beside its file: `status`, `rate`, `burst` (None: as the file says), `group`."""
    return call("PATCH", path("projects", project), json_of, members)


def delete(project: str) -> Call[None]:
    """For 24 hours it can be restored. Errors: NotFound."""
    return call("DELETE", path("projects", project), nothing)


def restore(project: str) -> Call[Dict[str, Any]]:
    return call("POST", path("projects", project, "restore"), json_of, {}, key=new_key())


def start(project: str) -> Call[Dict[str, Any]]:
    """Begins a round; while one is under way, its starts belong to that."""
    return call("POST", path("projects", project, "start"), json_of, {}, key=new_key())


def resume(project: str) -> Call[Dict[str, Any]]:
    """Ends a pause after failures."""
    return call("POST", path("projects", project, "resume"), json_of, {}, key=new_key())


def versions(project: str, limit: Optional[int] = None) -> Call[List[Dict[str, Any]]]:
    """What its file and script were, newest first; version() has the texts."""
    return call("GET", path("projects", project, "versions") + query(limit=limit), member("versions"))


def version(project: str, number: int) -> Call[Dict[str, Any]]:
    return call("GET", path("projects", project, "versions", str(number)), json_of)


def roll_back(project: str, number: int) -> Call[Dict[str, Any]]:
    """Makes a new version that is as an old one was."""
    return call("POST", path("projects", project, "roll-back"), json_of, {"version": number}, key=new_key())


def pages(
    project: str,
    *,
    state: Optional[str] = None,
    rule: Optional[str] = None,
    filter: Optional[str] = None,
    after: Union[int, str, None] = None,
    limit: Optional[int] = None,
) -> Call[Page]:
    """Its pages, by number. `state`: "waiting", "visiting", "done", "failed" or "cancelled". `filter`: text in the URL or name."""
    wanted = query(state=state, rule=rule, filter=filter, after=after, limit=limit)
    return call("GET", path("projects", project, "pages") + wanted, page_of("pages"))


def page(project: str, page: str) -> Call[Dict[str, Any]]:
    """One page, by its name, with all that is known of it. Errors: NotFound."""
    return call("GET", path("projects", project, "pages", "one") + query(page=page), json_of)


def ask(project: str, page: Dict[str, Any]) -> Call[Dict[str, Any]]:
    """Asks for a page ("A page" in docs/processors.md), or with {"pages": […]} for several; gives what becomes of each."""
    return call("POST", path("projects", project, "pages"), json_of, page, key=new_key())


def send_message(project: str, message: Any, url: Optional[str] = None) -> Call[str]:
    """Sends `message`, anything that JSON has, to the project's script; `url`: what its result is called. Gives the name of its page.

    Errors: InvalidInput where the script takes no messages.
    """
    sent = {"message": message, **given(url=url)}
    return call("POST", path("projects", project, "messages"), member("page"), sent)


def try_page(
    url: Optional[str] = None,
    *,
    project: Optional[str] = None,
    source: Optional[str] = None,
    script: Optional[str] = None,
    rule: Optional[str] = None,
    data: Any = None,
    page: Optional[Dict[str, Any]] = None,
    save: Any = None,
    response: Optional[str] = None,
) -> Call[Dict[str, Any]]:
    """Visits a page as `project` would, or one of the TOML `source` and the `script`, and gives what came of it; nothing is stored.

    `page` takes the place of `url`, `rule` and `data`: a page as ask() has it, such as a follow's "page". `response` is the "id" of an
    answer's "response": what was kept of it is read again, and nothing is fetched (NotFound: it is kept no more). That the page cannot be fetched or read is in "error" and "failure". Errors: InvalidInput, NotFound, TooMany.
    """
    asked = given(url=url, project=project, source=source, script=script, rule=rule, data=data, page=page, save=save, response=response)
    return call("POST", "/v1/projects/try", json_of, asked, key=new_key(), wait=_LONGEST_TRY)


def explain(project: str, page: str) -> Call[Dict[str, Any]]:
    """Why a page is not visited now, and when it will be."""
    return call("GET", path("projects", project, "pages", "explain") + query(page=page), json_of)


def recent(project: str) -> Call[List[Dict[str, Any]]]:
    """Visits that ended lately, newest first."""
    return call("GET", path("projects", project, "recent"), member("visits"))


def results(
    project: str,
    *,
    rule: Optional[str] = None,
    page: Optional[str] = None,
    after: Optional[str] = None,
    limit: Optional[int] = None,
) -> Call[Page]:
    """Its results, by page and part; of pages with that rule, or of the page of that name."""
    wanted = query(rule=rule, page=page, after=after, limit=limit)
    return call("GET", path("projects", project, "results") + wanted, page_of("results"))


def export(project: str, format: str = "jsonl", *, rule: Optional[str] = None) -> Call[bytes]:
    """All of them, as one text: "jsonl", "csv" or "array", a JSON array."""
    return call("GET", path("projects", project, "results") + query(format=format, rule=rule), body_of)


def feed(
    project: str,
    *,
    after: Union[int, str, None] = None,
    order: Optional[str] = None,
    before: Union[int, str, None] = None,
    limit: Optional[int] = None,
) -> Call[Page]:
    """What became of results, in its order: `after` is the number of the last one that is known.

    With `order` "newest" what came last is first, and `before` is the number of the last one that was seen.
    """
    wanted = query(after=after, order=order, before=before, limit=limit)
    return call("GET", path("projects", project, "feed") + wanted, page_of("feed"))
