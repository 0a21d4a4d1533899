/**
 * `millrace completion`, and the candidates for the next word of a command line: commands, options, their values, agents and runs. The
 * program computes them, so the shell scripts never need an update.
 */
import { Argument, type Command, type Option } from 'commander'
import type { CommandContext } from '../context.ts'
import { printable } from '../terminal/output.ts'
import { openConnection } from '../connection.ts'
import { agentFiles } from '../paths.ts'
import type { RunQuery, RunRow, RunStatus } from '../../part/log.ts'
import { partTypes } from '../../part/part.ts'
import { examples } from './options.ts'

export function addCompletionCommand(context: CommandContext, program: Command): void {
  program
    .command('completion')
    .summary('Set up Tab completion for your shell')
    .description('Print a script that makes Tab complete commands, options, agents and runs.')
    .addArgument(new Argument('<shell>', 'Your shell').choices(shells))
    .addHelpText(
      'after',
      examples(
        'eval "$(millrace completion bash)"        # in ~/.bashrc',
        'eval "$(millrace completion zsh)"         # in ~/.zshrc',
        'millrace completion fish | source         # in ~/.config/fish/config.fish',
      ),
    )
    .action((shell: Shell) => printScript(context, shell))
}

function printScript(context: CommandContext, shell: Shell): void {
  context.stdout.write(completionScripts[shell])
}

/** Called by the scripts: prints lines of `word<Tab>description`, then `:files` if file names may follow as well. */
export async function completeCommand(
  context: CommandContext,
  program: Command,
  words: readonly string[],
): Promise<void> {
  const { words: found, files } = await complete(context, program, words)
  const lines = found.map(({ word, about }) => `${oneLine(word)}\t${printable(oneLine(about))}`)
  context.stdout.write([...lines, ...(files ? [':files'] : [])].map((line) => `${line}\n`).join(''))
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/gu, ' ').trim()
}

/** A word and its description. */
type Completion = { word: string; about: string }
interface Completions {
  words: Completion[]
  /** File names may follow as well: the shell completes those itself. */
  files: boolean
}

const none: Completions = { words: [], files: false }
const files: Completions = { words: [], files: true }

/** `words`: the words after `millrace`; the last one is being typed and may be empty. */
async function complete(context: CommandContext, program: Command, words: readonly string[]): Promise<Completions> {
  const current = words.at(-1) ?? ''
  const { words: found, files: orFiles } = await candidates(context, program, words.slice(0, -1), current)
  return { words: found.filter(({ word }) => word.startsWith(current)), files: orFiles }
}

async function candidates(
  context: CommandContext,
  program: Command,
  before: readonly string[],
  current: string,
): Promise<Completions> {
  const command = program.commands.find((each) => each.name() === before[0])
  if (command === undefined) {
    if (before.length > 0) return none
    return current.startsWith('-') ? optionsOf(program) : { words: program.commands.map(nameAndAbout), files: false }
  }
  const given = before.slice(1)
  const open = optionNamed(command, given.at(-1))
  if (open !== undefined && takesValue(open)) return valuesOf(context, open, flags(command, given))
  if (current.startsWith('-')) return optionsOf(command)
  const place = positionals(command, given)
  const argument =
    command.registeredArguments[place] ?? command.registeredArguments.findLast(({ variadic }) => variadic)
  return argument === undefined
    ? none
    : argumentsOf(context, argument, flags(command, given), command.name() === 'answer' ? 'suspended' : undefined)
}

function nameAndAbout(command: Command): Completion {
  return { word: command.name(), about: command.summary() || command.description() }
}

function optionsOf(command: Command): Completions {
  const own = command.options.flatMap(({ long, description }) => (long ? [{ word: long, about: description }] : []))
  return { words: [...own, { word: '--help', about: 'Show help' }], files: false }
}

function optionNamed(command: Command, word: string | undefined): Option | undefined {
  return word?.startsWith('-') ? command.options.find(({ long, short }) => word === long || word === short) : undefined
}

function takesValue(option: Option): boolean {
  return option.required || option.optional
}

async function valuesOf(
  context: CommandContext,
  option: Option,
  given: ReadonlyMap<string, string>,
): Promise<Completions> {
  if (option.argChoices) return { words: option.argChoices.map((word) => ({ word, about: '' })), files: false }
  if (option.long === '--type') return { words: partTypes.map((word) => ({ word, about: '' })), files: false }
  if (option.long === '--agent') return { words: agentsIn(context, given.get('--dir') ?? 'agents'), files: false }
  if (option.long === '--thread') return { words: await threadsIn(context, given), files: false }
  return ['--input', '--file', '--dir', '--data'].includes(option.long ?? '') ? files : none
}

async function argumentsOf(
  context: CommandContext,
  argument: Argument,
  given: ReadonlyMap<string, string>,
  status: RunStatus | undefined,
): Promise<Completions> {
  if (argument.argChoices) return { words: argument.argChoices.map((word) => ({ word, about: '' })), files: false }
  switch (argument.name()) {
    case 'agent':
      return { words: agentsIn(context, given.get('--dir') ?? 'agents'), files: true }
    case 'run':
    case 'file-or-run':
      return {
        words: await runsIn(context, given, status),
        files: argument.name() !== 'run',
      }
    case 'answer':
      return { words: ['approve', 'deny'].map((word) => ({ word, about: '' })), files: false }
    default:
      return files
  }
}

function agentsIn(context: CommandContext, dir: string): Completion[] {
  return agentFiles(context, dir).map((name) => ({ word: name.replace(/\.ya?ml$/u, ''), about: 'agent' }))
}

async function runsIn(
  context: CommandContext,
  given: ReadonlyMap<string, string>,
  status?: RunStatus,
): Promise<Completion[]> {
  const rows = await rowsIn(context, given, { limit: 20, ...(status && { status }) })
  return rows.map((row) => ({ word: row.id, about: `${row.agent}, ${row.status}: ${row.title ?? ''}` }))
}

/** The most recently used threads. */
async function threadsIn(context: CommandContext, given: ReadonlyMap<string, string>): Promise<Completion[]> {
  const rows = await rowsIn(context, given, { limit: 50 })
  const newest = new Map(rows.toReversed().map((row) => [row.threadId, row]))
  return [...newest].toReversed().map(([word, { agent, title = '' }]) => ({ word, about: `${agent}: ${title}` }))
}

async function rowsIn(context: CommandContext, given: ReadonlyMap<string, string>, query: RunQuery): Promise<RunRow[]> {
  const url = given.get('--url')
  try {
    const connection = await openConnection(context, {
      data: given.get('--data') ?? '.millrace',
      ...(url !== undefined && { url }),
    })
    const rows = await connection.list(query)
    await connection.close()
    return rows
  } catch {
    // Without a log there are no runs; Tab must not print an error.
    return []
  }
}

/** The options given so far with their values: `--dir x` and `--dir=x`. */
function flags(command: Command, given: readonly string[]): Map<string, string> {
  const found = new Map<string, string>()
  for (const [i, word] of given.entries()) {
    const [, name, value] = /^(--[\w-]+)=(.*)$/su.exec(word) ?? []
    if (name !== undefined) found.set(name, value!)
    const option = optionNamed(command, word)
    if (option?.long && takesValue(option) && given[i + 1] !== undefined) found.set(option.long, given[i + 1]!)
  }
  return found
}

function positionals(command: Command, given: readonly string[]): number {
  let count = 0
  for (let i = 0; i < given.length; i++) {
    const option = optionNamed(command, given[i])
    if (option !== undefined && takesValue(option)) i++
    else if (!given[i]!.startsWith('-')) count++
  }
  return count
}

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

const completionScripts: Readonly<Record<Shell, string>> = { bash, zsh, fish }
