/** Shows test cases on a terminal: progress while they run, then their results. */
import type { CommandContext, Output } from '../context.ts'
import { type Usage, addUsage } from '../../part/usage.ts'
import { compareLines } from '../../regress/describe-failure.ts'
import type { CaseResult } from '../../regress/run-case.ts'
import { formatCost, formatDuration, formatTokens } from '../terminal/format.ts'
import { printable, paint } from '../terminal/output.ts'
import { formatTable, cut } from '../terminal/table.ts'

const marks = { passed: '✓', failed: '✗', stopped: '-' } as const
const colours = { passed: 'green', failed: 'red', stopped: 'yellow' } as const

/** The cases of one file: a line for each, with its failures below it. */
export function formatFile(context: CommandContext, file: string, results: readonly CaseResult[]): string {
  return [paint(context, 'bold', printable(file)), ...results.flatMap((each) => linesOf(context, each)), ''].join('\n')
}

function linesOf(context: CommandContext, result: CaseResult): string[] {
  const { name, model, status, failures, warnings } = result
  const full = printable(`${name}${model === undefined ? '' : ` (${model})`}`)
  const lines = [
    `  ${paint(context, colours[status], marks[status])} ${full}  ${paint(context, 'dim', amounts(result))}`,
  ]
  for (const failure of failures) {
    lines.push(`      ${paint(context, 'red', printable(`${failure.what}: ${failure.message}`))}`)
    for (const { sign, text } of compareLines(failure)) {
      const line = printable(`        ${sign} ${text}`)
      lines.push(sign === ' ' ? line : paint(context, sign === '-' ? 'green' : 'red', line))
    }
  }
  for (const warning of warnings) lines.push(`      ${paint(context, 'yellow', printable(`warning: ${warning}`))}`)
  return lines
}

function amounts({ usage, cost, isLive, duration }: CaseResult): string {
  const tokens = formatTokens(usage)
  const facts = [
    ...(tokens === '' || tokens === '0' ? [] : [`${tokens} tokens${isLive ? '' : ' (recorded)'}`]),
    ...(cost === undefined || cost === 0 ? [] : [formatCost(cost)]),
    formatDuration(duration),
  ]
  return facts.join(', ')
}

/** Cases and models, if there are models to compare. */
export function formatMatrix(results: readonly CaseResult[]): string | undefined {
  const models = [...new Set(results.flatMap(({ model }) => model ?? []))]
  if (models.length < 2) return undefined
  const cases = Map.groupBy(results, ({ file, line }) => `${file}:${line}`)
  const rows = [...cases.values()].map((group) => [
    group[0]!.name,
    ...models.map((model) => {
      const found = group.find((each) => each.model === model)
      return found === undefined ? '' : `${marks[found.status]} ${amounts(found)}`
    }),
  ])
  return `${formatTable(['CASE', ...models], rows)}\n`
}

/** The last line. */
export function formatSummary(
  context: CommandContext,
  results: readonly CaseResult[],
  skipped: number,
  ms: number,
): string {
  const count = (status: CaseResult['status']) => results.filter((each) => each.status === status).length
  const { usage, cost } = spent(results)
  const [passed, failed, stopped] = [count('passed'), count('failed'), count('stopped')]
  const facts = [
    paint(context, failed > 0 ? 'dim' : 'green', `${passed} passed`),
    ...(failed > 0 ? [paint(context, 'red', `${failed} failed`)] : []),
    ...(stopped > 0 ? [`${stopped} stopped`] : []),
    ...(skipped > 0 ? [`${skipped} not run`] : []),
    `${formatTokens(usage) || '0'} tokens spent`,
    ...(cost === undefined || cost === 0 ? [] : [formatCost(cost)]),
    formatDuration(ms),
  ]
  return `${facts.join(', ')}\n`
}

/** Tokens and cost of the models for these results; recordings cost nothing. */
export function spent(results: readonly CaseResult[]): { usage: Usage | undefined; cost?: number | undefined } {
  const live = results.filter(({ isLive }) => isLive)
  return {
    usage: live.reduce<Usage | undefined>((sum, { usage }) => addUsage(sum, usage), undefined),
    cost: live.reduce<number | undefined>(
      (sum, { cost }) => (sum === undefined || cost === undefined ? undefined : sum + cost),
      0,
    ),
  }
}

/** Shows on a terminal how many cases have run, in one line that is erased before anything else is printed. */
interface TestProgress {
  start(name: string, model?: string): void
  done(result: CaseResult): void
  /** Call before printing anything. */
  clear(): void
}

export function createTestProgress(
  context: CommandContext,
  total: number,
  stream: Output = context.stderr,
): TestProgress {
  let ended = 0
  let failed = 0
  let isShown = false

  function clear(): void {
    if (isShown) stream.write('\r\u001b[K')
    isShown = false
  }

  function show(last: string): void {
    if (!stream.isTTY) return
    clear()
    const facts = `… ${ended}/${total}${failed > 0 ? `, ${failed} failed` : ''}  ${last}`
    // A longer line would wrap, and only its last row could be erased.
    stream.write(paint(context, 'dim', cut(printable(facts), (stream.columns || 80) - 1), stream))
    isShown = true
  }

  return {
    clear,
    start: (name, model) => show(model === undefined ? name : `${name} (${model})`),
    done({ status, name }) {
      ended++
      if (status === 'failed') failed++
      show(name)
    },
  }
}
