/** Tokens for one MCP server: one is kept until shortly before its end, and whoever needs the next one waits for the same request. */

export interface TokenSource {
  /** The token to send now. Rejects with `mcp-unauthorized`. */
  token(): Promise<string>
  /** The token to send after the server has refused this one: another, which is asked for once. Rejects with `mcp-unauthorized`. */
  renewed(refused: string): Promise<string>
  /** The tokens that were given out last. They must not come back in what a server sends. Another list when there is another token. */
  readonly given: readonly string[]
}

/** What an authorization server has issued. Epoch ms; Infinity if it does not say when it ends. */
export interface IssuedToken {
  token: string
  renewAt: number
  endsAt: number
}

/** A token is renewed this long before its end, in ms, or a fifth of its lifetime if that is less. */
const longestMargin = 60_000
/** ms after which a renewal that has failed is tried again. */
const pauseMs = 5000
/** How many tokens `given` has. */
const most = 4

/** `lifetime`: in ms, from a request at `asked` on. */
export function issuedToken(token: string, asked: number, lifetime = Infinity): IssuedToken {
  const endsAt = asked + lifetime
  return { token, renewAt: endsAt - Math.min(longestMargin, lifetime / 5), endsAt }
}

/**
 * `request`: asks for a token that is not the one that was refused. `now`: epoch ms. `isLatest`: whether the one that was asked for last still counts;
 * another process may have replaced it.
 */
export function createTokenSource(
  request: (refused: string | undefined) => Promise<IssuedToken>,
  now: () => number,
  isLatest: () => Promise<boolean> = () => Promise.resolve(true),
): TokenSource {
  let kept: IssuedToken | undefined
  let refusedLast: string | undefined
  let asking: Promise<string> | undefined
  let given: readonly string[] = []

  async function next(): Promise<string> {
    kept = await request(refusedLast)
    const { token } = kept
    if (!given.includes(token)) given = [token, ...given].slice(0, most)
    return token
  }

  const askOnce = () => (asking ??= next().finally(() => (asking = undefined)))

  async function token(): Promise<string> {
    const before = kept
    if (before !== undefined && !(await isLatest()) && kept === before) kept = undefined
    if (kept !== undefined && now() < kept.renewAt) return kept.token
    try {
      return await askOnce()
    } catch (error) {
      if (kept === undefined || now() >= kept.endsAt) throw error
      // It still counts while the authorization server is away.
      kept = { ...kept, renewAt: now() + pauseMs }
      return kept.token
    }
  }

  return {
    token,
    async renewed(refused) {
      // Calls that were refused together share the next token.
      refusedLast = refused
      if (kept?.token === refused) kept = undefined
      return token()
    },
    get given() {
      return given
    },
  }
}
