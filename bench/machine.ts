/** Facts about the machine that affect the results. Nothing here identifies the machine. */
import { execFileSync } from 'node:child_process'
import { readFileSync, statfsSync } from 'node:fs'
import { cpus, loadavg, platform, release, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { pinned } from './child.ts'

export function machineFacts() {
  return {
    date: new Date().toISOString(),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGB: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release()}`,
    node: process.versions.node,
    /** Load average of the last minute before the benchmark. More than a few tenths distort the results. */
    busy: Number(loadavg()[0]!.toFixed(1)),
    /** Whether the server has its own core. */
    pinned,
    /** Where runs are recorded. */
    disk: statfsSync(tmpdir()).type === 0x01021994 ? 'memory (tmpfs)' : 'disk',
    commit: commit(),
    peers: peerVersions(),
  }
}

function commit(): string {
  try {
    const git = (...args: string[]) => execFileSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8' }).trim()
    return (
      git('rev-parse', '--short', 'HEAD') +
      (git('status', '--porcelain', '--', '../src') === '' ? '' : ' with local changes')
    )
  } catch {
    return 'unknown'
  }
}

function peerVersions(): Record<string, string> {
  const read = (name: string): unknown => JSON.parse(readFileSync(join(import.meta.dirname, 'peers', name), 'utf8'))
  const { dependencies } = read('package.json') as { dependencies: Record<string, string> }
  const { packages } = read('package-lock.json') as { packages: Record<string, { version: string }> }
  return Object.fromEntries(Object.keys(dependencies).map((name) => [name, packages[`node_modules/${name}`]!.version]))
}
