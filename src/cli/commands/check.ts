/** `millrace check`: checks agent files. */
import { Argument, type Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { endpointOption, examples } from './options.ts'

export interface CheckFlags {
  json?: boolean
  endpoint: string[]
}

export function addCheckCommand(context: CommandContext, program: Command): void {
  program
    .command('check')
    .summary('Check agent files for errors')
    .description('Check agent files and print each error as file:line:column. Exits 1 if there is one.')
    .addArgument(new Argument('[paths...]', 'Agent files or folders').default(['agents'], '"agents"'))
    .option('--json', 'Print the errors as JSON')
    .addOption(endpointOption())
    .addHelpText('after', examples('millrace check', 'millrace check agents/assistant.yaml'))
    .action(async (paths: string[], flags: CheckFlags) =>
      (await import('./check-agents.ts')).checkFiles(context, paths, flags),
    )
}
