#!/bin/bash
# A processor in Bash, of nothing but Bash and coreutils: follows the links of each page and gives its title.
# Argiope starts it with the first page as its argument: processor = ["bash", "links.sh", "https://shop.example/"]
set -u
start=$1

json() { # as a JSON text
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  printf '"%s"' "$(tr -d '\000-\037' <<<"$text")"
}

list() { # each line of standard input by a printf pattern, with commas between
  local line comma=
  while IFS= read -r line; do
    printf "%s$1" "$comma" "$(json "$line")"
    comma=,
  done
}

page=$(mktemp)
trap 'rm -f "$page"' EXIT
while IFS= read -r message; do
  if [[ $message =~ ^\{\"type\":\"page\",\"id\":([0-9]+),\"body\":([0-9]+),\"event\":\"([a-z]+)\" ]]; then
    id=${BASH_REMATCH[1]} event=${BASH_REMATCH[3]}
    head -c "${BASH_REMATCH[2]}" | tr -d '\000' >"$page"
    if [[ $event = start ]]; then
      echo "{\"type\":\"done\",\"id\":$id,\"pages\":[{\"url\":$(json "$start"),\"rule\":\"page\"}]}"
      continue
    fi
    links=$(grep -aoiE '<a [^>]*href="[^"#]+' "$page" | sed -E 's/.*"//; s/&amp;/\&/g' | sort -u | head -n 1000 | list '{"url":%s,"rule":"page"}')
    title=$(tr '\n' ' ' <"$page" | grep -aoiE '<title>[^<]*' | head -n 1 | cut -c 8-)
    echo "{\"type\":\"done\",\"id\":$id,\"pages\":[$links],\"results\":[{\"value\":{\"title\":$(json "$title")}}]}"
  elif [[ $message =~ \"type\":\"describe\" ]]; then
    echo '{"type":"described","protocol":1,"on":{"start":"start"},"rules":{"page":{"age_ms":86400000}}}'
  fi
done
