/** One broken file never hides or blocks another: whatever is thrown while a file is loaded becomes that file's error. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createRuntime } from '../../src/project/create-runtime.ts'
import type { Known } from '../../src/pipeline/pipeline.ts'
import { readStored } from '../../src/engine/stored-pipeline.ts'
import { openAgentFolder } from '../../src/project/agents-folder.ts'
import { folder, ran, serving } from '../support/cli.ts'

const good = (words: string) => `workflow: [{ id: say, type: output-generator, config: { template: ${words} } }]\n`
const misspelt = 'workflow: [{ id: say, type: outptu-generator }]\n'
const inherited = 'workflow: [{ id: say, type: constructor }]\n'
const internal = 'workflow: [{ id: say, type: llm, config: { onFinish: boom } }]\n'

/** Names whose lookup fails for one of them, as a bug of the parser would. */
const known: Known = {
  stepTypes: [],
  tools: [],
  providers: [],
  callbacks: Object.assign([], {
    includes: (name: string) => {
      if (name === 'boom') throw new TypeError('injected')
      return false
    },
  }),
}

test('an internal error of one file is its error; the others are served and reloaded', async () => {
  const dir = folder({ 'a-boom.yaml': internal, 'bad.yaml': misspelt, 'good.yaml': good('one') })
  const agents = openAgentFolder(dir, known, { packed: internal, 'packed-good': good('packed') })
  onTestFinished(() => agents.close())
  const words = (id: string) => JSON.stringify(agents.get(id)?.pipeline.workflow[0]?.config)
  expect(agents.list().map(({ id }) => id)).toEqual(['good', 'packed-good'])
  const bug = '1:1 Millrace failed to read this file, which is a bug: injected. Please report it with the file'
  expect(agents.errors.map(({ message }) => message)).toEqual([
    `a-boom.yaml:${bug}`,
    expect.stringContaining('bad.yaml:1:29 unknown step type "outptu-generator"'),
    `pack:packed:${bug}`,
  ])
  agents.watch(() => undefined)
  writeFileSync(join(dir, 'good.yaml'), good('two'))
  await vi.waitFor(() => expect(words('good')).toContain('two'))
  // A file that begins to fail keeps its last good version, and its repair is taken.
  writeFileSync(join(dir, 'good.yaml'), internal)
  await vi.waitFor(() => expect(agents.errors.map(({ file }) => file)).toContain('good.yaml'))
  expect(words('good')).toContain('two')
  writeFileSync(join(dir, 'good.yaml'), good('three'))
  await vi.waitFor(() => expect(words('good')).toContain('three'))
})

test('a text that is none, given by a program or a pack, is a fault of that agent beside those of the others', () => {
  const agents = { none: undefined as unknown as string, bad: misspelt }
  expect(() => createRuntime({ agents, environment: {} })).toThrow(
    /none:1:1 an agent must be a string of YAML[^]*bad:1:29 unknown step/u,
  )
})

test('a recorded text that today’s parser cannot read keeps no run from ending', () => {
  expect(readStored(7 as unknown as string)).toBeUndefined()
  expect(readStored(good('one'))).toBeDefined()
})

describe('through the commands', () => {
  const files = { 'agents/a.yaml': inherited, 'agents/b.yaml': misspelt, 'agents/good.yaml': good('one') }

  test('check reports each file, also one that cannot be read', async () => {
    const cwd = folder(files)
    mkdirSync(join(cwd, 'agents/c.yaml'))
    const { code, out, err } = await ran(['check'], { cwd })
    expect(out.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^agents\/a\.yaml:1:29 unknown step type "constructor"/u),
      expect.stringMatching(/^agents\/b\.yaml:1:29 unknown step type "outptu-generator"/u),
      'agents/c.yaml:1:1 this file cannot be read: it is a folder',
    ])
    expect([code, err]).toEqual([1, '4 files checked, 3 errors\n'])
  })

  test('check goes on behind a folder whose config cannot be loaded', async () => {
    const cwd = folder({
      'one/millrace.config.ts': 'throw new Error("no")',
      'one/a.yaml': good('a'),
      'two/b.yaml': misspelt,
    })
    const { code, out, err } = await ran(['check', 'one', 'two'], { cwd })
    expect(out).toMatch(/^two\/b\.yaml:1:29 unknown step type/u)
    expect(code).not.toBe(0)
    expect(err).toMatch(/millrace\.config\.ts.*no/u)
  })

  test('run takes the sound one', async () => {
    const cwd = folder(files)
    expect(await ran(['run', 'good', '-m', 'hi', '--data', 'none'], { cwd })).toMatchObject({ code: 0 })
    const broken = await ran(['run', 'a', '-m', 'hi', '--data', 'none'], { cwd })
    expect([broken.code, broken.err]).toEqual([2, expect.stringContaining('unknown step type "constructor"')])
  })

  test('serve starts, names the broken ones and takes their repair', async () => {
    const cwd = folder(files)
    const server = await serving(['agents', '--data', 'none'], { cwd })
    const list = async () =>
      (await (await fetch(`${server.url}/api/agents`)).json()) as {
        agents: { id: string }[]
        errors: { file: string }[]
      }
    const before = await list()
    expect(before.agents.map(({ id }) => id)).toEqual(['good'])
    expect(before.errors.map(({ file }) => file)).toEqual(['a.yaml', 'b.yaml'])
    writeFileSync(join(cwd, 'agents/b.yaml'), good('two'))
    await vi.waitFor(async () => expect((await list()).agents.map(({ id }) => id)).toEqual(['b', 'good']))
    expect((await list()).errors.map(({ file }) => file)).toEqual(['a.yaml'])
  })
})

test('a run whose agent has the name of something inherited is listed by ps', async () => {
  const cwd = folder({ 'agents/constructor.yaml': good('one') })
  expect(await ran(['run', 'constructor', '-m', 'hi'], { cwd })).toMatchObject({ code: 0 })
  expect(await ran(['ps'], { cwd })).toMatchObject({ code: 0, out: expect.stringContaining('constructor') })
})
