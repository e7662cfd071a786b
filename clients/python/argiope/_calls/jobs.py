"""Jobs."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Union

from .._errors import ApiError
from .._wire import Call, Response, to_json
from ._requests import (
    Delay,
    JobRecord,
    JobRef,
    Page,
    When,
    as_api,
    body_of,
    bytes_text,
    call,
    due,
    given,
    json_of,
    member,
    milliseconds,
    new_key,
    nothing,
    page_of,
    path,
    query,
    time_text,
)
from ._theirs import OF_A_JOB, refusal, refuse_function

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class JobOptions(TypedDict, total=False):
        """The members of a new job, of which all but the queue may be missing (docs/jobs.md)."""

        id: Union[int, str]  # your own number or name: a second put of it changes nothing
        key: str  # what it is aimed at: limits also hold per key
        unique: str  # the only one of that name in its queue that has not ended
        unique_policy: str  # "keep", "replace" or "merge"
        run_again: bool
        priority: int  # higher first
        due_at: When
        delay: Delay  # from now, instead of due_at: seconds, or a timedelta
        function: str  # what a worker is to call; default: what it has for the queue
        max_attempts: int
        lease_time: Delay  # seconds, or a timedelta
        waits_for: Sequence[Union[int, str]]  # ids or names of jobs that have to end first
        if_failed: str  # "cancel" or "run": when one of those fails
        batch: Union[int, str]  # the completion that waits for this job, too


class PutReply(NamedTuple):
    """`outcome`: "added", "kept", "changed", "run_again" or "cancelled". `error`: why this one of many was refused."""

    id: Optional[int]
    outcome: str
    error: Optional[ApiError] = None


class PutReplies(NamedTuple):
    replies: List[PutReply]  # in the order of the jobs
    completion: Optional[PutReply]


class ChangeReply(NamedTuple):
    """`outcome`: "changed", or "asked" where a job runs that is to be cancelled."""

    id: int
    outcome: str
    error: Optional[ApiError] = None


def _error(reply: Dict[str, Any]) -> Optional[ApiError]:
    return ApiError.of(reply["error"]) if "error" in reply else None


def _put_reply(reply: Dict[str, Any]) -> PutReply:
    return PutReply(reply.get("id"), reply.get("outcome", ""), _error(reply))


def _put_replies(response: Response) -> PutReplies:
    answer = response.json()
    completion = answer.get("completion")
    return PutReplies([_put_reply(reply) for reply in answer["replies"]], completion and _put_reply(completion))


def _change_reply(reply: Dict[str, Any]) -> ChangeReply:
    return ChangeReply(reply["id"], reply.get("outcome", ""), _error(reply))


_SAME = frozenset("id key unique unique_policy run_again priority function max_attempts waits_for if_failed batch".split())


def new_job(queue: str, payload: Any = None, **options: "Unpack[JobOptions]") -> Dict[str, Any]:
    """A new job as the API wants it, for put_many(), completions and follow-ups.

    `payload`: a str is its text, bytes are those bytes, anything else is kept as JSON, which Job.json() reads.
    Errors: TypeError for an option that is unknown, and a function as the queue; ValueError for a time without a zone.
    """
    refuse_function(queue, "its queue")
    job: Dict[str, Any] = {"queue": queue}
    if payload is not None:
        job.update(_of_payload(payload))
    given_options: Dict[str, Any] = dict(options)
    for name, value in given_options.items():
        if name in _SAME:
            job[name] = value
        elif name == "due_at":
            job[name] = time_text(value)
        elif name in ("delay", "lease_time"):
            job[name + "_ms"] = milliseconds(value, name)
        else:
            raise refusal("a job", name, OF_A_JOB)
    return job


def _as_new(job: Dict[str, Any]) -> Dict[str, Any]:
    """One that a program has written by itself, perhaps with the words of new_job(). What nobody knows stays, and is refused by the daemon,
    by itself. Errors: TypeError, ValueError."""
    if not isinstance(job, dict):
        raise TypeError(f"{job!r} is no job: make it with new_job()")
    made: Dict[str, Any] = {}
    for name, value in job.items():
        if name == "due_at":
            made[name] = time_text(value)
        elif name in ("delay", "lease_time"):
            made[name + "_ms"] = milliseconds(value, name)
        elif name == "payload":
            made.update(_of_payload(value))
        else:
            made[name] = as_api(value, name)
    return made


def _of_payload(payload: Any) -> Dict[str, Any]:
    is_bytes = isinstance(payload, (bytes, bytearray, memoryview))
    return {"payload_base64": bytes_text(bytes(payload))} if is_bytes else {"payload": payload}


def _texts(jobs: Iterable[Dict[str, Any]]) -> List[str]:
    """Their JSON. Errors: TypeError, ValueError, which name the job."""
    texts: List[str] = []
    for number, job in enumerate(jobs):
        try:
            text = to_json(_as_new(job))
            text.encode()
        except (TypeError, ValueError, RecursionError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"jobs[{number}]: {error}") from error
        texts.append(text)
    return texts


def put(
    queue: str, payload: Any = None, *, idempotency_key: Optional[str] = None, **options: "Unpack[JobOptions]"
) -> Call[PutReply]:
    """Puts a job; the answer comes when it is saved. `payload` and `options` as for new_job().

    A put whose answer is lost is sent again with the same key and never puts twice. `idempotency_key`: one of your own,
    kept for 24 hours; "": none, and then it is not sent again.
    Errors: InvalidInput, TooMany (the queue is full), TooLarge, IdempotencyMismatch.
    """
    key = new_key() if idempotency_key is None else idempotency_key
    return call("POST", "/v1/jobs", lambda r: _put_reply(r.json()), new_job(queue, payload, **options), key=key)


def put_many(
    jobs: Iterable[Dict[str, Any]],
    *,
    atomic: bool = False,
    completion: Optional[Dict[str, Any]] = None,
    idempotency_key: Optional[str] = None,
) -> Call[PutReplies]:
    """Puts up to 10,000 jobs in one request (see new_job()), which wait for at most 10,000 others together (`waits_for`).
    Those that are refused have an `error` in their reply.

    `atomic`: all or none; the first that is refused is raised. `completion`: a job that waits for all the others.
    Errors: TypeError, ValueError for one that makes no request; it is named, as "jobs[3]", and none is put.
    """
    text = '{"jobs":[' + ",".join(_texts(jobs)) + "]"
    if atomic:
        text += ',"atomic":true'
    if completion is not None:
        text += ',"completion":' + to_json(_as_new(completion))
    key = new_key() if idempotency_key is None else idempotency_key
    return Call("POST", "/v1/jobs", _put_replies, (text + "}").encode(), key=key)


def put_lines(lines: Union[str, bytes, Iterable[Union[str, bytes]]], *, idempotency_key: Optional[str] = None) -> Call[PutReplies]:
    """Puts up to 10,000 jobs that are JSON already, one a line (application/x-ndjson): a text, or lines, as those of an open file."""
    if isinstance(lines, str):
        body = lines.encode()
    elif isinstance(lines, (bytes, bytearray, memoryview)):
        body = bytes(lines)
    else:
        body = b"\n".join((line.encode() if isinstance(line, str) else line).rstrip(b"\r\n") for line in lines)
    key = new_key() if idempotency_key is None else idempotency_key
    return Call("POST", "/v1/jobs", _put_replies, body, "application/x-ndjson", key)


def get(job: JobRef) -> Call[JobRecord]:
    """Errors: NotFound."""
    return call("GET", path("jobs", job), json_of)


def page(
    *,
    queue: Optional[str] = None,
    state: Optional[str] = None,
    key: Optional[str] = None,
    word: Optional[str] = None,
    order: Optional[str] = None,
    payloads: Optional[bool] = None,
    beginnings: Optional[bool] = None,
    own: Optional[bool] = None,
    after: Union[int, str, None] = None,
    limit: Optional[int] = None,
) -> Call[Page]:
    """One page of jobs: `limit` (100) of them, 1,000 at most, those after the cursor `after`, by id; `order`: "oldest" first, or
    "newest". `word`: only jobs that have it in payload, result, name, key, function, unique name, worker or error; a page may then
    have few, or none, and a next. `own`: False leaves out the daemon's own queues.

    Payloads and results are empty unless `payloads` is true; a page then ends when it has some megabytes of them. `beginnings`: the
    first 200 bytes of payloads instead. get() and list() give them whole.
    """
    filters = query(
        queue=queue, state=state, key=key, word=word, order=order, payloads=payloads, beginnings=beginnings, own=own, after=after, limit=limit
    )
    return call("GET", "/v1/jobs" + filters, page_of("jobs"))


def with_payloads(members: Dict[str, Any]) -> Dict[str, Any]:
    """What list() asks of page(): whole payloads, unless told otherwise."""
    return members if members.keys() & {"payloads", "beginnings"} else {**members, "payloads": True}


def cancel(job: JobRef, why: Optional[str] = None) -> Call[ChangeReply]:
    """Cancels what waits; a job that runs is asked to stop ("asked"). Errors: NotFound, WrongState."""
    return call("POST", path("jobs", job, "cancel"), lambda r: _change_reply(r.json()), given(why=why), key=new_key())


def kick(job: JobRef) -> Call[ChangeReply]:
    """Makes a buried or delayed job ready now. Errors: NotFound, WrongState."""
    return call("POST", path("jobs", job, "kick"), lambda r: _change_reply(r.json()), key=new_key())


def erase(job: JobRef) -> Call[None]:
    """Forgets a job, whatever it was. Errors: NotFound; WrongState while it runs."""
    return call("DELETE", path("jobs", job), nothing)


def set_priority(job: JobRef, priority: int) -> Call[ChangeReply]:
    """Errors: NotFound, WrongState."""
    return call("PATCH", path("jobs", job), lambda r: _change_reply(r.json()), {"priority": priority})


def set_due(job: JobRef, due_at: Optional[When] = None, *, delay: Optional[Delay] = None) -> Call[ChangeReply]:
    """Makes a job due at a time, or `delay` from now: seconds, or a timedelta. Errors: NotFound, WrongState."""
    return call("PATCH", path("jobs", job), lambda r: _change_reply(r.json()), due(due_at, delay))


def change(
    change: str,
    ids: Sequence[int],
    *,
    why: Optional[str] = None,
    priority: Optional[int] = None,
    due_at: Optional[When] = None,
) -> Call[List[ChangeReply]]:
    """Changes up to 10,000 jobs: "cancel", "kick", "erase", "set_priority" or "set_due". Refused ones have an `error`."""
    body = given(change=change, ids=list(ids), why=why, priority=priority)
    body.update(due(due_at, None))

    def read(response: Response) -> List[ChangeReply]:
        return [_change_reply(reply) for reply in response.json()["replies"]]

    return call("POST", "/v1/jobs/change", read, body, key=new_key())


def explain(job: JobRef) -> Call[Dict[str, Any]]:
    """Why it does not run now: {"reason","until","ahead","sentence" …}. Errors: NotFound."""
    return call("GET", path("jobs", job, "explain"), json_of)


def history(job: JobRef) -> Call[List[Dict[str, Any]]]:
    """Its last 20 attempts that did not end well. Errors: NotFound."""
    return call("GET", path("jobs", job, "history"), member("attempts"))


def output(job: JobRef) -> Call[bytes]:
    """Its result as it is. Errors: NotFound, also where there is none."""
    return call("GET", path("jobs", job, "output"), body_of)
