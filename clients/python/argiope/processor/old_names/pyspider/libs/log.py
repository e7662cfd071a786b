import logging


class LogFormatter(logging.Formatter):
    def __init__(self, fmt=None, datefmt=None, color=True, *arguments, **keywords):
        super().__init__(fmt or "[%(levelname)1.1s %(asctime)s %(module)s:%(lineno)d] %(message)s", datefmt)


class SaveLogHandler(logging.Handler):
    """Appends records to a list."""

    def __init__(self, saveto=None, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self.saveto = saveto

    def emit(self, record):
        if self.saveto is not None:
            self.saveto.append(record)


def enable_pretty_logging(logger=logging.getLogger()):
    """The processor has set up logging already."""
