/** The command about conversations. */
import { Option, type Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { threadStatuses } from '../../part/thread.ts'
import { choice, examples, whereOptions } from '../commands/options.ts'

export function addThreadsCommand(context: CommandContext, program: Command): void {
  const threads = program
    .command('threads')
    .summary('List conversations, or show one')
    .description('List conversations, newest first. With the id of one: its facts, runs and messages.')
    .argument('[thread]', 'Id of a conversation')
    .addOption(choice('--status <status>', 'Only conversations with this status', threadStatuses))
    .option('--agent <id>', 'Only conversations in which this agent has run')
    .option('--search <words>', 'Only conversations with a text that has all these words')
    .addOption(new Option('--limit <n>', 'Maximum number of conversations, 1 to 1000').default('20', '20'))
    .option('--full', 'With an id: all messages, and do not shorten them')
    .option('--json', 'Print JSON')
    .addHelpText(
      'after',
      examples(
        'millrace threads',
        'millrace threads --status waiting',
        'millrace threads --search "refund invoice"',
        'millrace threads thread_1a2b3c --full',
      ),
    )
    .action(async (thread: string | undefined, flags) =>
      (await import('../commands/threads.ts')).threadsCommand(context, thread, flags),
    )
  for (const option of whereOptions()) threads.addOption(option)
}
