/** Runs tests in a copy of the work tree, until enough files of them have failed. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { SeenBy } from './mutant.ts'
import type { WorkCopy } from './work-copy.ts'

export interface TestRun {
  /** Arguments of Vitest. */
  args: readonly string[]
  /** The run ends when so many test files have failed. */
  files: number
  seconds: number
  /** How long it goes on after the first that failed. */
  more?: number
}

/** The first failure of each file. A run that does not end is one as well: what hangs has been noticed. */
export async function runTests(copy: WorkCopy, run: TestRun, stop: AbortSignal): Promise<SeenBy[]> {
  const found = await runOnce(copy, run, stop)
  if (Array.isArray(found)) return found
  // On a machine that is short of memory it may have been killed, which says nothing about the mutant.
  const again = await runOnce(copy, run, stop)
  if (Array.isArray(again)) return again
  throw new Error(`vitest ${run.args.join(' ')}: no test failed, and yet it ended with ${again.how}:\n${again.output}`)
}

async function runOnce(
  copy: WorkCopy,
  run: TestRun,
  stop: AbortSignal,
): Promise<SeenBy[] | { how: string; output: string }> {
  const { args, files, seconds, more = seconds } = run
  const list = join(copy.temporary, 'failures')
  rmSync(list, { force: true })
  const vitest = join(copy.folder, 'node_modules/vitest/vitest.mjs')
  const fixed = ['--run', '--passWithNoTests', '--retry=0', '--reporter=./scripts/mutants/failures.ts']
  if (files === 1) fixed.push('--bail=1')
  const child = spawn(process.execPath, [vitest, ...args, ...fixed], {
    cwd: copy.folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own: its workers end with it.
    detached: true,
    // What killed tests leave behind goes with the copy.
    env: { ...process.env, TMPDIR: copy.temporary, MILLRACE_MUTANTS: JSON.stringify({ list, files }) },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (output += text.toString()))
  let isLate = false
  const kill = () => {
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch {
      // It has ended by itself.
    }
  }
  let left = seconds
  const timer = setInterval(() => {
    if (existsSync(list)) left = Math.min(left, more)
    if (left-- > 0) return
    isLate = true
    kill()
  }, 1000)
  stop.addEventListener('abort', kill)
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  clearInterval(timer)
  stop.removeEventListener('abort', kill)
  stop.throwIfAborted()
  const failures = existsSync(list) ? readFileSync(list, 'utf8').trim().split('\n') : []
  const first = new Map<string, SeenBy>()
  for (const failure of failures.map((line) => JSON.parse(line) as SeenBy)) {
    if (!first.has(failure.file)) first.set(failure.file, failure)
  }
  // Behind a test that failed, an error outside of tests says no more.
  if (first.size > 1) first.delete('')
  if (first.size > 0) return [...first.values()]
  if (isLate) return [{ file: '', test: `the tests had not ended after ${seconds} s` }]
  if (code !== 0) return { how: String(signal ?? code), output: output.slice(-4000) }
  return []
}
