#!/usr/bin/env bash
# Installs the libraries of the dashboard (dashboard/package.json) into dashboard/node_modules, or those of its tests into
# dashboard/tests/node_modules, as the lock file names them. Does nothing when they are there.
#
#   tools/install-dashboard.sh [--if-possible] [tests]    # --if-possible: without npm or a network, says so and goes on
set -euo pipefail
cd "$(dirname "$0")/../dashboard"
may_fail=
[ "${1:-}" != --if-possible ] || { may_fail=yes && shift; }
cd "${1:-.}"

give_up() {
  echo "$1" >&2
  [ -n "$may_fail" ] || exit 1
  echo "Going on without: \`make dashboard\` installs what the dashboard of \`argiope serve\` needs." >&2
  exit 0
}

# npm writes this file last.
installed=node_modules/.package-lock.json
[ ! "$installed" -nt package-lock.json ] || exit 0
command -v npm >/dev/null || give_up 'npm is not there.'
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Without the tries that npm makes for minutes where there is no network.
timeout 60 npm ci --no-audit --no-fund --ignore-scripts --loglevel=error --fetch-retries=0 --fetch-timeout=20000 >"$log" 2>&1 || {
  tail -5 "$log" >&2
  give_up "npm could not install what $(pwd) needs."
}
touch "$installed"
