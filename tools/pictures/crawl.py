#!/usr/bin/env python3
"""Kills a crawl of a synthetic web, lets the same command go on, and writes what the terminal showed, with its times, as a picture that
moves: docs/pictures/crawl.svg for README.md. A run that took longer than LONGEST_S is shown in that time.

    ARGIOPE=build/release/bin/argiope tools/pictures/crawl.py

The crawl has a terminal of its own, so that it shows its progress. Each line of the picture is a line that was printed then."""
import html
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARGIOPE = os.path.abspath(os.environ.get('ARGIOPE', ROOT / 'build/release/bin/argiope'))
ROWS, COLUMNS, LINE, WIDTH = 21, 100, 19, 860
KILL_AFTER_S, LONGEST_S = 3.0, 9.0


class Screen:
    """The lines of a terminal, and how they looked when."""

    def __init__(self):
        self.lines, self.shots, self.now = [''], [], 0.0

    def feed(self, text):
        for part in re.findall(r'\x1b\[[0-9;?]*[A-Za-z]|\r\n|\r|\n|[^\x1b\r\n]+', text):
            if part in ('\r\n', '\n'):
                self.lines.append('')
            elif part == '\r':
                self.lines[-1] = ''
            elif not part.startswith('\x1b'):
                self.lines[-1] += part

    def shoot(self):
        shown = [line[:COLUMNS] for line in self.lines[-ROWS:]]
        if not self.shots or self.shots[-1][1] != shown:
            self.shots.append((self.now, shown))

    def type(self, text):
        self.feed(text)
        self.shoot()
        self.now += 1.0


def run(screen, shown, command, folder, kill_after=None):
    """Runs a command in a terminal as the screen shows it; kills it after so many seconds."""
    screen.type(f'$ {shown}')
    screen.feed('\r\n')
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs,
                               env={**os.environ, 'COLUMNS': str(COLUMNS), 'TERM': 'xterm', 'NO_COLOR': '1'})
    os.close(theirs)
    begin, before, first = time.monotonic(), screen.now, len(screen.shots)
    while True:
        readable, _, _ = select.select([ours], [], [], 0.1)
        screen.now = before + time.monotonic() - begin
        if readable:
            try:
                data = os.read(ours, 65536)
            except OSError:
                break
            if not data:
                break
            screen.feed(data.decode(errors='replace'))
            screen.shoot()
        if kill_after and time.monotonic() - begin > kill_after:
            process.send_signal(signal.SIGKILL)
            kill_after = None
    os.close(ours)
    if process.wait() == -signal.SIGKILL:
        screen.feed('\r\nKilled\r\n')
    screen.shoot()
    took = screen.now - before
    scale = min(1.0, LONGEST_S / max(took, 0.1))
    screen.shots[first:] = [(before + (at - before) * scale, lines) for at, lines in screen.shots[first:]]
    screen.now = before + took * scale + 1.5


def drawn(screen):
    """The SVG: one group for each moment, shown from its time to the next one's."""
    total = screen.now + 5
    height = ROWS * LINE + 50
    styles, groups = [], []
    for number, (at, lines) in enumerate(screen.shots):
        end = screen.shots[number + 1][0] if number + 1 < len(screen.shots) else total
        a, b = at / total * 100, min(end / total * 100, 100)
        last = number + 1 == len(screen.shots)
        ending = '' if last else f'{b:.3f}% {{ visibility: hidden }}'
        styles.append(f'@keyframes k{number} {{ 0% {{ visibility: hidden }} {a:.3f}% {{ visibility: visible }} {ending} '
                      f'{"100% { visibility: visible }" if last else ""} }} .k{number} {{ animation-name: k{number} }}')
        text = ''.join(f'<text x="16" y="{44 + row * LINE}" class="{"c" if line.startswith("$") else "o"}">{html.escape(line)}</text>'
                       for row, line in enumerate(lines) if line)
        groups.append(f'<g class="t k{number}{" last" if last else ""}">{text}</g>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            f'role="img" aria-label="A crawl is killed, and the same command goes on where it was">\n<style>\n'
            'text { font: 13.5px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre }\n'
            '.o { fill: #d5dbe3 } .c { fill: #7fd6c2; font-weight: bold }\n'
            f'.t {{ animation: {total:.1f}s steps(1) infinite; visibility: hidden }}\n'
            '@media (prefers-reduced-motion: reduce) { .t { animation: none } .last { visibility: visible } }\n'
            + '\n'.join(styles) + '\n</style>\n'
            f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#161b22"/>\n'
            '<circle cx="18" cy="14" r="5" fill="#f06a5d"/><circle cx="34" cy="14" r="5" fill="#f3bf4f"/>'
            '<circle cx="50" cy="14" r="5" fill="#5fc454"/>\n' + '\n'.join(groups) + '\n</svg>\n')


def main():
    folder = tempfile.mkdtemp()
    site = subprocess.Popen([ARGIOPE, 'site', '--port', '0', '--hosts', '1', '--pages', '15000', '--errors', '0.00002'],
                            stdout=subprocess.PIPE, text=True)
    try:
        url = next(line.strip() for line in site.stdout if line.startswith('  http'))
        screen = Screen()
        command = [ARGIOPE, 'crawl', url]
        run(screen, f'argiope crawl {url}', command, folder, KILL_AFTER_S)
        run(screen, f'argiope crawl {url}          # the same command goes on', command, folder)
    finally:
        site.terminate()
        site.wait()
        shutil.rmtree(folder)
    (ROOT / 'docs/pictures/crawl.svg').write_text(drawn(screen))


if __name__ == '__main__':
    main()
