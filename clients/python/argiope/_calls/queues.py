"""Queues."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from .._wire import Call
from ._requests import When, as_api, call, given, json_of, member, new_key, nothing, path, query, time_text
from ._theirs import OF_A_QUEUE, refusal


def list_all(*, after: Optional[str] = None, limit: Optional[int] = None) -> Call[List[Dict[str, Any]]]:
    """By name: of very many the first 1,000, or those behind the name `after`."""
    return call("GET", "/v1/queues" + query(after=after, limit=limit), member("queues"))


def get(queue: str) -> Call[Dict[str, Any]]:
    """{"name","config","counts","locked"}. Errors: NotFound."""
    return call("GET", path("queues", queue), json_of)


def set(queue: str, **config: Any) -> Call[Dict[str, Any]]:
    """Gives a queue this configuration (docs/configuration.md, `[[queue]]`: `rate`, `key_concurrency`, `lease_time_ms` …), as the setup
    of a program does once. What is left out gets its default, also where the queue is there: a queue that a put made keeps its done
    jobs for a day, and keeps none after a set() without `keep_done`. change() leaves what it does not name. A span may be a timedelta.
    Makes the queue if need be. Errors: InvalidInput; Conflict where the configuration file decides."""
    return call("PUT", path("queues", queue), json_of, _configuration(config))


def change(queue: str, **config: Any) -> Call[Dict[str, Any]]:
    """Changes these members of a queue's configuration, and leaves the others. Errors: as set(), and NotFound."""
    return call("PATCH", path("queues", queue), json_of, _configuration(config))


def _configuration(config: Dict[str, Any]) -> Dict[str, Any]:
    for name in config.keys() & OF_A_QUEUE.keys():
        raise refusal("a queue", name, OF_A_QUEUE)
    return as_api(config)


def delete(queue: str) -> Call[None]:
    """Errors: NotFound; WrongState where jobs are in it."""
    return call("DELETE", path("queues", queue), nothing)


def pause(queue: str, until: Optional[When] = None) -> Call[Dict[str, Any]]:
    """Starts no more of its jobs, until resume() or that time."""
    body = given(until=None if until is None else time_text(until))
    return call("POST", path("queues", queue, "pause"), json_of, body, key=new_key())


def resume(queue: str) -> Call[Dict[str, Any]]:
    return call("POST", path("queues", queue, "resume"), json_of, key=new_key())


def kick(queue: str, limit: int = 1000) -> Call[int]:
    """Makes up to `limit` buried jobs ready, or, where there are none, delayed ones; gives how many.

    When its answer is lost, it is not sent again: that could be a second kick.
    """
    return call("POST", path("queues", queue, "kick"), member("kicked"), {"limit": limit})


def stats(queue: str) -> Call[Dict[str, Any]]:
    """Its counts; its rates over the last ten seconds; how long jobs waited and ran since the daemon began."""
    return call("GET", path("queues", queue, "stats"), json_of)
