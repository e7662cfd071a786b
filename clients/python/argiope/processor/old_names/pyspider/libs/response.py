from argiope.processor._response import Headers as CaseInsensitiveDict  # noqa: F401
from argiope.processor._response import HTTPError, Response, get_encoding, rebuild_response  # noqa: F401
