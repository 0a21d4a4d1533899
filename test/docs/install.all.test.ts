/** docs/install.md, line by line, as far as that goes without a registry. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { installNode, installPacked, manifest, packInto } from '../support/packed.ts'
import { snippetsIn } from './documents.ts'

const exec = promisify(execFile)
const home = mkdtempSync(join(tmpdir(), 'millrace-install-'))
const project = join(home, 'my-project')
afterAll(() => rmSync(home, { recursive: true, force: true }))

const lines = snippetsIn('sh')
  .filter(({ place }) => place.startsWith('docs/install.md'))
  .flatMap(({ text }) => text.trim().split('\n'))
  .map((line) => line.replace(/\s+#.*$/u, ''))

describe('docs: install', () => {
  beforeAll(() => {
    mkdirSync(join(home, 'millrace'))
    mkdirSync(project)
  })

  test('every line does what the page says', async () => {
    const done: string[] = []
    for (const line of lines) {
      if (line === 'npm pack') {
        const { filename } = await packInto(join(home, 'millrace'))
        expect(filename).toBe(`millrace-${manifest.version}.tgz`)
      } else if (line.endsWith('.tgz')) {
        const tarball = join(project, line.replace('npm install ', ''))
        expect(existsSync(tarball), line).toBe(true)
        await installPacked(project, tarball)
      } else if (line === 'npm install node@24') installNode(project)
      else if (line.startsWith('npx ')) done.push(await npx(line.slice('npx '.length)))
      else expect(['npm ci', 'npm init -y']).toContain(line)
    }
    const [wrote, checked, answered, version, again] = done
    expect(wrote).toContain('created agents/assistant.yaml')
    expect(checked).toContain('1 file checked')
    expect(answered).toContain('12*7 = 84.')
    expect(version).toMatch(/^v2[4-9]\./u)
    expect(again).toBe(checked)
  })
})

/** As npx does: commands of the project come first. */
async function npx(line: string): Promise<string> {
  const bin = join(project, 'node_modules/.bin')
  // Where this machine's own Node is too old, the project's is what the shebang must find.
  const path = existsSync(join(bin, 'node'))
    ? `${bin}:/usr/bin:/bin`
    : `${bin}:${join(process.execPath, '..')}:/usr/bin:/bin`
  const env = { PATH: path, HOME: home, MILLRACE_DEMO_DELAY_MS: '0', NO_COLOR: '1' }
  const { stdout, stderr } = await exec('sh', ['-c', line], { cwd: project, env })
  return stdout + stderr
}
