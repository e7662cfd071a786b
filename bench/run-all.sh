#!/usr/bin/env bash
# Every benchmark, one after the other. Usage: bench/run-all.sh BIN_FOLDER
set -euo pipefail
bin=$1
here=$(dirname "$0")
export ARGIOPE="$bin/argiope"
for program in "$bin"/bench_*; do
  case "$program" in
    "$bin/bench_runtime" | "$bin/bench_schedule") ;; # runtime_peers.py and schedule_peers.py run them
    *) "$program" ;;
  esac
done
python3 "$here/runtime_peers.py"
python3 "$here/runtime_instructions.py"
python3 "$here/schedule_peers.py" --argiope "$bin/bench_schedule"
python3 "$here/crawl_real.py"
python3 "$here/crawl_latency.py"
python3 "$here/crawl_known.py"
python3 "$here/job_peers.py" # last: a peer that fails ends this script
