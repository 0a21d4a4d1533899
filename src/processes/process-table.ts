/**
 * The system's process table. A process id alone identifies no process, because the system gives it to another process later:
 * with the start time it does. And every process that we start has a mark in its environment, which its children inherit, so
 * that on Linux they are found even if they have left its process group.
 */
import type { ExecFileException } from 'node:child_process'
import { parseJson } from '../part/json.ts'

/** The environment variable with the mark. */
export const markName = 'MILLRACE_PROCESS'

/** When a process was started, as a text to compare. Undefined if it does not exist, or the system does not say. */
export async function startOf(pid: number): Promise<string | undefined> {
  const { readFile } = process.getBuiltinModule('node:fs/promises')
  if (process.platform === 'linux') {
    try {
      const [stat, boot] = await Promise.all([
        readFile(`/proc/${pid}/stat`, 'utf8'),
        readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
      ])
      // The program's name comes before, in parentheses, and may contain anything. The 22nd field is in ticks since the boot.
      const startTicks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
      return `${boot.trim()} ${startTicks}`
    } catch {
      return undefined
    }
  }
  if (process.platform === 'win32') return undefined
  const { execFile } = process.getBuiltinModule('node:child_process')
  return new Promise((resolve) => {
    const done = (error: ExecFileException | null, out: string) => resolve(error ? undefined : out.trim() || undefined)
    execFile('ps', ['-o', 'lstart=', '-p', String(pid)], { env: { PATH: process.env['PATH'], LC_ALL: 'C' } }, done)
  })
}

/** The processes with a mark in their environment. Empty where the system does not show environments. */
export async function marked(mark: string): Promise<number[]> {
  if (process.platform !== 'linux') return []
  const { readFile, readdir } = process.getBuiltinModule('node:fs/promises')
  const wanted = `${markName}=${mark}`
  const has = async (pid: string) => {
    const environ = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')
    return environ.split('\0').includes(wanted)
  }
  const found: number[] = []
  const pids = (await readdir('/proc').catch((): string[] => [])).filter((name) => /^\d+$/u.test(name))
  for (let i = 0; i < pids.length; i += 64) {
    const page = pids.slice(i, i + 64)
    const hits = await Promise.all(page.map(has))
    for (const [at, pid] of page.entries()) if (hits[at]) found.push(Number(pid))
  }
  return found
}

/** Kills all processes with a mark, also those that they start meanwhile. Returns how many there were. */
export async function killMarked(mark: string): Promise<number> {
  let count = 0
  for (let round = 0; round < 20; round++) {
    const pids = await marked(mark)
    if (pids.length === 0) break
    if (round === 0) count = pids.length
    for (const pid of pids) signal(pid, 'SIGKILL')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return count
}

/** To a process and, where there are process groups, to the group that it leads. */
export function signalGroup(pid: number, name: NodeJS.Signals): void {
  signal(process.platform === 'win32' ? pid : -pid, name)
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    // It is gone. macOS reports EPERM for a group that has only unreaped processes left.
    if (!['ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}

/*
 * Which processes a server has started, as files of its data folder: after a crash the next server kills those that are left.
 * A record is written before the program gets its input, so one without a record has nothing to work on.
 */

/** The recorded data of a process. `start`: see {@link startOf}. */
interface ProcessRecord {
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
 * Kills the remains of all recorded processes, and removes the records. Returns how many processes were killed. Only for the server
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
