"""How long the HTML report of a crawl of 5,000 pages takes to be painted in Chromium, from disk, at 360 and 1,440 px, light and dark;
and how large it is. Needs npm's packages (tools/install-dashboard.sh tests)."""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import unittest

from crawl_support import ARGIOPE, ROUNDS, measure, report
from support import EndToEnd

HERE = pathlib.Path(__file__).parent
MODULES = HERE.parent / 'dashboard' / 'tests' / 'node_modules'
BROWSE = HERE.parent / 'tests' / 'e2e' / 'browse_report.mjs'
PAGES = int(os.environ.get('PAGES', '5000'))


class Bench(EndToEnd):
    def runTest(self):
        if shutil.which('node') is None or not (MODULES / 'playwright-core').is_dir():
            self.skipTest('no playwright-core (tools/install-dashboard.sh tests)')
        (url,), _ = self.site('--hosts', 1, '--pages', PAGES)
        file = self.folder / 'report.html'
        run = measure([ARGIOPE, 'crawl', '--quiet', '--check-links', '--html', str(file), '-d', str(self.database), url])
        report(f'crawl_report, crawl of {PAGES} pages with --html', 's', run['seconds'], {})
        views = {}
        for _ in range(ROUNDS):
            answer = subprocess.run(['node', str(BROWSE), str(MODULES), str(file)], capture_output=True, text=True, timeout=600, check=True)
            for line in answer.stdout.splitlines():
                view = json.loads(line)
                views.setdefault((view['width'], view['scheme']), []).append(view['milliseconds'])
        for (width, scheme), milliseconds in views.items():
            report(f'crawl_report, painted at {width} px, {scheme}', 'ms', statistics.median(milliseconds), {})
        report('crawl_report, size', 'kB', file.stat().st_size / 1000, {})


if __name__ == '__main__':
    unittest.main(argv=['crawl_report'])
