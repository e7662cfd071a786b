#!/usr/bin/env bash
# Runs the async tests with the ready tasks in orders drawn from seeds, one process a seed:
#
#   shuffled_orders.sh ASYNC_TEST [SEEDS]
#
# ASYNC_TEST: the test program. SEEDS: how many, from ARGIOPE_SHUFFLE_FIRST_SEED (1) on; ARGIOPE_SHUFFLE_SEEDS in the
# environment has precedence. Every seed is tried, and one that fails is named with what failed and with the command that
# repeats it; but after one that takes ARGIOPE_SHUFFLE_SECONDS (600), which hangs even on a busy machine, no other.
set -uo pipefail

program=$1
first=${ARGIOPE_SHUFFLE_FIRST_SEED:-1}
seeds=${ARGIOPE_SHUFFLE_SEEDS:-${2:-20}}
seconds=${ARGIOPE_SHUFFLE_SECONDS:-600}
# Left out: what takes long because it is many.
filter='-ManyTasks*:*.AnyNumberOfParkedTasks*:StreamSweep.*'

output=$(mktemp)
trap 'rm -f "$output"' EXIT
trap 'echo "stopped after seed $seed"; exit 130' INT TERM
failed=()
for ((seed = first; seed < first + seeds; ++seed)); do
  ARGIOPE_SHUFFLE_SEED=$seed timeout --kill-after=5 "$seconds" "$program" --gtest_filter="$filter" >"$output" 2>&1
  status=$?
  ((status == 0)) && continue
  failed+=("$seed")
  last=$(sed -n 's/^\[ RUN      \] //p' "$output" | tail -n 1)
  case $status in
    1) echo "seed $seed failed:" ;;
    124 | 137) echo "seed $seed hangs in $last after $seconds s:" ;;
    *) echo "seed $seed ended with status $status in $last:" ;;
  esac
  # Of each test that failed what it said, and of one that did not end what it had said so far.
  awk '/^\[ RUN  /     { said = ""; open = 1 }
       open            { said = said "  " $0 "\n" }
       /^\[       OK/  { open = 0 }
       /^\[  SKIPPED/  { open = 0 }
       /^\[  FAILED/ && open { printf "%s", said; open = 0 }
       END             { if (open) printf "%s", said }' "$output" | head -n 200
  echo "  again: ARGIOPE_SHUFFLE_SEED=$seed $program --gtest_filter='$filter'"
  ((status == 124 || status == 137)) && break
done

if ((${#failed[@]} > 0)); then
  echo "${#failed[@]} of $seeds seeds failed: ${failed[*]}"
  exit 1
fi
echo "all $seeds seeds from $first on passed"
