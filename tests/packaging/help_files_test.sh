#!/usr/bin/env bash
# The manual pages are well-formed, and the completions complete, in the shells themselves. mandoc, zsh and fish are asked where
# they are there; ARGIOPE_ALL_SHELLS=1 (make package-test) demands them.
#
#   help_files_test.sh ARGIOPE
set -euo pipefail
argiope=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $1" >&2
  exit 1
}
has() {
  command -v "$1" >/dev/null && return 0
  [ -z "${ARGIOPE_ALL_SHELLS:-}" ] || fail "$1 is not there"
  echo "$1 is not there: not asked"
  return 1
}

SOURCE_DATE_EPOCH=1764000000 "$argiope" --help-files "$work"

# --- manual pages

for name in argiope argiope-{crawl,serve,beanstalkd,site,next,simulate,job,schedule,explain,token,notify}; do
  [ -s "$work/man/$name.1" ] || fail "there is no page $name(1)"
done
grep -q '^\.TH "ARGIOPE-SERVE" 1 "2025-11-24"' "$work/man/argiope-serve.1" || fail 'the page has another date'
if has man; then
  for page in "$work"/man/*.1; do
    said=$(LC_ALL=C.UTF-8 MANWIDTH=100 MANROFFSEQ='' man --warnings -E UTF-8 -l "$page" 2>&1 >/dev/null)
    [ -z "$said" ] || fail "$said"
  done
fi
if has mandoc; then
  mandoc -T lint -W warning "$work"/man/*.1 >"$work/lint" || { cat "$work/lint"; fail 'mandoc finds something wrong'; }
  # What a reader sees can be typed.
  mandoc -T utf8 "$work/man/argiope-serve.1" | col -b >"$work/serve.txt"
  grep -qF "curl -d '{\"queue\":\"mail\",\"payload\":\"hello\"}' http://127.0.0.1:7733/v1/jobs" "$work/serve.txt" ||
    fail 'an example differs from what it is in the help'
  grep -q -- '--listen ADDRESS' "$work/serve.txt" || fail 'an option is missing'
fi

# --- completions. expect SHELL 'LINE' 'WANTED…' ['NOT WANTED…']: what the shell offers for the line up to its end.

mkdir "$work/here"
cd "$work/here"
mkdir folder
touch file.toml

expect() {
  local shell=$1 line=$2 wanted=$3 unwanted=${4:-} offered word
  offered=$("complete_in_$shell" "$line")
  for word in $wanted; do
    grep -qxF -e "$word" <<<"$offered" || fail "$shell: '$line' does not offer '$word' but: $(tr '\n' ' ' <<<"$offered")"
  done
  for word in $unwanted; do
    ! grep -qxF -e "$word" <<<"$offered" || fail "$shell: '$line' offers '$word'"
  done
}
complete_in_bash() {
  bash --norc -c '
    source "$1"
    line=$2
    # As readline takes words apart.
    read -ra COMP_WORDS <<<"${line//=/ = }"
    [[ $line != *" " ]] || COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _argiope
    printf "%s\n" "${COMPREPLY[@]}"' - "$work/bash/argiope" "$1"
}
complete_in_zsh() { zsh -f "$here/complete_in_zsh.zsh" "$work/zsh" "$1" | tr -d '\r' | sed 's/ -- .*//; s/ *$//; s/=$//'; }
complete_in_fish() { HOME=$work fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$work/fish/argiope.fish" "$1" | cut -f1 | sed 's/=$//'; }

complete_everything() {
  local shell=$1
  expect "$shell" 'argiope ' 'crawl serve beanstalkd job schedule token notify explain next simulate site' 'put folder'
  expect "$shell" 'argiope job ' 'put list work queue' 'crawl file.toml'
  expect "$shell" 'argiope notify ' 'list test' 'crawl file.toml'
  expect "$shell" 'argiope job work --' '--store --concurrency --until-empty' '--listen --max-depth'
  expect "$shell" 'argiope serve --log ' 'text json' 'file.toml'
  expect "$shell" 'argiope crawl --order ' 'bfs dfs priority'
  expect "$shell" 'argiope schedule add --overlap ' 'skip queue-one queue-all cancel-running'
  expect "$shell" 'argiope serve --tokens ' 'file.toml'
  expect "$shell" 'argiope serve f' 'file.toml'
  expect "$shell" 'argiope job list --queue ' '' 'put file.toml'
  expect "$shell" 'argiope beanstalkd -' '-b -l -p -z -F'
}

complete_everything bash
expect bash 'argiope serve --log=j' 'json' 'text'
expect bash 'argiope job work mail -- f' 'file.toml folder'
expect bash 'argiope beanstalkd -b ' 'folder' 'file.toml'
if has zsh; then complete_everything zsh; fi
if has fish; then
  complete_everything fish
  expect fish 'argiope job work mail -- f' 'file.toml'
fi
echo 'manual pages and completions are good'
