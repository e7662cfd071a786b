"""How long the HTML report of a crawl of 5,000 pages takes to be painted in Chromium, from disk, at 360 and 1,440 px, light and dark;
and how large it is. Needs npm's packages (tools/install-dashboard.sh tests)."""
import os
import statistics
import unittest

from crawl_support import ARGIOPE, ROUNDS, measure, report
from support import EndToEnd

PAGES = int(os.environ.get('PAGES', '5000'))


class Bench(EndToEnd):
    def runTest(self):
        (url,), _ = self.site('--hosts', 1, '--pages', PAGES)
        file = self.folder / 'report.html'
        run = measure([ARGIOPE, 'crawl', '--quiet', '--check-links', '--html', str(file), '-d', str(self.database), url])
        report(f'crawl_report, crawl of {PAGES} pages with --html', 's', run['seconds'], {})
        views = {}
        for _ in range(ROUNDS):
            for view in self.browse('report', file):
                views.setdefault((view['width'], view['scheme']), []).append(view['milliseconds'])
        for (width, scheme), milliseconds in views.items():
            report(f'crawl_report, painted at {width} px, {scheme}', 'ms', statistics.median(milliseconds), {})
        report('crawl_report, size', 'kB', file.stat().st_size / 1000, {})


if __name__ == '__main__':
    unittest.main(argv=['crawl_report'])
