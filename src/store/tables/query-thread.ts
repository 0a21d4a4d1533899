/**
 * The worker thread of `query.ts`: runs one statement per message on a connection that only reads. A `data:` URL instead of a file,
 * like the one of `sqlite/checkpoint.ts`.
 */
const source = `
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

const db = new DatabaseSync(new URL(workerData), { readOnly: true, timeout: 1000 })
const plain = (value) =>
  typeof value !== 'bigint' ? value : Number.isSafeInteger(Number(value)) ? Number(value) : String(value)

parentPort.on('message', ({ id, sql, parameters, limit }) => {
  try {
    const statement = db.prepare(sql, { returnArrays: true, readBigInts: true })
    const columns = statement.columns().map(({ name }) => name)
    const rows = []
    let truncated = false
    for (const row of statement.iterate(parameters)) {
      if (rows.length === limit) {
        truncated = true
        break
      }
      rows.push(row.map(plain))
    }
    parentPort.postMessage({ id, result: { columns, rows, truncated } })
  } catch (error) {
    parentPort.postMessage({ id, fault: error.message })
  }
})
`

export const queryThread = new URL(`data:text/javascript,${encodeURIComponent(source)}`)
