/** `millrace serve`: serves a folder of agents over HTTP. */
import type { Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { dataAbout, debugOption, endpointOption, examples, storeOption } from './options.ts'

export interface ServeFlags {
  port?: string
  host?: string
  data?: string
  store?: string
  endpoint: string[]
  logFiles?: boolean
  insecureNoAuth?: boolean
  quiet?: boolean
  debug?: boolean
  json?: boolean
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
      (await import('../serve/serve.ts')).serveAgents(context, dir, flags),
    )
}
