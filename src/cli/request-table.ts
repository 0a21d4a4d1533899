/** The open requests of a run as a table. */
import type { EntryOf } from '../part/entry.ts'
import { formatTime } from './amounts.ts'
import { shortRequestId } from './answer-line.ts'
import { formatTable } from './table.ts'
import { cut } from './width.ts'

export function formatRequests(run: string, requests: readonly EntryOf<'request'>[]): string {
  const rows = requests.map((request) => {
    const { kind, toolName, deadline, input } = request
    const wanted = kind === 'approval' ? 'approval' : 'result'
    return [shortRequestId(run, request), wanted, toolName, formatTime(deadline), cut(JSON.stringify(input), 100)]
  })
  return formatTable(['REQUEST', 'WANTS', 'TOOL', 'UNTIL', 'INPUT'], rows)
}
