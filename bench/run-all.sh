#!/usr/bin/env bash
# Every benchmark, one after the other; or those of one part. Usage: bench/run-all.sh BIN_FOLDER [daemon]
# `daemon`: what `argiope serve` and the engine below it do, in some minutes.
set -euo pipefail
bin=$1
here=$(dirname "$0")
export ARGIOPE="$bin/argiope"
daemon() {
  "$bin/bench_jobs"
  python3 "$here/daemon_peers.py" --bin "$bin"
  python3 "$here/reads_beside_writes.py" --argiope "$bin/argiope"
}
case "${2:-all}" in
  all) ;;
  daemon) daemon; exit ;;
  *) echo "there is no part \"$2\"" >&2; exit 2 ;;
esac
for program in "$bin"/bench_*; do
  case "$program" in
    "$bin/bench_runtime" | "$bin/bench_schedule") ;; # runtime_peers.py and schedule_peers.py run them
    "$bin/bench_load" | "$bin/bench_jobs") ;;        # daemon_peers.py, and it comes with that
    *) "$program" ;;
  esac
done
python3 "$here/runtime_peers.py"
python3 "$here/runtime_instructions.py"
python3 "$here/schedule_peers.py" --argiope "$bin/bench_schedule"
python3 "$here/crawl_real.py"
python3 "$here/crawl_latency.py"
python3 "$here/crawl_known.py"
python3 "$here/crawl_threads.py"
python3 "$here/crawl_report.py"
python3 "$here/crawl_http2.py"
python3 "$here/crawl_fields.py"
python3 "$here/crawl_assets.py"
python3 "$here/project_pages.py"
daemon
python3 "$here/job_peers.py" # last: a peer that fails ends this script
