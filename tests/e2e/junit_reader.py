"""What junitparser finds in a file of JUnit XML: the reader of crawl_links_test.py that is not ours. Run by the system's Python.

Standard output: a JSON object with `tests` and `failures` as the suites count them, `cases` and `failed` as they are there."""
import json
import sys

import junitparser


def main():
    suites = list(junitparser.JUnitXml.fromfile(sys.argv[1]))
    cases = [case for suite in suites for case in suite]
    failed = [case.name for case in cases if any(isinstance(each, (junitparser.Failure, junitparser.Error)) for each in case.result)]
    print(json.dumps({'tests': sum(suite.tests for suite in suites), 'failures': sum(suite.failures for suite in suites),
                      'cases': len(cases), 'failed': failed}))


main()
