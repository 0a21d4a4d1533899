/** docs/cli.md: the help of every command, as the command prints it. */
import type { Command } from 'commander'
import { createContext } from '../../test/support/command-context.ts'
import { createProgram } from '../../src/cli/program.ts'

export function cliDoc(): string {
  const program = createProgram(createContext())
  const sections = program.commands.map((command) => `## millrace ${command.name()}\n\n${block(command)}`)
  return `# The commands

This page is the output of \`millrace <command> --help\`.

- **Output**: answers go to stdout, everything else to stderr. Colours and progress appear only on a terminal, and \`NO_COLOR\` turns colours off. Control characters in
  answers are escaped on a terminal; in a pipe the answer is passed on byte for byte.
- **Exit codes**: 0 success, 1 failure, 2 wrong usage or a broken agent, 130 stopped with Ctrl-C.
- **Runs**: commands about runs ask the live server of the data folder, or read its database if there is none. Any unique prefix of a run id works.
- **\`run\`, \`chat\` and a live server**: they use that server if it serves the same folder of agents and knows every \`--endpoint\`. Otherwise the run happens in the
  command's own process, is recorded in \`<data>/local\`, and the command says so.
- **Environment**: \`MILLRACE_API_KEY\` is the server's key. It is sent to the server that holds the data folder on this machine, or to the one that \`--url\` names.
  \`MILLRACE_ENDPOINT_<NAME>=<url>\` is the same as \`--endpoint <name>=<url>\`.

${block(program)}

${sections.join('\n\n')}
`
}

function block(command: Command): string {
  let text = ''
  command
    .configureHelp({ ...command.configureHelp(), helpWidth: 110 })
    .configureOutput({ writeOut: (piece) => void (text += piece) })
  command.outputHelp()
  return `\`\`\`text\n${text.trim()}\n\`\`\``
}
