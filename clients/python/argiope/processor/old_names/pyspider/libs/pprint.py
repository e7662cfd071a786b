from pprint import *  # noqa: F401,F403
