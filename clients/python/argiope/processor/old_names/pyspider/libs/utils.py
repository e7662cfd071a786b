"""Small things that pyspider's scripts use."""
import base64
import datetime
import importlib
import signal
import threading

from argiope.processor._pages import md5string  # noqa: F401
from argiope.processor._run import TimeoutError  # noqa: F401

_BEGIN, _END = "[BASE64-DATA]", "[/BASE64-DATA]"


class ReadOnlyDict(dict):
    def __setitem__(self, key, value):
        raise Exception("dict is read-only")


class ObjectDict(dict):
    """Its keys are attributes, too."""

    def __getattr__(self, name):
        found = self[name]
        return found.__get__(self, ObjectDict) if hasattr(found, "__get__") else found


class Get:
    """Of an ObjectDict: what is computed when it is asked for."""

    def __init__(self, getter):
        self.getter = getter

    def __get__(self, instance, owner):
        return self.getter()


def getitem(obj, key=0, default=None):
    try:
        return obj[key]
    except Exception:
        return default


def utf8(value):
    return value if isinstance(value, bytes) else str(value).encode()


def text(value, encoding="utf8"):
    return value.decode(encoding) if isinstance(value, bytes) else str(value)


def pretty_unicode(value):
    if isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1").encode("unicode_escape").decode()


def unicode_string(value):
    if isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return _BEGIN + base64.b64encode(value).decode() + _END


def unicode_obj(value):
    """As JSON could say it: bytes become text."""
    if isinstance(value, dict):
        return {unicode_obj(key): unicode_obj(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [unicode_obj(inner) for inner in value]
    if isinstance(value, (str, bytes)):
        return unicode_string(value)
    return value if value is None or isinstance(value, (int, float)) else text(value)


unicode_dict = unicode_list = unicode_obj


def decode_unicode_string(value):
    if value.startswith(_BEGIN) and value.endswith(_END):
        return base64.b64decode(value[len(_BEGIN) : -len(_END)])
    return value


def decode_unicode_obj(value):
    if isinstance(value, dict):
        return {decode_unicode_obj(key): decode_unicode_obj(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [decode_unicode_obj(inner) for inner in value]
    return decode_unicode_string(value) if isinstance(value, str) else value


def run_in_thread(func, *args, **kwargs):
    thread = threading.Thread(target=func, args=args, kwargs=kwargs, daemon=True)
    thread.start()
    return thread


def load_object(name):
    """The object of "module.name"."""
    module, _, attribute = name.rpartition(".")
    if not module:
        raise Exception("load object need module.object")
    return getattr(importlib.import_module(module), attribute)


def format_date(date, gmt_offset=0, relative=True, shorter=False, full_format=False):
    """How long ago a time of UTC is, or, where it is no recent one, the time."""
    if not date:
        return "-"
    if isinstance(date, (int, float)):
        date = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=date)
    age = (datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None) - date).total_seconds()
    if relative and not full_format and 0 <= age < 86400:
        for seconds, name in ((3600, "hour"), (60, "minute"), (1, "second")):
            count = round(age / seconds)
            if count >= 1 or seconds == 1:
                return f"{max(1, count)} {name}{'s' if count > 1 else ''} ago"
    local = date - datetime.timedelta(minutes=gmt_offset)
    return f"{local:%b} {local.day}, {local.year}" + ("" if shorter else f" at {local.hour}:{local:%M}")


class timeout:
    """with timeout(3): raises TimeoutError after three seconds. In the main thread; the time of the visit goes on after it."""

    def __init__(self, seconds=1, error_message="Timeout"):
        self.seconds, self.error_message = seconds, error_message

    def _raise(self, number, frame):
        raise TimeoutError(self.error_message)

    def __enter__(self):
        self._is_set = bool(self.seconds) and threading.current_thread() is threading.main_thread()
        if self._is_set:
            self._before = signal.signal(signal.SIGALRM, self._raise), signal.getitimer(signal.ITIMER_REAL)
            signal.setitimer(signal.ITIMER_REAL, self.seconds)
        return self

    def __exit__(self, kind, value, traceback):
        if self._is_set:
            handler, (left, interval) = self._before
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
            if left or interval:
                signal.setitimer(signal.ITIMER_REAL, left or interval, interval)
