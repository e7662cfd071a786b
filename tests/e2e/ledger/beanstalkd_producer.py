"""Puts jobs by the beanstalkd protocol, some at once. A put whose answer is lost may have been done, and is not repeated."""
import os
import random
import time

from beanstalkd_client import BeanstalkdClient, Gone, put_command
from ledger import LIFE, is_stopping, note, stop_when_asked

TTR = int(os.environ['LEASE_SECONDS'])
number = 0


def put_on(client):
    global number
    client.ask('use ledger')
    while not is_stopping():
        names = [f'{LIFE}-{number + i}' for i in range(random.randrange(1, 9))]
        number += len(names)
        for name in names:
            note('put', name)
        client.send(*(put_command(name, pri=random.randrange(2**32), ttr=TTR) for name in names))
        for name in names:
            word, job = client.answer()
            assert word == 'INSERTED', word
            note('acknowledged', name, job)
        time.sleep(random.uniform(0, 0.04))


stop_when_asked()
while not is_stopping():
    try:
        put_on(BeanstalkdClient(int(os.environ['BEANSTALKD_PORT'])))
    except (Gone, OSError):
        time.sleep(0.01)
