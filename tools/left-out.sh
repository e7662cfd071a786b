#!/bin/sh
# Which tests of a run were left out, and why, a line each: reads what they have printed, which CTest keeps in LastTest.log. Knows how
# GoogleTest, Python's unittest (with -v), node --test and our own scripts say it.
#
#   tools/left-out.sh build/release/Testing/Temporary/LastTest.log
awk '
  function tell(name, why) { print "left out: " name (why == "" ? "" : ": " why) }
  /^[0-9]+\/[0-9]+ Testing: / { test = $3; next }
  # GoogleTest: the reason comes before the name.
  /: Skipped$/ { getline why; next }
  /^\[  SKIPPED \] .* ms\)$/ { tell($4, why); why = ""; next }
  # unittest: "test_go (tests.examples.Examples.test_go) ... skipped '\''go is not installed'\''", or with what it is about for its name.
  / \.\.\. skipped ["'\'']/ {
    name = $0; sub(/ \.\.\. skipped .*/, "", name); sub(/ \(.*/, "", name)
    reason = $0; sub(/.* \.\.\. skipped ./, "", reason); sub(/.$/, "", reason)
    tell(test ": " name, reason); next
  }
  # node, as TAP.
  /^ *ok [0-9]+ .*# SKIP/ {
    name = $0; sub(/^ *ok [0-9]+ (- )?/, "", name); sub(/ *# SKIP.*/, "", name)
    reason = $0; sub(/.*# SKIP */, "", reason)
    tell(test ": " name, reason); next
  }
  # Our scripts, and tests of which a part was left out.
  /^(skipped|left out): / { reason = $0; sub(/^[a-z ]+: /, "", reason); tell(test, reason); next }
  / is not there: not asked$/ { tell(test, $0) }
' "$1"
