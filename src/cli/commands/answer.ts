/** `millrace answer`: answers the open requests of a run. */
import type { Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { addConnectionOptions, dirAbout, endpointOption, examples, runAbout, trustOption } from './options.ts'

export interface AnswerFlags {
  request?: string
  reason?: string
  error?: boolean
  json?: boolean
  list?: boolean
  agent?: string
  trust?: boolean
  dir?: string
  data: string
  url?: string
  store?: string
  endpoint: string[]
}

export function addAnswerCommand(context: CommandContext, program: Command): void {
  const command = program
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
    .action(async (run: string, reply: string | undefined, flags: AnswerFlags) =>
      (await import('../run/answer.ts')).answerRun(context, run, reply, flags),
    )
  addConnectionOptions(command)
}
