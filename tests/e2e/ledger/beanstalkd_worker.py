"""Works on the tube `ledger` by the beanstalkd protocol: reserves some jobs at once, runs them, and deletes them."""
import os
import random
import time

from beanstalkd_client import BeanstalkdClient, Gone
from ledger import is_stopping, note, stop_when_asked


def work(client):
    client.send('watch ledger', 'ignore default')
    client.answer(), client.answer()
    while not is_stopping():
        note('asks', 0)
        first = client.ask('reserve-with-timeout 1')
        if first[0] != 'RESERVED':
            continue
        ids = [first[1], *more_at_once(client, random.randrange(4))]
        for job in ids:
            note('start', job)
            time.sleep(random.uniform(0, 0.003))
            note('end', job)
        client.send(*(f'delete {job}' for job in ids))
        for job in ids:
            note('deleted' if client.answer() == ['DELETED'] else 'lost', job)
    client.send('quit')


def more_at_once(client, count):
    client.send(*['reserve-with-timeout 0'] * count)
    answers = [client.answer() for _ in range(count)]
    return [answer[1] for answer in answers if answer[0] == 'RESERVED']


stop_when_asked()
while not is_stopping():
    try:
        work(BeanstalkdClient(int(os.environ['BEANSTALKD_PORT'])))
    except (Gone, OSError):
        time.sleep(0.01)
