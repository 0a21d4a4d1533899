/** The open requests of a run as a table. */
import type { EntryOf } from '../part/entry.ts'
import { formatTime } from './amounts.ts'
import { questionOf, shortRequestId } from './answer-line.ts'
import { formatTable } from './table.ts'
import { cut } from './width.ts'

export function formatRequests(run: string, requests: readonly EntryOf<'request'>[]): string {
  const rows = requests.map((request) => {
    const { kind, toolName = '', deadline } = request
    const wanted = { approval: 'approval', tool: 'result', input: 'value' }[kind]
    const about = request.kind === 'input' ? questionOf(request) : JSON.stringify(request.input)
    return [shortRequestId(run, request), wanted, toolName, formatTime(deadline), cut(about, 100)]
  })
  return formatTable(['REQUEST', 'WANTS', 'TOOL', 'UNTIL', 'INPUT'], rows)
}
