#!/usr/bin/env bash
# Walks the dashboard of the daemon ARGIOPE (unless told: the one that was built here) in Chromium, by all files of tests or by those
# that are named: run.sh [FILE.test.mjs…]. Ends with 77, which is "skipped", where node, Chromium, the packages of package.json or a
# daemon that carries the dashboard are not there.
set -euo pipefail
cd "$(dirname "$0")"
skip() {
  echo "skipped: $1"
  exit 77
}
export ARGIOPE=${ARGIOPE:-$PWD/../../build/release/bin/argiope}
command -v node >/dev/null || skip 'no node'
[ -d node_modules/playwright-core ] || skip 'no packages (tools/install-dashboard.sh tests)'
node --input-type=module -e "import { program } from './browser.mjs'; process.exit(program ? 0 : 1)" || skip 'no Chromium'
[ -x "$ARGIOPE" ] || skip "no $ARGIOPE"
grep -q 'src="ui/main.js"' "$ARGIOPE" || skip 'the daemon carries no dashboard (tools/install-dashboard.sh, and build again)'
[ $# -gt 0 ] || set -- ./*.test.mjs
exec node --test "$@"
