"""What other queues and schedulers call our options: whoever comes from there is answered with our words."""
from __future__ import annotations

from typing import Any, Dict

_ATTEMPTS = "max_attempts, which counts the first one too"
_POLICY = "the queue's retry policy (queues.set)"
_LIMITS = "the queue's limits (queues.set)"
_KEEPING = "keep_done_ms of the queue (queues.set)"

# Celery, RQ, Dramatiq, Huey, APScheduler.
OF_A_JOB: Dict[str, str] = {
    "args": "payload",
    "at_front": "priority",
    "attempts": _ATTEMPTS,
    "countdown": "delay",
    "delay_ms": "delay, in seconds",
    "depends_on": "waits_for",
    "eta": "due_at",
    "expires": "misfire_grace of a schedule, or cancel() the job",
    "ignore_result": _KEEPING,
    "jitter": _POLICY,
    "job_id": "id",
    "job_timeout": "lease_time",
    "kwargs": "payload",
    "lease_time_ms": "lease_time, in seconds",
    "link": "waits_for in the other job, or follow_up() in the function",
    "link_error": "waits_for and if_failed in the other job",
    "max_backoff": _POLICY,
    "max_instances": _LIMITS,
    "max_retries": _ATTEMPTS,
    "min_backoff": _POLICY,
    "misfire_grace_time": "misfire_grace of a schedule",
    "name": "id",
    "next_run_time": "due_at",
    "queue_name": "queue, which comes first",
    "rate_limit": _LIMITS,
    "replace_existing": 'unique and unique_policy="replace"',
    "result_ttl": _KEEPING,
    "retries": _ATTEMPTS,
    "retry": _POLICY,
    "retry_backoff": _POLICY,
    "retry_policy": _POLICY,
    "retry_delay": _POLICY,
    "routing_key": "queue, which comes first",
    "run_date": "due_at",
    "task_id": "id",
    "time_limit": "lease_time",
    "timeout": "lease_time",
    "ttl": "lease_time",
    "visibility_timeout": "lease_time",
}
_TRIGGER = "the trigger, which comes second"
_IN_TRIGGER = 'the trigger, as in {"type": "cron", "expression": "30 3 * * *", NAME: …}'
_ONCE = 'the trigger, which comes second, as in {"type": "at", "time": "2026-12-24T06:00:00Z"}'
# APScheduler, Celery beat, Huey.
OF_A_SCHEDULE: Dict[str, str] = {
    "args": "payload",
    "conflict_policy": 'conflict="replace", "keep" or "fail"',
    "countdown": _ONCE,
    "crontab": _TRIGGER,
    "day": _TRIGGER,
    "day_of_week": _TRIGGER,
    "end": _IN_TRIGGER.replace("NAME", '"end"'),
    "end_date": _IN_TRIGGER.replace("NAME", '"end"'),
    "delay": _ONCE,
    "due_at": _ONCE,
    "eta": _ONCE,
    "executor": "queue",
    "expires": 'misfire_grace: "60s", or a timedelta',
    "func": "queue, and function for the name of what the worker calls",
    "hour": _TRIGGER,
    "hours": _TRIGGER,
    "id": "the name, which comes first",
    "jitter": _IN_TRIGGER.replace("NAME", '"jitter"'),
    "job_executor": "queue",
    "kwargs": "payload",
    "max_jitter": _IN_TRIGGER.replace("NAME", '"jitter"'),
    "max_retries": _ATTEMPTS,
    "max_running_jobs": "max_instances",
    "minute": _TRIGGER,
    "minutes": _TRIGGER,
    "misfire_grace_time": 'misfire_grace: "60s", or a timedelta',
    "name": "the name, which comes first",
    "next_run_time": _IN_TRIGGER.replace("NAME", '"start"'),
    "replace_existing": 'conflict="replace"',
    "retries": _ATTEMPTS,
    "retry_backoff": _POLICY,
    "retry_delay": _POLICY,
    "run_date": _ONCE,
    "schedule": _TRIGGER,
    "second": _TRIGGER,
    "seconds": _TRIGGER,
    "start": _IN_TRIGGER.replace("NAME", '"start"'),
    "start_date": _IN_TRIGGER.replace("NAME", '"start"'),
    "task": "queue, and function for the name of what the worker calls",
    "timezone": _IN_TRIGGER.replace("NAME", '"zone"'),
    "tz": _IN_TRIGGER.replace("NAME", '"zone"'),
    "weeks": _TRIGGER,
    "zone": _IN_TRIGGER.replace("NAME", '"zone"'),
}

_IS_THE_JOB = "the function's one argument, the job"
# Celery, RQ, Dramatiq, Huey: of the decorator.
OF_A_FUNCTION: Dict[str, str] = {
    "acks_late": "nothing: a job is settled when its function has ended",
    "actor_name": "the name, which comes first",
    "autoretry_for": _POLICY,
    "bind": _IS_THE_JOB,
    "context": _IS_THE_JOB,
    "default_retry_delay": _POLICY,
    "ignore_result": _KEEPING,
    "max_backoff": _POLICY,
    "max_retries": _POLICY,
    "min_backoff": _POLICY,
    "name": "the name, which comes first",
    "queue": "the name, which comes first, and queues=[…] of the worker",
    "queue_name": "the name, which comes first, and queues=[…] of the worker",
    "rate_limit": _LIMITS,
    "result_ttl": _KEEPING,
    "retries": _POLICY,
    "retry_backoff": _POLICY,
    "retry_delay": _POLICY,
    "soft_time_limit": "lease_time of the job",
    "time_limit": "lease_time of the job",
    "timeout": "lease_time of the job",
}


_OF_KEYS = "key_rate or key_concurrency, with the key of each job"
# Celery, RQ, Dramatiq, Huey, APScheduler: of a queue's configuration.
OF_A_QUEUE: Dict[str, str] = {
    "autoretry_for": "nothing: any exception is tried again; see max_attempts",
    "default_retry_delay": "retry_first",
    "group_limit": _OF_KEYS,
    "max_instances": "concurrency",
    "max_retries": _ATTEMPTS,
    "max_workers": "concurrency, over all workers; of one worker Worker(concurrency=)",
    "per_key": _OF_KEYS,
    "rate_limit": "rate, starts a second over all workers",
    "result_expires": "keep_done",
    "result_ttl": "keep_done",
    "retries": _ATTEMPTS,
    "retry_backoff": "retry_first and retry_factor",
    "retry_backoff_max": "retry_longest",
    "retry_delay": "retry_first",
    "soft_time_limit": "lease_time",
    "task_time_limit": "lease_time",
    "time_limit": "lease_time",
    "timeout": "lease_time",
    "visibility_timeout": "lease_time",
}


def refusal(what: str, name: str, words: Dict[str, str]) -> TypeError:
    """Of an option that `what` does not have; it says what one of theirs is called here."""
    return TypeError(f"{what} has no option {name!r}" + (f"; use {words[name]}" if name in words else ""))


def refuse_function(value: Any, named: str) -> None:
    """Errors: TypeError for a function where a name belongs: other queues are given the function itself."""
    if callable(value):
        raise TypeError(f"{value!r} is a function: write the name of {named}; @worker.job(\"name\") has the function")
