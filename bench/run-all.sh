#!/usr/bin/env bash
# Every benchmark, one after the other. Usage: bench/run-all.sh BIN_FOLDER
set -euo pipefail
bin=$1
here=$(dirname "$0")
for program in "$bin"/bench_*; do
  "$program"
done
export ARGIOPE="$bin/argiope"
python3 "$here/crawl_real.py"
python3 "$here/crawl_latency.py"
python3 "$here/crawl_known.py"
