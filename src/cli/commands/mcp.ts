/** `millrace mcp`: the agents as tools of an MCP client that starts a program. */
import { Argument, Option, type Command } from 'commander'
import { MillraceError } from '../../part/error.ts'
import type { AgentFlags } from '../connection/agents.ts'
import type { CommandContext } from '../context.ts'
import { dataAbout, debugOption, dirAbout, endpointOption, examples, storeOption, unknownWord } from './options.ts'

const actions = ['login', 'logout'] as const
type Action = (typeof actions)[number]

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
    .addArgument(
      new Argument('[action]', 'login or logout: of an MCP server that agents use').argParser((word: string) => {
        if (!(actions as readonly string[]).includes(word)) throw unknownWord(word, actions)
        return word
      }),
    )
    .argument('[name]', 'With login and logout: the name of the server in the config')
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

login signs in to an MCP server of the config that asks for a person. It prints
an address for your browser. Runs of the data folder that belong to no one then
use the server in your name. In other runs, the person who started one is asked.
${examples(
  'millrace mcp',
  'millrace mcp --agent researcher',
  'millrace mcp login drive',
  'claude mcp add desk -- npx millrace mcp --dir /home/ada/desk/agents',
)}`,
    )
    .action(async (action: Action | undefined, name: string | undefined, flags: McpFlags) => {
      if (action === undefined) return (await import('../mcp/mcp.ts')).serveStdio(context, flags)
      if (name === undefined)
        throw new MillraceError('usage', `Which server? Pass its name: millrace mcp ${action} <name>`)
      if (flags.server !== undefined) {
        const cure = 'Start a run there: it asks you to sign in'
        throw new MillraceError(
          'usage',
          `millrace mcp ${action} is for a data folder or a store, not for --server. ${cure}.`,
        )
      }
      const { mcpLogIn, mcpLogOut } = await import('../mcp/login.ts')
      await (action === 'login' ? mcpLogIn : mcpLogOut)(context, name, flags)
    })
}
