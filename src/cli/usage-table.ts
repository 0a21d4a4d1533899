/** What models, agents or days have used, as a table. */
import type { Used } from '../fold/usage-fold.ts'
import { formatCost } from './amounts.ts'
import { formatTable } from './table.ts'

/** Empty without rows. `head`: what a row is. */
export function formatUsage(head: string, rows: readonly (readonly [name: string, Used])[]): string {
  if (rows.length === 0) return ''
  const cells = rows.map(([name, used]) => [name, String(used.calls), ...tokensOf(used), costOf(used)])
  return formatTable([head, 'CALLS', 'IN', 'CACHED', 'OUT', 'REASONING', 'COST'], cells)
}

function tokensOf({ usage }: Used): string[] {
  const mark = usage.source === 'estimated' ? '~' : ''
  const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens } = usage
  const shown = (count: number | undefined) => (count === undefined ? '' : `${count}${mark}`)
  return [inputTokens, cachedInputTokens, outputTokens, reasoningTokens].map(shown)
}

/** `unknown`, or the part that is known with a `+`: an unknown price is not 0. */
function costOf({ cost, knownCost }: Used): string {
  if (cost !== undefined) return formatCost(cost)
  return knownCost === 0 ? 'unknown' : `${formatCost(knownCost)} + unknown`
}
