#!/usr/bin/env python3
"""Draws three measured numbers beside their peers: docs/pictures/chart.svg for README.md. The numbers are those of docs/benchmarks.md,
whose lines are looked for: a number that is not there any more is an error.

    tools/pictures/chart.py"""
import html
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Of each panel the title, and of its bars the name, the length and the text as docs/benchmarks.md has it.
PANELS = [
    ('Crawl 4,916 real pages: pages a second (more is better)',
     [('Argiope', 15289, '13,377 to 17,201'), ('wget2', 2081, '1,853 to 2,309'), ('httrack', 224, '218 to 230'), ('Scrapy', 53.5, '53 to 54')]),
    ('Durable jobs done a second, every commit synced (more is better)',
     [('Argiope', 224456, '224,456'), ('pg-boss', 29738, '29,738'), ('beanstalkd', 7257, '7,257')]),
    ('Lateness of 10,000 schedules a second, p99, ms (less is better)',
     [('Argiope', 0.36, '0.36'), ('APScheduler', 2.13, '2.13')]),
]
LEFT, WIDTH, BAR, ROW = 130, 860, 520, 24


def main():
    page = (ROOT / 'docs/benchmarks.md').read_text()
    parts, y = [], 8
    for title, bars in PANELS:
        y += 26
        parts.append(f'<text class="h" x="16" y="{y}">{html.escape(title)}</text>')
        longest = max(length for _, length, _ in bars)
        for name, length, text in bars:
            if text not in page:
                sys.exit(f'chart: docs/benchmarks.md has no {text}')
            y += ROW
            shade = 'a' if name == 'Argiope' else 'b'
            parts.append(f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{name}</text>'
                         f'<rect class="{shade}" x="{LEFT}" y="{y - 9}" width="{max(length / longest * BAR, 2):.1f}" height="16" rx="2"/>'
                         f'<text x="{LEFT + max(length / longest * BAR, 2) + 8:.1f}" y="{y + 4}">{text}</text>')
        y += 12
    (ROOT / 'docs/pictures/chart.svg').write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 16}" width="{WIDTH}" height="{y + 16}" role="img" '
        'aria-label="Argiope beside its peers: crawling, durable jobs, lateness of schedules">\n<style>\n'
        'text { font: 13px system-ui, "DejaVu Sans", sans-serif; fill: #333 } .h { font-weight: bold }\n'
        '.a { fill: #0f9d84 } .b { fill: #9aa5b1 }\n'
        '@media (prefers-color-scheme: dark) { text { fill: #dde3ea } .b { fill: #6b7683 } }\n</style>\n' + '\n'.join(parts) + '\n</svg>\n')


if __name__ == '__main__':
    main()
