/** The body of `millrace mcp login` and `logout`: a sign-in with an MCP server, for the runs of this data folder or store that belong to no one. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { MillraceError, messageOf } from '../../part/error.ts'
import { timeOf, type Store } from '../../part/log.ts'
import { didYouMean, listNames } from '../../pipeline/nearest.ts'
import { loadConfig } from '../../project/load-config.ts'
import { longestSignInMs, type Flow, type SignIns } from '../../tools/mcp/auth/sign-ins.ts'
import { createMcpPool } from '../../tools/mcp/pool.ts'
import { sharedStoreUrl } from '../connection.ts'
import { openFolder } from '../connection/keys.ts'
import type { McpFlags } from '../commands/mcp.ts'
import type { CommandContext } from '../context.ts'
import { onEnding } from '../process-events.ts'
import { forStream, printable } from '../terminal/output.ts'

type Flags = Pick<McpFlags, 'dir' | 'data' | 'store'>

export async function mcpLogIn(context: CommandContext, server: string, flags: Flags): Promise<void> {
  await withSignIns(context, server, flags, async (signIns) => {
    await signInHere(context, signIns, server)
    say(context, `signed in to ${server}`)
  })
}

export async function mcpLogOut(context: CommandContext, server: string, flags: Flags): Promise<void> {
  await withSignIns(context, server, flags, async (signIns) => {
    const out = await signIns.signOut(server, undefined)
    say(context, out === undefined ? `not signed in to ${server}` : `signed out of ${server}`)
    if (out?.notRevoked === undefined) return
    const { why, detail } = out.notRevoked
    const said = detail === undefined ? '' : ` (${detail})`
    say(
      context,
      `The tokens count elsewhere until they end. Its authorization server did not revoke them: it ${why}${said}.`,
    )
  })
}

async function withSignIns(
  context: CommandContext,
  server: string,
  { dir = 'agents', data = '.millrace', store: given }: Flags,
  work: (signIns: SignIns) => Promise<void>,
): Promise<void> {
  const { mcpServers = {} } = await loadConfig(context.path(dir))
  const { people } = createMcpPool(mcpServers, { environment: context.env })
  const names = people?.names ?? []
  if (people === undefined || !names.includes(server)) {
    const known = names.length === 0 ? 'none' : listNames(names)
    const hint = `${didYouMean(server, names)}. Servers with auth.person in the config: ${known}`
    throw new MillraceError('usage', `People do not sign in to an MCP server "${server}"${hint}.`)
  }
  const url = await sharedStoreUrl(context, { store: given, dir })
  const store: Store =
    url === undefined
      ? await openFolder(context, data)
      : await (await import('../connection/shared-store.ts')).openShared(context, url, { joins: false })
  try {
    await work(people.signIns({ log: store.log, now: () => timeOf(store) }))
  } finally {
    await store.close()
  }
}

const say = ({ stderr }: CommandContext, line: string) => void stderr.write(forStream(`${printable(line)}\n`, stderr))

/** The browser comes back to a port of this machine that is open for the time of the sign-in. */
async function signInHere(context: CommandContext, signIns: SignIns, server: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let flow: Flow | undefined
  const listener = createServer((request, response) => {
    const back = new URL(request.url ?? '/', redirectUri)
    const answer = (status: number, words: string) => {
      response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' })
      response.end(`${words}\n`)
    }
    // Anybody on this machine may ask: what is not of this sign-in changes nothing.
    if (flow === undefined || back.pathname !== '/callback' || back.searchParams.get('state') !== flow.state) {
      return answer(404, 'Nothing is here.')
    }
    signIns.finish(flow, back).then(
      () => {
        answer(200, 'You are signed in. You can close this window.')
        resolve()
      },
      (error: unknown) => {
        answer(400, 'The sign-in failed. The terminal says why.')
        reject(error as Error)
      },
    )
  })
  await new Promise<void>((done) => listener.listen(0, '127.0.0.1', done))
  const redirectUri = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/callback`
  const late = setTimeout(() => {
    reject(new MillraceError('sign-in-failed', 'The sign-in has taken too long. Run the command again.'))
  }, longestSignInMs)
  onEnding(context, () => reject(new MillraceError('sign-in-failed', 'The sign-in was stopped.')))
  try {
    const begun = await signIns.begin({ server, caller: undefined, redirectUri })
    flow = begun.flow
    say(context, `Sign in at ${begun.address}`)
    await promise
  } catch (error) {
    if (error instanceof MillraceError && error.detail !== undefined) say(context, error.detail)
    throw new MillraceError('sign-in-failed', messageOf(error))
  } finally {
    clearTimeout(late)
    await new Promise<void>((done) => {
      listener.close(() => done())
      listener.closeIdleConnections()
    })
  }
}
