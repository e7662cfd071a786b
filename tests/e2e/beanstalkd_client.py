"""A client of the beanstalkd protocol for tests: one connection, which may be asked much at once."""
import socket


class Gone(Exception):
    """The server has ended the connection."""


class BeanstalkdClient:
    """Errors: Gone, and OSError; the connection is of no use afterwards."""

    def __init__(self, port, timeout=60):
        self.socket = socket.create_connection(('127.0.0.1', port), timeout)
        self.answers = self.socket.makefile('rb')

    def send(self, *commands):
        lines = (command if isinstance(command, bytes) else f'{command}\r\n'.encode() for command in commands)
        self.socket.sendall(b''.join(lines))

    def answer(self):
        """The words of the next answer; the last one is its data where it has some."""
        line = self.answers.readline()
        if not line.endswith(b'\r\n'):
            raise Gone()
        words = line[:-2].decode().split(' ')
        if words[0] in ('RESERVED', 'FOUND', 'OK'):
            words.append(self._data(int(words[-1])))
        return words

    def _data(self, size):
        data = self.answers.read(size + 2)
        if len(data) < size + 2:
            raise Gone()
        return data[:-2].decode()

    def ask(self, command):
        self.send(command)
        return self.answer()

    def close(self):
        self.answers.close()
        self.socket.close()


def put_command(body, pri=0, delay=0, ttr=60):
    data = body.encode()
    return b'put %d %d %d %d\r\n%s\r\n' % (pri, delay, ttr, len(data), data)
