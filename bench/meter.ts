/** What a process has used, by the operating system's own account: of the server alone, not of the load beside it. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Child } from './child.ts'

export interface Usage {
  /** Seconds of CPU since its start, all threads, user and system. */
  cpu: number
  /** Bytes in memory now. */
  rss: number
  /** The most there were, since {@link forgetPeak} where the system can do that. */
  peak: number
}

/** Without `/proc` a process is asked for its own account: `usage.ts` is loaded into it. */
export const hasProc = existsSync('/proc/self/stat')

const ticks = hasProc ? Number(spawnSync('getconf', ['CLK_TCK']).stdout ?? 100) || 100 : 100

export async function readUsage(child: Child): Promise<Usage> {
  if (!hasProc) return child.call<Usage>('usage')
  const stat = readFileSync(`/proc/${child.pid}/stat`, 'latin1')
  // The name of the process stands in brackets and may hold anything: fields are counted from behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const status = readFileSync(`/proc/${child.pid}/status`, 'latin1')
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+)`, 'mu').exec(status)?.[1]) * 1024
  return { cpu: (Number(fields[11]) + Number(fields[12])) / ticks, rss: kilobytes('VmRSS'), peak: kilobytes('VmHWM') }
}

/** The peak is of what comes now. */
export function forgetPeak(child: Child): void {
  try {
    writeFileSync(`/proc/${child.pid}/clear_refs`, '5')
  } catch {
    // Not Linux, or not allowed: then it is of all there was.
  }
}
