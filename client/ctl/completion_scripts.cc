// SPDX-License-Identifier: Apache-2.0
// The scripts of completion.h: how each shell hands over words and takes
// candidates ("TEXT<tab>HELP", a line each).
#include "client/ctl/completion.h"

namespace memtuned::ctl {
namespace {

// bash splits words at '=' and ':' too: the words are taken from the line
// itself, and what bash already has is cut off the candidates.
constexpr char kBash[] = R"(# bash completion for memtunectl
_memtunectl() {
  local line=${COMP_LINE:0:COMP_POINT}
  local -a words
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  local current="" kept="" text
  ((${#words[@]} > 1)) && current=${words[-1]}
  case $current in
    *=*) [[ $COMP_WORDBREAKS == *=* ]] && kept=${current%"${current##*=}"} ;;
    *:*) [[ $COMP_WORDBREAKS == *:* ]] && kept=${current%"${current##*:}"} ;;
  esac
  COMPREPLY=()
  while IFS=$'\t' read -r text _; do
    COMPREPLY+=("${text#"$kept"}")
  done < <("${words[0]}" complete "${words[@]:1}" 2> /dev/null)
  # A target is a path.
  if ((${#words[@]} > 2)) && [[ ${words[-2]} == @(-t|--target) ]]; then
    compopt -o default 2> /dev/null
  fi
  if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *= ]]; then
    compopt -o nospace 2> /dev/null
  fi
  return 0
}
complete -F _memtunectl memtunectl
)";

constexpr char kZsh[] = R"(#compdef memtunectl
# zsh completion for memtunectl
_memtunectl() {
  local -a whole open shown_whole shown_open
  local text help
  while IFS=$'\t' read -r text help; do
    if [[ $text == *= ]]; then
      open+=("$text")
      shown_open+=("$text${help:+  -- $help}")
    else
      whole+=("$text")
      shown_whole+=("$text${help:+  -- $help}")
    fi
  done < <("${words[1]}" complete "${(@)words[2,CURRENT]}" 2> /dev/null)
  if (( ${#whole} )); then
    compadd -l -d shown_whole -- "${whole[@]}"
  fi
  if (( ${#open} )); then
    compadd -l -S '' -d shown_open -- "${open[@]}"
  fi
  if [[ ${words[CURRENT-1]} == (-t|--target) ]]; then
    _files
  fi
}
if [[ ${funcstack[1]} == _memtunectl ]]; then
  _memtunectl "$@"
else
  compdef _memtunectl memtunectl
fi
)";

constexpr char kFish[] = R"(# fish completion for memtunectl
function __memtunectl_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    $words[1] complete $words[2..-1] "$current" 2>/dev/null
end
complete -c memtunectl -s t -l target -r -F
complete -c memtunectl -f -a '(__memtunectl_complete)'
)";

}  // namespace

std::string CompletionScript(std::string_view shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  return shell == "fish" ? kFish : "";
}

}  // namespace memtuned::ctl
