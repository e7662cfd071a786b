"""Says in which zone a schedule counts whose trigger names none."""
from __future__ import annotations

import re
from typing import Any

from .._log import log

_LOCAL = ("cron", "calendar")  # triggers of times of day


def tell_zone(name: Any, trigger: Any) -> None:
    if not _names_its_zone(trigger):
        example = '{"type": "cron", "expression": "30 3 * * *", "zone": "Europe/Berlin"}'
        log.warning("schedule %r counts in UTC, since its trigger names no zone; %s names one", name, example)


def _names_its_zone(trigger: Any) -> bool:
    """Or needs none."""
    if isinstance(trigger, str):
        return re.match(r"\s*(@every\s|(CRON_)?TZ=)", trigger) is not None
    if not isinstance(trigger, dict) or "zone" in trigger:
        return True
    if trigger.get("type") in ("and", "or"):
        return all(map(_names_its_zone, trigger.get("triggers", ())))
    if trigger.get("type") not in _LOCAL or trigger.get("dialect") == "systemd":  # whose expressions have it in themselves
        return True
    expression = trigger.get("expression")
    return isinstance(expression, str) and _names_its_zone(expression)
