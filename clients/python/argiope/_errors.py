"""What goes wrong, as exceptions; and what a job's function raises to say more than "it failed"."""
from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple, Type, TypeVar

if TYPE_CHECKING:
    from ._calls._requests import Delay

End = TypeVar("End")


class _Pickled(Exception):
    """Survives pickling, as between processes, whatever arguments its class, or one that a program derives from it, takes."""

    def __reduce__(self) -> Tuple[Any, ...]:
        return _again, (type(self), self.args), self.__dict__


def _again(kind: Type[BaseException], args: Tuple[Any, ...]) -> BaseException:
    error = kind.__new__(kind, *args)
    error.args = args
    return error


class ArgiopeError(_Pickled):
    """Everything that a call raises, besides TypeError and ValueError for arguments that make no request."""


class Unreachable(ArgiopeError):
    """No answer came: the connection was refused or lost, or the answer took too long.

    `sent`: whether the daemon may have got the request and done what it asks.
    """

    def __init__(self, why: str, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


def type_of(problem: Dict[str, Any]) -> str:
    """The word of docs/http-api.md that a problem (RFC 9457) has for its type."""
    return str(problem.get("type", "")).rpartition(":")[2]


class ApiError(ArgiopeError):
    """The daemon refused. `type` is the word of docs/http-api.md ("wrong_state"), `errors` says where: by a JSON `pointer`, or by
    the name of a `parameter` of the query or of a `header`."""

    type = ""
    title = ""
    status = 0
    detail = ""
    errors: List[Dict[str, str]] = []
    request_id: Optional[str] = None
    retry_after: Optional[float] = None  # seconds

    @staticmethod
    def of(problem: Dict[str, Any], retry_after: Optional[float] = None) -> "ApiError":
        """The exception for a problem (RFC 9457): of a whole answer, or the `error` of one of its parts."""
        word = type_of(problem)
        kind: Type[ApiError] = _BY_TYPE.get(word) or _BY_STATUS.get(int(problem.get("status", 0))) or ApiError
        error = kind(str(problem.get("detail") or problem.get("title") or word))
        error.type, error.detail, error.title = word, str(error), str(problem.get("title", ""))
        error.status, error.errors = int(problem.get("status", 0)), problem.get("errors", [])
        error.request_id, error.retry_after = problem.get("request_id"), retry_after
        return error


class InvalidInput(ApiError):
    """400: a member is unknown, of the wrong type or out of range; nothing was done."""


class Refused(ApiError):
    """401 or 403: there is no such token, or it may not do that."""


class NotFound(ApiError):
    """404: no such job, queue or schedule."""


class WrongState(ApiError):
    """409: what the job's state does not allow."""


class Conflict(ApiError):
    """409: there is one of that name; or the configuration file names it, and decides (`locked`)."""


class TooLarge(ApiError):
    """413."""


class IdempotencyMismatch(ApiError):
    """422: the same key came with another request."""


class TooMany(ApiError):
    """429: the queue is full (`queue_full`), or too many wait (`too_many`). Try again after `retry_after` seconds."""


class Unavailable(ApiError):
    """503: the store cannot write, or the daemon is about to stop. Try again after `retry_after` seconds."""


_BY_TYPE: Dict[str, Type[ApiError]] = {
    "invalid_input": InvalidInput,
    "unauthorized": Refused,
    "forbidden": Refused,
    "not_found": NotFound,
    "wrong_state": WrongState,
    "conflict": Conflict,
    "locked": Conflict,
    "too_large": TooLarge,
    "idempotency_mismatch": IdempotencyMismatch,
    "queue_full": TooMany,
    "too_many": TooMany,
    "io": Unavailable,
    "disk_full": Unavailable,
    "busy": Unavailable,
    "draining": Unavailable,
}

# Of what is no problem of the API's own: a proxy's, or a path that is not there.
_BY_STATUS: Dict[int, Type[ApiError]] = {
    400: InvalidInput,
    401: Refused,
    403: Refused,
    404: NotFound,
    413: TooLarge,
    429: TooMany,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


class Retry(_Pickled):
    """Raised by a job's function: it failed and is tried again when `delay` has passed (seconds, or a timedelta), or, without one,
    when the queue's policy says. The last attempt buries it in either case. `priority` is its new one."""

    def __init__(self, delay: "Optional[Delay]" = None, why: str = "", priority: Optional[int] = None) -> None:
        super().__init__(why or "to be tried again")
        self.delay = delay
        self.priority = priority


class Bury(_Pickled):
    """Raised by a job's function: it is hopeless. The job stays, buried, until it is kicked or erased."""


class Snooze(_Pickled):
    """Raised by a job's function: not a failure; run it again when `delay` has passed: seconds, or a timedelta. This run counts
    as no attempt."""

    def __init__(self, delay: "Delay") -> None:
        super().__init__("snoozed")
        self.delay = delay


def end_of(error: BaseException, make: Callable[[BaseException], End], otherwise: Callable[[str], End]) -> End:
    """What `make` makes of an error that a program raised. It raises nothing itself: an end that cannot be made is a failed attempt,
    which `otherwise` makes of the reason."""
    try:
        return make(error)
    except BaseException as trouble:
        return otherwise(f"{kind_of(error)} says no end that can be told: {words_of(trouble)}")


_GROUP: Any = getattr(builtins, "BaseExceptionGroup", ())  # Python 3.11
MOST_OF_A_GROUP = 3


def words_of(error: BaseException) -> str:
    """ "ValueError: no such address": what it says, whatever its own functions do; its notes, and the first ones of a group. Of what it
    came from nothing: a chain may be long."""
    try:
        text = f"{error}"
    except BaseException:
        text = "<its text throws>"
    words = f"{kind_of(error)}: {text}" if text else kind_of(error)
    try:
        words = "\n".join([words, *map(str, getattr(error, "__notes__", ()))])
        if isinstance(error, _GROUP):
            words += ": " + "; ".join(map(words_of, error.exceptions[:MOST_OF_A_GROUP]))
    except BaseException:
        pass
    return words


def kind_of(value: object) -> str:
    """The name of its class, with its module's, whatever a metaclass makes of that."""
    name, module = (type.__dict__[each].__get__(type(value)) for each in ("__qualname__", "__module__"))
    return name if module in ("builtins", "__main__") or not isinstance(module, str) else f"{module}.{name}"
