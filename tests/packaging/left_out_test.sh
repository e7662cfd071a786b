#!/bin/sh
# tools/left-out.sh: what each kind of test prints about what it has left out.
set -eu
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/LastTest.log" <<'END'
Start testing: Nov 24 12:00 UTC
----------------------------------------------------------
1/5 Testing: sandbox
1/5 Test: sandbox
[ RUN      ] SandboxTest.IsStrict
tests/project/sandbox_test.cpp:103: Skipped
no user namespaces

[  SKIPPED ] SandboxTest.IsStrict (0 ms)
[ RUN      ] SandboxTest.Ends
[       OK ] SandboxTest.Ends (3 ms)
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] SandboxTest.IsStrict
2/5 Testing: client.python
test_bash (tests.examples.Examples.test_bash) ... ok
test_go (tests.examples.Examples.test_go) ... skipped 'go is not installed'
test_mail (tests.examples.Examples.test_mail)
Sends a mail. ... skipped "there's no mail"
Ran 3 tests in 1.1s
OK (skipped=2)
3/5 Testing: client.js
TAP version 13
    ok 1 - every operation # SKIP there is no description
ok 2 - a job
# skipped 1
4/5 Testing: e2e.dashboard
skipped: no Chromium
5/5 Testing: e2e.crawl_links
left out: JUnit: no junitparser (python3-junitparser)
6/6 Testing: e2e.help_files
fish is not there: not asked
urltestdata.json: 800 passed, 0 failed, 12 left out (schemes that are not special)
END
cat >"$folder/expected" <<'END'
left out: SandboxTest.IsStrict: no user namespaces
left out: client.python: test_go: go is not installed
left out: client.python: Sends a mail.: there's no mail
left out: client.js: every operation: there is no description
left out: e2e.dashboard: no Chromium
left out: e2e.crawl_links: JUnit: no junitparser (python3-junitparser)
left out: e2e.help_files: fish is not there: not asked
END
tools/left-out.sh "$folder/LastTest.log" | diff "$folder/expected" -
