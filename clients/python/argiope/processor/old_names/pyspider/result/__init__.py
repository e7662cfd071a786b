"""For scripts that name it; Argiope does itself what it did."""


class ResultWorker:
    pass


OneResultWorker = ResultWorker
