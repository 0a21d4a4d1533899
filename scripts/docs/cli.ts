/** docs/cli.md: the help of every command, as the command prints it. Options that most commands have stand there once. */
import type { Command, Option } from 'commander'
import { createContext } from '../../test/support/command-context.ts'
import { createProgram } from '../../src/cli/program.ts'
import { code, markdownTable } from './table.ts'

/** In how many commands an option stands in the same words before it is printed once. */
const isCommonFrom = 10

export function cliDoc(): string {
  const program = createProgram(createContext())
  const { commands } = program
  const help = program.createHelp()
  const rowOf = (option: Option) => [code(option.flags), help.optionDescription(option)]
  const named = Map.groupBy(
    commands.flatMap(({ options }) => options),
    (option) => rowOf(option).join(' '),
  )
  const common = [...named.values()].filter(({ length }) => length >= isCommonFrom)
  for (const option of common.flat()) option.hideHelp()
  const sections = commands.map((command) => {
    const also = command.options.filter(({ hidden }) => hidden).map(({ long }) => code(long!))
    return [`## millrace ${command.name()}`, block(command), ...(also.length > 0 ? [`Also ${also.join(', ')}.`] : [])]
  })
  return `# The commands

This page is the output of \`millrace <command> --help\`, with the [options that most commands have](#common-options) once.

- **Output**: answers go to stdout, everything else to stderr. Colours and progress appear only on a terminal, and \`NO_COLOR\` turns colours off. Control characters in
  answers are escaped on a terminal; a pipe gets the answer byte for byte.
- **Exit codes**: 0 success, 1 failure, 2 wrong usage or a broken agent, 130 stopped with Ctrl-C.
- **Runs**: commands about runs ask the live server of the data folder, or read its database if there is none. Any unique prefix of a run id works.
- **\`run\`, \`chat\` and a live server**: they use that server if it serves the same folder of agents and knows every \`--endpoint\`. Otherwise the run happens in the
  command's own process, is recorded in \`<data>/local\`, and the command says so.
- **Environment**: \`MILLRACE_API_KEY\` is the server's key. It is sent to the server that holds the data folder on this machine, or to the one that \`--url\` names.
  \`MILLRACE_ENDPOINT_<NAME>=<url>\` is the same as \`--endpoint <name>=<url>\`.

${block(program)}

## Common options

The section of a command names those that it has. \`-h\` or \`--help\` works with every command.

${markdownTable(
  ['option', ''],
  common.map(([option]) => rowOf(option!)),
)}

${sections.map((lines) => lines.join('\n\n')).join('\n\n')}
`
}

function block(command: Command): string {
  let text = ''
  command
    .configureHelp({ ...command.configureHelp(), helpWidth: 110 })
    .configureOutput({ writeOut: (piece) => void (text += piece) })
    .helpOption(false)
  command.outputHelp()
  return `\`\`\`text\n${text.trim()}\n\`\`\``
}
