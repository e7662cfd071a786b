"""BaseHandler and its decorators: what a script is made of. They are pyspider's, name by name."""
from __future__ import annotations

import functools
import inspect
import logging
import math
import types
from functools import reduce
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple, TypeVar, Union

from ._curl import curl_to_arguments
from ._pages import (
    FETCH, LONGEST_NAME, OF_THE_PAGE, PROCESS, SCHEDULE, as_task, check_keywords, encode_data, md5string, page_members, with_defaults,
)  # fmt: skip
from ._response import Response
from ._urls import build_url, quote_non_ascii, resolve
from ._values import plain

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_RULE = "__call__"
MESSAGE_URL = "data:,on_message"


class NOTSET:
    pass


def catch_status_code_error(function: F) -> F:
    """The callback also gets what is no success: statuses from 400 on, 304, and requests without an answer."""
    function._catch_status_code_error = True  # type: ignore[attr-defined]
    return function


def not_send_status(function: F) -> F:
    """Does nothing here: each visit has its outcome. For scripts that name it."""
    function._not_send_status = True  # type: ignore[attr-defined]
    return function


def config(_config: Optional[Dict[str, Any]] = None, **keywords: Any) -> Callable[[F], F]:
    """What crawl() does for this callback unless it is told otherwise; its keywords. Errors: TypeError for others."""
    given = {**(_config or {}), **keywords}
    check_keywords(given)

    def set_config(function: F) -> F:
        function._config = given  # type: ignore[attr-defined]
        return function

    return set_config


def every(minutes: Any = NOTSET, seconds: Any = NOTSET) -> Any:
    """Called every so many minutes and seconds, one minute unless told: `@every`, `@every(minutes=5)`, `@every(seconds=30)`.

    Errors: ValueError below a second.
    """

    def set_tick(function: F) -> F:
        function.is_cronjob, function.tick = True, tick  # type: ignore[attr-defined]
        return function

    if inspect.isfunction(minutes):
        tick = 60
        return set_tick(minutes)
    given = [(0 if each is NOTSET else each) for each in (minutes, seconds)]
    tick = 60 if minutes is NOTSET and seconds is NOTSET else given[0] * 60 + given[1]
    if tick < 1:
        raise ValueError(f"every({tick} s): at least one second")
    return set_tick


class Visit:
    """What a page gives while its callback runs."""

    def __init__(self) -> None:
        self.pages: List[Dict[str, Any]] = []
        self.tasks: List[Dict[str, Any]] = []
        self.results: Optional[List[Dict[str, Any]]] = None
        self.messages: List[Dict[str, Any]] = []
        self._known: Set[str] = set()

    def add_page(self, page: Dict[str, Any], task: Dict[str, Any]) -> None:
        """The first of a name counts, as in pyspider."""
        key = str(task["taskid"])
        if key not in self._known:
            self._known.add(key)
            self.pages.append(page)
            self.tasks.append(task)

    def add_result(self, value: Any, part: str) -> None:
        if self.results is None:
            self.results = []
        self.results.append({"part": part, "value": plain(value)} if part else {"value": plain(value)})


class BaseHandler:
    """The base of every script's class.

    Callbacks are methods that take a response, or nothing, or a response and its task. What they return is the page's result;
    a generator gives one for each value. While one runs, `self.response`, `self.task` and `self.save` (a dict that the page
    keeps for its next visit) are there.
    """

    crawl_config: Dict[str, Any] = {}
    project_name: Optional[str] = None
    project: Dict[str, Any] = {}
    retry_delay: Any = {}
    logger: logging.Logger = logging.getLogger("argiope.script")
    __env__: Dict[str, Any] = {"not_inited": True}
    task: Any = None
    response: Any = None
    save: Any = None
    _visit: Optional[Visit] = None
    _part = ""
    _cron_jobs: List[Any] = []
    _min_tick: float = 0

    schedule_fields, fetch_fields, process_fields = SCHEDULE, FETCH, PROCESS

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        found = (inspect.getattr_static(cls, name) for name in dir(cls))
        cls._cron_jobs = [each for each in found if inspect.isfunction(each) and getattr(each, "is_cronjob", False)]
        whole = [each.tick for each in cls._cron_jobs]
        cls._min_tick = (
            reduce(math.gcd, whole) if all(isinstance(tick, int) for tick in whole) and whole else min(whole, default=0)
        )

    # For scripts to call.

    def crawl(self, url: Union[str, Iterable[str], None], **keywords: Any) -> Any:
        """Asks for a page, or for several; a curl command is a URL, too. Relative URLs are those of the page under way.

        callback: the method that gets the answer, or its name.
        age, priority, exetime, retries, itag, auto_recrawl, force_update, cancel, taskid: when, and whether, it is visited.
        method, params, data, files, user_agent, headers, cookies, connect_timeout, timeout, allow_redirects, max_redirects,
        validate_cert, proxy, etag, last_modified, robots_txt: the request.
        fetch_type="js", js_script, js_run_at, js_viewport_width, js_viewport_height, load_images: rendered by a browser.
        save: comes with the answer as response.save. process_time_limit: seconds for the callback.

        Gives the task, or a list of tasks. None is passed over, and the log says so. Errors: TypeError for other keywords, NotImplementedError for a callback that is none.
        """
        if isinstance(url, str) and url.split(None, 1)[:1] == ["curl"]:
            given = curl_to_arguments(url.strip())
            urls = given.pop("urls")
            return [self._crawl(each, with_defaults(keywords, given)) for each in urls]
        if isinstance(url, str):
            return self._crawl(url, keywords)
        if url is None:  # of a selector that has found nothing: pyspider passes it over in silence
            self.logger.warning("crawl(None): there is no URL, and nothing was asked for")
            return None
        if hasattr(url, "__iter__"):
            return [self._crawl(each, keywords) for each in url]
        raise TypeError(f"crawl({url!r}): a URL, or several")

    def send_message(self, project: str, msg: Any, url: str = MESSAGE_URL) -> None:
        """Calls on_message() of another project, or of this one. Of messages with one `url` that wait, the last counts."""
        visit = self._require_visit("send_message")
        visit.messages.append({"project": str(project), "message": plain(msg), "url": str(url)})

    def is_debugger(self) -> bool:
        """Whether one page is tried, and nothing of it is stored. Status DEBUG is `self.__env__["debug"]`."""
        return bool(self.__env__.get("debugger"))

    # For scripts to override.

    def get_taskid(self, task: Dict[str, Any]) -> str:
        """What makes a page this page: by default its URL."""
        return md5string(task["url"])

    def on_message(self, project: str, msg: Any) -> Any:
        """Another project has called send_message()."""

    def on_result(self, result: Any) -> Any:
        """Each result; this one gives it to Argiope, unless it is empty."""
        if result:
            if self._visit is None:
                raise RuntimeError("on_result() outside of a callback")
            self._visit.add_result(result, self._part)

    def on_finished(self, response: Response, task: Dict[str, Any]) -> Any:
        """All pages that a start has led to are done."""

    # How.

    def _require_visit(self, what: str) -> Visit:
        if self._visit is None:
            raise RuntimeError(f"{what}() outside of a callback")
        return self._visit

    def _crawl(self, url: str, keywords: Mapping[str, Any]) -> Dict[str, Any]:
        visit = self._require_visit("crawl")
        if not isinstance(url, str):
            raise TypeError(f"crawl({url!r}): a URL is text")
        check_keywords(keywords)
        given = dict(keywords)
        rule, function = self._rule_of(given.pop("callback", None) or self.crawl_config.get("callback"))
        merged = with_defaults(given, getattr(function, "_config", {}))
        for name in SCHEDULE + ("save",):
            if name in self.crawl_config:
                merged.setdefault(name, self.crawl_config[name])
        base = self.response.url if self.response is not None else None
        url = quote_non_ascii(build_url(resolve(url.strip(), base), merged.pop("params", None)))
        has_files = bool(merged.get("files"))
        has_data = has_files or bool(given.get("data"))
        merged = encode_data({**merged, "callback": rule})
        task = as_task(self.project_name or "", url, merged.pop("taskid", None), merged)
        page: Dict[str, Any] = {"url": url, "rule": rule}
        page_name = self._name_of(task, url)
        if page_name:
            page["name"] = page_name
        own = {key: value for key, value in given.items() if key not in ("params", "files", "taskid", "data")}
        own.update({key: merged[key] for key in OF_THE_PAGE if key in merged})
        if has_data:
            own.update({key: merged[key] for key in ("data", "method") if key in merged})
        if has_files:
            own["headers"] = merged["headers"]
        page.update(page_members(own))
        visit.add_page(page, task)
        return task

    def _rule_of(self, callback: Any) -> Tuple[str, Any]:
        if not callback:
            return DEFAULT_RULE, getattr(self, DEFAULT_RULE, None)
        name = callback if isinstance(callback, str) else getattr(callback, "__name__", None)
        function = getattr(self, name, None) if name else None
        if not callable(function):
            raise NotImplementedError(f"self.{name or callback}() not implemented!")
        return str(name), function

    def _name_of(self, task: Dict[str, Any], url: str) -> Optional[str]:
        """The page's name, where it is not the URL; a fragment tells pages apart, as in pyspider."""
        if task["taskid"] is None:
            task["taskid"] = self.get_taskid(task)
            if task["taskid"] == md5string(url):
                return self._short(url) if "#" in url else None
        name = str(plain(task["taskid"] if isinstance(task["taskid"], (str, bytes)) else str(task["taskid"])))
        return self._short(name)

    @staticmethod
    def _short(name: str) -> str:
        return name if len(name.encode()) <= LONGEST_NAME else md5string(name)

    @staticmethod
    def task_join_crawl_config(task: Dict[str, Any], crawl_config: Mapping[str, Any]) -> Dict[str, Any]:
        """The task with what crawl_config adds to its request and its callback."""
        for part, names in (("fetch", FETCH), ("process", PROCESS)):
            defaults = {name: crawl_config[name] for name in names if name in crawl_config}
            joined = with_defaults(task.get(part) or {}, defaults)
            if joined:
                task[part] = joined
        return task

    # pyspider's own callbacks, for tasks of pyspider's that name them.

    def _on_message(self, response: Response) -> Any:
        project, msg = response.save
        return self.on_message(project, msg)

    def _on_cronjob(self, response: Response, task: Dict[str, Any]) -> None:
        tick = response.save.get("tick") if isinstance(response.save, dict) else None
        for each in self._cron_jobs if tick is not None else ():
            if tick % each.tick == 0:
                call_with(each.__get__(self, type(self)), (response, task))

    def _on_get_info(self, response: Response, task: Dict[str, Any]) -> None:
        known = {"min_tick": self._min_tick, "retry_delay": as_delays(self.retry_delay), "crawl_config": self.crawl_config}
        for name in response.save or ():
            if name in known:
                self.save[name] = known[name]


def as_delays(given: Any) -> Dict[Any, Any]:
    """retry_delay may be one number, which is meant for all retries."""
    return dict(given) if isinstance(given, Mapping) else {"": given}


def call_with(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """With as many of the arguments as it takes; all but the last where it takes any number."""
    if type(function) is types.MethodType and type(function.__func__) is types.FunctionType:
        takes = _taken_by_method(function.__func__)
    else:
        takes = _taken_by(function)
    return function(*arguments[: max(1, len(arguments) - 1) if takes is None else takes])


def _taken_by(function: Callable[..., Any]) -> Optional[int]:
    """How many arguments by position; None: any number, or nobody knows."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return None
    return sum(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters)


@functools.lru_cache(maxsize=1000)
def _taken_by_method(function: types.FunctionType) -> Optional[int]:
    """Without its first. Kept, because to find it out takes longer than most callbacks."""
    return _taken_by(types.MethodType(function, function))  # bound to whatever
