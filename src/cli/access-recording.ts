/** A run as a recording, through whatever gives access to it. */
import type { Entry } from '../part/entry.ts'
import { isUnder } from '../part/path.ts'
import { asRecorded, type Recording } from '../part/recording.ts'
import type { Access } from './access.ts'

const batchSize = 256

export function accessRecording(access: Pick<Access, 'read'>, run: string): Recording {
  return {
    name: run,
    async *read({ after = 0, before = Infinity, limit = Infinity, step, types } = {}) {
      let batch: Entry[] = []
      let left = limit
      if (before <= after + 1) return
      for await (const entry of access.read(run, after, false)) {
        if (entry.seq >= before || left <= 0) break
        const isWanted =
          (types === undefined || types.includes(entry.type)) && (step === undefined || isUnder(entry.step, step))
        if (isWanted) {
          left--
          if (batch.push(entry.type === 'run-start' ? asRecorded(entry) : entry) === batchSize) {
            yield batch
            batch = []
          }
        }
        if (entry.seq === before - 1) break
      }
      if (batch.length > 0) yield batch
    },
  }
}
