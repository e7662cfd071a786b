"""A real daemon for tests: `argiope serve` in a folder of its own, as a process that ends with the test."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
import unittest
import weakref
from typing import IO, Any, List, Optional

from .._client import Client

PATIENCE = 60.0  # s, for its start and its end
_LISTENS = re.compile(r"listening: (http://\S+)")
# What would make it another daemon than the one that the test asks for.
_FOREIGN = re.compile(r"ARGIOPE|LISTEN_(FDS|PID|FDNAMES)$|NOTIFY_SOCKET$|WATCHDOG_")


class ProgramNotFound(RuntimeError):
    """There is no program `argiope` here."""


def find_program(program: Optional[str] = None) -> str:
    """The path of `program`; without it, of what ARGIOPE names; without that, of `argiope` on PATH. Errors: ProgramNotFound."""
    wanted = program or os.environ.get("ARGIOPE") or "argiope"
    found = shutil.which(wanted)
    if found is None:
        raise ProgramNotFound(
            f"there is no program {wanted!r}: install Argiope, so that `argiope` is on PATH, or say where it is, as in "
            "ARGIOPE=/opt/argiope/bin/argiope or Daemon(program=…)"
        )
    return os.path.abspath(found)


class Daemon:
    """`argiope serve` in a temporary folder, on a port of loopback that the system chooses.

        with Daemon() as daemon:
            daemon.client.put("mail", "hello")

    `arguments`: more words for its command line. `program`: its path; default: ARGIOPE, or `argiope` on PATH. `store`: default a
    file in its folder. Variables of this process that begin with ARGIOPE are not handed on.

    `url`: where it listens. `client`: a Client of it, without a token. `folder`: where it runs. `log`: what it has said so far.

    Errors:   ProgramNotFound; RuntimeError, with its log, for one that does not begin to listen.
    Lifetime: stop() ends it and removes its folder, and so does the end of this process; what kills this process leaves it alive.
    Restart:  restart() is a daemon on the same store and port, as after an upgrade.
    """

    def __init__(self, *arguments: str, program: Optional[str] = None, store: str = "sqlite:jobs.db") -> None:
        self._program, self._arguments, self._store = find_program(program), arguments, store
        self._listen = "127.0.0.1:0"
        self.url = ""
        self.log = ""
        self.folder = tempfile.mkdtemp(prefix="argiope-test-")
        self._remove = weakref.finalize(self, shutil.rmtree, self.folder, True)
        self._end: Any = None
        try:
            self._start()
        except BaseException:
            self._remove()
            raise
        self.client = Client(self.url, token="")

    def restart(self) -> None:
        """Ends it and starts it again. Calls that come meanwhile are sent again by clients."""
        self._end()
        self._start()

    def stop(self) -> None:
        """Twice is as good as once."""
        if hasattr(self, "client"):
            self.client.close()
        self._end()
        self._remove()

    def __enter__(self) -> "Daemon":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def _start(self) -> None:
        environment = {name: value for name, value in os.environ.items() if not _FOREIGN.match(name)}
        words = [self._program, "serve", "--store", self._store, "--listen", self._listen, *self._arguments]
        options: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        process = subprocess.Popen(words, cwd=self.folder, env=environment, **options)
        heard: List[str] = []
        listens = threading.Event()
        assert process.stdout is not None
        reader = threading.Thread(target=self._read, args=(weakref.ref(self), process.stdout, heard, listens), daemon=True)
        reader.start()
        self._end = weakref.finalize(self, _end, process, reader)
        listens.wait(PATIENCE)
        if not heard:
            self._end()
            raise RuntimeError(f"{' '.join(words)} does not listen; it said:\n{self.log}")
        self.url = heard[0]
        self._listen = self.url[len("http://") :]

    @staticmethod
    def _read(daemon: "weakref.ref[Daemon]", stream: IO[str], heard: List[str], listens: threading.Event) -> None:
        """To the end of its log, also when nobody reads that: a full pipe would stop it."""
        with stream:
            for line in stream:
                owner = daemon()
                if owner is not None:
                    owner.log += line
                del owner
                found = _LISTENS.search(line)
                if found and not heard:
                    heard.append(found[1])
                    listens.set()
        listens.set()


def _end(process: "subprocess.Popen[str]", reader: threading.Thread) -> None:
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if reader is not threading.current_thread():
        reader.join(PATIENCE)


class DaemonTestCase(unittest.TestCase):
    """Each test has a daemon of its own, `self.daemon`, and a client of it, `self.client`. `daemon_arguments`: more words for its
    command line."""

    daemon_arguments: List[str] = []

    def setUp(self) -> None:
        super().setUp()
        self.daemon = Daemon(*self.daemon_arguments)
        self.addCleanup(self.daemon.stop)
        self.client = self.daemon.client
