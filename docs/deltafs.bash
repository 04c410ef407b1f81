# Bash completion for deltafs: source this file, or install it as
# /usr/share/bash-completion/completions/deltafs
_deltafs() {
  local current=${COMP_WORDS[COMP_CWORD]}
  local words=("${COMP_WORDS[@]:0:COMP_CWORD}")
  [[ $current != -* ]] || words+=("$current")
  mapfile -t COMPREPLY < <(compgen -W "$(SHELL=bash "${words[@]}" --generate-bash-completion 2>/dev/null)" -- "$current")
}
complete -o default -F _deltafs deltafs
