/**
 * The thread of `sqlite-checkpoint.ts`: a round for each message; an error ends it. Its few lines are a `data:` URL and not a file
 * of their own: bundlers lose such a file, or copy it to where it is no ES module (Next.js does), and the thread never starts.
 */
const source = `
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

const db = new DatabaseSync(new URL(workerData))
const checkpoint = db.prepare('PRAGMA wal_checkpoint(PASSIVE)')

parentPort.on('message', () => parentPort.postMessage({ ...checkpoint.get() }))
`

export const checkpointThread = new URL(`data:text/javascript,${encodeURIComponent(source)}`)
