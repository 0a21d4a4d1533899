/** Migration to schema 3: gives the runs that are not over the open requests that their logs have. */
import type { DatabaseSync } from 'node:sqlite'
import { decodeEntries } from '../encode.ts'

interface Request {
  id: string
  step: string
  deadline: number
}

export function addRequests(db: DatabaseSync): void {
  const runs = db.prepare(`SELECT id, status FROM runs WHERE status IN ('running', 'suspended')`).all()
  const ticks = db.prepare(
    `SELECT entries FROM ticks WHERE run = ? AND (instr(entries, '"type":"request"') OR instr(entries, '"type":"response"')
       OR instr(entries, '"type":"step-reset"')) ORDER BY first_seq`,
  )
  const update = db.prepare('UPDATE runs SET requests = ?, due_at = ? WHERE id = ?')
  for (const { id, status } of runs) {
    const open = new Map<string, Request>()
    for (const { entries } of ticks.iterate(id!)) {
      for (const entry of decodeEntries([String(entries)])) {
        if (entry.type === 'request') {
          open.set(entry.requestId, { id: entry.requestId, step: entry.step, deadline: entry.deadline })
        } else if (entry.type === 'response') open.delete(entry.requestId)
        else if (entry.type === 'step-reset') {
          for (const { id: request, step } of open.values()) {
            if (step === entry.step || step.startsWith(`${entry.step}/`)) open.delete(request)
          }
        }
      }
    }
    const requests = [...open.values()]
    if (requests.length === 0) continue
    const due = status === 'suspended' ? Math.min(...requests.map(({ deadline }) => deadline)) : null
    update.run(JSON.stringify(requests), due, id!)
  }
}
