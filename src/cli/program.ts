/** The program: runs the command of a command line. Each command has its own file in `commands/`, which loads the rest when it runs. */
import { Command, CommanderError } from 'commander'
import { createCleaner } from '../fold/redact.ts'
import { messageOf, MillraceError, wholeMessage } from '../part/error.ts'
import { secretValues } from '../project/secrets.ts'
import { version } from '../server/version.ts'
import { addAnswerCommand } from './commands/answer.ts'
import { addAuditCommand } from './commands/audit.ts'
import { addChatCommand } from './commands/chat.ts'
import { addCheckCommand } from './commands/check.ts'
import { addCompletionCommand, completeCommand } from './commands/completion.ts'
import { addDiffCommand } from './commands/diff.ts'
import { addExportCommand } from './commands/export.ts'
import { addForkCommand } from './commands/fork.ts'
import { addImportCommand } from './commands/import.ts'
import { addInitCommand } from './commands/init.ts'
import { addKeysCommand } from './commands/keys.ts'
import { addLoginCommand, addLogoutCommand } from './commands/login.ts'
import { addLogsCommand } from './commands/logs.ts'
import { addMcpCommand } from './commands/mcp.ts'
import { addMigrateCommand } from './commands/migrate.ts'
import { addParseCommand } from './commands/parse.ts'
import { addPsCommand } from './commands/ps.ts'
import { addQueryCommand } from './commands/query.ts'
import { addReindexCommand } from './commands/reindex.ts'
import { addReplayCommand } from './commands/replay.ts'
import { addRmCommand } from './commands/rm.ts'
import { addRunCommand } from './commands/run.ts'
import { addSchemaCommand } from './commands/schema.ts'
import { addServeCommand } from './commands/serve.ts'
import { addShowCommand } from './commands/show.ts'
import { addStatsCommand } from './commands/stats.ts'
import { addStopCommand } from './commands/stop.ts'
import { addTellCommand } from './commands/tell.ts'
import { addTestCommand } from './commands/test.ts'
import { addThreadsCommand } from './commands/threads.ts'
import { addCompactCommand, addPruneCommand } from './commands/upkeep.ts'
import { addUsageCommand } from './commands/usage.ts'
import { addVerifyCommand } from './commands/verify.ts'
import type { CommandContext, Output } from './context.ts'
import { readEnvFiles } from './env-files.ts'
import { sendConsoleToStderr } from './terminal/console.ts'
import { printable } from './terminal/output.ts'

/** In the order of the help. */
const agentCommands = [
  addInitCommand,
  addServeCommand,
  addRunCommand,
  addChatCommand,
  addMcpCommand,
  addCheckCommand,
  addTestCommand,
  addSchemaCommand,
]
const runCommands = [
  addPsCommand,
  addShowCommand,
  addLogsCommand,
  addThreadsCommand,
  addStatsCommand,
  addUsageCommand,
  addAuditCommand,
  addAnswerCommand,
  addStopCommand,
  addTellCommand,
  addVerifyCommand,
  addReplayCommand,
  addExportCommand,
  addForkCommand,
  addDiffCommand,
  addQueryCommand,
  addReindexCommand,
  addMigrateCommand,
  addImportCommand,
  addCompactCommand,
  addPruneCommand,
  addRmCommand,
]
const otherCommands = [addKeysCommand, addLoginCommand, addLogoutCommand, addParseCommand, addCompletionCommand]

/** Mistakes in the command line: exit 2. Every other failure: exit 1. */
const usageErrors: ReadonlySet<string> = new Set(['usage', 'unknown-agent', 'unknown-run', 'unknown-key', 'no-key'])

/** Runs the command of these words. Sets the exit code. */
export async function runProgram(context: CommandContext, words: string[]): Promise<void> {
  try {
    const program = createProgram(context)
    // The words to complete are data, not flags of `__complete`.
    if (words[0] === '__complete') {
      await completeCommand(context, program, words.slice(1))
    } else await program.parseAsync(words, { from: 'user' })
  } catch (error) {
    // commander has printed its own: 0 after --help and --version, 2 for bad usage.
    if (error instanceof CommanderError) return void (context.exitCode = error.exitCode === 0 ? 0 : 2)
    const code = error instanceof MillraceError ? error.code : ''
    context.stderr.write(
      `millrace: ${printable(withoutSecrets(context, error instanceof MillraceError ? wholeMessage(error) : messageOf(error)))}\n`,
    )
    context.exitCode = usageErrors.has(code) || code.startsWith('bad-') ? 2 : 1
  }
}

function withoutSecrets(context: CommandContext, text: string): string {
  return createCleaner(secretValues({}, context.env))(text)
}

/** Columns of a terminal; elsewhere commander's own. */
function widthOf({ isTTY, columns }: Output): number {
  return (isTTY ? columns : undefined)!
}

/** Rewrites commander's errors in the style of ours. */
function toError(text: string): string {
  const message = printable(text.replace(/^error: /u, 'millrace: '))
  // The most common mistake.
  return /arguments for 'run'/u.test(message) ? message.replace(/\n$/u, ' Pass the message with -m "…".\n') : message
}

export function createProgram(context: CommandContext): Command {
  const program = new Command('millrace')
    .description('One YAML file is an agent. Every client streams it. Every run is a log.')
    .version(version, '-V, --version', 'Print the version')
    .helpOption('-h, --help', 'Show help')
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .commandsGroup('Agents:')
    .addHelpText('after', '\nRun "millrace <command> --help" for the options and examples of a command.')
    .showSuggestionAfterError()
    .configureOutput({
      writeOut: (text) => void context.stdout.write(text),
      writeErr: (text) => void context.stderr.write(text),
      outputError: (text, write) => write(toError(text)),
      getOutHelpWidth: () => widthOf(context.stdout),
      getErrHelpWidth: () => widthOf(context.stderr),
    })
    .exitOverride()

  // Before any user module is loaded: it may read the environment and print.
  program.hook('preAction', (_, command) => {
    if (command.name() === 'init' || command.name() === 'completion') return
    const files = readEnvFiles(context, command)
    const { json = false, quiet = false } = command.opts() as { json?: boolean; quiet?: boolean }
    // A server's stdout may hold console output too, unless --json makes it machine-readable.
    if (command.name() !== 'serve' || json) sendConsoleToStderr(context)
    else if (!quiet) for (const file of files) context.stderr.write(`${printable(file)}: loaded\n`)
  })

  for (const add of agentCommands) add(context, program)
  program.commandsGroup('Runs:')
  for (const add of runCommands) add(context, program)
  program.commandsGroup('Other:')
  for (const add of otherCommands) add(context, program)
  program.helpCommand('help [command]', 'Show help for a command')

  program.showHelpAfterError('See: millrace --help')
  for (const command of program.commands) command.showHelpAfterError(`See: millrace ${command.name()} --help`)
  return program
}
