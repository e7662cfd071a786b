"""Schedules."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Union

from .._wire import Call
from ._requests import (
    JobRef,
    Page,
    When,
    as_api,
    body_of,
    call,
    given,
    json_of,
    member,
    new_key,
    nothing,
    page_of,
    path,
    query,
    time_text,
)
from ._theirs import OF_A_SCHEDULE, refusal, refuse_function
from ._zones import tell_zone

_OF_ITS_JOB = ("queue", "payload", "function", "key", "priority", "max_attempts")


def page(*, after: Union[int, str, None] = None, limit: Optional[int] = None) -> Call[Page]:
    """One page of schedules."""
    return call("GET", "/v1/schedules" + query(after=after, limit=limit), page_of("schedules"))


def add(
    schedule: Union[str, Dict[str, Any]],
    trigger: Any = None,
    *,
    conflict: str = "fail",
    **members: Any,
) -> Call[Dict[str, Any]]:
    """Adds a schedule (docs/schedules.md), whole, {"name","trigger","job" …}; or by its name, a trigger (docs/cron.md), and
    its jobs' `queue`: add("nightly", "30 3 * * *", queue="mail"). `members`: of its jobs `payload`, `function`, `key`, `priority`,
    `max_attempts`; any others are the schedule's. `conflict`: what to do where there is one of that name: "fail" (Conflict),
    "keep" it, or "replace" it, as a program does that declares its schedules at each start.

    Times of day are UTC where the trigger names no zone, which is logged (logger "argiope", warning); {"type":"cron",
    "expression":"30 3 * * *","zone":"Europe/Berlin"} or "TZ=Europe/Berlin 30 3 * * *" names one.

    Gives {"id","outcome"}. Errors: InvalidInput, Conflict; TypeError for both forms at once, and for options of other schedulers, which names ours.
    """
    refuse_function(schedule, "the schedule")
    if isinstance(schedule, str):
        schedule = _by_name(schedule, trigger, members)
    elif trigger is not None or members:
        raise TypeError("a whole schedule has its trigger, queue and payload in itself")
    tell_zone(schedule.get("name"), schedule.get("trigger"))
    return call("POST", "/v1/schedules" + query(conflict=conflict), json_of, as_api(schedule), key=new_key(), advice=_IF_THERE)


_IF_THERE = {"conflict": 'conflict="replace" takes its place, and conflict="keep" leaves it'}


def _refuse_theirs(members: Dict[str, Any]) -> None:
    for option in members.keys() & OF_A_SCHEDULE.keys():
        raise refusal("a schedule", option, OF_A_SCHEDULE)
    if isinstance(members.get("coalesce"), bool):
        raise TypeError('coalesce is "latest" (APScheduler\'s True), "earliest" or "all" (its False)')


def _by_name(name: str, trigger: Any, members: Dict[str, Any]) -> Dict[str, Any]:
    _refuse_theirs(members)
    job = {**members.pop("job", {}), **given(**{each: members.pop(each, None) for each in _OF_ITS_JOB})}
    if trigger is None or "queue" not in job:
        raise TypeError(f'the schedule {name!r} needs a trigger and a queue: add("nightly", "30 3 * * *", queue="mail")')
    return {"name": name, "trigger": trigger, "job": job, **members}


def get(schedule: JobRef) -> Call[Dict[str, Any]]:
    """The schedule and where it stands. Errors: NotFound."""
    return call("GET", path("schedules", schedule), json_of)


def set(name: str, schedule: Dict[str, Any]) -> Call[Dict[str, Any]]:
    """Adds or replaces it; zones as for add(). Errors: InvalidInput; Conflict where the configuration file decides."""
    tell_zone(name, schedule.get("trigger"))
    return call("PUT", path("schedules", name), json_of, as_api(schedule))


def change(schedule: JobRef, **members: Any) -> Call[Dict[str, Any]]:
    """Changes these members; a new trigger begins now. Errors: InvalidInput; TypeError as of add()."""
    _refuse_theirs(members)
    return call("PATCH", path("schedules", schedule), json_of, as_api(members))


def delete(schedule: JobRef) -> Call[None]:
    """Its jobs stay. Errors: NotFound."""
    return call("DELETE", path("schedules", schedule), nothing)


def pause(schedule: JobRef, by: Optional[str] = None) -> Call[Dict[str, Any]]:
    return call("POST", path("schedules", schedule, "pause"), json_of, given(by=by), key=new_key())


def resume(schedule: JobRef, start: str = "now") -> Call[Dict[str, Any]]:
    """`start`: "now", or "where_it_was", which makes up for what was missed."""
    return call("POST", path("schedules", schedule, "resume"), json_of, {"from": start}, key=new_key())


def run(schedule: JobRef) -> Call[int]:
    """Puts its job now; gives the job's id. When its answer is lost, it is not sent again: that could be a second run."""
    return call("POST", path("schedules", schedule, "run"), member("job"))


def history(schedule: JobRef, limit: Optional[int] = None) -> Call[List[Dict[str, Any]]]:
    """Its last runs, and what was missed or skipped."""
    return call("GET", path("schedules", schedule, "history") + query(limit=limit), member("runs"))


def explain(schedule: JobRef) -> Call[Dict[str, Any]]:
    return call("GET", path("schedules", schedule, "explain"), json_of)


def output(schedule: JobRef) -> Call[bytes]:
    """What its last run has left. Errors: NotFound, also where there is nothing."""
    return call("GET", path("schedules", schedule, "output"), body_of)


def next(schedule: JobRef, count: int = 10) -> Call[List[Dict[str, Any]]]:
    """Its next planned times: {"at","local","note"}."""
    return call("GET", path("schedules", schedule, "next") + query(count=count), member("times"))


def next_times(trigger: Any, count: int = 10, *, after: Optional[When] = None) -> Call[List[Dict[str, Any]]]:
    """The same of a trigger that is being written. Errors: InvalidInput."""
    body = given(trigger=as_api(trigger), count=count, after=None if after is None else time_text(after))
    return call("POST", "/v1/next", member("times"), body, safe=True)
