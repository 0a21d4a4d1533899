import { describe, expect, test } from 'vitest'
import { checkCalls } from './calls.ts'
import { agentParameters } from './agent-parameters.ts'
import { faultsOf } from './fault.ts'
import { parsePipeline } from './parse.ts'

const desk = (tools: string, more = '', type = 'llm') => `${more}
workflow:
  - id: desk
    type: ${type}
    config: { model: "demo:assistant", tools: [${tools}] }
`
const plain = 'workflow: [{ id: a, type: output-generator, config: { template: x } }]\n'

function faultsIn(text: string): string[] {
  try {
    parsePipeline(text)
    return []
  } catch (error) {
    return faultsOf(error).map(({ line, column, message }) => `${line}:${column} ${message}`)
  }
}
function callFaults(agents: Record<string, string>): string[] {
  const parsed = Object.entries(agents).map(([id, text]) => [id, parsePipeline(text)] as const)
  return checkCalls(new Map(parsed)).map(({ agent, fault }) => `${agent} ${fault.line}: ${fault.message}`)
}

describe('agents as tools', () => {
  test('what the file says is read', () => {
    const item = `{ agent: researcher, as: look_up, description: Looks up., input: { style: "$input.style" }, history: true,
      clientTools: true, recursive: true, approval: { roles: [operator] }, budget: { tokens: 5 }, timeouts: { run: 2m } }`
    const { workflow } = parsePipeline(desk(`calculator, ${item}, { agent: my agent, handoff: true }`))
    expect(workflow[0]).toMatchObject({
      config: {
        tools: [{ name: 'calculator' }],
        agentTools: [
          {
            agent: 'researcher',
            name: 'look_up',
            description: 'Looks up.',
            input: { style: '$input.style' },
            history: true,
            clientTools: true,
            recursive: true,
            approval: { roles: ['operator'] },
            budget: { tokens: 5 },
            timeouts: { run: 120_000 },
          },
          { agent: 'my agent', name: 'transfer_to_my_agent', handoff: true },
        ],
      },
    })
  })

  test.each([
    [
      'the same name twice',
      '{ agent: a }, { agent: a }',
      ['5:71 there are two tools "a"; give one of them another name with "as"'],
    ],
    [
      'the name of a tool',
      'a, { agent: a }',
      ['5:60 there are two tools "a"; give one of them another name with "as"'],
    ],
    [
      'a name that providers refuse',
      '{ agent: a, as: "a b" }',
      [expect.stringMatching(/"as" must have 1 to 64 letters/u)],
    ],
    [
      'a misspelt key',
      '{ agent: a, descripton: x }',
      [expect.stringMatching(/unknown key "descripton" \(did you mean "description"\?\)/u)],
    ],
    ['a reference', '{ agent: $input.agent }', [expect.stringMatching(/must be the id of an agent, not a reference/u)]],
    ['a path', '{ agent: ../a }', [expect.stringMatching(/"agent" must be an agent id/u)]],
    ['an unknown variable in input', '{ agent: a, input: { x: $nothing } }', [expect.stringMatching(/nothing/u)]],
  ])('%s', (_, tools, expected) => {
    expect(faultsIn(desk(tools))).toEqual(expected)
  })

  test('handoff: not in a router, and not beside output', () => {
    expect(faultsIn(desk('{ agent: a, handoff: true }', '', 'router'))).toEqual([
      expect.stringMatching(/a router does not answer/u),
    ])
    const both = desk('{ agent: a, handoff: true }').replace('tools:', 'output: { schema: { n: integer } }, tools:')
    expect(faultsIn(both)).toEqual([expect.stringMatching(/a step with "output" answers itself/u)])
  })
})

describe('checkCalls', () => {
  test.each([
    [
      'an unknown agent',
      { desk: desk('{ agent: reseacher }'), researcher: plain },
      ['desk 5: unknown agent "reseacher" (did you mean "researcher"?); known agents: desk, researcher'],
    ],
    [
      'a circle through tools',
      { a: desk('{ agent: b }'), b: desk('{ agent: a }') },
      [
        'a 5: circular call: a → b → a; remove one of these calls, or add recursive: true here and a budget to the file',
        'b 5: circular call: b → a → b; remove one of these calls, or add recursive: true here and a budget to the file',
      ],
    ],
    [
      'a circle that is meant has no budget',
      { a: desk('{ agent: a, recursive: true }') },
      ['a 5: recursive: true needs a limit for all calls together; add "budget" to this file'],
    ],
    [
      'a circle that is meant, over another agent',
      { a: desk('{ agent: b, recursive: true }', 'budget: { steps: 9 }'), b: desk('{ agent: a }') },
      [],
    ],
    ['a circle that is meant', { a: desk('{ agent: a, recursive: true }', 'budget: { steps: 9 }') }, []],
    [
      'an input that the agent lacks',
      { desk: desk('{ agent: b, input: { stile: x } }'), b: `input: { style: string }\n${plain}` },
      ['desk 5: "b" has no input "stile" (did you mean "style"?); its inputs: style'],
    ],
    [
      'inputs that the model gives',
      { desk: desk('{ agent: b, input: {} }'), b: `input: { style: string }\n${plain}` },
      [],
    ],
    [
      'an input that nobody gives',
      {
        desk: 'workflow: [{ id: c, type: call-agent, config: { agent: b, input: { tone: x } } }]',
        b: `input: { style: string }\n${plain}`,
      },
      ['desk 1: "b" needs the input "style"; add it to "input"'],
    ],
  ])('%s', (_, agents, expected) => {
    expect(callFaults(agents as Record<string, string>)).toEqual(expected)
  })
})

describe('agentParameters', () => {
  const find = () => undefined
  const speaks = 'workflow: [{ id: a, type: llm, config: { model: "demo:assistant" } }]'
  test.each([
    ['no inputs: a message', speaks, {}, ['message'], ['message']],
    [
      'required inputs, and no step reads messages',
      `input: { topic: string }\n${plain}`,
      {},
      ['topic', 'message'],
      ['topic'],
    ],
    [
      'required inputs, and a step reads messages',
      `input: { topic: string }\n${speaks}`,
      {},
      ['topic', 'message'],
      ['topic', 'message'],
    ],
    [
      'inputs that are set',
      `input: { topic: string, style: string }\n${plain}`,
      { fixed: { style: 'x' } },
      ['topic', 'message'],
      ['topic'],
    ],
    ['an input named message', `input: { message: string }\n${speaks}`, {}, ['message'], ['message']],
    ['declared messages are not a parameter', `input: { messages: array }\n${speaks}`, {}, ['message'], ['message']],
    ['a handoff has the conversation', speaks, { hasMessage: false }, [], undefined],
  ])('%s', (_, text, options, names, required) => {
    const schema = agentParameters(parsePipeline(text), { ...options, find })
    expect([Object.keys(schema.properties!), schema.required]).toEqual([names, required])
  })
})
