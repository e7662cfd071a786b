#!/usr/bin/env bash
# Installs the Debian packages of the sections named, as listed in packages.txt; does nothing when all are there.
#
#   tools/install-packages.sh build test
set -euo pipefail
cd "$(dirname "$0")/.."

list_packages() {
  awk -v wanted=" $* " '
    /^\[/ { section = substr($1, 2, length($1) - 2); next }
    /^[a-z]/ && index(wanted, " " section " ") { print $1 }' packages.txt
}

mapfile -t packages < <(list_packages "$@")
if [ ${#packages[@]} -eq 0 ]; then
  echo "install-packages: no section named $* in packages.txt" >&2
  exit 2
fi

missing=()
for package in "${packages[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "install-packages: this needs Debian's apt-get. Install by hand: ${missing[*]}" >&2
  exit 1
fi
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install-packages: run as root, or install sudo, or have installed: ${missing[*]}" >&2
    exit 1
  fi
  sudo=(sudo)
fi

# Servers among the packages are for tests, which start their own: do not let the packages start theirs.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${sudo[@]}" tee "$policy" >/dev/null
  "${sudo[@]}" chmod 755 "$policy"
  trap '"${sudo[@]}" rm -f "$policy"' EXIT
fi

echo "Installing ${#missing[@]} packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq update
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" \
  >"${TMPDIR:-/tmp}/argiope-packages.$$.log" 2>&1 || {
    tail -40 "${TMPDIR:-/tmp}/argiope-packages.$$.log" >&2
    exit 1
  }
rm -f "${TMPDIR:-/tmp}/argiope-packages.$$.log"
