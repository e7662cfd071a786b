"""For scripts that name it; Argiope does itself what it did."""


class Scheduler:
    pass


ThreadBaseScheduler = OneScheduler = Scheduler
