#!/usr/bin/env bash
# The example configuration is accepted, as it is and with every line that it only shows; systemd accepts the units, where it is
# there to be asked, and finds them hardened.
#
#   units_test.sh ARGIOPE
set -euo pipefail
argiope=$(realpath "$1")
packaging=$(cd "$(dirname "$0")/../../packaging" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $1" >&2
  exit 1
}

"$argiope" serve --check --store memory: "$packaging/argiope.toml" || fail 'the example is refused'
# A line that is only shown begins with "#" and no space.
"$argiope" token add me --file "$work/tokens" >/dev/null 2>&1
sed "s|^#\([^ ]\)|\1|; s|/etc/argiope/tokens\"|$work/tokens\"|; s|/usr/local/bin/send-mail|/bin/true|" "$packaging/argiope.toml" >"$work/all.toml"
"$argiope" serve --check --store memory: "$work/all.toml" | grep -q '1 queue, 1 schedule, 1 token' || fail 'what the example shows is refused'

command -v systemd-analyze >/dev/null || { echo 'systemd-analyze is not there: not asked'; exit 0; }
# It wants to see the command.
sed "s|/usr/bin/argiope |$argiope |" "$packaging/argiope.service" >"$work/argiope.service"
cp "$packaging/argiope.socket" "$work"
said=$(systemd-analyze verify --man=no "$work/argiope.service" "$work/argiope.socket" 2>&1) || fail "$said"
[ -z "$said" ] || fail "$said"
# In tenths.
systemd-analyze security --offline=true --threshold=15 "$work/argiope.service" >"$work/security" 2>&1 ||
  fail "$(tail -1 "$work/security")"
tail -1 "$work/security"
