#!/usr/bin/env bash
# The Debian package on a bare Debian 12, which debootstrap makes: installs, runs, is upgraded, is purged. Needs root, a Debian
# mirror (DEBIAN_MIRROR; the one of this machine's apt by default) and the packages of [package] in packages.txt. Nothing
# outside of a folder of its own is changed, and the daemons run in a network of their own. BARE_DEBIAN=FOLDER takes a copy of
# what debootstrap made before.
#
#   deb_test.sh PACKAGE.deb
set -euo pipefail
deb=$(realpath "$1")
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d -t argiope-deb-XXXXXX)
root=$work/root
log=$work/log
daemon=

clean_up() {
  [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
  for folder in proc dev; do mountpoint -q "$root/$folder" && umount -l "$root/$folder"; done
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'echo "FAILED at line $LINENO" >&2' ERR
fail() {
  echo "FAILED: $1" >&2
  [ ! -s "$log" ] || tail -30 "$log" >&2
  exit 1
}
step() { echo "--- $1"; }
# quietly COMMAND…: shows what it says when it fails.
quietly() { "$@" >"$log" 2>&1 || fail "$*"; }
# A network of its own: the daemon has the addresses that its configuration names, whatever else runs on this machine.
in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
ask() { # PATH: the answer of the daemon, its status first
  nsenter --target "$daemon" --net chroot "$root" bash -c '
    exec 3<>/dev/tcp/127.0.0.1/7733 && printf "GET %s HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n" "$1" >&3 && cat <&3' - "$1" 2>/dev/null
}
put() { # PAYLOAD
  nsenter --target "$daemon" --net chroot "$root" bash -c '
    body="{\"queue\":\"mail\",\"payload\":\"$1\"}"
    exec 3<>/dev/tcp/127.0.0.1/7733 && printf "POST /v1/jobs HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" "${#body}" "$body" >&3 && head -1 <&3' - "$1"
}
# start USER COMMAND…: a daemon in $root, in a network of its own; waits until it says that it is well.
start() {
  local user=$1
  shift
  # shellcheck disable=SC2016
  unshare --net bash -c '
    ip link set lo up
    exec chroot --userspec="$1" "$2" /usr/bin/env -i --chdir=/var/lib/argiope PATH=/usr/bin:/bin "${@:3}"' - \
    "$user" "$root" "$@" >"$log" 2>&1 &
  daemon=$!
  for _ in $(seq 600); do
    kill -0 "$daemon" 2>/dev/null || fail "$* ended"
    [[ $(ask /healthz || true) != 'HTTP/1.'?' 200 '* ]] || return 0
    sleep 0.1
  done
  fail "$* is not well"
}
stop() {
  kill -TERM "$daemon"
  wait "$daemon" || fail "the daemon ended with status $?"
  daemon=
}
# The command line of the unit.
unit_command() { sed -n 's/^ExecStart=//p' "$root/lib/systemd/system/argiope.service"; }
is_enabled() { [ -L "$root/etc/systemd/system/multi-user.target.wants/argiope.service" ] && [ -L "$root/etc/systemd/system/sockets.target.wants/argiope.socket" ]; }

[ "$(id -u)" -eq 0 ] || fail 'this needs root'

step 'what is in the package'
dpkg-deb --info "$deb" | sed -n 's/^ \(Package\|Version\|Installed-Size\|Depends\|Recommends\):/    \1:/p'
dpkg-deb --contents "$deb" | awk '{print $6}' >"$work/contents"
for path in usr/bin/argiope usr/share/man/man1/argiope.1.gz usr/share/man/man1/argiope-serve.1.gz \
  usr/share/bash-completion/completions/argiope usr/share/zsh/vendor-completions/_argiope \
  usr/share/fish/vendor_completions.d/argiope.fish usr/share/argiope/python/argiope/processor/__main__.py lib/systemd/system/argiope.service lib/systemd/system/argiope.socket \
  etc/argiope/argiope.toml usr/share/doc/argiope/packages.md usr/share/doc/argiope/copyright; do
  grep -qxF "./$path" "$work/contents" || fail "$path is not in the package"
done
lintian --allow-root --fail-on error --suppress-tags bad-distribution-in-changes-file "$deb" >"$work/lintian" 2>&1 || { cat "$work/lintian"; fail 'lintian finds errors'; }
sed 's/^/    /' "$work/lintian"

step 'a bare Debian 12'
mirror=${DEBIAN_MIRROR:-$(grep -rhoE '^(URIs: |deb )https?://[^ ]*/debian/?' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | grep -oE 'http.*' | head -1 || true)}
mirror=${mirror:-http://deb.debian.org/debian}
if [ -n "${BARE_DEBIAN:-}" ]; then
  cp -a "$BARE_DEBIAN" "$root"
else
  quietly debootstrap --variant=minbase bookworm "$root" "$mirror"
fi
[ ! -e /etc/apt/apt.conf ] || cp /etc/apt/apt.conf "$root/etc/apt/apt.conf"
cp /etc/resolv.conf "$root/etc/resolv.conf"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
quietly in_root apt-get -qq update
[ ! -e "$root/usr/bin/systemctl" ] || fail 'it is not bare'

grep -q '^./usr/share/argiope/argiope-.*\.whl$' "$work/contents" || fail 'the Python client is not in the package'
grep -q '^./usr/share/argiope/argiope-.*\.tgz$' "$work/contents" || fail 'the JavaScript client is not in the package'

step 'install'
cp "$deb" "$root/tmp/argiope.deb"
quietly in_root apt-get -qq install -y --no-install-recommends /tmp/argiope.deb
in_root argiope --version
is_enabled || fail 'the units are not enabled'
# The folder of its jobs is made when systemd starts the unit.
in_root argiope serve --check --store memory: /etc/argiope/argiope.toml

step 'crawl'
unshare --net sh -c 'ip link set lo up && exec chroot "$0" sh -c '\''
  cd /tmp && { argiope site --port 8080 --hosts 1 --pages 50 >site.log 2>&1 & } && site=$!
  argiope crawl --quiet --summary json http://127.0.0.1:8080/; status=$?
  kill $site; exit $status'\''' "$root" >"$work/crawl" 2>"$log" || fail 'the crawl'
grep -q '"pages":[1-9]' "$work/crawl" || fail "no page was crawled: $(cat "$work/crawl")"

step 'the daemon, by the command of its unit and the configuration that was installed'
# systemd makes the folder, and its user, when it starts the unit.
install -d -o 65534 -g 65534 -m 700 "$root/var/lib/argiope"
# shellcheck disable=SC2046
start 65534:65534 $(unit_command)
[[ $(put hello) == *' 201 '* ]] || fail 'a job is not taken'
stop

step 'upgrade: a changed configuration and the jobs stay'
echo '# changed' >>"$root/etc/argiope/argiope.toml"
quietly in_root apt-get -qq install -y --reinstall --no-install-recommends /tmp/argiope.deb
tail -1 "$root/etc/argiope/argiope.toml" | grep -qx '# changed' || fail 'the configuration was replaced'
is_enabled || fail 'the units are not enabled after an upgrade'
# shellcheck disable=SC2046
start 65534:65534 $(unit_command)
[[ $(ask /v1/jobs/1) == *'"payload":"hello"'* ]] || fail 'the job is gone after an upgrade'
stop
rm "$root/etc/systemd/system/multi-user.target.wants/argiope.service"
quietly in_root apt-get -qq install -y --reinstall --no-install-recommends /tmp/argiope.deb
! is_enabled || fail 'an upgrade enables what an administrator has disabled'

step 'the image of packaging/Containerfile: its last stage, its check and its command'
useradd_line=$(grep -o 'useradd .*' "$source/packaging/Containerfile")
rm -rf "$root/var/lib/argiope"
quietly in_root sh -c "$useradd_line"
json_of() { sed -n "s/^$1 \(CMD \)\?\[/[/p" "$source/packaging/Containerfile" | python3 -c 'import json, shlex, sys; print(shlex.join(json.load(sys.stdin)))'; }
eval "container=($(json_of CMD))"
eval "healthy=($(json_of HEALTHCHECK))"
! in_root argiope "${container[@]}" >"$log" 2>&1 || fail 'it starts without tokens'
grep -q 'tokens' "$log" || fail 'it does not say that tokens are missing'
quietly chroot --userspec=7733 "$root" argiope token add me --file /var/lib/argiope/tokens
start 7733 argiope "${container[@]}"
nsenter --target "$daemon" --net chroot --userspec=7733 "$root" "${healthy[@]}" || fail 'its check fails while it is well'
[[ $(ask /v1/jobs/1) == *' 401 '* ]] || fail 'it answers without a token'
stop
! chroot "$root" "${healthy[@]}" 2>/dev/null || fail 'its check finds a daemon that has ended'

step 'remove and purge'
quietly in_root apt-get -qq remove -y argiope
[ ! -e "$root/usr/bin/argiope" ] || fail 'the program is still there'
[ ! -e "$root/lib/systemd/system/argiope.service" ] || fail 'the unit is still there'
[ -e "$root/etc/argiope/argiope.toml" ] || fail 'the configuration is gone before it was purged'
quietly in_root apt-get -qq purge -y argiope
[ -z "$(find "$root/etc" "$root/lib/systemd" "$root/var/lib/systemd" -name '*argiope*' ! -name '*.db*' 2>/dev/null)" ] || fail "left behind: $(find "$root/etc" "$root/lib/systemd" "$root/var/lib/systemd" -name '*argiope*')"
[ -e "$root/var/lib/argiope" ] || fail 'the jobs are gone'

step 'the units, by systemd itself'
quietly in_root apt-get -qq install -y --no-install-recommends systemd man-db /tmp/argiope.deb
quietly in_root systemd-analyze verify --man=no /lib/systemd/system/argiope.service /lib/systemd/system/argiope.socket
[ ! -s "$log" ] || fail 'systemd-analyze verify has something to say'
in_root systemd-analyze security --offline=true --threshold=15 argiope.service >"$log" 2>&1 || fail 'the service is exposed'
echo "    $(grep -o 'exposure level.*: [0-9.]*' "$log")"
echo 'the package is good'
