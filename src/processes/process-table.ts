/**
 * What the system's process table says. A process id alone names nobody, because the system gives it to another process later:
 * with the start time it does. And every process that we start has a mark in its environment, which its children inherit, so
 * that on Linux they are found even if they have left its process group.
 */
import type { ExecFileException } from 'node:child_process'

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
      const ticks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
      return `${boot.trim()} ${ticks}`
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
