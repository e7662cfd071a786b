"""For tests of programs that use Argiope (docs/testing-handlers.md): a job made by hand, how the run of its handler would end, and a
real daemon that lives as long as a test.

    from argiope.testing import make_job, run_handler
    run = run_handler(send, make_job("mail", {"to": "bob"}, attempt=2))
    assert run.outcome == "buried"

Nothing here is for programs themselves.
"""
from ._daemon import Daemon, DaemonTestCase, ProgramNotFound
from ._runs import Run, cancel_job, make_job, run_handler, run_handler_async

__all__ = [
    "Daemon",
    "DaemonTestCase",
    "ProgramNotFound",
    "Run",
    "cancel_job",
    "make_job",
    "run_handler",
    "run_handler_async",
]
