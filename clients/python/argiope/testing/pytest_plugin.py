"""The same for pytest. In conftest.py: pytest_plugins = ["argiope.testing.pytest_plugin"]"""
from __future__ import annotations

from typing import Iterator

import pytest

from ._daemon import Daemon


@pytest.fixture
def argiope_daemon() -> Iterator[Daemon]:
    """A daemon that lives as long as the test."""
    with Daemon() as daemon:
        yield daemon
