/** The packages that Millrace is measured beside: in a folder of their own, so that nobody else has to install them. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, 'peers')

/** Installs them when they are not there, or not those of the lock file. Throws, saying what can be done without them. */
export async function installPeers(say: (line: string) => void): Promise<void> {
  const installed = join(folder, 'node_modules/.package-lock.json')
  const lock = join(folder, 'package-lock.json')
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return
  say('installing the peers into bench/peers (once)')
  // npm run names its own npm, which may be one that no path leads to.
  const npm = process.env['npm_execpath']
  const [command, ...first] = npm === undefined ? ['npm'] : [process.execPath, npm]
  const args = [...first, 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries', '1']
  const child = spawn(command!, args, { cwd: folder, stdio: ['ignore', process.stderr, process.stderr] })
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code === 0) return
  const cure = 'Is this machine offline? `npm run bench -- --only floor,millrace` needs none of them.'
  throw new Error(`The peers could not be installed. ${cure}`)
}
