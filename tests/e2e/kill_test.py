"""kill -9 at random instants, again and again: at the end every page is there, and hardly one was fetched twice."""
import collections
import os
import pathlib
import random
import subprocess
import unittest
import urllib.parse

from support import ARGIOPE, EndToEnd, read_log

ROUNDS = 50
PER_HOST = 8


def is_connected(ports):
    """Whether a connection to one of the ports is still open at its end."""
    for line in pathlib.Path('/proc/net/tcp').read_text().splitlines()[1:]:
        _, local, _, state = line.split()[:4]
        if int(local.rpartition(':')[2], 16) in ports and state in ('01', '08'):  # established, closed by its peer only
            return True
    return False


class Kill(EndToEnd):
    def test_a_crawl_that_is_killed_fifty_times_loses_nothing(self):
        self.kill_again_and_again()

    def test_nor_does_one_of_which_most_waits_in_the_database(self):
        self.kill_again_and_again('--queue-size', '50')

    def kill_again_and_again(self, *arguments):
        chance = random.Random(4711)
        hosts, pages = 2, 4000  # several times what fifty runs of at most 0.12 s can fetch at this latency
        urls, log = self.site('--hosts', hosts, '--pages', pages, '--latency-ms', 20, '--features', 'redirects,broken')
        ports = {urllib.parse.urlsplit(url).port for url in urls}
        command = [ARGIOPE, 'crawl', '--quiet', '-d', str(self.database), '--per-host', str(PER_HOST), *arguments, *urls]
        kills = 0
        in_doubt = 0  # fetched when killed, and perhaps not committed
        for _ in range(ROUNDS):
            before = len(read_log(log))
            _, interrupted = self.kill_at_work(command, log, chance.uniform(0.0, 0.12), stderr=subprocess.DEVNULL)
            self.assertTrue(interrupted, 'the crawl had ended: the site is too small')
            kills += 1
            # What it has sent is in the log when the site has closed its side.
            self.wait_until(lambda: not is_connected(ports), 'the site did not close its connections')
            answered = len(read_log(log)) - before
            committed = self.settled()
            in_doubt += max(0, answered - (committed - self.settled_before)) if kills > 1 else answered
            self.settled_before = committed
        summary = self.crawl('--per-host', PER_HOST, *arguments, *urls)
        self.assertTrue(summary['finished'])

        fetched = self.rows("SELECT count(*) FROM urls WHERE state = 'done'")[0][0]
        html = self.rows("SELECT count(*) FROM urls WHERE status_code = 200 AND content_type LIKE 'text/html%'")[0][0]
        self.assertEqual(self.rows("SELECT count(*) FROM urls WHERE state <> 'done'")[0][0], 0)
        self.assertEqual(self.rows('SELECT count(*) - count(DISTINCT url) FROM urls')[0][0], 0, 'a URL stands twice')
        self.assertEqual(html, hosts * pages, 'a page is missing')
        requests = collections.Counter((host, target) for _, host, _, target, _ in read_log(log)
                                       if target != '/robots.txt')
        self.assertEqual(len(requests), fetched, 'the log and the database name different URLs')
        again = sum(requests.values()) - len(requests)
        print(f'{kills} kills, {fetched} URLs, {again} fetched again, {in_doubt} were in flight or uncommitted')
        self.assertEqual(kills, ROUNDS)
        self.assertLessEqual(again, in_doubt)

    settled_before = 0

    def settled(self):
        if not os.path.exists(self.database):
            return 0
        try:
            return self.rows("SELECT count(*) FROM urls WHERE state <> 'queued'")[0][0]
        except Exception:  # killed before the first commit: there is no table yet
            return 0


if __name__ == '__main__':
    unittest.main()
