"""For scripts that name it; Argiope fetches the pages itself."""


class Fetcher:
    pass
