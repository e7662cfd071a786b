"""A site of 20,000 pages that answers after 100 ms, with 256 connections: how close to 2,560 pages/s.

The seed is one page, so that the first 100 ms fetch one: with 20,000 pages 8.0 s, or 2,500 pages/s, is the most that any
crawler can reach.
"""
import json
import pathlib
import shutil
import tempfile

from crawl_support import ARGIOPE, ROUNDS, compare, installed, measure
from support import EndToEnd

PAGES = 20_000


class Bench(EndToEnd):
    def runTest(self):
        urls, _ = self.site('--hosts', 1, '--pages', PAGES, '--features', 'none', '--latency-ms', 100, '--links', 20)
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        runs = {'argiope': [], 'wget2': []}
        for number in range(ROUNDS):
            run = measure([ARGIOPE, 'crawl', '--quiet', '--summary', 'json', '-c', '256', '--per-host', '256',
                           '-d', str(folder / f'{number}.db'), urls[0]])
            run['pages'] = json.loads(run['output'])['pages']
            runs['argiope'].append(run)
            if installed('wget2'):
                target = folder / f'wget2-{number}'
                run = measure(['wget2', '-q', '-r', '-l', '0', '--max-threads=256', '-P', str(target), urls[0]])
                run['pages'] = sum(1 for path in target.rglob('*') if path.is_file() and path.name != 'robots.txt')
                runs['wget2'].append(run)
                shutil.rmtree(target)
        compare('crawl_latency', PAGES, {name: done for name, done in runs.items() if done})


if __name__ == '__main__':
    import unittest
    unittest.main(argv=['crawl_latency'])
