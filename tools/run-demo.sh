#!/usr/bin/env bash
# `make run`: crawls the URLs given, or, without any, a synthetic web that it starts and stops itself.
#
#   tools/run-demo.sh ARGIOPE [URL...]
set -euo pipefail
argiope=$1
shift
work=build/demo
mkdir -p "$work"

if [ $# -gt 0 ]; then
  exec "$argiope" crawl --db "$work/argiope.db" "$@"
fi

rm -f "$work"/demo.db*
# Without pages that are busy at first: waiting for them would be most of the time.
"$argiope" site --hosts 3 --pages 2000 --errors 0.001 --port 0 --by-address \
  --features robots,redirects,broken,compressed,encodings,nofollow,resources,duplicates,offsite,phantoms,base,chain >"$work/site.txt" &
site=$!
trap 'kill $site 2>/dev/null; wait $site 2>/dev/null || true' EXIT
for _ in $(seq 100); do
  grep -q Ctrl-C "$work/site.txt" && break
  kill -0 $site
  sleep 0.05
done
url=$(awk 'NR == 2 { print $1 }' "$work/site.txt")

echo "A synthetic web of three hosts is at $url"
echo "\$ argiope crawl --db $work/demo.db --whitelist 127.0.0.2 --whitelist 127.0.0.3 $url"
"$argiope" crawl --db "$work/demo.db" --whitelist 127.0.0.2 --whitelist 127.0.0.3 "$url"
cat <<END

What to try next:
  make run URL=https://example.org/          crawl a real site, politely
  $argiope crawl --help            every option
  $argiope site --hostile all      a web that lies, loops and drips: crawl it
  sqlite3 $work/demo.db 'SELECT state, count(*) FROM urls GROUP BY state'
END
