"""A script as a module, the handler in it, and where in it something went wrong."""
from __future__ import annotations

import inspect
import logging
import os
import re
import sys
import traceback
import types
from typing import Any, Callable, Dict, List, Optional, Type

from ._handler import BaseHandler

LONGEST_ERROR = 1000
LONGEST_TRACE = 16 * 1024
HERE = os.path.dirname(os.path.abspath(__file__))
# Folder whose `pyspider` gives this package under that name: scripts of pyspider's import from it.
OLD_NAMES = os.path.join(HERE, "old_names")


class Script:
    """A script that was loaded: its module, and one instance of its handler."""

    def __init__(self, path: str, project: str, environment: Dict[str, Any], logger: logging.Logger) -> None:
        """Errors: whatever the script raises; SyntaxError; LookupError where it has no handler."""
        self.path = os.path.abspath(path)
        prepare_imports(os.path.dirname(self.path))
        self.module = self._load(project, logger)
        instance = self.handler_class()()
        instance.__env__ = environment
        instance.project_name = project
        instance.project = {"name": project, "status": "DEBUG" if environment.get("debug") else "RUNNING"}
        instance.logger = logger
        self.handler: BaseHandler = instance

    def _load(self, project: str, logger: logging.Logger) -> types.ModuleType:
        name = "project_" + re.sub(r"\W", "_", project)
        module = types.ModuleType(name)
        module.__file__ = self.path
        sys.modules[name] = module  # for pickling, and for dataclasses
        # Names that pyspider puts into every script.
        module.__dict__.update(logger=logger, logging=logging)
        with open(self.path, "rb") as file:
            code = compile(file.read(), self.path, "exec", dont_inherit=True)
        exec(code, module.__dict__)
        return module

    def handler_class(self) -> Type[BaseHandler]:
        """What __handler_cls__ names, else the last class that the script defines on BaseHandler, else the last that it has."""
        named = self.module.__dict__.get("__handler_cls__")
        if named is not None:
            return named  # type: ignore[no-any-return]
        found: List[Type[BaseHandler]] = [
            each
            for name, each in self.module.__dict__.items()
            if inspect.isclass(each) and issubclass(each, BaseHandler) and each is not BaseHandler and name != "BaseHandler"
        ]
        own = [each for each in found if each.__module__ == self.module.__name__]
        if not found:
            raise LookupError("there is no class in it that is derived from BaseHandler")
        return (own or found)[-1]


def prepare_imports(folder: str) -> None:
    """Scripts may import pyspider's names, each other as `projects.NAME`, and modules beside them."""
    if OLD_NAMES not in sys.path:
        sys.path.insert(0, OLD_NAMES)
    if folder not in sys.path:
        sys.path.append(folder)  # behind all others: a project may be called as a module of Python's
    projects = types.ModuleType("projects")
    projects.__path__ = [folder]  # a package of all scripts in the folder
    sys.modules["projects"] = projects


def error_of(error: BaseException, folder: Optional[str] = None) -> Dict[str, Any]:
    """The protocol's `error`. It raises nothing, whatever functions of its own the error has."""
    kind = type(error).__name__
    members = {"text": _words, "where": lambda each: _place(each, folder), "trace": _trace}
    told = {"kind": kind, **{name: _told(name, make, error) for name, make in members.items()}}
    told["text"] = told["text"][:LONGEST_ERROR] or kind
    return {key: value.encode("utf-8", "replace").decode() for key, value in told.items() if value}


def _told(name: str, make: Callable[[BaseException], str], error: BaseException) -> str:
    """One of its members."""
    try:
        return make(error)
    except BaseException as in_turn:  # of a __str__ that the script has written, or members that are not what they are taken for
        return f"{type(error).__name__}, whose {name} cannot be had: {type(in_turn).__name__}"


def _words(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the script has called exit({'' if error.code is None else repr(error.code)})"
    return str(error.msg if isinstance(error, SyntaxError) else error)


def _place(error: BaseException, folder: Optional[str]) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{os.path.basename(error.filename)}:{error.lineno}"
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    scripts = [frame for frame in own if folder and os.path.dirname(frame.filename) == folder] or own
    return f"{os.path.basename(scripts[-1].filename)}:{scripts[-1].lineno}" if scripts else ""


def _trace(error: BaseException) -> str:
    told = traceback.TracebackException(type(error), error, error.__traceback__)
    told.stack = traceback.StackSummary.from_list([frame for frame in told.stack if not _is_ours(frame.filename)])
    text = "".join(told.format())
    return text if len(text) <= LONGEST_TRACE else text[: LONGEST_TRACE // 2] + "\n…\n" + text[-LONGEST_TRACE // 2 :]


def _is_ours(file: str) -> bool:
    return file.startswith((HERE + os.sep, "<frozen importlib"))
