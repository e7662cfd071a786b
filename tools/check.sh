#!/usr/bin/env bash
# `make check`: everything there is, in phases, and one table of what each took and how many tests failed in it. Goes on after a phase
# that failed. CHECK_KILLS (50) is how often each of the tests that kill kills, FUZZ_SECONDS (60) how long each fuzz target runs.
set -uo pipefail
cd "$(dirname "$0")/.."

kills=${CHECK_KILLS:-50}
record=$PWD/build/check-record
mkdir -p build
table=()
failures=0

# phase NAME COMMAND…
phase() {
  local name=$1 began=$SECONDS status counts
  shift
  rm -f "$record"
  echo "=== $name"
  ARGIOPE_RECORD=$record "$@"
  status=$?
  counts=$(awk '/^[0-9]+ [0-9]+$/ { passed += $1; failed += $2 } /^flaky: / { flaky = flaky " " $2 }
    END { print passed + 0 " passed, " failed + 0 " failed" (flaky == "" ? "" : "; flaky:" flaky) }' "$record" 2>/dev/null)
  table+=("$(printf '%-36s %6d s  %-8s %s' "$name" $((SECONDS - began)) "$([ $status -eq 0 ] && echo passed || echo FAILED)" "$counts")")
  [ $status -eq 0 ] || failures=$((failures + 1))
}

# The end-to-end tests that kill, each with many more kills than `make test` has.
run_kills() {
  local test status=0
  for test in tests/e2e/*kill*_test.py tests/e2e/warc_test.py tests/e2e/mirror_test.py; do
    ARGIOPE_KILLS=$kills ARGIOPE=$PWD/build/release/bin/argiope WALK_ORACLE=$PWD/build/release/bin/walk_oracle python3 "$test" -v && echo 1 0 >>"$record" || {
      echo 0 1 >>"$record"
      status=1
    }
  done
  return $status
}

# Every operation of the disk fails, where `make test` takes every third; and more seeds, pages and kills than it has time for.
phase 'tests' env ARGIOPE_FAULT_STRIDE=1 ARGIOPE_SCOPE_SEEDS=100 ARGIOPE_EXTRACTED_PAGES=400 ARGIOPE_BROWSED_PAGES=200 \
  ARGIOPE_SEEDS=3 ARGIOPE_KILLS=12 make test
phase 'address and undefined behaviour' make asan
phase 'threads' make tsan
phase "fuzz targets, ${FUZZ_SECONDS:-60} s each" make fuzz FUZZ_SECONDS="${FUZZ_SECONDS:-60}"
phase "kills, $kills in each test" run_kills
printf '=== %s\n' "${table[@]}"
[ $failures -eq 0 ]
