/** `millrace login` and `millrace logout`: a credential for a server, kept for the other commands. */
import { Option, type Command } from 'commander'
import { MillraceError } from '../../part/error.ts'
import type { CommandContext } from '../context.ts'
import type { LoginFlags } from '../login/login.ts'
import { printable } from '../terminal/output.ts'
import { examples } from './options.ts'

export function addLoginCommand(context: CommandContext, program: Command): void {
  program
    .command('login')
    .summary('Sign in to a server')
    .description(
      "Sign in to a server: in a browser if the server has a sign-in and its issuer has the device flow, else with a key, which is read from the keyboard or stdin. Other commands then use it for this server, unless MILLRACE_API_KEY is set. It is kept in the user's config folder, in millrace/credentials.json.",
    )
    .addOption(new Option('--server <url>', 'The server').makeOptionMandatory())
    .option('--key', 'Use a key, even if the server has a sign-in')
    .addHelpText(
      'after',
      examples(
        'millrace login --server https://agents.example',
        'millrace login --server https://agents.example --key < key.txt',
        'millrace ps --url https://agents.example',
      ),
    )
    .action(async (flags: LoginFlags) => (await import('../login/login.ts')).logIn(context, flags))
}

export function addLogoutCommand(context: CommandContext, program: Command): void {
  program
    .command('logout')
    .summary('Sign out of a server')
    .description('Delete what millrace login has kept for a server.')
    .option('--server <url>', 'The server (default: the only one)')
    .addHelpText('after', examples('millrace logout', 'millrace logout --server https://agents.example'))
    .action(async ({ server }: { server?: string }) => {
      const { knownServers, serverUrl, writeCredential } = await import('../login/credentials.ts')
      const known = knownServers(context)
      if (server === undefined && known.length > 1) {
        throw new MillraceError('usage', `Which server? Pass one of them with --server: ${known.join(', ')}`)
      }
      const url = server === undefined ? known[0] : serverUrl(server)
      if (url !== undefined && known.includes(url)) writeCredential(context, url, undefined)
      const done = url === undefined ? 'signed in nowhere' : known.includes(url) ? `signed out of ${url}` : undefined
      context.stderr.write(printable(`${done ?? `not signed in to ${url}`}\n`))
    })
}
