"""Serves orders, beside others of its kind and of worker.mjs; kill any of them at any time. Usage: python3 worker.py"""
import asyncio
import os
import pathlib

from argiope import Worker

receipts = pathlib.Path("receipts")
receipts.mkdir(exist_ok=True)
worker = Worker(concurrency=4)


@worker.job("orders")
async def serve(job):
    order = job.json()
    await asyncio.sleep(0.05)  # the oven
    # The effect, and the proof of it, in one step: the receipt of this job is there whole, or not at all, and only once.
    draft, receipt = receipts / f".{job.id}-{job.token}", receipts / str(job.id)
    draft.write_text(f"{order['item']} for {order['customer']}\n")
    try:
        os.link(draft, receipt)
    except FileExistsError:
        print(f"order {job.id} was served before", flush=True)
        return "was served before"
    finally:
        draft.unlink()
    print(f"order {job.id}: {receipt.read_text()}", end="", flush=True)
    return "served by worker.py"


worker.run()  # until SIGTERM or Ctrl-C: orders in the oven are served first
