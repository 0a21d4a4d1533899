/** Programs from npm, for tests that need them: 400 MB for some. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface Installed {
  /** A folder of its own, with `node_modules`. */
  root: string
  remove(): void
}

/** Undefined if the registry does not have it, or cannot be reached: the test is skipped then. `scripts`: its own install step runs. */
export async function installed(names: readonly string[], { scripts = false } = {}): Promise<Installed | undefined> {
  const root = mkdtempSync(join(tmpdir(), 'millrace-npm-'))
  const remove = () => rmSync(root, { recursive: true, force: true })
  writeFileSync(join(root, 'package.json'), '{}')
  const flags = ['--prefer-offline', '--no-audit', '--no-fund', ...(scripts ? [] : ['--ignore-scripts'])]
  try {
    await run('npm', ['install', ...flags, ...names], { cwd: root })
    return { root, remove }
  } catch (error) {
    remove()
    const { stderr } = error as { stderr: string }
    if (/\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|E404|ETARGET|ENETUNREACH)\b/u.test(stderr)) return undefined
    throw error
  }
}
