"""`--threads 2` beside `--threads 1` on a server that answers quickly from two processes: nginx with two workers and 20,000 small pages
on each of eight addresses of loopback, since a host belongs to one thread. By turns, so that other work on the machine meets both.

Crawl and server share the machine: with two cores the crawl's second thread takes what the server would, so that the figure says
something only where there are more cores than threads and workers, or with the server's processor time beside it, which is printed.
"""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import unittest

from crawl_support import ARGIOPE, ROUNDS, measure, report
from support import EndToEnd, free_port, wait_for_port

HOSTS = 8
PAGES = int(os.environ.get('PAGES', '20000'))  # of each host
LINKS = 20


class Bench(EndToEnd):
    def tree(self):
        root = self.folder / 'root'
        root.mkdir()
        for number in range(PAGES):
            links = ''.join(f'<a href=/{to}.html>{to}</a> ' for to in range(number * LINKS + 1, min((number + 1) * LINKS + 1, PAGES)))
            (root / f'{number}.html').write_text(f'<!doctype html><title>{number}</title><p>{links}')
        (root / 'index.html').symlink_to('0.html')
        return root

    def workers(self, root):
        """nginx with two workers; gives its process."""
        nginx = shutil.which('nginx') or '/usr/sbin/nginx'
        if not os.path.exists(nginx):
            self.skipTest('nginx is not installed')
        self.port = free_port()
        temporary = ' '.join(f'{kind}_temp_path {self.folder}/tmp;' for kind in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
        listens = ' '.join(f'listen 127.0.0.{number}:{self.port} reuseport;' for number in range(1, HOSTS + 1))
        config = self.folder / 'nginx.conf'
        config.write_text(f'''
            daemon off; worker_processes 2; pid {self.folder}/nginx.pid; error_log {self.folder}/error.log;
            user {"root" if os.geteuid() == 0 else os.environ.get("USER", "nobody")};
            events {{ worker_connections 4096; }}
            http {{
              include /etc/nginx/mime.types; keepalive_requests 1000000; sendfile on; tcp_nopush on; access_log off; {temporary}
              open_file_cache max=50000;
              server {{ {listens} root {root}; }}
            }}''')
        process = self.start([nginx, '-p', str(self.folder), '-c', str(config)], stderr=subprocess.DEVNULL)
        wait_for_port(self.port)
        return process

    def served_cpu(self, parent):
        """Processor seconds of the workers so far."""
        children = pathlib.Path(f'/proc/{parent.pid}/task/{parent.pid}/children').read_text().split()
        fields = [pathlib.Path(f'/proc/{child}/stat').read_text().rpartition(')')[2].split() for child in children]
        return sum(int(one[11]) + int(one[12]) for one in fields) / os.sysconf('SC_CLK_TCK')

    def runTest(self):
        server = self.workers(self.tree())
        urls = [f'http://127.0.0.{number}:{self.port}/' for number in range(1, HOSTS + 1)]
        runs = {threads: [] for threads in (1, 2)}
        for number in range(ROUNDS):
            for threads in (1, 2):
                database = self.folder / f'{number}-{threads}.db'
                before = self.served_cpu(server)
                run = measure([ARGIOPE, 'crawl', '--quiet', '--summary', 'json', '--per-host', '16', '--threads', str(threads), '-d', str(database), *urls])
                run['server'] = self.served_cpu(server) - before
                run['pages'] = json.loads(run['output'].splitlines()[-1])['pages']
                self.assertEqual(run['pages'], HOSTS * PAGES)
                runs[threads].append(run)
                database.unlink()
        for unit, of in (('pages/s', lambda run: run['pages'] / run['seconds']), ('CPU s', lambda run: run['cpu']),
                         ('server CPU s', lambda run: run['server']), ('MB', lambda run: run['mb'])):
            two, one = (statistics.median(map(of, runs[threads])) for threads in (2, 1))
            report(f'crawl_threads, 2 threads, {HOSTS} hosts, {HOSTS * PAGES} pages', unit, two, {'1 thread': one})


if __name__ == '__main__':
    unittest.main(argv=['crawl_threads'])
