/** `millrace mcp`: the agents as tools of an MCP client that starts a program. */
import { Option, type Command } from 'commander'
import type { AgentFlags } from '../connection/agents.ts'
import type { CommandContext } from '../context.ts'
import { dataAbout, debugOption, dirAbout, endpointOption, examples, storeOption } from './options.ts'

export interface McpFlags extends Omit<AgentFlags, 'url'> {
  agent?: string
  server?: string
}

export function addMcpCommand(context: CommandContext, program: Command): void {
  program
    .command('mcp')
    .summary('Offer agents to an MCP client over stdin and stdout')
    .description(
      'Offer agents as tools to an MCP client that starts this command and talks to it over stdin and stdout.',
    )
    .option('--agent <id>', 'Only this agent, which may be hidden (default: all that are not)')
    .option('--dir <dir>', dirAbout)
    .option('--data <dir>', dataAbout)
    .addOption(storeOption())
    .addOption(
      new Option(
        '--server <url>',
        'Use the server at this URL, with MILLRACE_API_KEY as its key or as millrace login has signed in',
      ),
    )
    .addOption(endpointOption())
    .addOption(debugOption())
    .addHelpText(
      'after',
      `
Calls run on the live server of the data folder if it serves the same agents,
otherwise in this process. When stdin ends, runs of a server go on. Runs of this
process have two seconds; then those of agents with "recover: true" wait for the
next process of the data folder, and the others are interrupted. Messages for
people go to stderr.

A server has the same at /mcp, for clients that take a URL.
${examples(
  'millrace mcp',
  'millrace mcp --agent researcher',
  'claude mcp add desk -- npx millrace mcp --dir /home/ada/desk/agents',
)}`,
    )
    .action(async (flags: McpFlags) => (await import('../mcp/mcp.ts')).serveStdio(context, flags))
}
