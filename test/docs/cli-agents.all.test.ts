/** What docs/cli-agents.md tells clients works as it stands there, with a fake `claude` on the PATH. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { load } from 'js-yaml'
import { describe, expect, onTestFinished, test } from 'vitest'
import { inherited } from '../../src/processes/node-processes.ts'
import { folder, serving } from '../support/cli.ts'
import { installFakes } from '../support/cli/fakes.ts'
import { readDocument, snippets } from './documents.ts'

const exec = promisify(execFile)
const page = 'docs/cli-agents.md'
const text = readDocument(page)
const blocks = (language: string) =>
  snippets.filter((each) => each.place.startsWith(page) && each.language === language).map((each) => each.text)

async function served(): Promise<string> {
  const [agent] = blocks('yaml')
  const { environment } = installFakes()
  const dir = folder({ 'claude-code.yaml': agent! })
  const env = { ...environment, HOME: process.env['HOME'] ?? '/' }
  return (await serving([dir, '--data', join(folder(), 'data')], { env })).url
}

describe('docs: CLI agents', () => {
  test('the curl line answers when it is pasted', async () => {
    const url = await served()
    const [line] = blocks('bash')
    const { stdout } = await exec('bash', ['-c', line!.replaceAll('http://localhost:3000', url)])
    expect(stdout).toBe('I will read it.\n\nIt is fine: ü🌊.')
  })

  test('the OpenAI client prints the answer', async () => {
    const url = await served()
    const dir = mkdtempSync(join(tmpdir(), 'millrace-docs-'))
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
    symlinkSync(resolve('node_modules'), join(dir, 'node_modules'))
    writeFileSync(join(dir, 'package.json'), '{"type":"module"}')
    const program = blocks('ts').find((each) => each.includes('HttpAgent'))!
    writeFileSync(join(dir, 'program.ts'), program.replaceAll('http://localhost:3000', url))
    const { stdout } = await exec(process.execPath, [join(dir, 'program.ts')])
    expect(stdout).toBe('I will read it.\n\nIt is fine: ü🌊.')
  }, 30_000)

  test('LibreChat is given an address where the agent is a model', async () => {
    const url = await served()
    const config = load(blocks('text')[0]!) as {
      endpoints: { custom: { baseURL: string; models: { default: string[] } }[] }
    }
    const [{ baseURL, models } = { baseURL: '', models: { default: [] } }] = config.endpoints.custom
    const found = (await (await fetch(`${baseURL.replace('http://localhost:3000', url)}/models`)).json()) as {
      data: { id: string }[]
    }
    expect(found.data.map(({ id }) => id)).toEqual(expect.arrayContaining([...models.default]))
    expect(models.default).toEqual(['claude-code'])
  })

  test('the page lists every variable that a program inherits', () => {
    const row = text.split('\n').find((line) => line.startsWith('| environment'))!
    for (const name of inherited) expect(row).toContain(`\`${name}\``)
  })
})
