"""A real documentation tree from one nginx worker on loopback: Argiope, wget2, httrack and Scrapy in one run.

ROUNDS (5) runs of each, in turn; medians of the whole process: wall time, processor time, peak memory. CRAWLERS names
those to run beside Argiope (wget2,httrack,scrapy).

What the runs write stays until all are done (about 700 MB a round): ext4 takes ten times as long to make a file soon after as
many were removed, because it looks for a place among theirs.
"""
import json
import os
import pathlib
import tempfile

from crawl_support import ARGIOPE, ROUNDS, compare, installed, measure
from support import EndToEnd

SPIDER = '''
import scrapy
from scrapy.linkextractors import LinkExtractor

class Spider(scrapy.Spider):
    name = 'bench'
    start_urls = ['{url}']
    extractor = LinkExtractor(tags=('a', 'area', 'link'), attrs=('href',), deny_extensions=[], allow='^{url}')
    pages = 0
    custom_settings = dict(LOG_LEVEL='ERROR', CONCURRENT_REQUESTS=32, CONCURRENT_REQUESTS_PER_DOMAIN=32,
                           TELNETCONSOLE_ENABLED=False, ROBOTSTXT_OBEY=True, HTTPERROR_ALLOW_ALL=True)

    def parse(self, response):
        if response.status == 200 and isinstance(response, scrapy.http.HtmlResponse):
            self.pages += 1
            for link in self.extractor.extract_links(response):
                yield scrapy.Request(link.url)

    def closed(self, reason):
        print(self.pages)
'''


CRAWLERS = os.environ.get('CRAWLERS', 'wget2,httrack,scrapy').split(',')


class Bench(EndToEnd):
    def runTest(self):
        url, _ = self.nginx(self.documentation())
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        runs = {'argiope': [], 'wget2': [], 'httrack': [], 'scrapy': []}
        archived, saved, saved_unsynced, mirrored = [], [], [], []
        (folder / 'spider.py').write_text(SPIDER.format(url=url))

        def argiope(number, *arguments):
            run = measure([ARGIOPE, 'crawl', '--quiet', '--summary', 'json', '-d', str(folder / f'{number}.db'), *arguments, url])
            run['pages'] = json.loads(run['output'])['pages']
            return run

        def archive(number):
            return argiope(f'archive-{number}', '--warc', str(folder / f'archive-{number}'))

        def save(number, *arguments):
            # Assets of the same host, as wget2 takes them.
            return argiope(f'save-{number}', '--save', str(folder / f'save-{number}'), '--save-assets', 'same-host', *arguments)

        def wget2(number, *arguments):
            target = folder / f'wget2-{number}'
            run = measure(['wget2', '-q', '-r', '-l', '0', '--max-threads=8', *arguments, '-P', str(target), url])
            run['pages'] = sum(1 for path in target.rglob('*') if path.is_file() and path.suffix == '.html')
            return run

        def httrack(number):
            target = folder / f'httrack-{number}'
            # Every limit off: at its defaults it keeps to 10 connections a second.
            run = measure(['httrack', url, '-O', str(target), '-q', '-c8', '-A0', '-%c0', '--disable-security-limits'])
            run['pages'] = sum(1 for path in target.rglob('*.html') if 'hts-' not in str(path))
            return run

        def scrapy(number):
            run = measure(['scrapy', 'runspider', str(folder / 'spider.py')], cwd=folder)
            run['pages'] = int(run['output'].split()[-1])
            return run

        crawlers = {'argiope': argiope, **{name: crawl for name, crawl in
                                           (('wget2', wget2), ('httrack', httrack), ('scrapy', scrapy))
                                           if name in CRAWLERS and installed(name)}}
        argiope('warm-up')
        for number in range(ROUNDS):
            for name, crawl in crawlers.items():
                if name in ('httrack', 'scrapy') and number > 0:
                    continue  # minutes each: once will do
                runs[name].append(crawl(number))
            archived.append(archive(number))
            saved.append(save(number))
            saved_unsynced.append(save(f'unsynced-{number}', '--sync', 'normal'))
            if 'wget2' in crawlers:
                mirrored.append(wget2(f'mirror-{number}', '--convert-links', '--page-requisites'))
        compare('crawl_real', runs['argiope'][0]['pages'], {name: done for name, done in runs.items() if done})
        # Beside wget2, which writes its pages to files, too.
        compare('crawl_real --warc', archived[0]['pages'],
                {'argiope': archived, **{name: runs[name] for name in ('wget2',) if runs[name]}})
        # What leads from file to file; wget2 waits for no disk.
        compare('crawl_real --save', saved[0]['pages'],
                {'argiope': saved, 'argiope --sync normal': saved_unsynced, **({'wget2 -k -p': mirrored} if mirrored else {})})


if __name__ == '__main__':
    import unittest
    unittest.main(argv=['crawl_real'])
