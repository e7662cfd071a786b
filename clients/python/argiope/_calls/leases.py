"""Leases: what a Worker does by itself."""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Union

from .._wire import Call, Response, to_json
from ._requests import Delay, call, given, member, milliseconds, new_key, seconds


class Leases(NamedTuple):
    leases: List[Dict[str, Any]]  # {"job","token","attempt","until","lease_ms"}
    settled: List[Dict[str, Any]]  # an answer to each settlement, in their order
    cancel: List[int] = []  # tokens of the worker's jobs that are to stop


def _leases(settled: int) -> Callable[[Response], Leases]:
    def read(response: Response) -> Leases:
        answer = response.json()
        return Leases(answer["leases"], _each(answer.get("settled", []), settled), answer.get("cancel", []))

    return read


def _each(replies: List[Dict[str, Any]], settled: int) -> List[Dict[str, Any]]:
    """Errors: ValueError where not each settlement is answered."""
    if len(replies) != settled:
        raise ValueError(f"{len(replies)} answers to {settled} settlements")
    return replies


def take(
    queues: Union[str, Sequence[str]],
    most: int = 1,
    *,
    wait: Delay = 0.0,
    worker: str = "",
    settle: Sequence[Dict[str, Any]] = (),
    idempotency_key: Optional[str] = None,
) -> Call[Leases]:
    """Leases up to `most` jobs of a queue, or of several, and settles others in the same request. While there is none, it waits up
    to `wait`: seconds, or a timedelta (60 s at most).

    Cancelling it gives back what it would have got. One that settles nothing has a key: where its answer is lost it is sent
    again, and given the same leases. `idempotency_key`: one of your own, to ask again later; it is then sent in any case.
    """
    return take_texts(as_list(queues), most, seconds(wait), worker, [to_json(settlement) for settlement in settle], idempotency_key)


def as_list(queues: Union[str, Sequence[str]]) -> List[str]:
    """One name is one queue, and no list of its letters."""
    return [queues] if isinstance(queues, str) else list(queues)


def take_texts(
    queues: Sequence[str], most: int, wait: float, worker: str, settle: Iterable[str], key: Optional[str] = None
) -> Call[Leases]:
    """take() with settlements that are JSON already."""
    body = given(queues=queues, most=most, wait_ms=milliseconds(wait), worker=worker or None)
    settlements = list(settle)
    text = to_json(body) if not settlements else to_json(body)[:-1] + ',"settle":[' + ",".join(settlements) + "]}"
    # The daemon keeps what it answers to settlements under a key for a day: too much for every end of a busy worker.
    if key is None and not settlements:
        key = new_key()
    return Call("POST", "/v1/leases", _leases(len(settlements)), text.encode(), key=key, wait=wait)


def renew(leases: Sequence[Union[int, Dict[str, Any]]], *, worker: str = "") -> Call[List[Dict[str, Any]]]:
    """Makes leases last their full time from now. Tokens, or {"token","progress","message"}.

    Gives {"token","until","lease_ms","cancel"} for each, or {"token","lease_lost":true}; `cancel`: stop the job.
    """
    entries = [{"token": lease} if isinstance(lease, int) else lease for lease in leases]
    return call("PATCH", "/v1/leases", member("leases"), given(leases=entries, worker=worker or None), safe=True)


def settle(settlements: Sequence[Dict[str, Any]]) -> Call[List[Dict[str, Any]]]:
    """Says how up to 10,000 runs ended: {"token","outcome":"done"|"retry"|"bury"|"cancel"|"release", …}.

    Gives {"token","outcome":"ok"} for each, "lease_lost" where it came too late, or an "error". Sending one again does
    nothing twice.
    """
    return settle_texts([to_json(settlement) for settlement in settlements])


def settle_texts(settlements: Iterable[str]) -> Call[List[Dict[str, Any]]]:
    """settle() with settlements that are JSON already."""
    texts = list(settlements)
    body = '{"settlements":[' + ",".join(texts) + "]}"
    return Call("POST", "/v1/leases/settle", lambda r: _each(r.json()["replies"], len(texts)), body.encode(), safe=True)
