/** The packages that Millrace is compared with, in their own folder so that only the benchmark installs them. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, 'peers')

/** Installs the peers if they are missing or older than the lock file. */
export async function installPeers(say: (line: string) => void): Promise<void> {
  const installed = join(folder, 'node_modules/.package-lock.json')
  const lock = join(folder, 'package-lock.json')
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return
  say('installing the peers into bench/peers (once)')
  // `npm run` sets the path of its own npm, which may not be on PATH.
  const npm = process.env['npm_execpath']
  const [command, ...first] = npm === undefined ? ['npm'] : [process.execPath, npm]
  const args = [...first, 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries', '1']
  const child = spawn(command!, args, { cwd: folder, stdio: ['ignore', process.stderr, process.stderr] })
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code === 0) return
  const cure = 'Check the network, or run without them: npm run bench -- --only floor,millrace'
  throw new Error(`The peers could not be installed. ${cure}`)
}
