"""Makes methods of clients from the operations of _calls: each is described once and has its signature and text in both."""
from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Awaitable, Callable, TypeVar

from ._wire import Call

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")
T = TypeVar("T")


def _method(make: Callable[..., Call[Any]]) -> Callable[..., Any]:
    def send(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._run(make(*args, **kwargs))

    signature = inspect.signature(make)
    myself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    result = str(signature.return_annotation)[len("Call[") : -1]
    send.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[myself, *signature.parameters.values()], return_annotation=result
    )
    send.__name__ = send.__qualname__ = make.__name__
    send.__doc__ = make.__doc__
    return send


def sends(make: "Callable[P, Call[T]]") -> "Callable[Concatenate[Any, P], T]":
    """A method that returns when the answer is there."""
    return _method(make)


def awaits(make: "Callable[P, Call[T]]") -> "Callable[Concatenate[Any, P], Awaitable[T]]":
    """A method whose answer is awaited."""
    return _method(make)
