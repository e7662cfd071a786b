#!/usr/bin/env bash
# Makes the clients installable without the net: a wheel for Python, a package for npm. Downloads nothing, and leaves the source folders as
# they are. Ends with 77 where what it needs is not there: pip with setuptools and wheel (Debian's python3-pip, python3-setuptools,
# python3-wheel), and npm.
#
#   tools/client-packages.sh FOLDER [python|js]…
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1"
folder=$(realpath "$1")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

missing() {
  echo "skipped: $1"
  exit 77
}
# quietly COMMAND…: shows what it says when it fails.
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }; }

make_python() {
  { /usr/bin/python3 -c 'import setuptools, wheel' && /usr/bin/python3 -m pip --version; } >/dev/null 2>&1 || missing 'no pip, setuptools and wheel of Debian'
  cp -r clients/python "$work/python"
  rm -f "$folder"/argiope-*.whl
  quietly /usr/bin/python3 -m pip wheel --no-index --no-deps --no-build-isolation --wheel-dir "$folder" "$work/python"
}
make_js() {
  command -v npm >/dev/null || missing 'no npm'
  rm -f "$folder"/argiope-*.tgz
  (cd clients/js && quietly npm pack --ignore-scripts --offline --cache "$work/cache" --pack-destination "$folder")
}
[ $# -gt 0 ] || set -- python js
for client in "$@"; do "make_$client"; done
