#!/usr/bin/env bash
# Gathers a release in a folder: the Debian package with the clients that are in it, the sources of the last commit, and checksums.
#
#   tools/make-release.sh BUILD FOLDER          # BUILD has the package that `make deb` has built
set -euo pipefail
cd "$(dirname "$0")/.."
[ -n "${2:-}" ] || { echo 'make-release: which folder? make release DIR=…' >&2; exit 2; }
mkdir -p "$2"
build=$(realpath "$1") folder=$(realpath "$2")
[ -z "$(ls -A "$folder")" ] || { echo "make-release: $folder is not empty" >&2; exit 2; }

packages=("$build"/argiope_*.deb)
[ -f "${packages[0]}" ] || { echo "make-release: no package in $build (make deb)" >&2; exit 1; }
cp "${packages[0]}" "$folder"
version=$(dpkg-deb --field "${packages[0]}" Version)
version=${version%-*}
clients=$(mktemp -d)
trap 'rm -rf "$clients"' EXIT
dpkg-deb --extract "${packages[0]}" "$clients"
cp "$clients"/usr/share/argiope/argiope-*.whl "$clients"/usr/share/argiope/argiope-*.tgz "$folder"
git archive --format=tar.gz --prefix="argiope-$version/" -o "$folder/argiope_$version.orig.tar.gz" HEAD
(cd "$folder" && sha256sum argiope* >SHA256SUMS && ls)
