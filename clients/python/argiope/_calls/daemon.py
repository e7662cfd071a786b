"""The daemon: what happens in it, who works for it, and how it is."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Union

from .._wire import Call
from ._requests import Delay, Page, When, as_api, call, given, json_of, member, milliseconds, nothing, page_of, path, query, time_text


def events(kinds: Optional[Sequence[str]] = None, queue: Optional[str] = None) -> Call[None]:
    return call("GET", "/v1/events" + query(kinds=kinds, queue=queue), nothing)


def counters() -> Call[Dict[str, Any]]:
    """The counts and rates of all queues, and of the daemon."""
    return call("GET", "/v1/counters", json_of)


def workers() -> Call[List[Dict[str, Any]]]:
    """{"name","who","queues","leases","waiting","seen_at"} of each worker; `who`: the name of the token that asks.

    The first 1,000 by name: workers_page() goes on.
    """
    return call("GET", "/v1/workers", member("workers"))


def workers_page(*, after: Optional[str] = None, limit: Optional[int] = None) -> Call[Page]:
    return call("GET", "/v1/workers" + query(after=after, limit=limit), page_of("workers"))


def end_worker(worker: str) -> Call[int]:
    """Ends a worker's leases now, as if it had died; gives how many. Without scope admin: those of this token's worker."""
    return call("DELETE", path("workers", worker), member("ended"))


def hosts(
    *,
    filter: Optional[str] = None,
    doing: Optional[str] = None,
    project: Optional[str] = None,
    after: Union[int, str, None] = None,
    limit: Optional[int] = None,
) -> Call[Page]:
    """Hosts that projects have pages at: what each is doing, and why. `filter`: a piece of the site.

    `doing`: "ready", "busy", "waiting" or "resting". An answer may have fewer than `limit`, or none, and still a next.
    """
    return call("GET", "/v1/hosts" + query(filter=filter, doing=doing, project=project, after=after, limit=limit), page_of("hosts"))


def explain_host(site: str) -> Call[Dict[str, Any]]:
    """Why nothing is asked of a host now, and when something will be. `site`: as "https://shop.example", or a URL of it."""
    return call("GET", path("hosts", "explain") + query(site=site), json_of)


def config() -> Call[Dict[str, Any]]:
    """What is in force, without secrets, and which names the configuration file locks."""
    return call("GET", "/v1/config", json_of)


def audit_page(*, after: Union[int, str, None] = None, limit: Optional[int] = None) -> Call[Dict[str, Any]]:
    """One page of who changed what."""
    return call("GET", "/v1/audit" + query(after=after, limit=limit), json_of)


def simulate(
    *,
    span: Optional[Delay] = None,
    queues: Optional[Sequence[Dict[str, Any]]] = None,
    schedules: Optional[Sequence[Dict[str, Any]]] = None,
    without_schedules: Optional[Sequence[str]] = None,
    waiting: Optional[bool] = None,
    seed: Optional[int] = None,
    zone: Optional[str] = None,
) -> Call[Dict[str, Any]]:
    """How queues and schedules would fare for `span` (seconds, or a timedelta) from now, a day unless told, with those changes."""
    body = given(
        for_ms=None if span is None else milliseconds(span),
        queues=as_api(queues),
        schedules=as_api(schedules),
        without_schedules=without_schedules,
        waiting=waiting,
        seed=seed,
        zone=zone,
    )
    return call("POST", "/v1/simulate", json_of, body, safe=True)


def notify() -> Call[List[Dict[str, Any]]]:
    """Who is told when something is wrong: {"name","gathered","lasting","messages","last_at"}."""
    return call("GET", "/v1/notify", member("notify"))


def test_notify(notify: str) -> Call[int]:
    """Sends a message that says that it is a test; gives the job that sends it."""
    return call("POST", path("notify", notify, "test"), member("job"))


def history(
    queue: Optional[str] = None, *, since: Optional[When] = None, until: Optional[When] = None, step: Optional[int] = None
) -> Call[Dict[str, Any]]:
    """What was counted over the last hour (`step` 10 seconds) or day (300), as columns; of all queues unless told."""
    times = {"from": None if since is None else time_text(since), "to": None if until is None else time_text(until)}
    return call("GET", "/v1/history" + query(queue=queue, step=step, **times), json_of)


def version() -> Call[Dict[str, Any]]:
    return call("GET", "/v1/version", json_of)


def metrics() -> Call[str]:
    """Prometheus' text."""
    return call("GET", "/metrics", lambda r: r.body.decode())


def health() -> Call[Dict[str, Any]]:
    """{"status":"ok"}: it lives. Errors: Unavailable."""
    return call("GET", "/healthz", json_of)


def ready() -> Call[Dict[str, Any]]:
    """{"status":"ok"}: the store can write, schedules are loaded, it does not drain. Errors: Unavailable."""
    return call("GET", "/readyz", json_of)
