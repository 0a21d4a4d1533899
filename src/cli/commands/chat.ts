/** `millrace chat`: a conversation on the terminal. */
import type { Command } from 'commander'
import type { AgentFlags } from '../connection/agents.ts'
import type { CommandContext } from '../context.ts'
import { dataAbout, debugOption, dirAbout, endpointOption, examples, storeOption, urlOption } from './options.ts'

export interface ChatFlags extends AgentFlags {
  thread?: string
  yes?: boolean
}

export function addChatCommand(context: CommandContext, program: Command): void {
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
    .action(async (agent: string | undefined, flags: ChatFlags) =>
      (await import('../chat/chat.ts')).startChat(context, agent, flags),
    )
}
