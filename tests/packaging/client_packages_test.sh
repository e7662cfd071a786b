#!/usr/bin/env bash
# The clients as packages: made and installed without the net, they are imported, and a release has them with checksums that are right.
# Ends with 77 where pip or npm is not there.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'echo "FAILED at line $LINENO" >&2' ERR

"$source/tools/client-packages.sh" "$work/made" || exit $?

/usr/bin/python3 -m pip install --quiet --no-index --no-deps --target "$work/python" "$work"/made/argiope-*.whl 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
(cd "$work" && PYTHONPATH=$work/python /usr/bin/python3 -c '
import argiope, argiope.processor, pathlib
folder = pathlib.Path(argiope.__file__).parent
assert "python/argiope" in str(folder), folder
assert (folder / "py.typed").is_file() and (folder / "processor/old_names/pyspider/libs/base_handler.py").is_file()
argiope.Client, argiope.Worker, argiope.processor.BaseHandler')

mkdir "$work/js" && cd "$work/js"
npm install --offline --no-audit --no-fund --ignore-scripts --cache "$work/cache" "$work"/made/argiope-*.tgz >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
node --input-type=module -e 'import { Client, Worker } from "argiope"; import "argiope/processor"; if (!Client || !Worker) process.exit(1)'

# A release of a package that has nothing else.
command -v dpkg-deb >/dev/null && [ -e "$source/.git" ] || { echo 'left out: the release (no dpkg-deb, or no repository)'; exit 0; }
mkdir -p "$work/deb/DEBIAN" "$work/deb/usr/share/argiope" "$work/build"
cp "$work"/made/* "$work/deb/usr/share/argiope"
printf 'Package: argiope\nVersion: 0.1.0-1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n' >"$work/deb/DEBIAN/control"
dpkg-deb --build --root-owner-group "$work/deb" "$work/build/argiope_0.1.0-1_all.deb" >/dev/null
"$source/tools/make-release.sh" "$work/build" "$work/release" >/dev/null
cd "$work/release"
sha256sum --check --quiet SHA256SUMS
[ "$(wc -l <SHA256SUMS)" -eq 4 ]
tar -tzf argiope_0.1.0.orig.tar.gz | grep -x 'argiope-0.1.0/README.md' >/dev/null
! "$source/tools/make-release.sh" "$work/build" "$work/release" 2>/dev/null
