"""The Python client of this tree, for tests of the daemon."""
import pathlib
import sys

PACKAGES = pathlib.Path(__file__).resolve().parents[2] / 'clients' / 'python'
sys.path.insert(0, str(PACKAGES))

from argiope import AsyncClient, ApiError, Client, Unreachable, new_job  # noqa: E402,F401
