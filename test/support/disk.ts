/** A disk of its own for a test. Undefined where this account may not mount one. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Disk {
  dir: string
  makeReadOnly(): void
  free(): void
}

export function mountDisk(bytes: number): Disk | undefined {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-disk-'))
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', dir]).status !== 0) {
    rmSync(dir, { recursive: true })
    return undefined
  }
  return {
    dir,
    makeReadOnly: () => void spawnSync('mount', ['-o', 'remount,ro', dir]),
    free() {
      spawnSync('umount', ['-l', dir])
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

function canMount(): boolean {
  const disk = mountDisk(4096)
  disk?.free()
  return disk !== undefined
}

export const hasDisks = canMount()
/** Added to the names of tests that cannot run here. */
export const diskFault = hasDisks ? '' : ' (needs the right to mount a disk)'
