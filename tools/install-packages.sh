#!/usr/bin/env bash
# Installs the Debian packages of the sections named, as listed in packages.txt. Asks nothing, and does nothing at all
# when every package is there. Needs root, or sudo.
#
#   tools/install-packages.sh build test
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "install-packages: $1" >&2
  exit "${2:-1}"
}

[ $# -gt 0 ] || fail "which section of packages.txt?" 2
# What an installed package provides counts as there: a nodejs that isn't Debian's brings npm, and conflicts with Debian's.
there=$(dpkg-query -W -f='${db:Status-Status} ${Package}, ${Provides}\n' | sed -n 's/^installed //p' | sed 's/([^)]*)//g' | tr -s ', ' '\n')
missing=()
for section in "$@"; do
  packages=$(awk -v wanted="[$section]" '/^\[/ { inside = ($1 == wanted); next } inside && /^[a-z0-9]/ { print $1 }' packages.txt)
  [ -n "$packages" ] || fail "packages.txt has no section [$section]" 2
  for package in $packages; do
    grep -qxF "$package" <<<"$there" || missing+=("$package")
  done
done
[ ${#missing[@]} -gt 0 ] || exit 0

command -v apt-get >/dev/null || fail "this needs apt-get, as on Debian 12. Install what gives: ${missing[*]}"
as_root=(env DEBIAN_FRONTEND=noninteractive)
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "run this as root or install sudo; or have root run: apt-get install ${missing[*]}"
  as_root=(sudo "${as_root[@]}")
fi
apt_get=("${as_root[@]}" apt-get -qq -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3)

log=$(mktemp)
policy=/usr/sbin/policy-rc.d
policy_is_ours=
clean_up() {
  [ -z "$policy_is_ours" ] || "${as_root[@]}" rm -f "$policy"
  rm -f "$log"
}
trap clean_up EXIT

echo "Installing ${#missing[@]} packages: ${missing[*]}"
"${apt_get[@]}" update >"$log" 2>&1 || { cat "$log" >&2; fail "apt-get update failed"; }
if ! "${apt_get[@]}" install --simulate --no-install-recommends "${missing[@]}" >"$log" 2>&1; then
  cat "$log" >&2
  fail "the packages are those of Debian 12 (bookworm), and this is $(. /etc/os-release && echo "$PRETTY_NAME")"
fi
# Boost 1.81 takes the place of Debian's default 1.74, for example.
removed=$(awk '$1 == "Remv" { print $2 }' "$log" | xargs)
[ -z "$removed" ] || echo "apt removes what conflicts with them: $removed"

# The servers among them are for tests and benchmarks, which start their own: none is to run as a service, now or after a restart.
new_services=()
for service in nginx beanstalkd redis-server postgresql; do
  [ -e "/etc/init.d/$service" ] || new_services+=("$service")
done
if [ ! -e "$policy" ]; then
  policy_is_ours=yes
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
fi
"${apt_get[@]}" install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 || {
  tail -40 "$log" >&2
  fail "apt-get install failed"
}
for service in "${new_services[@]}"; do
  [ ! -e "/etc/init.d/$service" ] || "${as_root[@]}" update-rc.d "$service" disable >/dev/null 2>&1 || true
done
