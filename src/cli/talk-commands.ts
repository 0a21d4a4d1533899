/** The commands that talk to agents: `run`, `chat` and `answer`. */
import type { Command } from 'commander'
import { wires } from '../wire/wires.ts'
import { choice, collect, dirAbout, endpointOption, settledData, urlOption } from './options.ts'

export function addTalkCommands(program: Command): void {
  program
    .command('run')
    .description('run an agent once; the answer goes to stdout as it comes')
    .argument('<agent>', 'an agent of ./agents, or a YAML file')
    .option('-m, --message <text>', 'the user message; without it stdin is read')
    .option('--input <file>', 'a JSON file that becomes $input')
    .addOption(choice('--format <wire>', 'what is printed', Object.keys(wires)).default('text'))
    .option('-y, --yes', 'say yes to whatever the run asks approval for')
    .option('--thread <id>', 'the conversation that this message continues')
    .option('--file <path>', 'a picture, PDF or other file for the model (repeatable)', collect)
    .option('--dir <dir>', dirAbout)
    .option('--data <dir>', settledData)
    .addOption(urlOption())
    .addOption(endpointOption())
    .addHelpText(
      'after',
      `
The run happens in the live server of the data folder when that serves the same agents, otherwise in this process.
Approvals and client tools are asked for on the terminal. Without a terminal, approvals are refused, and a run that
needs a client tool waits: the command exits 1 and says how to answer.
Exit code: 0 completed, 1 failed or waiting, 2 wrong usage or a broken agent, 130 stopped with Ctrl-C (twice kills).

Examples:
  millrace run assistant -m "What is 12*7?"
  millrace run assistant --file chart.png -m "What does this show?"
  echo "Hello" | millrace run agents/assistant.yaml
  millrace run researcher --input input.json --format parts`,
    )
    .action(async (agent: string, flags) => (await import('./commands/run.ts')).runCommand(agent, flags))

  program
    .command('chat')
    .description('talk to an agent; the conversation is kept')
    .argument('[agent]', 'an agent, or a YAML file (default: assistant, or the first one)')
    .option('--thread <id>', 'continue this conversation')
    .option('-y, --yes', 'approve whatever the agent asks approval for')
    .option('--dir <dir>', dirAbout)
    .option('--data <dir>', settledData)
    .addOption(urlOption())
    .addOption(endpointOption())
    .addHelpText(
      'after',
      `
Each message is a run on the live server of the data folder, or in this process when there is none.
Ctrl-C stops the answer; on an empty line it leaves. /help lists the commands.
When stdin is not a terminal, each line is a message: answers go to stdout, and the exit code is 1 when one failed.

Examples:
  millrace chat
  millrace chat researcher --thread thread_…
  printf 'My name is Ada.\\nWhat is my name?\\n' | millrace chat assistant`,
    )
    .action(async (agent: string | undefined, flags) => (await import('./commands/chat.ts')).chatCommand(agent, flags))

  program
    .command('answer')
    .description('answer what a run waits for: an approval, or the result of a client tool; the run then goes on')
    .argument('<run>', 'run id, or the beginning of one')
    .argument('[answer]', 'approve, deny, or what the tool returns (JSON or text; - reads stdin)')
    .option('--request <id>', 'which of several open requests: its id, or the name of its tool')
    .option('--reason <text>', 'why not, told to the model (with deny)')
    .option('--error', 'the tool failed; the answer says why')
    .option('--list', 'only list the open requests')
    .option('--json', 'list the open requests as JSON')
    .option('--dir <dir>', dirAbout)
    .addOption(endpointOption())
    .addHelpText(
      'after',
      `
Without an answer the open requests are asked one after the other on a terminal, and listed elsewhere.
A live server goes on with the run. Without one, this process does, with the tools of --dir.
Exit code: as that of millrace run.

Examples:
  millrace answer run_… approve
  millrace answer run_… deny --reason "too expensive"
  millrace answer run_… '{"town": "Ghent"}'`,
    )
    .action(async (run: string, answer: string | undefined, flags) =>
      (await import('./commands/answer.ts')).answerCommand(run, answer, flags),
    )
}
