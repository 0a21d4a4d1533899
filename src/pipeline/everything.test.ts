// oxlint-disable unicorn/no-thenable -- `then` is a word of the language: a list
/** Every key and step type at once: what it becomes, and that no key of it can be misspelt unseen, by parser or editor. */
import { readdirSync, readFileSync } from 'node:fs'
import { load } from 'js-yaml'
import { describe, expect, test } from 'vitest'
import { agentJsonSchema, type JsonSchema, describeKeys } from './agent-schema.ts'
import { builtinSteps } from './names.ts'
import { parsePipeline, PipelineError } from './parse.ts'
import type { Fault, Known, Step } from './pipeline.ts'
import { validate } from './testing/json-schema.ts'
import { someOf } from '../../test/support/thorough.ts'

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')
const everything = read('testing/everything.yaml')
const shipped = ['../../agents/', '../../examples/beddel/agents/'].flatMap((dir) =>
  readdirSync(new URL(dir, import.meta.url))
    .filter((name) => /\.ya?ml$/.test(name))
    .map((name): [string, string] => [name, read(dir + name)]),
)

const known: Known = {
  stepTypes: ['shout'],
  tools: ['calculator', 'getCurrentTime', 'searchConversations'],
  callbacks: ['log', 'persistConversation', 'logError'],
  providers: ['demo', 'google', 'openai'],
  agents: ['helper', ...shipped.map(([name]) => name.replace(/\.ya?ml$/, ''))],
  mcpServers: ['files'],
}

function faultsOf(text: string): Fault[] {
  try {
    parsePipeline(text, known)
  } catch (error) {
    if (error instanceof PipelineError) return error.faults
    throw error
  }
  return []
}

test('it has no fault', () => expect(faultsOf(everything)).toEqual([]))

test('it uses every key and every step type', () => {
  // `type: any`, a list of messages' other roles and the like are values, not keys.
  for (const { place, key } of describeKeys()) {
    const name = key.split(/[.[\]]+/).at(-1)!
    // A prompt in a file needs a folder.
    if (name === 'file') continue
    expect(everything, `${place}: ${key}`).toMatch(new RegExp(`^[\\s-]*${name}:`, 'm'))
  }
  for (const type of builtinSteps) expect(everything).toContain(`type: ${type}\n`)
})

test('what it becomes', () => {
  const pipeline = parsePipeline(everything, known)
  expect(pipeline).toMatchObject({
    metadata: { version: '1.0' },
    budget: { tokens: 20_000, usd: 0.1, seconds: 120, steps: 20 },
    timeouts: { firstToken: 30_000, idle: 60_000, step: 300_000, run: 900_000 },
    limits: { answerChars: 100_000, toolCalls: 50, activeRuns: 20, agentCalls: 8, parallelAgents: 2 },
  })
  expect(pipeline.input).toEqual({
    type: 'object',
    properties: {
      topic: { type: 'string' },
      count: { type: 'integer', title: 'Count', description: 'How many', default: 3, minimum: 1, maximum: 9 },
      tone: { enum: ['dry', 'warm'] },
      tags: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 5 },
      author: {
        type: 'object',
        properties: {
          name: { type: 'string', minLength: 1, maxLength: 40, pattern: '^[A-Z]', format: 'name' },
          age: { type: 'integer' },
        },
        required: ['name'],
        additionalProperties: false,
      },
      extra: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
    },
    required: ['topic'],
  })
  const [plan, limits, route, recall, keep, check, each, until, both, totals] = pipeline.workflow as [Step, ...Step[]]
  expect(plan).toMatchObject({
    budget: { tokens: 500 },
    timeouts: { step: 60_000 },
    config: {
      model: 'demo:assistant',
      fallbacks: ['gpt-5'],
      tools: [
        { name: 'calculator' },
        { name: 'files_read' },
        { name: 'getCurrentTime', description: 'The time', approval: true, timeout: 5000, inline: 50_000 },
      ],
      toolSources: [{ mcp: 'files', tools: ['read', 'list'], approval: false, timeout: 1000, inline: 'none' }],
      codeTools: [
        {
          name: 'runScript',
          uses: { tools: [{ name: 'getCurrentTime' }], agentTools: [{ agent: 'helper', name: 'helper' }] },
          limits: { time: 10_000, memory: 33_554_432, calls: 100, parallel: 10 },
          inline: 6000,
        },
      ],
      clientTools: [
        {
          name: 'askUser',
          description: 'Ask',
          inputSchema: { type: 'object', properties: { question: { type: 'string' } }, required: ['question'] },
          approval: { roles: ['operator'] },
          inline: 4000,
        },
      ],
      inline: 'none',
      output: {
        schema: {
          type: 'object',
          properties: { steps: { type: 'array', items: { type: 'string' } }, score: { type: 'number' } },
          required: ['steps', 'score'],
        },
      },
    },
  })
  // Inside `config` of an llm step they mean the same, and the engine finds them in one place.
  expect(limits).toMatchObject({
    budget: { usd: 0.1, seconds: 3, steps: 2 },
    timeouts: { firstToken: 1000, idle: 1000, step: 1000 },
  })
  expect(Object.keys(limits!.config as object)).not.toContain('budget')
  expect(route).toEqual({
    id: 'route',
    type: 'router',
    line: expect.any(Number),
    result: 'routed',
    budget: { steps: 9 },
    config: {
      model: 'demo:assistant',
      stage: 'choose',
      messages: '$input.messages',
      tools: [{ name: 'calculator' }],
      agentTools: [
        {
          agent: 'helper',
          name: 'ask_helper',
          description: 'Ask the helper',
          input: { style: '$input.topic' },
          history: true,
          clientTools: true,
          inline: 10_000,
          recursive: true,
          approval: true,
          budget: { steps: 3 },
          timeouts: { run: 120_000 },
        },
      ],
      maxSteps: 3,
      retries: 2,
      requestTools: true,
    },
  })
  expect([recall, keep]).toMatchObject([
    { type: 'memory', config: { action: 'recall', query: '$input.topic', limit: 3, runs: 10 } },
    { type: 'memory', config: { action: 'store', limit: 5, runs: 50, facts: ['$input.topic', '$recalled.text'] } },
  ])
  expect(check).toMatchObject({
    type: 'condition',
    result: 'checked',
    config: {
      if: { text: '$plan.object.score < 5 and not $input.fast?' },
      then: [
        {
          id: 'again',
          type: 'call-agent',
          config: { agent: 'helper', input: { topic: '$input.topic' }, stream: false },
        },
        { id: 'quote', config: { template: '$again' } },
      ],
      else: [
        {
          type: 'mcp-tool',
          config: { server: 'files', tool: 'read', input: { path: '$input.topic' }, timeout: 10_000 },
        },
      ],
    },
  })
  expect(each).toMatchObject({
    type: 'loop',
    config: { over: '$plan.object.steps', max: 20, as: 'task', steps: [{ id: 'note' }] },
  })
  expect(until).toMatchObject({ type: 'loop', config: { max: 10, as: 'item', steps: [{ id: 'draft' }] } })
  expect(totals).toMatchObject({
    type: 'script',
    budget: { steps: 10 },
    timeouts: { step: 60_000 },
    config: {
      code: 'return input.sum + " costs $5"',
      input: { sum: '$input.topic' },
      uses: { tools: [{ name: 'calculator' }] },
      limits: { time: 2000, memory: 67_108_864, calls: 10, parallel: 2 },
      output: { type: 'object', properties: { total: { type: 'number' } } },
    },
  })
  expect(both).toMatchObject({
    type: 'parallel',
    config: {
      order: 'live',
      onError: 'continue',
      branches: [
        { name: 'left', steps: [{ id: 'l' }] },
        { name: 'right', steps: [{ id: 'r' }] },
      ],
    },
  })
})

describe('misspelt keys', () => {
  const schema = agentJsonSchema(known)
  for (const [file, text] of [['everything.yaml', everything] as [string, string], ...shipped]) {
    const lines = text.split('\n')
    const ownBlock = file === 'everything.yaml' ? blockOf(lines, /^\s+template:$/) : ownKeysOf(lines)
    const keys = lines.flatMap((line, i) => {
      const match = /^([\s-]*)([A-Za-z]+):(?:\s|$)/.exec(line)
      return match && !line.endsWith('# own') && !ownBlock.has(i) ? [{ i, before: match[1]!, key: match[2]! }] : []
    })
    test(`${file}: keys were found, and as it is it is right`, () => {
      expect(keys.length).toBeGreaterThan(10)
      expect(faultsOf(text)).toEqual([])
      expect(validate(schema, load(text))).toEqual([])
    })
    for (const { i, before, key } of keys) {
      test(`${file}:${i + 1} ${key}`, () => {
        const swapped = key[1]! + key[0]! + key.slice(2)
        for (const wrong of someOf([`${key}x`, key.slice(0, -1), swapped, key.toUpperCase()], i)) {
          if (wrong === key || wrong === '') continue
          const mutant = lines.with(i, before + lines[i]!.slice(before.length).replace(key, wrong)).join('\n')
          const faults = faultsOf(mutant)
          expect(faults.find(({ line }) => line === i + 1)?.message, `${wrong}: ${JSON.stringify(faults)}`).toContain(
            `unknown key "${wrong}"`,
          )
          expect(validate(schema, load(mutant)), wrong).not.toEqual([])
        }
      })
    }
  }
})

/** Lines of a shipped file that name things of its author: what it takes, gives and hands over, and its branches. */
function ownKeysOf(lines: string[]): Set<number> {
  const branches = [...blockOf(lines, /^\s+branches:/)]
  const least = Math.min(...branches.map((i) => /^\s*/.exec(lines[i]!)![0].length))
  const names = branches.filter((i) => /^\s*/.exec(lines[i]!)![0].length === least)
  return new Set([...blockOf(lines, /^\s*(template|schema|input|return|parameters):$/), ...names])
}

/** The lines below the one that matches: a template's keys are the author's own. */
function blockOf(lines: string[], head: RegExp): Set<number> {
  const inside = new Set<number>()
  for (const [i, line] of lines.entries()) {
    if (!head.test(line)) continue
    const indent = /^\s*/.exec(line)![0].length
    for (let j = i + 1; j < lines.length && /^\s*/.exec(lines[j]!)![0].length > indent; j++) inside.add(j)
  }
  return inside
}

describe('JSON Schema', () => {
  const withNames = agentJsonSchema(known)
  const step = (config: object, type = 'llm') => ({ workflow: [{ id: 'a', type, config }] })

  test('plain scalars of YAML fit wherever text does, and quoted ones wherever numbers do', () => {
    const text =
      'metadata: {version: 5, name: true}\nworkflow: [{id: 1, type: llm, config: {system: 5, maxSteps: "7", stream: "true", temperature: 1, headers: {x: 1}}}]'
    expect(validate(withNames, load(text))).toEqual([])
    expect(faultsOf(text)).toEqual([])
  })

  test.each<[string, object]>([
    ['a number out of range', step({ maxSteps: 0 })],
    ['no number', step({ maxSteps: 'many' })],
    ['no boolean', step({ stream: 'maybe' })],
    ['no duration', { ...step({}), timeouts: { run: 'soon' } }],
    ['no workflow', {}],
    ['an unknown step type', step({}, 'lllm')],
    ['an unknown tool', step({ tools: ['calc'] })],
    ['an unknown tool in a map', step({ tools: [{ name: 'calc' }] })],
    ['an unknown server', step({ tools: [{ mcp: 'file' }] })],
    ['an unknown callback', step({ onFinish: 'nobody' })],
    ['an unknown agent', step({ agent: 'nobody' }, 'call-agent')],
    ['a config that is missing', { workflow: [{ id: 'a', type: 'condition' }] }],
    [
      'a fault in a nested step',
      step({ if: 'true', then: [{ id: 'b', type: 'llm', config: { modell: 'x' } }] }, 'condition'),
    ],
    ['an unknown type of an input', { ...step({}), input: { a: 'strng' } }],
  ])('%s does not fit', (_, value) => expect(validate(withNames, value)).not.toEqual([]))

  test('without known names any name fits', () => {
    const free = agentJsonSchema()
    expect(validate(free, step({ tools: ['calc'], onFinish: 'nobody' }))).toEqual([])
    expect(validate(free, step({ anything: 1 }, 'mine'))).toEqual([])
    expect(validate(free, step({ toolz: [] }))).not.toEqual([])
  })

  test('where nothing is known, nothing fits', () => {
    const bare = agentJsonSchema({ ...known, callbacks: [], agents: [], mcpServers: [] })
    expect(validate(bare, step({ onFinish: 'log' }))).not.toEqual([])
    expect(validate(bare, step({ tools: [{ mcp: 'files' }] }))).not.toEqual([])
    expect(validate(bare, step({ agent: 'helper' }, 'call-agent'))).not.toEqual([])
    expect(validate(bare, step({ agent: '$input.agent' }, 'call-agent'))).toEqual([])
  })

  test('an input may be written as JSON Schema is', () => {
    const input = { type: 'object', properties: { topic: { type: 'string' } }, required: ['topic'] }
    expect(validate(withNames, { ...step({}), input })).toEqual([])
    expect(validate(withNames, { ...step({}), input: { ...input, propertys: {} } })).not.toEqual([])
  })

  test('it is plain JSON, and every key says what it means', () => {
    expect(JSON.parse(JSON.stringify(withNames))).toEqual(withNames)
    const silent = (node: unknown, path: string): string[] => {
      if (typeof node !== 'object' || node === null) return []
      return Object.entries(node).flatMap(([key, value]) => {
        const inside = silent(value, `${path}/${key}`)
        // The others only say more about keys that are described elsewhere.
        if (key !== 'properties' || !('type' in node) || node.type !== 'object') return inside
        const keys = Object.entries(value as Record<string, JsonSchema>)
        return [...keys.filter(([, each]) => !each['description']).map(([name]) => `${path}/${name}`), ...inside]
      })
    }
    expect(silent(withNames, '')).toEqual([])
  })

  test('the table of keys', () => {
    const rows = describeKeys()
    const row = (place: string, key: string) => rows.find((each) => each.place === place && each.key === key)
    expect(row('llm', 'maxSteps')).toMatchObject({ type: 'integer', default: '5', required: false })
    expect(row('llm', 'stream')).toMatchObject({ type: 'boolean', default: 'false' })
    expect(row('llm', 'messages')).toMatchObject({ default: '$input.messages' })
    expect(row('llm', 'messages[].role')).toMatchObject({ type: 'system or user or assistant', required: true })
    expect(row('file', 'timeouts.run')).toMatchObject({ type: 'duration or none' })
    expect(row('file', 'onDisconnect')).toMatchObject({ type: 'one of cancel, detach or map' })
    expect(row('step', 'id')).toMatchObject({ type: 'string', required: true })
    expect(row('loop', 'max')).toMatchObject({ default: '10' })
    expect(row('shape', 'items')).toMatchObject({ type: 'shape' })
    expect(row('llm', 'tools[].approval')).toMatchObject({ type: 'boolean or map' })
    expect(row('llm', 'tools[].approval.roles')).toMatchObject({ type: 'list of one of user, operator, admin' })
    expect(row('llm', 'messages[].content')).toMatchObject({ type: 'string or map or list of map' })
    expect(rows.every(({ description }) => description.length > 5)).toBe(true)
  })
})
