/** CPU and memory use of a process, as reported by the operating system. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { Child } from './child.ts'

export interface Usage {
  /** CPU seconds since its start: all threads, user and system. */
  cpu: number
  /** Resident memory in bytes. */
  rss: number
  /** Peak resident memory in bytes: since {@link forgetPeak} if the system supports that, else since its start. */
  peak: number
}

/** Without `/proc`, the process reports its own usage: `usage.ts` is loaded into it. */
export const hasProc = existsSync('/proc/self/stat')

const ticks = hasProc ? Number(spawnSync('getconf', ['CLK_TCK']).stdout ?? 100) || 100 : 100

export async function readUsage(child: Child): Promise<Usage> {
  if (!hasProc) return child.call<Usage>('usage')
  const stat = readFileSync(`/proc/${child.pid}/stat`, 'latin1')
  // The process name is in parentheses and may contain anything, so count the fields after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const status = readFileSync(`/proc/${child.pid}/status`, 'latin1')
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+)`, 'mu').exec(status)?.[1]) * 1024
  return { cpu: (Number(fields[11]) + Number(fields[12])) / ticks, rss: kilobytes('VmRSS'), peak: kilobytes('VmHWM') }
}

/**
 * Waits until these servers have done what they put off until they have time, such as filling tables: `pause` ms in which they use at
 * most 20 ms of CPU. At most 40 times. Otherwise it would fall into the measurement of another server on the same core.
 */
export async function awaitRest(servers: readonly Child[], pause = 500, read = readUsage): Promise<void> {
  const total = async () => {
    const usages = await Promise.all(servers.map(read))
    return usages.reduce((sum, { cpu }) => sum + cpu, 0)
  }
  let before = await total()
  for (let i = 0; i < 40; i++) {
    await setTimeout(pause)
    const after = await total()
    if (after - before <= 0.02) return
    before = after
  }
}

/** Resets the peak. */
export function forgetPeak(child: Child): void {
  try {
    writeFileSync(`/proc/${child.pid}/clear_refs`, '5')
  } catch {
    // Not Linux, or not permitted: the peak then covers the whole lifetime.
  }
}
