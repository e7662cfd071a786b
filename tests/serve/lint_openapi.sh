#!/usr/bin/env bash
# Lints the API document as strangers' tools do, by npm's @redocly/cli with tests/serve/redocly.yaml. Ends with 77, which is
# "skipped", where the package is not there.
set -euo pipefail
cd "$(dirname "$0")/../.."
cli=dashboard/tests/node_modules/@redocly/cli/bin/cli.js
skip() {
  echo "skipped: $1"
  exit 77
}
command -v node >/dev/null || skip 'no node'
[ -f "$cli" ] || skip 'no @redocly/cli (tools/install-dashboard.sh tests)'
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
exec node "$cli" lint --config tests/serve/redocly.yaml --format=stylish src/serve/api/openapi.json
