"""What this package tells, by `logging` (logger "argiope"). A handler of the program's own may raise: a call or a worker goes on."""
from __future__ import annotations

import logging
from typing import Any, Optional

logger = logging.getLogger("argiope")


class Log:
    def info(self, message: str, *values: Any) -> None:
        self._tell(logging.INFO, message, values)

    def warning(self, message: str, *values: Any, exc_info: Optional[BaseException] = None) -> None:
        self._tell(logging.WARNING, message, values, exc_info)

    def error(self, message: str, *values: Any, exc_info: Optional[BaseException] = None) -> None:
        self._tell(logging.ERROR, message, values, exc_info)

    def _tell(self, level: int, message: str, values: Any, error: Optional[BaseException] = None) -> None:
        for traced in (error, None)[error is None :]:  # one whose traceback cannot be read is told without it
            try:
                return logger.log(level, message, *values, exc_info=traced, stacklevel=3)
            except (Exception, SystemExit):  # there is nowhere else to say it
                pass


log = Log()
