import io


class ListO(io.TextIOBase):
    """A file whose writes are appended to a list."""

    def __init__(self, buffer=None):
        self._buffer = [] if buffer is None else buffer

    def write(self, text):
        self._buffer.append(text)
        return len(text)
