/**
 * Completion scripts for shells. Each calls `millrace __complete <words>`, which prints lines of `word<Tab>description`, and a
 * last line `:files` if file names may follow as well. Words are never evaluated: an agent file may have any name.
 */
export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

const bash = `# millrace completion for bash. Load it with:  eval "$(millrace completion bash)"
_millrace() {
  local cur=\${COMP_WORDS[COMP_CWORD]} line word
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == ':files' ]]; then
      compopt -o default 2>/dev/null
    else
      word=\${line%%$'\\t'*}
      [[ $word == "$cur"* ]] && COMPREPLY+=("$(printf '%q' "$word")")
    fi
  done < <("\${COMP_WORDS[0]}" __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _millrace millrace
`

const zsh = `#compdef millrace
# millrace completion for zsh. Load it with:  eval "$(millrace completion zsh)"
_millrace() {
  local line word files=
  local -a found
  while IFS= read -r line; do
    if [[ $line == ':files' ]]; then
      files=1
    else
      word=\${line%%$'\\t'*}
      found+=("\${word//:/\\\\:}:\${line#*$'\\t'}")
    fi
  done < <("\${words[1]}" __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)
  local ret=1
  (( \${#found} )) && _describe 'millrace' found && ret=0
  [[ -n $files ]] && _files && ret=0
  return ret
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
compdef _millrace millrace
`

const fish = `# millrace completion for fish. Load it with:  millrace completion fish | source
function __millrace_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in (command $words[1] __complete $words[2..] 2>/dev/null)
        if test "$line" = ':files'
            __fish_complete_path (commandline -ct)
        else
            echo -- $line
        end
    end
end
complete -c millrace -f -a '(__millrace_complete)'
`

export const completionScripts: Readonly<Record<Shell, string>> = { bash, zsh, fish }
