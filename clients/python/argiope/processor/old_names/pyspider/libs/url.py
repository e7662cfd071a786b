from argiope.processor._curl import curl_to_arguments  # noqa: F401
from argiope.processor._urls import build_url as _build_url  # noqa: F401
from argiope.processor._urls import content_type_of as get_content_type  # noqa: F401
from argiope.processor._urls import encode_multipart as _encode_multipart_formdata  # noqa: F401
from argiope.processor._urls import encode_params as _encode_params  # noqa: F401
from argiope.processor._urls import quote_non_ascii as quote_chinese  # noqa: F401
