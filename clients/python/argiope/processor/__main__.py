"""python3 -m argiope.processor SCRIPT: runs a script for Argiope, which speaks to it over standard input and output."""
import atexit
import faulthandler
import os
import sys

USAGE = """usage: python3 -m argiope.processor SCRIPT

Runs a script (a class derived from BaseHandler) for Argiope: pages come on standard input, answers go to standard output, as
docs/processors.md says."""


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        asked = len(sys.argv) == 2
        print(USAGE, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    if os.isatty(0):
        print("argiope.processor: standard input is a terminal; Argiope starts this itself (--help)", file=sys.stderr)
        return 2
    from ._channel import Channel, ProtocolError
    from ._run import Processor

    # The current folder, which -m puts before all others, comes last: a project may be called as a module of Python's. Python's own
    # -P, or PYTHONSAFEPATH, does that from the very start.
    if not getattr(sys.flags, "safe_path", False) and sys.path and sys.path[0] in ("", os.getcwd()):
        sys.path.append(sys.path.pop(0))
    channel = Channel.of_standard_streams()
    faulthandler.enable()
    path, sys.argv = sys.argv[1], sys.argv[1:]
    try:
        Processor(path, channel).run()
    except ProtocolError as error:
        print(f"argiope.processor: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    atexit._run_exitfuncs()
    sys.stderr.flush()
    os._exit(0)  # whatever threads the script has left behind


if __name__ == "__main__":
    sys.exit(main())
