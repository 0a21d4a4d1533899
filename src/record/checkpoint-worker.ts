/** The thread of `sqlite-checkpoint.ts`: a round whenever it is told to; what goes wrong ends it. */
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

const db = new DatabaseSync(new URL(workerData as string))
const checkpoint = db.prepare('PRAGMA wal_checkpoint(PASSIVE)')

parentPort!.on('message', () => parentPort!.postMessage({ ...checkpoint.get() }))
