/** Formats durations, times, tokens, costs and conversations for people. */
import type { Usage } from '../../part/usage.ts'
import type { Used } from '../../fold/usage-fold.ts'
import { formatTable } from './table.ts'
import type { Message } from '../../part/message.ts'
import type { Actor } from '../../part/principal.ts'

/** `0.42s`, `12.3s`, `4m 05s`. Never negative, even if the clock was set back. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, ms) / 1000
  if (seconds < 10) return `${seconds.toFixed(2)}s`
  if (seconds < 60) return `${seconds.toFixed(1)}s`
  const whole = Math.round(seconds)
  return `${Math.floor(whole / 60)}m ${String(whole % 60).padStart(2, '0')}s`
}

/** The total, with `~` if it is an estimate; empty if unknown. */
/** The name and the id with its tenant: `Ada (acme/u1)`. */
export function formatActor({ id, tenant, name }: Actor): string {
  const key = tenant === undefined ? id : `${tenant}/${id}`
  return name === undefined ? key : `${name} (${key})`
}

export function formatTokens(usage: Usage | undefined): string {
  return usage?.totalTokens === undefined ? '' : `${usage.totalTokens}${usage.source === 'estimated' ? '~' : ''}`
}

export function formatCost(usd: number): string {
  return `$${usd.toFixed(usd < 0.01 ? 6 : 4)}`
}

/** UTC, to the second: `2026-01-31 12:34:56`. */
export function formatTime(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
}

/** The usage of models, agents or days as a table; empty without rows. `head`: the title of the first column. */
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

/** Maximum characters of one text, unless `--full` is given. */
export const shortened = 500

/**
 * One message of a conversation, with a line for each tool call and each result. `longest`: maximum characters of one text; `who`: the
 * label instead of the role.
 */
export function formatMessage({ role, content }: Message, longest = shortened, who: string = role): string[] {
  const lines = (name: string, text: string) => textLines(name, text, longest)
  if (typeof content === 'string') return lines(who, content)
  return content.flatMap((part) => {
    switch (part.type) {
      case 'text':
        return lines(who, part.text)
      case 'reasoning':
        return lines('thinks', part.text)
      case 'tool-call':
        return lines('calls', `${part.toolName} ${JSON.stringify(part.input)}`)
      case 'tool-result': {
        const { output } = part
        const value = output.type === 'execution-denied' ? `denied. ${output.reason ?? ''}` : output.value
        return lines(part.toolName, typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
      }
      case 'file':
        return lines(who, `(${part.mediaType}${part.filename === undefined ? '' : ` ${part.filename}`})`)
      default:
        return lines(who, `(${part.type})`)
    }
  })
}

function textLines(who: string, text: string, longest: number): string[] {
  const shown = text.trim()
  if (shown === '') return []
  const cut = shown.length > longest ? `${shown.slice(0, longest)}… (${shown.length} characters)` : shown
  return cut.split('\n').map((line, i) => `${(i === 0 ? who : '').padEnd(10)}  ${line}`.trimEnd())
}
