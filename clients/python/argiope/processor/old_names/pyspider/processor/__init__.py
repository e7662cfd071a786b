"""For scripts that name it; Argiope runs the callbacks itself."""


class ProcessorResult:
    def __init__(self, result=None, follows=(), messages=(), logs=(), exception=None, extinfo=None, save=None):
        self.result, self.follows, self.messages, self.logs = result, follows, messages, logs
        self.exception, self.extinfo, self.save = exception, extinfo or {}, save


class Processor:
    pass
