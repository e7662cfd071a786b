"""A daemon in memory that answers as docs/http-api.md says, for the tests of clients: strictly, and no faster than Python is.

FakeDaemon decides; FakeServer puts it on a socket. Faults are asked for: `faults` holds what the next requests suffer.
Run as a program (python3 -m tests.fake_daemon PORT), it serves until it is killed.
"""
import asyncio
import base64
import heapq
import json
import sys
import threading
import time
from collections import deque
from email.utils import formatdate
from urllib.parse import parse_qs, unquote, urlsplit

STATUS = {
    "invalid_input": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "wrong_state": 409,
    "conflict": 409,
    "too_large": 413,
    "idempotency_mismatch": 422,
    "queue_full": 429,
    "too_many": 429,
    "busy": 503,
    "draining": 503,
}
NEW_JOB = {
    "queue": str,
    "id": (int, str),
    "key": str,
    "unique": str,
    "unique_policy": str,
    "run_again": bool,
    "priority": int,
    "due_at": (str, int),
    "delay_ms": int,
    "function": str,
    "payload": object,
    "payload_base64": str,
    "max_attempts": int,
    "lease_time_ms": int,
    "waits_for": list,
    "if_failed": str,
    "batch": (int, str),
}
SETTLEMENT = {
    "token": int,
    "outcome": str,
    "result": object,
    "result_base64": str,
    "error": str,
    "delay_ms": int,
    "priority": int,
    "follow_ups": list,
}
LEASE_CALL = {"queues": list, "most": int, "wait_ms": int, "worker": str, "settle": list}
LIST_QUERY = ("queue", "state", "key", "word", "order", "payloads", "beginnings", "own", "after", "limit")
CONFIG = {
    "rate": "unlimited",
    "paused": False,
    "max_attempts": 3,
    "retry_first_ms": 1000,
    "lease_time_ms": 60000,
    "capacity": None,
    "keep_done_ms": 0,
    "key_concurrency": "unlimited",
}


class Problem(Exception):
    def __init__(self, word, detail="", pointer=None):
        super().__init__(detail)
        errors = [] if pointer is None else [{"pointer": pointer, "detail": detail}]
        self.body = {
            "type": f"urn:argiope:problem:{word}",
            "title": word,
            "status": STATUS[word],
            "detail": detail,
            "errors": errors,
        }


def check(value, members, pointer=""):
    if not isinstance(value, dict):
        raise Problem("invalid_input", "an object is wanted", pointer)
    for name, given in value.items():
        if name not in members:
            raise Problem("invalid_input", f'there is no member "{name}"', f"{pointer}/{name}")
        kind = members[name]
        if not isinstance(given, kind) or (isinstance(given, bool) and kind not in (bool, object)):
            raise Problem("invalid_input", f'"{name}" is of the wrong type', f"{pointer}/{name}")
    return value


def text_of(value):
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def time_text(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


class Answer:
    def __init__(self, status, body=b"", kind="application/json", headers=(), stream=None):
        self.status, self.kind, self.headers, self.stream = status, kind, dict(headers), stream
        self.body = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()


class FakeDaemon:
    """`clock`: seconds, for leases and delays. Everything happens on the loop that awaits answer()."""

    def __init__(self, clock=time.monotonic, token=None):
        self.clock, self.token = clock, token
        self.jobs, self.names, self.queues, self.schedules = {}, {}, {}, {}
        self.ready, self.running, self.keys, self.workers = {}, {}, {}, {}
        self.last_id = self.last_token = 0
        self.requests = []  # (method, path, body) of what was answered
        # What the next requests suffer: "drop" the answer, "refuse" before anything, an Answer instead; (path, fault):
        # the next request for that path.
        self.faults = deque()
        self.events = []  # (id, kind, data)
        self.first_event = 1
        self.change = None  # told of every request; made by the loop that serves
        self.refuses_parts = False  # True: a malformed settlement is refused by itself; else the whole request is
        self.log = []  # (outcome, token) of every settlement that counted

    # What happens to jobs.

    def put(self, given, pointer=""):
        check(given, NEW_JOB, pointer)
        if not given.get("queue"):
            raise Problem("invalid_input", 'member "queue" is missing', pointer + "/queue")
        queue = self.make_queue(given["queue"])
        capacity = queue["config"]["capacity"]
        if capacity is not None and self.counts(given["queue"])["ready"] >= capacity:
            raise Problem("queue_full", f'queue "{given["queue"]}" is full')
        name = given.get("id")
        if name in self.names or name in self.jobs:
            return {"id": self.names.get(name, name), "outcome": "kept"}
        self.last_id += 1
        job = self.new_record(given, name)
        self.jobs[job["id"]] = job
        if isinstance(name, str):
            self.names[name] = job["id"]
        waits = [self.names.get(other, other) for other in given.get("waits_for", ())]
        job["pending"] = sum(self.is_open(other) for other in waits)
        job["_waits_for"] = waits
        self.make_ready(job)
        self.tell("job", {"id": job["id"], "queue": job["queue"], "state": job["state"]})
        return {"id": job["id"], "outcome": "added"}

    def new_record(self, given, name):
        payload = given.get("payload", "")
        bytes_given = base64.b64decode(given["payload_base64"]) if "payload_base64" in given else None
        record = {
            "id": name if isinstance(name, int) else self.last_id,
            "queue": given["queue"],
            "state": "delayed",
            "key": given.get("key", ""),
            "priority": given.get("priority", 0),
            "due_at": None,
            "payload": text_of(payload) if bytes_given is None else bytes_given.decode("utf-8", "replace"),
            "attempts": 0,
            "max_attempts": given.get("max_attempts", 0),
            "expiries": 0,
            "pending": 0,
            "if_failed": "cancel",
            "created_at": "2026-11-22T08:00:00Z",
            "ended_at": None,
            "result": "",
            "error": "",
            "worker": "",
            "lease_until": None,
            "_due": self.clock() + given.get("delay_ms", 0) / 1000,
            "_history": [],
            "_lease_ms": given.get("lease_time_ms"),
            "_cancel": False,
        }
        if isinstance(name, str):
            record["name"] = name
        if "function" in given:
            record["function"] = given["function"]
        if bytes_given is not None and record["payload"].encode() != bytes_given:
            record["payload_base64"] = given["payload_base64"]
        return record

    def is_open(self, job_id):
        return job_id in self.jobs and self.jobs[job_id]["state"] in ("delayed", "ready", "running")

    def make_queue(self, name):
        return self.queues.setdefault(name, {"name": name, "config": dict(CONFIG), "locked": False})

    def make_ready(self, job):
        job["due_at"] = time_text(job["_due"])
        if job["pending"] == 0:
            heapq.heappush(self.ready.setdefault(job["queue"], []), (-job["priority"], job["id"]))
            job["state"] = "ready" if job["_due"] <= self.clock() else "delayed"

    def next_ready(self, queue):
        """The next job of a queue that may start."""
        heap, later = self.ready.get(queue, []), []
        found = None
        while heap and found is None:
            entry = heapq.heappop(heap)
            job = self.jobs.get(entry[1])
            if job is None or job["state"] not in ("ready", "delayed") or -entry[0] != job["priority"]:
                continue
            if job["_due"] > self.clock():
                later.append(entry)
            else:
                found = job
        for entry in later:
            heapq.heappush(heap, entry)
        return found

    def lease(self, queues, most, worker):
        self.expire()
        leases = []
        for queue in queues:
            if self.queues.get(queue, {"config": CONFIG})["config"]["paused"]:
                continue
            while len(leases) < most:
                job = self.next_ready(queue)
                if job is None:
                    break
                leases.append(self.start(job, worker))
        return leases

    def start(self, job, worker):
        self.last_token += 1
        job["state"], job["worker"], job["attempts"] = "running", worker, job["attempts"] + 1
        lease_ms = job["_lease_ms"] or self.queues[job["queue"]]["config"]["lease_time_ms"]
        until = self.clock() + lease_ms / 1000
        self.running[self.last_token] = [job, until, lease_ms]
        return {
            "job": shown(job),
            "token": self.last_token,
            "attempt": job["attempts"],
            "until": time_text(until),
            "lease_ms": lease_ms,
        }

    def expire(self):
        now = self.clock()
        for token in [token for token, run in self.running.items() if run[1] <= now]:
            job = self.running.pop(token)[0]
            job["expiries"] += 1
            self.make_ready(job)

    def settle(self, given, pointer):
        check(given, SETTLEMENT, pointer)
        if given.get("outcome") not in ("done", "retry", "bury", "cancel", "release"):
            raise Problem("invalid_input", "no such outcome", pointer + "/outcome")
        for number, job in enumerate(given.get("follow_ups", ())):
            check(job, NEW_JOB, f"{pointer}/follow_ups/{number}")
        self.expire()
        run = self.running.pop(given["token"], None)
        if run is None:
            return {"token": given["token"], "outcome": "lease_lost"}
        job, outcome = run[0], given["outcome"]
        self.log.append((outcome, given["token"]))
        self.end(job, outcome, given)
        if outcome != "done":
            return {"token": given["token"], "outcome": "ok"}
        return {
            "token": given["token"],
            "outcome": "ok",
            "follow_ups": [self.put(job) for job in given.get("follow_ups", ())],
        }

    def end(self, job, outcome, given):
        if job["_cancel"] and outcome != "done":
            outcome = "cancel"
        job["error"] = given.get("error", "")
        if outcome in ("retry", "bury"):
            job["_history"].append(
                {
                    "number": job["attempts"],
                    "ended_at": None,
                    "outcome": outcome,
                    "error": job["error"],
                    "worker": job["worker"],
                }
            )
        if outcome == "release":
            job["attempts"] -= 1
        if outcome == "retry":
            job["priority"] = given.get("priority", job["priority"])
            if job["attempts"] >= (job["max_attempts"] or self.queues[job["queue"]]["config"]["max_attempts"]):
                outcome = "bury"
        if outcome in ("retry", "release"):
            default = 1000 if outcome == "retry" else 0
            job["_due"] = self.clock() + given.get("delay_ms", default) / 1000
            return self.make_ready(job)
        job["state"] = {"done": "done", "bury": "buried", "cancel": "cancelled"}[outcome]
        job["result"] = text_of(given.get("result", ""))
        if "result_base64" in given:
            job["result_base64"] = given["result_base64"]
        self.tell("job", {"id": job["id"], "queue": job["queue"], "state": job["state"]})
        for other in list(self.jobs.values()) if job.get("_is_waited_for") else ():
            if other["pending"] and job["id"] in other["_waits_for"]:
                other["pending"] -= 1
                self.make_ready(other)

    def find(self, name):
        job = self.jobs.get(int(name) if name.isdigit() else self.names.get(name))
        if job is None:
            raise Problem("not_found", f"there is no job {name}")
        return job

    def counts(self, queue):
        counts = {state: 0 for state in ("ready", "delayed", "running", "done", "buried", "cancelled")}
        for job in self.jobs.values():
            if job["queue"] == queue:
                is_due = job["state"] == "delayed" and not job["pending"] and job["_due"] <= self.clock()
                counts["ready" if is_due else job["state"]] += 1
        return counts

    def tell(self, kind, data):
        self.events.append((len(self.events) + 1, kind, data))

    # Requests.

    async def answer(self, method, target, headers, body):
        self.change = self.change or asyncio.Condition()
        parts = urlsplit(target)
        fault = self.next_fault(parts.path)
        if fault == "refuse":
            raise ConnectionError
        if isinstance(fault, Answer):
            return fault
        try:
            if self.token is not None and headers.get("authorization") != f"Bearer {self.token}":
                raise Problem("unauthorized", "no such token")
            answer = await self.once(method, parts, headers, body)
        except Problem as problem:
            answer = Answer(problem.body["status"], problem.body, "application/problem+json")
            if answer.status in (429, 503):
                answer.headers["Retry-After"] = "1"
        answer.headers["Date"] = formatdate(self.clock(), usegmt=True)
        self.requests.append((method, parts.path, body))
        async with self.change:
            self.change.notify_all()
        if fault == "drop":
            raise ConnectionError
        return answer

    def next_fault(self, path):
        if not self.faults or isinstance(self.faults[0], tuple) and self.faults[0][0] != path:
            return None
        fault = self.faults.popleft()
        return fault[1] if isinstance(fault, tuple) else fault

    async def once(self, method, parts, headers, body):
        """As done before, where the request has the same idempotency key."""
        key = headers.get("idempotency-key")
        if key is None:
            return await self.do(method, parts, headers, body)
        before = self.keys.get(key)
        if before is not None and before[0] != (method, parts.path, body):
            raise Problem("idempotency_mismatch", "the key came with another request")
        if before is None:
            answer = await self.do(method, parts, headers, body)
            if parts.path == "/v1/leases" and not json.loads(answer.body)["leases"]:
                return answer  # one that was given none is a new one when it comes again
            before = self.keys[key] = ((method, parts.path, body), answer)
        return before[1]

    async def do(self, method, parts, headers, body):
        path = [unquote(part) for part in parts.path.strip("/").split("/")]
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if headers.get("content-type") == "application/x-ndjson":
            given = {"jobs": [self.parse(line) for line in body.splitlines() if line.strip()]}
        else:
            given = self.parse(body) if body else {}
        handler = getattr(self, f"{method.lower()}_{path[1] if path[0] == 'v1' else path[0]}", None)
        if handler is None:
            raise Problem("not_found", parts.path)
        result = handler(path[2:], query, given, headers)
        result = await result if asyncio.iscoroutine(result) else result
        return result if isinstance(result, Answer) else Answer(204) if result is None else Answer(200, result)

    def parse(self, text):
        try:
            return json.loads(text)
        except ValueError as error:
            raise Problem("invalid_input", str(error), "") from None

    def post_jobs(self, path, query, given, headers):
        if path == ["change"]:
            return {"replies": [self.try_change(job, given) for job in given["ids"]]}
        if path:
            return getattr(self, f"do_{path[1]}")(self.find(path[0]), given)
        if "jobs" not in given:
            reply = self.put(given)
            return Answer(201 if reply["outcome"] == "added" else 200, reply)
        check(given, {"jobs": list, "atomic": bool, "completion": dict})
        for number, job in enumerate(given["jobs"]) if given.get("atomic") else ():
            check(job, NEW_JOB, f"/jobs/{number}")
        replies = [self.try_put(job, f"/jobs/{number}") for number, job in enumerate(given["jobs"])]
        answer = {"replies": replies}
        if "completion" in given:
            ids = [reply["id"] for reply in replies if "id" in reply]
            for job in ids:
                self.jobs[job]["_is_waited_for"] = True
            answer["completion"] = self.put({**given["completion"], "waits_for": ids})
        return answer

    def try_put(self, job, pointer):
        try:
            return self.put(job, pointer)
        except Problem as problem:
            return {"error": problem.body}

    def try_change(self, number, given):
        try:
            job = self.find(str(number))
            if given["change"] == "set_priority":
                return self.patch_jobs([str(number)], {}, {"priority": given["priority"]}, {})
            return getattr(self, f"do_{given['change']}")(job, given)
        except Problem as problem:
            return {"id": number, "error": problem.body}

    def do_cancel(self, job, given):
        if job["state"] == "running":
            job["_cancel"] = True
            return {"id": job["id"], "outcome": "asked"}
        if job["state"] not in ("ready", "delayed"):
            raise Problem("wrong_state", f"job {job['id']} is {job['state']}")
        job["state"], job["error"] = "cancelled", given.get("why", "")
        return {"id": job["id"], "outcome": "changed"}

    def do_kick(self, job, given):
        if job["state"] not in ("buried", "delayed"):
            raise Problem("wrong_state", f"job {job['id']} is {job['state']}")
        job["_due"], job["attempts"] = self.clock(), 0
        self.make_ready(job)
        return {"id": job["id"], "outcome": "changed"}

    def do_erase(self, job, given):
        if job["state"] == "running":
            raise Problem("wrong_state", "it runs")
        del self.jobs[job["id"]]
        return {"id": job["id"], "outcome": "changed"}

    def patch_jobs(self, path, query, given, headers):
        job = self.find(path[0])
        check(given, {"priority": int, "due_at": str, "delay_ms": int})
        job["priority"] = given.get("priority", job["priority"])
        job["_due"] = self.clock() + given.get("delay_ms", 0) / 1000
        self.make_ready(job)
        return {"id": job["id"], "outcome": "changed"}

    def delete_jobs(self, path, query, given, headers):
        self.do_erase(self.find(path[0]), given)

    def get_jobs(self, path, query, given, headers):
        if not path:
            return self.list_jobs(query)
        job = self.find(path[0])
        if path[1:] == ["explain"]:
            return {"id": job["id"], "state": job["state"], "reason": "none", "sentence": "it is the next one"}
        if path[1:] == ["history"]:
            return {"attempts": job["_history"]}
        if path[1:] == ["output"]:
            if "result_base64" in job:
                return Answer(200, base64.b64decode(job["result_base64"]), "application/octet-stream")
            if not job["result"]:
                raise Problem("not_found", "it has no result")
            return Answer(200, job["result"].encode(), "text/plain")
        return shown(job)

    def list_jobs(self, query):
        check(query, dict.fromkeys(LIST_QUERY, str))
        limit, after, word = int(query.get("limit", 100)), int(query.get("after", 0)), query.get("word", "").lower()
        is_newest = query.get("order", "oldest") == "newest"
        found = [
            self.listed(job, query)
            for job in sorted(self.jobs.values(), key=lambda job: job["id"], reverse=is_newest)
            if (not after or (job["id"] < after if is_newest else job["id"] > after))
            and all(job[name] == query.get(name, job[name]) for name in ("queue", "state", "key"))
            and any(word in str(job.get(name, "")).lower() for name in ("payload", "result", "name", "key", "function", "worker", "error"))
            and (query.get("own") != "false" or not job["queue"].startswith("argiope."))
        ]
        return {"jobs": found[:limit], "next": str(found[limit - 1]["id"]) if len(found) > limit else None}

    def listed(self, job, query):
        if query.get("payloads") == "true":
            return shown(job)
        beginning = job["payload"][:200] if query.get("beginnings") == "true" else ""
        return {name: value for name, value in {**shown(job), "payload": beginning, "result": ""}.items() if not name.endswith("_base64")}

    def get_queues(self, path, query, given, headers):
        if not path:
            return {"queues": [self.queue(name) for name in sorted(self.queues)]}
        return self.queue(path[0]) if len(path) == 1 else {**self.counts(path[0]), "last_minute": {}}

    def queue(self, name):
        if name not in self.queues:
            raise Problem("not_found", f"there is no queue {name}")
        return {**self.queues[name], "counts": self.counts(name)}

    def put_queues(self, path, query, given, headers):
        self.make_queue(path[0])["config"] = {**CONFIG, **check(given, dict.fromkeys(CONFIG, object))}
        return self.queue(path[0])

    def patch_queues(self, path, query, given, headers):
        self.queue(path[0])
        self.queues[path[0]]["config"].update(check(given, dict.fromkeys(CONFIG, object)))
        return self.queue(path[0])

    def delete_queues(self, path, query, given, headers):
        if any(self.queue(path[0])["counts"].values()):
            raise Problem("wrong_state", "there are jobs in it")
        del self.queues[path[0]]

    def post_queues(self, path, query, given, headers):
        if path[1] == "kick":
            found = [job for job in self.jobs.values() if job["queue"] == path[0] and job["state"] == "buried"]
            return {"kicked": len([self.do_kick(job, {}) for job in found[: given.get("limit", 1000)]])}
        self.queue(path[0])
        self.queues[path[0]]["config"]["paused"] = path[1] == "pause"
        return self.queue(path[0])

    async def post_leases(self, path, query, given, headers):
        if path == ["settle"]:
            check(given, {"settlements": list})
            return {"replies": self.settle_all(given["settlements"], "/settlements")}
        check(given, LEASE_CALL)
        worker = given.get("worker", "")
        settled = self.settle_all(given.get("settle", []), "/settle")
        give_up_at = self.clock() + min(given.get("wait_ms", 0), 60_000) / 1000
        self.workers[worker] = {"name": worker, "queues": given["queues"], "waiting": True, "seen_at": time_text(time.time())}
        while True:
            leases = self.lease(given["queues"], given.get("most", 1), worker)
            left = give_up_at - self.clock()
            if leases or left <= 0:
                break
            await self.wait_for_change(min(left, self.next_change()))
        self.workers[worker]["waiting"] = False
        return {"leases": leases, "settled": settled}

    def next_change(self):
        """Seconds until a delay or a lease ends."""
        times = [run[1] for run in self.running.values()]
        times += [job["_due"] for job in self.jobs.values() if job["state"] in ("ready", "delayed")]
        return min((at - self.clock() for at in times if at > self.clock()), default=3600.0) + 0.001

    async def wait_for_change(self, seconds):
        async with self.change:
            changed = asyncio.ensure_future(self.change.wait())
            try:  # not wait_for(), which may forget that it is cancelled
                await asyncio.wait({changed}, timeout=seconds)
            finally:
                changed.cancel()
                await asyncio.gather(changed, return_exceptions=True)  # it holds the lock again

    def settle_all(self, settlements, pointer):
        if self.refuses_parts:
            return [self.try_settle(settlement, f"{pointer}/{number}") for number, settlement in enumerate(settlements)]
        for number, settlement in enumerate(settlements):
            check(settlement, SETTLEMENT, f"{pointer}/{number}")
            for position, job in enumerate(settlement.get("follow_ups", ())):
                check(job, NEW_JOB, f"{pointer}/{number}/follow_ups/{position}")
        return [self.settle(settlement, f"{pointer}/{number}") for number, settlement in enumerate(settlements)]

    def try_settle(self, settlement, pointer):
        try:
            return self.settle(settlement, pointer)
        except Problem as problem:
            return {"token": settlement["token"], "error": problem.body}

    def patch_leases(self, path, query, given, headers):
        self.expire()
        return {
            "leases": [
                self.renew(check(lease, {"token": int, "progress": (int, float), "message": str}))
                for lease in check(given, {"leases": list, "worker": str})["leases"]
            ]
        }

    def renew(self, lease):
        run = self.running.get(lease["token"])
        if run is None:
            return {"token": lease["token"], "lease_lost": True}
        run[1] = self.clock() + run[2] / 1000
        if "progress" in lease:
            run[0]["progress"] = lease["progress"]
        return {"token": lease["token"], "until": time_text(run[1]), "lease_ms": run[2], "cancel": run[0]["_cancel"]}

    def get_workers(self, path, query, given, headers):
        count = {}
        for job, _, _ in self.running.values():
            count[job["worker"]] = count.get(job["worker"], 0) + 1
        return {"workers": [{**worker, "leases": count.get(name, 0)} for name, worker in self.workers.items()]}

    def delete_workers(self, path, query, given, headers):
        tokens = [token for token, run in self.running.items() if run[0]["worker"] == path[0]]
        for token in tokens:
            self.running[token][1] = 0
        self.expire()
        return {"ended": len(tokens)}

    def get_schedules(self, path, query, given, headers):
        if not path:
            names = [name for name in sorted(self.schedules) if name > query.get("after", "")]
            limit = int(query.get("limit", 100))
            return {
                "schedules": [self.schedules[name] for name in names[:limit]],
                "next": names[limit - 1] if len(names) > limit else None,
            }
        schedule = self.schedule(path[0])
        return {
            "": schedule,
            "history": {"runs": []},
            "explain": {"reason": "not_due"},
            "next": {"times": [{"at": "2027-01-01T00:00:00Z"}] * int(query.get("count", 10))},
            "output": Answer(200, b"left", "text/plain"),
        }[path[1] if path[1:] else ""]

    def schedule(self, name):
        if name not in self.schedules:
            raise Problem("not_found", f"there is no schedule {name}")
        return self.schedules[name]

    def post_schedules(self, path, query, given, headers):
        if not path:
            if given["name"] in self.schedules and query.get("conflict", "fail") == "fail":
                raise Problem("conflict", "there is one of that name")
            self.schedules[given["name"]] = {"name": given["name"], "paused": False, "schedule": given}
            return Answer(201, {"id": len(self.schedules), "outcome": "added"})
        schedule = self.schedule(path[0])
        if path[1] == "run":
            return {"job": self.put(schedule["schedule"]["job"])["id"]}
        check(given, {"by": str} if path[1] == "pause" else {"from": str})
        schedule["paused"] = path[1] == "pause"
        return schedule

    def put_schedules(self, path, query, given, headers):
        is_new = path[0] not in self.schedules
        self.schedules[path[0]] = {"name": path[0], "paused": False, "schedule": given}
        return Answer(201 if is_new else 200, {"id": 1, "outcome": "added" if is_new else "changed"})

    def patch_schedules(self, path, query, given, headers):
        self.schedule(path[0])["schedule"].update(given)
        return self.schedules[path[0]]

    def delete_schedules(self, path, query, given, headers):
        self.schedule(path[0])
        del self.schedules[path[0]]

    def post_next(self, path, query, given, headers):
        return {"times": [{"at": "2027-01-01T00:00:00Z"}] * given["count"]}

    def get_events(self, path, query, given, headers):
        kinds = query["kinds"].split(",") if "kinds" in query else None
        last = int(headers.get("last-event-id", len(self.events)))
        return Answer(200, stream=self.stream(kinds, query.get("queue"), last))

    async def stream(self, kinds, queue, last):
        yield b"retry: 10\n\n"
        if last + 1 < self.first_event:
            yield b"event: reset\ndata: {}\n\n"
            last = self.first_event - 1
        while True:
            for number, kind, data in self.events[last:]:
                last = number
                if (kinds is None or kind in kinds) and queue in (None, data.get("queue")):
                    yield f"id: {number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n".encode()
                elif kind == "break":  # once
                    self.events[number - 1] = (number, "broke", {})
                    return
            await self.wait_for_change(5)

    def get_counters(self, path, query, given, headers):
        return {"at": time_text(time.time()), "queues": {name: self.counts(name) for name in self.queues}, "totals": {}}

    def get_config(self, path, query, given, headers):
        return {"queues": {}, "locked": []}

    def get_audit(self, path, query, given, headers):
        return {"entries": [], "next": None}

    def get_version(self, path, query, given, headers):
        return {"version": "0.1.0", "api": 1, "store": "memory:", "started_at": "2026-11-22T08:00:00Z"}

    def get_metrics(self, path, query, given, headers):
        return Answer(200, b"argiope_jobs 0\n", "text/plain")

    def get_healthz(self, path, query, given, headers):
        return {"status": "ok"}

    get_readyz = get_healthz


def shown(job):
    return {name: value for name, value in job.items() if name[0] != "_"}


class FakeServer:
    """A FakeDaemon on loopback, or at "unix:PATH", in a thread of its own until close(). Then open() again: a restart."""

    def __init__(self, daemon=None, port=0, host="127.0.0.1"):
        self.daemon, self.port, self.host = daemon, port, host
        self.open()

    @property
    def url(self):
        return f"http://{self.host}:{self.port}"

    def open(self):
        started = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self.serve(started)), daemon=True)
        self.thread.start()
        started.wait()

    def close(self):
        self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join()

    def call(self, function):
        """What `function()` gives, called on the daemon's thread; then whoever waits looks anew."""

        async def run():
            result = function()
            async with self.daemon.change:
                self.daemon.change.notify_all()
            return result

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(60)

    async def serve(self, started):
        self.loop, self.stop = asyncio.get_running_loop(), asyncio.Event()
        if self.daemon is None:
            self.daemon = FakeDaemon()
        self.daemon.change = asyncio.Condition()
        self.connections = {}
        if self.host.startswith("unix:"):
            server = await asyncio.start_unix_server(self.connected, self.host[len("unix:") :], limit=1 << 26)
        else:
            server = await asyncio.start_server(self.connected, self.host, self.port, limit=1 << 26)
            self.port = server.sockets[0].getsockname()[1]
        started.set()
        await self.stop.wait()
        server.close()
        for task, writer in list(self.connections.items()):
            writer.transport.abort()
            task.cancel()
        await asyncio.gather(*self.connections, return_exceptions=True)

    async def connected(self, reader, writer):
        self.connections[asyncio.current_task()] = writer
        try:
            while await self.one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.connections.pop(asyncio.current_task(), None)
            writer.transport.abort() if self.stop.is_set() else writer.close()

    async def one(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in head[1:] if line}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        answering = asyncio.ensure_future(self.daemon.answer(method, target, headers, body))
        leaving = asyncio.ensure_future(reader.read(1))
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():  # the client has left
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
            return False
        is_gone = leaving.done()
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        answer = answering.result()
        if answer.stream is not None:
            return await self.send_stream(answer, writer)
        lines = [f"HTTP/1.1 {answer.status} X", "X-Request-Id: r1"]
        if answer.status != 204:
            lines += [f"Content-Type: {answer.kind}", f"Content-Length: {len(answer.body)}"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + (b"" if answer.status == 204 else answer.body))
        await writer.drain()
        return not is_gone

    async def send_stream(self, answer, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        async for piece in answer.stream:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        return False


if __name__ == "__main__":
    served = FakeServer(port=int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    print(served.url, flush=True)
    served.thread.join()
