"""Every operation of the API (docs/http-api.md), once: its arguments, its request, and what its answer is read as.

The functions give Calls and send nothing. Client and AsyncClient have them as methods, which send; what is said here of
errors and answers holds there. Any call may raise Unreachable, Refused and Unavailable besides.

Units: spans are seconds; times are datetimes that know their zone, or strings as RFC 3339.
"""
