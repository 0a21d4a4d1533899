/** The example as its reader has it: a folder of its own, with the packed package and what the lock file names. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { cpSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')

/** Packs the package (`dist` must be built) and installs the example into `folder`. */
export async function installExample(folder: string): Promise<void> {
  const own = ['node_modules', '.next', '.millrace', 'next-env.d.ts']
  cpSync(join(root, 'examples/nextjs'), folder, { recursive: true, filter: (path) => !own.includes(basename(path)) })
  await npm(root, ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder])
  await npm(folder, ['ci', '--silent', '--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries', '1'])
}

/** Ends with the process that it was started from. */
export function startNext(folder: string, args: string[], env: Record<string, string> = {}): ChildProcess {
  const child = spawn(process.execPath, [join(folder, 'node_modules/next/dist/bin/next'), ...args], {
    cwd: folder,
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1', MILLRACE_DEMO_DELAY_MS: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  process.once('exit', () => child.kill('SIGKILL'))
  return child
}

export async function buildExample(folder: string): Promise<void> {
  const child = startNext(folder, ['build'])
  let said = ''
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (text: Buffer) => (said += text.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`next build ended with ${code}:\n${said}`)
}

async function npm(cwd: string, args: string[]): Promise<void> {
  // npm run names its own npm, which may be one that no path leads to.
  const path = process.env['npm_execpath']
  const [command, ...first] = path === undefined ? ['npm'] : [process.execPath, path]
  const child = spawn(command!, [...first, ...args], { cwd, stdio: ['ignore', 'ignore', 'inherit'] })
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`npm ${args[0]} ended with ${code}`)
}
