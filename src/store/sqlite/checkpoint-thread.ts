/**
 * The worker thread of `sqlite/checkpoint.ts`: runs one checkpoint per message; an error ends it. It is a `data:` URL instead
 * of a file: bundlers drop such a file, or copy it to where it is not an ES module (Next.js), and the worker never starts.
 */
const source = `
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

const db = new DatabaseSync(new URL(workerData))
const checkpoint = db.prepare('PRAGMA wal_checkpoint(PASSIVE)')
const truncate = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)')

function rewrite() {
  try {
    db.exec('VACUUM')
    return true
  } catch {
    // Another process writes, or the disk is full.
    return false
  }
}

parentPort.on('message', ({ truncates, rewrites, patience }) => {
  db.exec('PRAGMA busy_timeout = ' + patience)
  const rewrote = rewrites && rewrite()
  // Passive first: the pages that it writes back do not block commits during the truncation.
  const round = checkpoint.get()
  parentPort.postMessage({ ...round, rewrote, truncated: truncates && truncate.get().busy === 0 })
})
`

export const checkpointThread = new URL(`data:text/javascript,${encodeURIComponent(source)}`)
