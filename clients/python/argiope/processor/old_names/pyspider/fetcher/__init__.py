"""For scripts that name it; Argiope does itself what it did."""
from .tornado_fetcher import Fetcher  # noqa: F401
