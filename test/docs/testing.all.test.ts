/** The tests that docs/testing.md shows are saved and run as a reader would run them. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { snippetsIn } from './documents.ts'

const exec = promisify(execFile)
const root = resolve(import.meta.dirname, '../..')

describe('docs: testing', () => {
  test('the tests in docs/testing.md pass when they are pasted, and fail when the model says something else', async () => {
    const project = mkdtempSync(join(tmpdir(), 'millrace-testing-'))
    onTestFinished(() => rmSync(project, { recursive: true, force: true }))
    mkdirSync(join(project, 'node_modules'))
    for (const name of readdirSync(join(root, 'node_modules'))) {
      symlinkSync(join(root, 'node_modules', name), join(project, 'node_modules', name))
    }
    symlinkSync(root, join(project, 'node_modules/millrace'))
    writeFileSync(join(project, 'package.json'), '{"type":"module"}')
    const tests = snippetsIn('ts').filter(
      ({ place, text }) => place.startsWith('docs/testing.md') && text.includes('node:test'),
    )
    expect(tests).toHaveLength(2)
    tests.forEach(({ text }, i) => writeFileSync(join(project, `good-${i}.test.ts`), text))
    const run = async (file: string) =>
      exec(process.execPath, ['--test', '--test-reporter=tap', file], {
        cwd: project,
        env: { PATH: process.env['PATH'] },
      })
        .then(({ stdout }) => stdout)
        .catch(({ stdout }: { stdout: string }) => stdout)
    for (const i of tests.keys()) expect(await run(`good-${i}.test.ts`)).toMatch(/^# pass 1\n# fail 0$/mu)
    writeFileSync(join(project, 'bad.test.ts'), tests[0]!.text.replace("text('It is ', ", "text('Perhaps ', "))
    expect(await run('bad.test.ts')).toMatch(/^# pass 0\n# fail 1$/mu)
  })
})
