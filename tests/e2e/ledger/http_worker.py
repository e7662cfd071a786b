"""Works on the queue `ledger` over HTTP, with the client's Worker."""
import random
import time

from argiope import Worker
from ledger import LIFE, note

worker = Worker(concurrency=8)


@worker.job('ledger')
def run(job):
    note('start', job.id)
    time.sleep(random.uniform(0, 0.005))
    note('end', job.id)
    return LIFE


worker.run()
