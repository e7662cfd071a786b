#!/usr/bin/env bash
# packaging/Containerfile, built by podman or buildah where one is there; with podman its daemon is started and asked. Needs a registry of
# images and a Debian mirror, and builds Argiope within, which takes long.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
image=argiope-test-$$

if command -v podman >/dev/null; then
  podman build --quiet -t "$image" -f "$source/packaging/Containerfile" "$source"
elif command -v buildah >/dev/null; then
  buildah build --quiet -t "$image" -f "$source/packaging/Containerfile" "$source"
  buildah rmi "$image" >/dev/null
  echo 'left out: the container was built and not started (no podman)'
  exit 0
else
  echo 'left out: the container (neither podman nor buildah)'
  exit 0
fi
container=
clean_up() {
  [ -z "$container" ] || podman rm -f "$container" >/dev/null
  podman volume rm -f "$image" >/dev/null
  podman rmi -f "$image" >/dev/null
}
trap clean_up EXIT
podman run --rm -v "$image:/var/lib/argiope" "$image" token add me --scope admin --file /var/lib/argiope/tokens >/dev/null
container=$(podman run -d -v "$image:/var/lib/argiope" -p 127.0.0.1::7733 "$image")
address=$(podman port "$container" 7733)
curl --fail --silent --retry 600 --retry-delay 1 --retry-all-errors "http://$address/healthz"
[ "$(curl --silent -o /dev/null -w '%{http_code}' "http://$address/v1/queues")" = 401 ]
