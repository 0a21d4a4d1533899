/** Prompts in files: read with the agent, checked like its own text, recorded with every run, reloaded when they change. */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createRuntime } from '../../src/project/create-runtime.ts'
import { loadYaml, parseYaml } from '../../src/project/yaml.ts'
import type { Known, Pipeline } from '../../src/pipeline/pipeline.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { readStored } from '../../src/engine/stored-pipeline.ts'
import { openAgentFolder } from '../../src/project/agents-folder.ts'
import { WorkflowExecutor } from '../../src/project/workflow-executor.ts'
import { folder, ran } from '../support/cli.ts'
import { entriesOf, only } from '../support/engine.ts'

const known: Known = { stepTypes: [], tools: ['calculator'], callbacks: [], providers: ['demo'] }
const poet = (system: string) => `workflow:
  - id: poem
    type: llm
    config: { model: "demo:assistant", stream: true, system: ${system} }
`
const file = '{ file: prompts/poet.md }'
const systemOf = ({ workflow: [step] }: Pipeline) => (step?.type === 'llm' ? step.config.system : undefined)

function opened(files: Record<string, string>, names = known) {
  const dir = folder(files)
  const agents = openAgentFolder(dir, names)
  onTestFinished(() => agents.close())
  return { dir, agents, messages: () => agents.errors.map(({ message }) => message) }
}

test('wherever a prompt may stand, in every layout of YAML; what is recorded needs no files', () => {
  const words = 'Say "hi" to $input.name: \\ #1 {x}\n\tüber 😀\u0085\u2028 end'
  const yaml = `workflow:
  - id: a
    type: llm
    config:
      model: "demo:assistant"
      system: &same
        file: one.md # behind it
      tools:
        - { name: calculator, description: {file: "two.md",  # a comment with }
            } }
      messages:
        - { role: user, content: { file: 'one.md' } }
        - role: user
          content:
            - { type: text, text: { file: two.md } }
  - id: b
    type: loop
    config: { over: [1], steps: [{ id: c, type: router, config: { model: "demo:m", system: *same } }] }
after: [{ id: d, type: llm, config: { model: "demo:m", system: &p {file: two.md}, messages: [{ role: system, content: *p }] } }]
`
  const texts = new Map([
    ['one.md', words],
    ['two.md', ''],
  ])
  const inlined = parseYaml(yaml, { readText: (path) => texts.get(path)! })
  expect(inlined.text).not.toContain('.md')
  expect(inlined.source).toBe(yaml)
  const config = { system: words, tools: [{ name: 'calculator', description: '' }] }
  const messages = [{ content: words }, { content: [{ type: 'text', text: '' }] }]
  expect(inlined.workflow[0]).toMatchObject({ config: { ...config, messages } })
  expect(inlined.workflow[1]).toMatchObject({ config: { steps: [{ config: { system: words } }] } })
  expect(inlined.after[0]).toMatchObject({ config: { system: '', messages: [{ content: '' }] } })
  // Read again, as a run that goes on does, it is the same agent.
  expect(withoutLines(readStored(inlined.text)!)).toEqual(withoutLines(inlined))
})

/** A file over several lines becomes one line. */
function withoutLines({ workflow, after }: Pipeline): unknown {
  const plain = JSON.stringify({ workflow, after }, (key, value: unknown) => (key === 'line' ? undefined : value))
  return JSON.parse(plain)
}

test('a folder reads them; references in them are checked, at the place that names the file', () => {
  const { agents, messages } = opened({
    'good.yaml': poet(file),
    'bad.yaml': poet('{ file: prompts/bad.md }'),
    'prompts/poet.md': 'You are a poet.\nMind $input.name.\n',
    'prompts/bad.md': 'Use $nothing.text',
  })
  expect(systemOf(agents.get('good')!.pipeline)).toBe('You are a poet.\nMind $input.name.')
  expect(messages()).toEqual([
    expect.stringMatching(/^bad\.yaml:4:62 in prompts\/bad\.md: unknown variable \$nothing\.text/u),
  ])
})

describe('what is no file of the agent is a load error with the place', () => {
  test.each<[system: string, fault: string]>([
    ['{ file: prompts/none.md }', '4:62 the file prompts/none.md is missing'],
    ['{ file: prompts }', 'the file prompts is not a regular file'],
    ['{ file: ../outside.md }', '"file" must not leave the folder of this file'],
    ['{ file: prompts/../../outside.md }', '"file" must not leave the folder of this file'],
    ['{ file: /etc/hostname }', '"file" must be relative to the folder of this file'],
    ['{ file: "C:/x.md" }', '"file" must be relative'],
    ['{ file: "prompts\\\\poet.md" }', '"file" must not contain "\\" or control characters'],
    ['{ file: "a\\0b" }', '"file" must not contain "\\" or control characters'],
    ['{ file: "" }', '"file" is empty'],
    ['{ file: "$input.x" }', '"file" cannot hold variables'],
    ['{ file: [a] }', '"file" must be a file path'],
    ['{}', '"file" must be a file path'],
    ['{ fiel: a.md }', 'unknown key "fiel" (did you mean "file"?)'],
    ['{ file: link.md }', 'the file link.md resolves to a path outside the agents folder'],
    ['{ file: linked/secret.md }', 'the file linked/secret.md resolves to a path outside the agents folder'],
    ['{ file: large.md }', 'the file large.md is larger than 256 KiB (262145 bytes)'],
    ['{ file: binary.md }', 'the file binary.md is not UTF-8 text'],
  ])('%s', (system, fault) => {
    const outside = folder({ 'secret.md': 'top secret' })
    const dir = folder({ 'prompts/poet.md': 'x', 'large.md': 'x'.repeat(262_145) })
    writeFileSync(join(dir, 'binary.md'), Buffer.from([0xff, 0xfe, 0x00]))
    symlinkSync(join(outside, 'secret.md'), join(dir, 'link.md'))
    symlinkSync(outside, join(dir, 'linked'))
    writeFileSync(join(dir, 'a.yaml'), poet(system))
    writeFileSync(join(dir, 'b.yaml'), poet('x'))
    const agents = openAgentFolder(dir, known)
    onTestFinished(() => agents.close())
    expect(agents.errors.map(({ message }) => message)).toEqual([expect.stringContaining(fault)])
    expect(agents.errors[0]!.message).toMatch(/^a\.yaml:4:\d+ /u)
    expect(agents.errors[0]!.message).not.toMatch(new RegExp(`${dir}|${outside}|top secret`, 'u'))
    expect(agents.list().map(({ id }) => id)).toEqual(['b'])
  })

  test('a link within the folder may lead to it', () => {
    const dir = folder({ 'prompts/real.md': 'linked', 'a.yaml': poet('{ file: prompts/poet.md }') })
    symlinkSync(join(dir, 'prompts/real.md'), join(dir, 'prompts/poet.md'))
    const agents = openAgentFolder(dir, known)
    onTestFinished(() => agents.close())
    expect(systemOf(agents.get('a')!.pipeline)).toBe('linked')
  })

  test('with its texts in place an agent is within the limit of all agents', () => {
    const steps = Array.from(
      { length: 5 },
      (_, i) => `  - { id: s${i}, type: llm, config: { model: "demo:m", system: { file: big.md } } }`,
    )
    const { messages } = opened({ 'a.yaml': `workflow:\n${steps.join('\n')}`, 'big.md': 'x'.repeat(250_000) })
    expect(messages()).toEqual([expect.stringMatching(/with its prompt files inserted, the file is larger than 1 MB/u)])
  })

  test('a secret in one', () => {
    const secret = { value: 'sk-secret-value', from: 'the environment variable X_KEY', cure: 'write $env.X_KEY' }
    const { messages } = opened(
      { 'a.yaml': poet(file), 'prompts/poet.md': 'Hi\nthe key sk-secret-value' },
      { ...known, secrets: [secret] },
    )
    expect(messages()).toEqual([
      expect.stringContaining('prompts/poet.md:2:9 this is a secret, the value of the environment variable X_KEY'),
    ])
    expect(messages()[0]).not.toContain('sk-secret')
  })

  test('a text without a folder: parseYaml and createRuntime say what to do', () => {
    const cure =
      /4:62 cannot read the file prompts\/poet\.md here: only loadYaml and agents folders read prompt files; write the prompt here, or pass a reader: parseYaml/u
    expect(() => parseYaml(poet(file))).toThrow(cure)
    expect(() => createRuntime({ agents: { a: poet(file) }, environment: {} })).toThrow(cure)
  })
})

test('a changed prompt file reloads the agents that use it; one that goes keeps the last good version', async () => {
  const { dir, agents } = opened({ 'a.yaml': poet(file), 'b.yaml': poet('plain'), 'prompts/poet.md': 'one' })
  const reloads: string[][] = []
  agents.watch((changed) => void reloads.push(changed))
  const system = () => systemOf(agents.get('a')!.pipeline)
  const soon = (check: () => void) => vi.waitFor(check)
  writeFileSync(join(dir, 'prompts/poet.md'), 'two, longer')
  await soon(() => expect(system()).toBe('two, longer'))
  rmSync(join(dir, 'prompts'), { recursive: true })
  await soon(() => expect(agents.errors.map(({ message }) => message)).toEqual([expect.stringContaining('is missing')]))
  expect(system()).toBe('two, longer')
  mkdirSync(join(dir, 'prompts'))
  writeFileSync(join(dir, 'prompts/poet.md'), 'three')
  await soon(() => expect(system()).toBe('three'))
  expect(agents.errors).toEqual([])
  // An agent that begins to use a file is watched with it.
  writeFileSync(join(dir, 'b.yaml'), poet('{ file: other.md }'))
  await soon(() => expect(agents.errors).toHaveLength(1))
  writeFileSync(join(dir, 'other.md'), 'other')
  await soon(() => expect(systemOf(agents.get('b')!.pipeline)).toBe('other'))
  expect(new Set(reloads.flat())).toEqual(new Set(['a', 'b']))
})

test('a run records the text, and a model is told it with its variables', async () => {
  const { agents } = opened({ 'a.yaml': poet(file), 'prompts/poet.md': 'You write for $input.name.' })
  const store = memoryStore()
  const { text } = agents.get('a')!.pipeline
  const runtime = createRuntime({ agents: { a: text }, store, environment: { MILLRACE_DEMO_DELAY_MS: '0' } })
  onTestFinished(() => runtime.close())
  const run = await runtime.start('a', { name: 'Ada', messages: [{ role: 'user', content: 'Hi' }] })
  await run.result
  const entries = await entriesOf(store, run.id)
  expect(only(entries, 'prompt')[0]?.system).toBe('You write for Ada.')
  const [start] = only(entries, 'run-start')
  expect(start?.pipeline).toContain('"You write for $input.name."')
  expect(systemOf(readStored(start?.pipeline)!)).toBe('You write for $input.name.')
})

test('loadYaml reads them, of the agents that it calls as well; so do check and run', async () => {
  const cwd = folder({
    'agents/a.yaml': 'workflow: [{ id: c, type: call-agent, config: { agent: b } }]',
    'agents/b.yaml': poet(file),
    'agents/prompts/poet.md': 'Say it in verse.',
  })
  const yaml = await loadYaml(join(cwd, 'agents/a.yaml'))
  expect(systemOf(yaml.agents!['b']!)).toBe('Say it in verse.')
  expect(() => new WorkflowExecutor(yaml, { environment: {} })).not.toThrow()
  expect(await ran(['check'], { cwd })).toMatchObject({ code: 0 })
  expect(await ran(['run', 'b', '-m', 'hi', '--data', 'none'], { cwd })).toMatchObject({ code: 0 })
  rmSync(join(cwd, 'agents/prompts/poet.md'))
  await expect(loadYaml(join(cwd, 'agents/a.yaml'))).rejects.toThrow(
    /b\.yaml:4:62 the file prompts\/poet\.md is missing/u,
  )
  expect((await ran(['check'], { cwd })).out).toContain('agents/b.yaml:4:62 the file prompts/poet.md is missing')
})
