"""What a process of the kill test does, for whoever looks when it is dead: a line "NANOSECONDS LIFE WHAT …", in one write."""
import os
import signal
import time

LIFE = os.environ['LIFE']
_file = os.open(os.environ['LEDGER'], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
_stopping = []


def note(*words):
    os.write(_file, f'{time.monotonic_ns()} {LIFE} {" ".join(map(str, words))}\n'.encode())


def stop_when_asked():
    """SIGTERM makes is_stopping() true, and ends nothing."""
    signal.signal(signal.SIGTERM, lambda *_: _stopping.append(True))


def is_stopping():
    return bool(_stopping)
