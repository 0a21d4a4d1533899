/** The commands and their options. Each command has its own file in `commands/`, which is loaded when it runs. */
import { Argument, Command, CommanderError, Option } from 'commander'
import type { CommandContext, Output } from './context.ts'
import { messageOf, MillraceError, wholeMessage } from '../part/error.ts'
import { secretValues } from '../project/secrets.ts'
import { runStatuses } from '../part/log.ts'
import { createCleaner } from '../fold/redact.ts'
import { version } from '../server/version.ts'
import { shells, type Shell } from './commands/completion.ts'
import { sendConsoleToStderr } from './terminal/console.ts'
import { addStatsCommand } from './record-commands/stats.ts'
import { addThreadsCommand } from './record-commands/threads.ts'
import { readEnvFiles } from './env-files.ts'
import { choice, endpointOption, examples, runAbout, typeOption, whereOptions } from './commands/options.ts'
import { addQueryCommands } from './record-commands/query.ts'
import { addReplayCommands } from './record-commands/replay.ts'
import { addAnswerCommand, addServeCommand, addTalkCommands } from './talk-commands.ts'
import { printable } from './terminal/output.ts'
import { addRemoveCommand } from './record-commands/rm.ts'
import { addTestCommand } from './record-commands/test.ts'
import { addUpkeepCommands } from './record-commands/upkeep.ts'
import { addImportCommand, addParseCommand } from './transcript-commands.ts'

/** Mistakes in the command line: exit 2. Every other failure: exit 1. */
const usageErrors: ReadonlySet<string> = new Set(['usage', 'unknown-agent', 'unknown-run', 'no-key'])

/** Runs the command of these words. Sets the exit code. */
export async function runProgram(context: CommandContext, words: string[]): Promise<void> {
  try {
    const program = createProgram(context)
    // The words to complete are data, not flags of `__complete`.
    if (words[0] === '__complete') {
      await (await import('./commands/completion.ts')).completeCommand(context, program, words.slice(1))
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

  program
    .command('init')
    .summary('Create a project with a first agent')
    .description(
      'Create an agent, a config file and a JSON Schema for your editor.\nFiles that already exist are kept as they are.',
    )
    .argument('[dir]', 'Project folder', '.')
    .addHelpText('after', examples('millrace init', 'millrace init my-project'))
    .action(async (dir: string) => (await import('./commands/init.ts')).initCommand(context, dir))

  addServeCommand(context, program)
  addTalkCommands(context, program)

  program
    .command('check')
    .summary('Check agent files for errors')
    .description('Check agent files and print each error as file:line:column. Exits 1 if there is one.')
    .addArgument(new Argument('[paths...]', 'Agent files or folders').default(['agents'], '"agents"'))
    .option('--json', 'Print the errors as JSON')
    .addOption(endpointOption())
    .addHelpText('after', examples('millrace check', 'millrace check agents/assistant.yaml'))
    .action(async (paths: string[], flags) => (await import('./commands/check.ts')).checkCommand(context, paths, flags))

  addTestCommand(context, program)

  program
    .command('schema')
    .summary('Print the JSON Schema of agent files')
    .description("Print the JSON Schema of agent files, including the tools and models that the folder's config adds.")
    .argument('[dir]', 'Folder of YAML agents', 'agents')
    .option('--tests', 'Print the JSON Schema of files of test cases')
    .addHelpText(
      'after',
      examples(
        'millrace schema > agents/millrace.schema.json',
        'millrace schema --tests > tests/millrace-tests.schema.json',
      ),
    )
    .action(async (dir: string, flags) => (await import('./commands/schema.ts')).schemaCommand(context, dir, flags))

  program.commandsGroup('Runs:')
  program
    .command('ps')
    .summary('List runs')
    .description('List runs, newest first.')
    .addOption(choice('--status <status>', 'Only runs with this status', runStatuses))
    .option('--agent <id>', 'Only runs of this agent')
    .option(
      '-q, --search <words>',
      'Only runs with these words: in the title, or in what the user, the model and the tools said',
    )
    .addOption(new Option('--limit <n>', 'Maximum number of runs, 1 to 1000').default('20', '20'))
    .option('--json', 'Print JSON')
    .addHelpText(
      'after',
      examples('millrace ps', 'millrace ps --status suspended --agent assistant', 'millrace ps --search "blue whale"'),
    )
    .action(async (flags) => (await import('./commands/ps.ts')).psCommand(context, flags))

  program
    .command('show')
    .summary('Show the steps, messages and cost of a run')
    .description("Show a run: its status, steps, messages, tokens, cost and open requests, and its steps' outputs.")
    .argument('<run>', runAbout)
    .option('--full', 'Do not shorten texts; with --json, include the outputs of steps')
    .option('--json', 'Print JSON')
    .addHelpText('after', examples('millrace show run_1a2b3c', 'millrace show run_1a2b3c --json --full'))
    .action(async (run: string, flags) => (await import('./commands/show-page.ts')).showCommand(context, run, flags))

  program
    .command('logs')
    .summary('Print the log of a run')
    .description('Print the log of a run, one entry per line.')
    .argument('<run>', runAbout)
    .option('-f, --follow', 'Keep printing new entries until the run ends')
    .addOption(new Option('--since <seq>', 'Only entries after this sequence number').default('0', '0'))
    .addOption(typeOption())
    .option('--raw', 'Print every delta on its own line instead of joining them')
    .option('--json', 'Print entries as NDJSON, exactly as recorded')
    .addHelpText(
      'after',
      examples('millrace logs run_1a2b3c --follow', 'millrace logs run_1a2b3c --type tool-call,tool-result'),
    )
    .allowExcessArguments()
    .action(async (_run: string, flags, { args }: Command) =>
      (await import('./commands/logs.ts')).logsCommand(context, args, flags),
    )

  addThreadsCommand(context, program)
  addStatsCommand(context, program)
  addAnswerCommand(context, program)

  program
    .command('stop')
    .summary('Stop a run')
    .description('Stop a run on the server. To stop "millrace run", press Ctrl-C there.')
    .argument('<run>', runAbout)
    .addHelpText('after', examples('millrace stop run_1a2b3c'))
    .action(async (run: string, flags) => (await import('./commands/stop.ts')).stopCommand(context, run, flags))

  program
    .command('verify')
    .summary('Check recorded runs for corruption')
    .description('Check that recorded runs are complete and in a valid order. Exits 1 if one is not.')
    .argument('<file-or-run>', 'An NDJSON file, a run id or a unique prefix of one, or "all" for every run')
    .addHelpText('after', examples('millrace verify run.ndjson', 'millrace verify all'))
    .action(async (what: string, flags) => (await import('./commands/verify.ts')).verifyCommand(context, what, flags))

  addReplayCommands(context, program)
  addQueryCommands(context, program)
  addImportCommand(context, program)
  addUpkeepCommands(context, program)
  addRemoveCommand(context, program)

  program.commandsGroup('Other:')
  addParseCommand(context, program)
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
    .action(async (shell: Shell) => (await import('./commands/completion.ts')).completionCommand(context, shell))
  program.helpCommand('help [command]', 'Show help for a command')

  program.showHelpAfterError('See: millrace --help')
  for (const command of program.commands) {
    const name = command.name()
    command.showHelpAfterError(`See: millrace ${name} --help`)
    if (['ps', 'logs', 'show', 'stop', 'answer', 'verify'].includes(name))
      whereOptions().map((each) => command.addOption(each))
  }
  return program
}
