# complete_in_zsh.zsh FOLDER LINE: what zsh offers at the end of LINE with the completions of FOLDER, a word a line. It types the
# line and a tab into a zsh of its own, whose compadd prints what it would add; calls that put matches into an array are left alone.
zmodload zsh/zpty || exit 1
zpty z zsh -f -i
typeset line

zpty -w z "PROMPT= ; fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -D"
zpty -w z 'bindkey "^I" complete-word
begin () { print -r -- "<offered>" }
finish () { print -r -- "</offered>"; exit }
compprefuncs=(begin)
comppostfuncs=(finish)
zstyle ":completion:*" list-grouped false
zstyle ":completion:*" force-list always
compadd () {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
    builtin compadd "$@"
    return $?
  fi
  typeset -a __hits
  builtin compadd -A __hits "$@"
  builtin compadd "$@"
  local status_of_it=$?
  (( $#__hits )) && print -rl -- $__hits
  return $status_of_it
}
print -r -- "<re""ady>"'
repeat 200; do
  zpty -r z line
  [[ $line == *'<ready>'* ]] && break
done
zpty -n -w z "$2"$'\t'
integer offered=0
while zpty -r z line; do
  if [[ $line == *'</offered>'* ]]; then break
  elif [[ $line == *'<offered>'* ]]; then offered=1
  elif (( offered )); then print -rn -- $line
  fi
done
zpty -d z
