/** `millrace run`: runs an agent once, or a batch. */
import type { Command } from 'commander'
import type { CommandContext } from '../context.ts'
import type { InputFlags } from '../run/input.ts'
import {
  collect,
  dataAbout,
  debugOption,
  dirAbout,
  endpointOption,
  examples,
  formatOption,
  storeOption,
  urlOption,
} from './options.ts'

export interface RunFlags extends InputFlags {
  format: string
  dir?: string
  data?: string
  url?: string
  endpoint: string[]
  thread?: string
  yes?: boolean
  concurrency?: string
  output?: string
  resume?: boolean
  bail?: boolean
}

export function addRunCommand(context: CommandContext, program: Command): void {
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
    .action(async (agent: string, flags: RunFlags) => (await import('../run/run.ts')).runAgent(context, agent, flags))
}
