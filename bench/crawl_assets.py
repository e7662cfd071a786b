"""A link check of 100,000 assets on one nginx worker: 1,000 pages with 100 pictures each, every one asked by HEAD. Beside it wget, by
--spider with page requisites, which asks the same on one connection (wget2's follows no links).

ROUNDS (5) runs, wget once; medians of the whole process. PAGES (1000) of 100 pictures.
"""
import json
import os
import tempfile

from crawl_support import ARGIOPE, ROUNDS, installed, measure, median, report
from support import EndToEnd

PAGES = int(os.environ.get('PAGES', '1000'))


class Bench(EndToEnd):
    def runTest(self):
        root = self.folder / 'root'
        pictures = root / 'pictures'
        pictures.mkdir(parents=True)
        for page in range(PAGES):
            links = ''.join(f'<a href=/{other}.html>{other}</a> ' for other in (2 * page + 1, 2 * page + 2) if other < PAGES)
            images = ''.join(f'<img src=/pictures/{page * 100 + number}.png alt="">\n' for number in range(100))
            (root / f'{page}.html').write_text(f'<!doctype html><title>{page}</title>{links}\n{images}')
            for number in range(100):
                (pictures / f'{page * 100 + number}.png').touch()
        url, log = self.nginx(root)
        runs, peers = [], {}
        for number in range(ROUNDS):
            database = os.path.join(tempfile.mkdtemp(dir=self.folder), 'links.db')
            run = measure([ARGIOPE, 'crawl', '--quiet', '--summary', 'json', '--check-links', '-d', database, url + '0.html'])
            summary = json.loads(run['output'])
            self.assertEqual((summary['pages'], summary['urls'], summary['broken']), (PAGES, 101 * PAGES, 0))
            runs.append(run)
        if installed('wget'):
            before = len(log.read_text().splitlines())
            peers['wget'] = [measure(['wget', '-q', '-r', '-l', 'inf', '--spider', '-p', url + '0.html'], cwd=self.folder)]
            self.assertGreaterEqual(len(log.read_text().splitlines()) - before, 101 * PAGES)
        name = f'crawl_assets, {100 * PAGES} assets'
        for key, unit in (('seconds', 's'), ('cpu', 'CPU s'), ('mb', 'MB')):
            report(name, unit, median(runs, key), {peer: median(theirs, key) for peer, theirs in peers.items()})


if __name__ == '__main__':
    import unittest
    unittest.main(argv=['crawl_assets'])
