"""Puts jobs over HTTP, each under an idempotency key of its own. What an earlier life asked and was not answered, it asks
again, and now and then also what was answered."""
import os
import random
import time

from argiope import Client, new_job
from ledger import LIFE, is_stopping, note, stop_when_asked

client = Client(retry_for=600)


def put(key, count, what='acknowledged'):
    note('put', key, count)
    if count == 1:
        ids = [client.put('ledger', key, idempotency_key=key).id]
    else:
        jobs = [new_job('ledger', f'{key}.{i}') for i in range(count)]
        ids = [reply.id for reply in client.put_many(jobs, idempotency_key=key).replies]
    note(what, key, *ids)


def unanswered():
    asked, answered = {}, set()
    for line in open(os.environ['LEDGER']):
        _, _, what, key, *rest = line.split()
        if what == 'put':
            asked[key] = int(rest[0])
        else:
            answered.add(key)
    return [(key, count) for key, count in asked.items() if key not in answered]


stop_when_asked()
for key, count in unanswered():
    put(key, count)
number = 0
while not is_stopping():
    number += 1
    key, count = f'{LIFE}-{number}', random.choice([1, 1, 1, 5])
    put(key, count)
    if number % 10 == 1:
        put(key, count, 'repeated')
    time.sleep(random.uniform(0, 0.02))
