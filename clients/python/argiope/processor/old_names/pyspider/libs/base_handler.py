"""What `from pyspider.libs.base_handler import *` brings."""
import functools  # noqa: F401
import inspect  # noqa: F401
import sys  # noqa: F401
from pprint import pprint  # noqa: F401

from argiope.processor._handler import (  # noqa: F401
    NOTSET,
    BaseHandler,
    catch_status_code_error,
    config,
    every,
    not_send_status,
)
from argiope.processor._response import rebuild_response  # noqa: F401

from .ListIO import ListO  # noqa: F401
from .url import curl_to_arguments, quote_chinese  # noqa: F401
from .utils import md5string, timeout  # noqa: F401
