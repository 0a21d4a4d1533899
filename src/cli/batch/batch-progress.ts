/** How far a batch is: a bar on a terminal, elsewhere a line for each tenth and for each failure. */
import type { CommandContext, Output } from '../context.ts'
import { addUsage, type Usage } from '../../part/usage.ts'
import { formatCost, formatDuration, formatTokens } from '../amounts.ts'
import { printable } from '../printable.ts'
import { cut } from '../width.ts'
import type { BatchResult } from './batch-results.ts'

export interface BatchProgress {
  add(result: BatchResult): void
  readonly failed: number
  /** Prints the last line. */
  end(): void
}

const width = 24

/** `before`: lines that were done by an earlier batch. */
export function createBatchProgress(
  context: CommandContext,
  total: number,
  before: number,
  stream: Output = context.stderr,
): BatchProgress {
  const began = performance.now()
  let done = 0
  let failed = 0
  let usage: Usage | undefined
  let cost: number | undefined = 0
  let isShown = false

  function clear(): void {
    if (isShown) stream.write('\r\u001b[K')
    isShown = false
  }

  function amounts(): string {
    return [
      ...(failed > 0 ? [`${failed} failed`] : []),
      ...((usage?.totalTokens ?? 0) > 0 ? [`${formatTokens(usage)} tokens`] : []),
      ...(cost === undefined || cost === 0 ? [] : [formatCost(cost)]),
    ].join(', ')
  }

  function show(): void {
    const at = before + done
    const left = ((performance.now() - began) / done) * (total - at)
    const told = [`${at}/${total}`, amounts(), at < total ? `ETA ${formatDuration(left)}` : ''].filter(
      (each) => each !== '',
    )
    if (stream.isTTY) {
      clear()
      const full = Math.round((at / total) * width)
      const line = `${'█'.repeat(full)}${'░'.repeat(width - full)} ${told.join(', ')}`
      stream.write(cut(line, (stream.columns || 80) - 1))
      isShown = true
    } else if (tenth(at) > tenth(at - 1) && at < total) stream.write(`${told.join(', ')}\n`)
  }

  function tenth(at: number): number {
    return Math.floor((at / total) * 10)
  }

  return {
    get failed() {
      return failed
    },
    add({ line, run, outcome, error, usage: used, cost: spent }) {
      done++
      if (used !== undefined) usage = addUsage(usage, used)
      const isFree = (used?.totalTokens ?? 0) === 0
      cost = cost === undefined || (spent === undefined && !isFree) ? undefined : cost + (spent ?? 0)
      if (outcome !== 'completed') {
        failed++
        clear()
        const why = error === undefined ? '' : `: ${error.message}`
        stream.write(printable(`line ${line}: ${outcome}${why}${run === undefined ? '' : ` (${run})`}\n`))
      }
      show()
    },
    end() {
      clear()
      const told = [`${done - failed} completed`, amounts(), ...(before > 0 ? [`${before} done before`] : [])]
      const rest = total - before - done
      if (rest > 0) told.push(`${rest} not run`)
      stream.write(`${[...told.filter((each) => each !== ''), formatDuration(performance.now() - began)].join(', ')}\n`)
    },
  }
}
