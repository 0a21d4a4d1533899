/** The runs that the tokens of reasoning in a request name: the model gets its own reasoning back from their logs. */
import type { ReasoningTokens } from './reasoning-token.ts'

/** Maximum number of tokens that are opened, newest last: a request may name as many runs as it has items. */
const mostOpened = 200

/**
 * A token that was made up, or is another server's, names none. Whether the run is the caller's is checked where it is looked up: a foreign or deleted
 * run is left out without an error.
 */
export async function runsOfTokens(
  { openReasoning }: ReasoningTokens,
  tokens: ReadonlySet<string>,
): Promise<(token: string) => string | undefined> {
  const opened = await Promise.all(
    [...tokens].slice(-mostOpened).map(async (token) => [token, (await openReasoning(token))?.runId] as const),
  )
  const runs = new Map(opened)
  return (token) => runs.get(token)
}
