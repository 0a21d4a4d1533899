/** Words that every object inherits, wherever an agent file may hold a name: each is a fault like any other unknown name. */
import { describe, expect, test } from 'vitest'
import { parsePipeline, PipelineError } from './parse.ts'
import type { Known } from './pipeline.ts'

const known: Known = {
  stepTypes: [],
  tools: ['calculator'],
  callbacks: [],
  providers: ['demo'],
  agents: ['other'],
  mcpServers: ['files'],
}

const inherited = Object.getOwnPropertyNames(Object.prototype).filter((name) => name !== '__proto__')

/** What a file says of itself: its faults, or that it has none. Anything else that is thrown fails the test. */
function faultsOf(text: string): string[] {
  try {
    parsePipeline(text, known)
  } catch (error) {
    if (error instanceof PipelineError) return error.faults.map(({ message }) => message)
    throw error
  }
  return []
}

const llm = (config: string) => `workflow: [{ id: a, type: llm, config: { model: "demo:m", ${config} } }]`
const places: [what: string, text: (name: string) => string, fault: string][] = [
  ['a step type', (name) => `workflow: [{ id: a, type: ${name} }]`, 'unknown step type "@"'],
  ['a key of the file', (name) => `${llm('')}\n${name}: 1`, 'unknown key "@"'],
  ['a key of a step', (name) => `workflow: [{ id: a, type: llm, ${name}: 1 }]`, 'unknown key "@"'],
  ['a key of a config', (name) => llm(`${name}: 1`), 'unknown key "@"'],
  ['a tool', (name) => llm(`tools: [${name}]`), 'unknown tool "@"'],
  ['a callback', (name) => llm(`onFinish: ${name}`), 'unknown callback "@"'],
  ['a provider', (name) => llm('').replace('demo:', `${name}:`), 'unknown model provider "@"'],
  ['a model', (name) => llm('').replace('demo:m', name), 'unknown model "@"'],
  ['an MCP server', (name) => llm(`tools: [{ mcp: ${name} }]`), 'unknown MCP server "@"'],
  ['an agent', (name) => `workflow: [{ id: a, type: call-agent, config: { agent: ${name} } }]`, 'unknown agent "@"'],
  ['a role', (name) => llm(`messages: [{ role: ${name}, content: x }]`), 'must be one of system, user, assistant'],
  ['a choice', (name) => llm(`reasoning: ${name}`), 'must be one of none, minimal'],
  ['a type of input', (name) => `input: { x: ${name} }\n${llm('')}`, 'must be one of string, number'],
  ['a reference', (name) => llm(`system: $${name}.x`), 'unknown variable $@.x'],
  ['a word of a condition', (name) => condition(name), 'unknown word "@"; quote a string'],
  ['a time unit', (name) => `timeouts: { run: 5${name} }\n${llm('')}`, 'must be a duration'],
]

function condition(name: string): string {
  return `workflow: [{ id: a, type: condition, config: { if: $input.x == ${name}, then: [{ id: b, type: llm }] } }]`
}

describe.each(inherited)('%s', (name) => {
  test.each(places)('as %s', (_, text, fault) => {
    expect(faultsOf(text(name)).join('\n')).toContain(fault.replaceAll('@', name))
  })

  test('as names of the file’s own it is a name like others', () => {
    const own = `metadata: { name: ${name}, aliases: [${name}] }
input: { ${name}: string, o: { type: object, properties: { ${name}: integer }, default: { ${name}: 1 } } }
workflow:
  - { id: ${name}, type: output-generator, config: { template: { ${name}: $input.${name} } }, result: ${name} }
  - id: b
    type: parallel
    config: { branches: { ${name}: [{ id: c, type: output-generator, config: { template: $${name}.${name} } }] } }
`
    expect(faultsOf(own)).toEqual([])
  })
})
