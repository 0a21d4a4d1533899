/** The system's file cache, as it is on a machine that needs the memory for something else. */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readlinkSync, statSync } from 'node:fs'
import type { Child } from './child.ts'

/** It needs Linux and GNU's `dd`: others have no `nocache`. */
export const canDropFileCache = existsSync('/proc/self/fd') && spawnSync('dd', ['--version']).status === 0

/** Drops the cached pages of all files that a process has open. Returns their paths. */
export function dropFileCache({ pid }: Pick<Child, 'pid'>): string[] {
  if (!canDropFileCache) throw new Error('Dropping the file cache needs Linux and GNU dd.')
  const folder = `/proc/${pid}/fd`
  const targets = readdirSync(folder).map((fd) => readlinkSync(`${folder}/${fd}`))
  const files = [...new Set(targets)].filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile())
  for (const path of files) {
    // Writes nothing: it flushes the file, and then the system may forget it.
    const args = [`of=${path}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0', 'status=none']
    const { status, stderr } = spawnSync('dd', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
    if (status !== 0) throw new Error(`The file cache of ${path} could not be dropped: ${stderr}`)
  }
  return files
}
