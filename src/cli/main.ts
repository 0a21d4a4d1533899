/** `millrace`: argv to commands. Each command stands in a file of its own. */
import { Argument, Command } from 'commander'
import { messageOf, MillraceError, wholeMessage } from '../part/error.ts'
import { secretValues } from '../library/secrets.ts'
import { runStatuses } from '../part/log.ts'
import { createCleaner } from '../part/redact.ts'
import { version } from '../server/version.ts'
import type { ServeFlags } from './commands/serve.ts'
import { shells, type Shell } from './completion-scripts.ts'
import { sendConsoleToStderr } from './console-lines.ts'
import { readEnvFiles } from './env-files.ts'
import { choice, endpointOption, settledData, typeOption, whereOptions } from './options.ts'
import { addTalkCommands } from './talk-commands.ts'
import { printable } from './printable.ts'

/** Mistakes of whoever typed the command: exit 2. Everything else that fails: 1. */
const usageErrors: ReadonlySet<string> = new Set(['usage', 'unknown-agent', 'unknown-run', 'no-key'])

export async function main(argv: string[]): Promise<void> {
  // `millrace logs … | head` ends when head has seen enough; `run` does so in its own way.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  // What nobody reads is no reason to fall over.
  process.stderr.on('error', () => undefined)
  try {
    const program = createProgram()
    // Whatever stands on the line that is being written is data here, not a flag of ours.
    if (argv[2] === '__complete') {
      await (await import('./commands/completion.ts')).completeCommand(program, argv.slice(3))
    } else await program.parseAsync(argv)
  } catch (error) {
    const code = error instanceof MillraceError ? error.code : ''
    process.stderr.write(
      `millrace: ${printable(withoutSecrets(error instanceof MillraceError ? wholeMessage(error) : messageOf(error)))}\n`,
    )
    process.exitCode = usageErrors.has(code) || code.startsWith('bad-') ? 2 : 1
  }
}

function withoutSecrets(text: string): string {
  return createCleaner(secretValues({}, process.env))(text)
}

/** What commander has to say, as our own errors are said. */
function toError(text: string): string {
  const message = printable(text.replace(/^error: /u, 'millrace: '))
  // The commonest slip of all.
  return /arguments for 'run'/u.test(message) ? message.replace(/\n$/u, ' The message goes behind -m.\n') : message
}

export function createProgram(): Command {
  const program = new Command('millrace')
    .description('One YAML file is an agent. Every client streams it. Every run is a log.')
    .version(version)
    .showSuggestionAfterError()
    .configureOutput({ outputError: (text, write) => write(toError(text)) })
    .exitOverride((error) => {
      // commander's own exits: 0 after --help and --version, 2 for bad usage.
      process.exit(error.exitCode === 0 ? 0 : 2)
    })

  // Before any module of the user is loaded: it may read the environment and print.
  program.hook('preAction', (_, command) => {
    if (command.name() === 'init' || command.name() === 'completion') return
    const files = readEnvFiles(command)
    const { json = false, quiet = false } = command.opts() as { json?: boolean; quiet?: boolean }
    // A server's stdout is a log like any other, unless programs read it.
    if (command.name() !== 'serve' || json) sendConsoleToStderr()
    else if (!quiet) for (const file of files) process.stderr.write(`${printable(file)}: read\n`)
  })

  program
    .command('init')
    .description('write an agent, a config file and the schema for editors; keeps what is there')
    .argument('[dir]', 'folder of the project', '.')
    .addHelpText('after', '\nExample:\n  millrace init my-project')
    .action(async (dir: string) => (await import('./commands/init.ts')).initCommand(dir))

  program
    .command('serve')
    .description('serve a folder of agents over HTTP; changed files are reloaded')
    .argument('[dir]', 'folder of YAML agents', 'agents')
    .option('--port <n>', '0 picks a free one (default: server.port of the config, else 3000)')
    .option('--host <address>', 'address to listen on (default: server.host of the config, else 127.0.0.1)')
    .option('--data <dir>', settledData)
    .option('--log-files', 'also write <data>/runs/<run>.ndjson and, when it has ended, <run>.summary.json')
    .addOption(endpointOption())
    .option('--quiet', 'print failures only')
    .option('--json', 'print what happens as NDJSON on stdout, for programs')
    .option('--insecure-no-auth', 'listen on other addresses without MILLRACE_API_KEY')
    .addHelpText('after', '\nExample:\n  millrace serve agents --port 3000 --endpoint ollama=http://localhost:11434/v1')
    .action(async (dir: string, flags: ServeFlags) => (await import('./commands/serve.ts')).serveCommand(dir, flags))

  addTalkCommands(program)

  program
    .command('check')
    .description('check agents; prints file:line:col for every fault, exits 1 when there is one')
    .argument('[paths...]', 'files or folders', ['agents'])
    .option('--json', 'faults as JSON')
    .addOption(endpointOption())
    .addHelpText('after', '\nExample:\n  millrace check agents')
    .action(async (paths: string[], flags) => (await import('./commands/check.ts')).checkCommand(paths, flags))

  program
    .command('ps')
    .description('list runs, newest first')
    .addOption(choice('--status <status>', 'only runs with this status', runStatuses))
    .option('--agent <id>', 'only runs of this agent')
    .option('--limit <n>', 'at most so many', '20')
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExample:\n  millrace ps --status running')
    .action(async (flags) => (await import('./commands/ps.ts')).psCommand(flags))

  program
    .command('logs')
    .description("print a run's log, one entry a line")
    .argument('<run>', 'run id, or the beginning of one')
    .option('-f, --follow', 'go on until the run ends')
    .option('--since <seq>', 'only entries after this one', '0')
    .addOption(typeOption())
    .option('--raw', 'every delta in a line of its own, instead of whole texts')
    .option('--json', 'NDJSON, as recorded')
    .addHelpText('after', '\nExample:\n  millrace logs run_… --follow --type tool-call,tool-result')
    .allowExcessArguments()
    .action(async (_run: string, flags, { args }: Command) =>
      (await import('./commands/logs.ts')).logsCommand(args, flags),
    )

  program
    .command('show')
    .description('what one run came to: status, steps and their outputs, messages, tokens, cost, open requests')
    .argument('<run>', 'run id, or the beginning of one')
    .option('--full', 'texts in full; with --json the outputs of steps as well')
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExample:\n  millrace show run_…')
    .action(async (run: string, flags) => (await import('./commands/show.ts')).showCommand(run, flags))

  program
    .command('stop')
    .description('stop a run')
    .argument('<run>', 'run id, or the beginning of one')
    .addHelpText('after', '\nExample:\n  millrace stop run_…')
    .action(async (run: string, flags) => (await import('./commands/stop.ts')).stopCommand(run, flags))

  program
    .command('verify')
    .description("check a recording's grammar and sequence; exits 1 when something is wrong")
    .argument('<file-or-run>', 'an NDJSON file, a run (or the beginning of its id), or "all" for every run')
    .addHelpText('after', '\nExamples:\n  millrace verify run.ndjson\n  millrace verify all')
    .action(async (what: string, flags) => (await import('./commands/verify.ts')).verifyCommand(what, flags))

  program
    .command('schema')
    .description("print the JSON Schema of an agent file, with the names of the folder's config")
    .argument('[dir]', 'folder of YAML agents', 'agents')
    .addHelpText('after', '\nExample:\n  millrace schema > agents/millrace.schema.json')
    .action(async (dir: string) => (await import('./commands/schema.ts')).schemaCommand(dir))

  program
    .command('completion')
    .description('print what a shell loads so that Tab completes commands, options, agents and runs')
    .addArgument(new Argument('<shell>').choices(shells))
    .addHelpText(
      'after',
      `
Examples:
  eval "$(millrace completion bash)"        # in ~/.bashrc
  eval "$(millrace completion zsh)"         # in ~/.zshrc
  millrace completion fish | source         # in ~/.config/fish/config.fish`,
    )
    .action(async (shell: Shell) => (await import('./commands/completion.ts')).completionCommand(shell))

  program.showHelpAfterError('See: millrace --help')
  for (const command of program.commands) {
    const name = command.name()
    command.showHelpAfterError(`See: millrace ${name} --help`)
    if (['ps', 'logs', 'show', 'stop', 'answer', 'verify'].includes(name))
      whereOptions().map((each) => command.addOption(each))
  }
  return program
}
