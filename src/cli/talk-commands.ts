/** The commands that serve agents and talk to them: `serve`, `run`, `chat` and `answer`. */
import { Option, type Command } from 'commander'
import type { CommandContext } from './context.ts'
import type { ServeFlags } from './serve/serve.ts'
import { builtinWires } from '../wire/builtin-wires.ts'
import {
  collect,
  dataAbout,
  debugOption,
  dirAbout,
  endpointOption,
  examples,
  runAbout,
  storeOption,
  trustOption,
  urlOption,
} from './commands/options.ts'

/** Packs and configs may add formats, so any name is accepted until the config is loaded. */
export const formatOption = () =>
  new Option('--format <wire>', 'Output format')
    .choices([...builtinWires.keys()])
    .argParser((name: string) => name)
    .default('text')

export function addTalkCommands(context: CommandContext, program: Command): void {
  program
    .command('run')
    .summary('Run an agent once')
    .description('Run an agent once and stream its answer to stdout.')
    .argument('<agent>', 'Agent id, or the path of a YAML file')
    .option('-m, --message <text>', 'User message (default: read from stdin)')
    .option('--input <file>', 'JSON file to use as $input; a .jsonl file with one input per line runs them all')
    .option('--concurrency <n>', 'How many lines of a batch run at the same time (default: 4)')
    .option('--output <file>', 'Write the results of a batch to this file instead of stdout')
    .option('--resume', 'Continue the batch of --output: lines that have completed are left out')
    .option('--bail', 'Start no further line of a batch after the first failure')
    .addOption(formatOption())
    .option('-y, --yes', 'Approve every tool call that needs approval')
    .option('--thread <id>', 'Continue this conversation')
    .option('--file <path>', 'Attach an image, PDF or other file (repeatable)', collect)
    .option('--dir <dir>', dirAbout)
    .option('--data <dir>', dataAbout)
    .addOption(storeOption())
    .addOption(urlOption())
    .addOption(endpointOption())
    .addOption(debugOption())
    .addHelpText(
      'after',
      `
The run happens on the live server of the data folder if it serves the same
agents, otherwise in this process. On a terminal, you are asked for approvals
and for the results of client tools. Elsewhere, approvals are denied, and a run
that needs a client tool is suspended: the command exits 1 and prints the
command that answers it. With --thread, a run of that conversation that still
waits for an answer is ended.

A batch prints one JSON line per result as they finish: line, run, outcome,
text, output, usage, cost, duration, error. Nobody is asked for approvals; they
are denied without --yes. A line is a JSON object ($input) or a JSON string (the
message).

Exit codes: 0 completed, 1 failed or suspended, 2 wrong usage or a broken
agent, 130 stopped with Ctrl-C.
${examples(
  'millrace run assistant -m "What is 12*7?"',
  'millrace run assistant --file chart.png -m "What does this show?"',
  'echo "Hello" | millrace run agents/assistant.yaml',
  'millrace run researcher --input input.json --format parts',
  'millrace run assistant --input cases.jsonl --output results.jsonl --resume',
)}`,
    )
    .action(async (agent: string, flags) => (await import('./run/run.ts')).runCommand(context, agent, flags))

  program
    .command('chat')
    .summary('Chat with an agent')
    .description('Chat with an agent. The conversation is saved, and --thread continues it later.')
    .argument(
      '[agent]',
      "Agent id, or the path of a YAML file (default: the thread's agent, assistant, or the first one)",
    )
    .option('--thread <id>', 'Continue this conversation')
    .option('-y, --yes', 'Approve every tool call that needs approval')
    .option('--dir <dir>', dirAbout)
    .option('--data <dir>', dataAbout)
    .addOption(storeOption())
    .addOption(urlOption())
    .addOption(endpointOption())
    .addOption(debugOption())
    .addHelpText(
      'after',
      `
Each message starts a run, on the live server of the data folder or, without
one, in this process. Ctrl-C stops the answer; on an empty line it exits. /help
lists the commands of the chat. If a run of --thread still waits for an answer,
you are asked for it first. If stdin is not a terminal, each line is a message,
answers go to stdout, and the command exits 1 if a run failed.
${examples(
  'millrace chat',
  'millrace chat researcher --thread thread_1a2b3c',
  "printf 'My name is Ada.\\nWhat is my name?\\n' | millrace chat assistant",
)}`,
    )
    .action(async (agent: string | undefined, flags) =>
      (await import('./chat/chat.ts')).chatCommand(context, agent, flags),
    )
}

export function addAnswerCommand(context: CommandContext, program: Command): void {
  program
    .command('answer')
    .summary('Answer a suspended run, which then continues')
    .description('Answer what a run waits for: an approval, or the result of a client tool. The run then continues.')
    .argument('<run>', runAbout)
    .argument('[answer]', 'approve, deny, or the result of the tool as JSON or text (- reads stdin)')
    .option('--request <id>', 'Which open request to answer: its id, or the name of its tool')
    .option('--reason <text>', 'Reason for a denial, shown to the model')
    .option('--error', 'Mark the result of the tool as an error')
    .option('--agent <id>', 'Of a run that was recorded elsewhere: go on as this agent')
    .addOption(trustOption())
    .option('--list', 'List the open requests')
    .option('--json', 'List the open requests as JSON')
    .option('--dir <dir>', dirAbout)
    .addOption(endpointOption())
    .addHelpText(
      'after',
      `
Without an answer, you are asked for each open request, or, if stdin is not a
terminal, the requests are listed. The run continues on the live server of the
data folder or, without one, in this process with the tools of --dir.

A run that was recorded elsewhere goes on if its pipeline is that of an agent
here. Otherwise you are shown what it would set to work, and asked; without a
terminal, pass --trust or --agent.

Exit codes: the same as for millrace run.
${examples(
  'millrace answer run_1a2b3c approve',
  'millrace answer run_1a2b3c deny --reason "too expensive"',
  `millrace answer run_1a2b3c '{"town": "Ghent"}'`,
)}`,
    )
    .action(async (run: string, answer: string | undefined, flags) =>
      (await import('./run/answer.ts')).answerCommand(context, run, answer, flags),
    )
}

export function addServeCommand(context: CommandContext, program: Command): void {
  program
    .command('serve')
    .summary('Serve a folder of agents over HTTP')
    .description('Serve a folder of agents over HTTP. Changed agent files are reloaded.')
    .argument('[dir]', 'Folder of YAML agents', 'agents')
    .option('--port <n>', 'Port to listen on; 0 picks a free one (default: server.port in the config, or 3000)')
    .option('--host <address>', 'Address to listen on (default: server.host in the config, or 127.0.0.1)')
    .option('--data <dir>', dataAbout)
    .addOption(storeOption())
    .option('--log-files', 'Also write each run to <data>/runs/<run>.ndjson, and a <run>.summary.json when it ends')
    .addOption(endpointOption())
    .addOption(debugOption())
    .option('--quiet', 'Print only failures')
    .option('--json', 'Print server events to stdout as NDJSON')
    .option('--insecure-no-auth', 'Allow a non-loopback --host without MILLRACE_API_KEY')
    .addHelpText(
      'after',
      examples(
        'millrace serve',
        'millrace serve agents --port 8080 --endpoint ollama=http://localhost:11434/v1',
        'MILLRACE_STORE=redis://:password@redis:6379 millrace serve',
      ),
    )
    .action(async (dir: string, flags: ServeFlags) =>
      (await import('./serve/serve.ts')).serveCommand(context, dir, flags),
    )
}
