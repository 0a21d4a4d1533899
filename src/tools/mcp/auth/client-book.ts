/** The clients that authorization servers have registered for us, in the store: one for each issuer and redirect. */
import { parseJson } from '../../../part/json.ts'
import type { InboxMessage } from '../../../part/log.ts'
import { ownValue } from '../../../part/own-value.ts'
import type { BookOptions } from './token-book.ts'

export interface RegisteredClient {
  clientId: string
  clientSecret?: string
}

export interface ClientBook {
  /** Rejects as `register` does. */
  client(issuer: string, redirectUri: string, register: () => Promise<unknown>): Promise<RegisteredClient>
  /** The authorization server does not know it any more. */
  forget(issuer: string, redirectUri: string): Promise<void>
}

const longest = 2000

export function createClientBook({ log, seal, now }: BookOptions): ClientBook {
  const inbox = 'access:mcp-clients'
  const nameOf = (issuer: string, redirectUri: string) => `${issuer} ${redirectUri}`

  /** `n`: how many there were. */
  async function read(name: string): Promise<{ n: number; client: RegisteredClient | undefined }> {
    let n = 0
    let newest: InboxMessage | undefined
    for await (const message of log.inbox(inbox)) {
      const { key } = message
      if (key === `client:${n}:${name}`) {
        newest = message
        n += 1
      } else if (key === `gone:${n - 1}:${name}`) newest = undefined
    }
    return { n, client: newest && (await opened(newest.message, name)) }
  }

  async function opened(message: unknown, name: string): Promise<RegisteredClient | undefined> {
    const sealed = ownValue(message as Record<string, unknown>, 'sealed')
    const text = typeof sealed === 'string' ? await seal.open(sealed) : undefined
    if (text === undefined) return undefined
    const found = parseJson(text) as { name: string; client: RegisteredClient; endsAt?: number }
    return found.name === name && now() < (found.endsAt ?? Infinity) ? found.client : undefined
  }

  return {
    async client(issuer, redirectUri, register) {
      const name = nameOf(issuer, redirectUri)
      const { n, client: known } = await read(name)
      if (known !== undefined) return known
      const answer = (await register()) as Record<string, unknown>
      const [clientId, clientSecret] = ['client_id', 'client_secret'].map((key) => {
        const value = ownValue(answer, key)
        return typeof value === 'string' && value.length <= longest ? value : undefined
      })
      if (clientId === undefined) throw new Error('no client id')
      const client = { clientId, ...(clientSecret !== undefined && { clientSecret }) }
      const ends = ownValue(answer, 'client_secret_expires_at')
      const endsAt = typeof ends === 'number' && ends > 0 ? { endsAt: ends * 1000 } : undefined
      const sealed = await seal.seal(JSON.stringify({ name, client, ...endsAt }))
      const { first, message } = await log.post(inbox, `client:${n}:${name}`, { sealed })
      // Another process has registered one meanwhile.
      return first ? client : ((await opened(message, name)) ?? client)
    },
    async forget(issuer, redirectUri) {
      const name = nameOf(issuer, redirectUri)
      const { n } = await read(name)
      if (n > 0) await log.post(inbox, `gone:${n - 1}:${name}`, {})
    },
  }
}
