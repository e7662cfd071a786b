"""A mail queue and three workers. Start it as often as you like, on as many machines; Ctrl-C lets the mails under way end.

python3 mail_workers.py           works, three mails at a time
python3 mail_workers.py ann bob   puts a mail to each of them first, and ends when all is sent
"""
import sys
import time

from argiope import Client, Retry, Worker, new_job

names = sys.argv[1:]
with Client() as client:
    client.queues.set("mail", key_concurrency=1, max_attempts=5)  # one mail to a customer at a time
    client.put_many([new_job("mail", {"text": "welcome"}, key=name) for name in names])

worker = Worker(concurrency=3, until_empty=bool(names))


@worker.job("mail")
def send(job):
    text = job.json()["text"]
    if not job.key.isalpha():
        raise Retry(3600, f"no such address: {job.key}")
    time.sleep(0.1)  # the mail server
    print(f"sent {text} to {job.key}", flush=True)
    return {"sent_at": time.time()}


worker.run()
