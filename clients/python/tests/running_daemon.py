"""A daemon for tests of whole processes: the real one, when ARGIOPE names a command that can serve; else FakeServer."""
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request

from .fake_daemon import FakeServer

PATIENCE = 60
PACKAGE = pathlib.Path(__file__).resolve().parents[1]


def real_command():
    """The command, or None where there is none that serves."""
    command = os.environ.get("ARGIOPE")
    if not command or subprocess.run([command, "serve", "--help"], capture_output=True).returncode != 0:
        return None
    return os.path.abspath(command)


class RealServer:
    """`argiope serve` on a port of its own and a store in a folder of its own. close() and open() again: a restart."""

    def __init__(self, command):
        self.command, self.port, self.process = command, free_port(), None
        self.folder = tempfile.mkdtemp(prefix="argiope-client-")
        self.open()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def open(self):
        arguments = ["serve", "--store", "sqlite:jobs.db", "--listen", f"127.0.0.1:{self.port}"]
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen([self.command, *arguments], cwd=self.folder, stdout=log, stderr=log)
        give_up_at = time.monotonic() + PATIENCE
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > give_up_at:
                raise RuntimeError(pathlib.Path(self.folder, "log").read_text())
            time.sleep(0.01)

    def answers(self):
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(self.url + "/healthz", timeout=5).status == 200
        return False

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def remove(self):
        if self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class DaemonTest(unittest.TestCase):
    """Each test has a daemon of its own at `self.url`; the processes that it starts end with it."""

    def setUp(self):
        command = real_command()
        self.server = RealServer(command) if command else FakeServer()
        self.addCleanup(self.server.remove if command else self.server.close)
        self.url = self.server.url

    def start(self, *command, **options):
        environment = {**os.environ, "ARGIOPE_URL": self.url, "PYTHONPATH": str(PACKAGE), "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen(list(map(str, command)), env=environment, stdout=subprocess.PIPE, text=True, **options)

        def end():
            process.kill()
            process.wait()
            process.stdout.close()

        self.addCleanup(end)
        return process

    def wait_until(self, condition, what="it did not come true"):
        give_up_at = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), give_up_at, what)
            time.sleep(0.01)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
