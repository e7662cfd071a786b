"""Works on the queue `ledger` over HTTP, with the client's Worker."""
import random
import time

from argiope import Worker
from ledger import LIFE, note


class Watched(Worker):
    """Knows when each job that it has was asked for, at the latest: its lease does not begin before."""

    def __init__(self, **options):
        super().__init__(**options)
        self.asked = {}  # token: nanoseconds
        self.lost_at = None  # when that was asked whose answer was lost, and which is asked again

    async def _ask(self, *words):
        at = self.lost_at if self._lost_poll and self.lost_at else time.monotonic_ns()
        answer = await super()._ask(*words)
        self.lost_at = at if self._lost_poll else None
        for lease in answer.leases if answer else []:
            self.asked[lease['token']] = at
        return answer


worker = Watched(concurrency=8)


@worker.job('ledger')
def run(job):
    note('start', job.id, worker.asked.pop(job.token))
    time.sleep(random.uniform(0, 0.005))
    note('end', job.id)
    return LIFE


worker.run()
