/** `millrace test`: runs test cases of agents. */
import type { Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { endpointOption, examples, storeOption, trustOption } from './options.ts'

export interface TestFlags {
  record?: boolean
  add?: string
  name?: string
  trust?: boolean
  filter?: string
  model?: string
  concurrency?: string
  bail?: boolean
  watch?: boolean
  json?: boolean
  junit?: string
  dir: string
  data?: string
  store?: string
  url?: string
  endpoint: string[]
}

export function addTestCommand(context: CommandContext, program: Command): void {
  program
    .command('test')
    .summary('Test agents with recorded models')
    .description('Run the test cases of agents. Models and tools are answered from recordings: no tokens, no network.')
    .argument('[paths...]', 'Files or folders of test cases (default: the folder "tests" beside the agents)')
    .option('--record', 'Ask the real models, run the real tools, and keep what they say as the recordings')
    .option('--add <run>', 'Make a test case of a recorded run, and run it')
    .option('--name <name>', 'Name of the added case')
    .addOption(trustOption('With --add, of a run that was recorded elsewhere by another agent: add it'))
    .option('-t, --filter <text>', 'Only cases whose name contains this text')
    .option('--model <models>', 'Run the cases with these models, separated by commas')
    .option('--concurrency <n>', 'How many cases run at the same time (default: one for each CPU)')
    .option('--bail', 'Stop after the first failure')
    .option('--watch', 'Run again when an agent, a prompt or a test case changes')
    .option('--json', 'Print the results as JSON')
    .option('--junit <file>', 'Also write the results as JUnit XML')
    .option('--dir <dir>', 'Folder of YAML agents', 'agents')
    .option(
      '--data <dir>',
      'Data folder with the run of --add, and for the results, which the page shows; "none" keeps no results (default: record.data in the config, or ".millrace")',
    )
    .addOption(storeOption())
    .option(
      '--url <url>',
      'Take the run of --add from the server at this URL, and send it the results, with MILLRACE_API_KEY as its key',
    )
    .addOption(endpointOption())
    .addHelpText(
      'after',
      `
The recordings are beside the cases, in tests/recordings. Tools of the server
return what they returned, unless a case says "tools: live".

Exit codes: 0 all passed, 1 some failed, 2 wrong usage or a broken file, 130
stopped with Ctrl-C.
${examples(
  'millrace test',
  'millrace test tests/assistant.yaml -t "adds" --watch',
  'millrace test --record --model openai:gpt-5,gemini-2.5-flash',
  'millrace test --add run_1a2b3c --name "adds numbers"',
)}`,
    )
    .action(async (paths: string[], flags: TestFlags) =>
      (await import('../test/test.ts')).runTests(context, paths, flags),
    )
}
