/**
 * Which processes a server has started, as files of its data folder: after a crash the next server kills those that are left.
 * A record is written before the program gets its input, so one without a record has nothing to work on.
 */
import { parseJson } from '../part/json.ts'
import { killMarked, signalGroup, startOf } from './process-table.ts'

/** What is known of a process. `start`: see {@link startOf}. */
export interface ProcessRecord {
  pid: number
  start?: string | undefined
  mark: string
  run: string
  step: string
}

/** Returns a function that removes the record. */
export async function keepRecord(data: string, record: ProcessRecord): Promise<() => Promise<void>> {
  const { mkdir, rename, rm, writeFile } = process.getBuiltinModule('node:fs/promises')
  const { join } = process.getBuiltinModule('node:path')
  const folder = join(data, 'processes')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const file = join(folder, `${record.mark}.json`)
  // Whole or not at all: a crash may come between.
  await writeFile(`${file}.tmp`, JSON.stringify(record), { mode: 0o600 })
  await rename(`${file}.tmp`, file)
  return () => rm(file, { force: true })
}

/**
 * Kills what is left of all recorded processes, and removes the records. Returns how many processes were killed. Only for the server
 * that holds the lock of the data folder: nobody else's processes are recorded there then.
 */
export async function reapProcesses(data: string): Promise<number> {
  const { readFile, readdir, rm } = process.getBuiltinModule('node:fs/promises')
  const { join } = process.getBuiltinModule('node:path')
  const folder = join(data, 'processes')
  const names = await readdir(folder).catch((): string[] => [])
  let count = 0
  for (const name of names) {
    const file = join(folder, name)
    const record = toRecord(await readFile(file, 'utf8').catch(() => ''))
    if (record !== undefined) count += await killLeft(record)
    await rm(file, { force: true })
  }
  return count
}

async function killLeft({ pid, start, mark }: ProcessRecord): Promise<number> {
  const isOurs = start !== undefined && (await startOf(pid)) === start
  if (isOurs) signalGroup(pid, 'SIGKILL')
  return Math.max(await killMarked(mark), isOurs ? 1 : 0)
}

function toRecord(text: string): ProcessRecord | undefined {
  try {
    const { pid, start, mark, run, step } = parseJson(text) as Partial<Record<keyof ProcessRecord, unknown>>
    if (!Number.isSafeInteger(pid) || (pid as number) < 2 || typeof mark !== 'string' || mark === '') return undefined
    return {
      pid: pid as number,
      mark,
      run: String(run),
      step: String(step),
      start: typeof start === 'string' ? start : undefined,
    }
  } catch {
    return undefined
  }
}
