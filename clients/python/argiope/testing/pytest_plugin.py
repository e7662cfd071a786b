"""The same for pytest. In conftest.py: pytest_plugins = ["argiope.testing.pytest_plugin"]"""
from __future__ import annotations

from typing import Iterator

import pytest

from ._daemon import Daemon


def _of_a_test() -> Iterator[Daemon]:
    """A daemon that lives as long as the test."""
    with Daemon() as daemon:
        yield daemon


argiope_daemon = pytest.fixture(_of_a_test)
