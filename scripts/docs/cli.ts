/** docs/cli.md: the help of every command, as the command prints it. */
import type { Command } from 'commander'
import { createProgram } from '../../src/cli/main.ts'

export function cliDoc(): string {
  const program = createProgram()
  const sections = program.commands.map((command) => `## millrace ${command.name()}\n\n${block(command)}`)
  return `# The commands

\`millrace <command> --help\` prints what stands here. Answers go to stdout, everything else to stderr; colours and progress appear on a
terminal only, and \`NO_COLOR\` is honoured. Exit codes: 0 done, 1 failed, 2 wrong usage or a broken agent, 130 stopped with Ctrl-C.
Commands about runs ask the live server of the data folder, or read its database when there is none. Any unique prefix of a run id works.
\`run\` uses that server too when it serves the same folder of agents and knows every \`--endpoint\`; otherwise the run happens in the command's own
process, is recorded in \`<data>/local\`, and the command says so. \`MILLRACE_API_KEY\` is the server's key: it is sent to the server that holds the data folder on this machine, or to the one
that \`--url\` names. \`MILLRACE_ENDPOINT_<NAME>\` does what \`--endpoint <name>=…\` does. What a terminal would take for a command is shown
escaped there; in a pipe the answer is left byte for byte.

${block(program)}

${sections.join('\n\n')}
`
}

function block(command: Command): string {
  let text = ''
  command.configureHelp({ helpWidth: 110 }).configureOutput({ writeOut: (piece) => void (text += piece) })
  command.outputHelp()
  return `\`\`\`text\n${text.trim()}\n\`\`\``
}
