/** Test cases of agents that use more than a model and a tool: MCP servers, other agents, judges beside a matrix. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { text, toolCall, createScriptedModel, type Script } from '../../src/models/scripted.ts'
import type { Config } from '../../src/project/config.ts'
import { createJournal, everything, isAlive } from '../../src/tools/mcp/testing/everything.ts'
import { labOf } from './lab.ts'

const demo = (script: Script): Config => ({ models: { providers: { demo: () => createScriptedModel(script) } } })

describe('regression tests: more cases', () => {
  test('MCP servers are neither started nor asked: their tools and what they returned are in the recording', async () => {
    const journal = createJournal()
    onTestFinished(() => journal.remove())
    const lab = await labOf({
      agents: {
        a: `workflow:
  - { id: sum, type: mcp-tool, result: sum, config: { server: near, tool: get-sum, input: { a: 3, b: 4 } } }
  - { id: answer, type: llm, config: { model: "demo:m", stream: true, system: "$sum", tools: [{ mcp: near, tools: [echo] }] } }
`,
      },
      cases:
        'agent: a\ncases: [{ name: x, message: Hi, strict: true, expect: { text: Done, tools: [{ name: near_echo }] } }]',
    })
    const config: Config = {
      ...demo([[toolCall('near_echo', { message: 'one' }), toolCall('near_echo', { message: 'two' })], [text('Done')]]),
      mcpServers: { near: everything(journal) },
    }
    expect((await lab.run({ record: true, config }))[0]!.failures).toEqual([])
    const started = journal.pids()
    expect([started.length, started.filter(isAlive)]).toEqual([1, []])
    const broken: Config = { mcpServers: { near: { command: 'no-such-program' } } }
    expect((await lab.run({ config: broken }))[0]).toMatchObject({ status: 'passed', failures: [] })
    const results = (
      await lab.run({ config: broken, cases: 'agent: a\ncases: [{ name: x, message: Hi, tools: live }]' })
    )[0]!
    expect(results.failures[0]!.message).toContain('the run has failed')
  })

  test('an agent that a model calls works from the recording, with its tools', async () => {
    let runs = 0
    const tools = { count: { parameters: z.object({}), execute: () => ++runs } }
    const lab = await labOf({
      agents: {
        a: 'workflow: [{ id: say, type: llm, config: { model: "demo:m", stream: true, tools: [{ agent: b }] } }]\n',
        b: 'workflow: [{ id: look, type: llm, config: { model: "demo:m", tools: [count] } }]\n',
      },
      cases: 'agent: a\ncases: [{ name: x, message: Hi, strict: true, expect: { text: Done, tools: [{ name: b }] } }]',
      config: { tools },
    })
    const script = [[toolCall('b', { message: 'go' })], [toolCall('count')], [text('one')], [text('Done')]]
    expect((await lab.run({ record: true, config: demo(script) }))[0]!.failures).toEqual([])
    expect((await lab.run({ config: demo([]) }))[0]).toMatchObject({ status: 'passed', failures: [] })
    expect(runs).toBe(1)
  })

  test('a called agent has the model of the matrix, a judge keeps its own', async () => {
    const step = (model: string) => `{ id: say, type: llm, config: { model: "${model}", stream: true } }`
    const lab = await labOf({
      agents: {
        a: 'workflow: [{ id: call, type: call-agent, config: { agent: b, input: { messages: "$input.messages" } } }]\n',
        b: `workflow: [${step('demo:own')}]\n`,
        critic: `workflow: [${step('judge:own').replace('stream: true', 'messages: "$input.messages", stream: true')}]\n`,
      },
      cases:
        'agent: a\nmodels: [demo:other]\ncases: [{ name: x, message: Hi, expect: { text: other, judge: { agent: critic, threshold: 0.5 } } }]',
    })
    const asked: string[] = []
    const say = (provider: string) => (name: string) => {
      asked.push(`${provider}:${name}`)
      return createScriptedModel([[text(provider === 'judge' ? '0.9' : `I am ${name}`)]])
    }
    const config: Config = { models: { providers: { demo: say('demo'), judge: say('judge') } } }
    expect((await lab.run({ record: true, config }))[0]!.failures).toEqual([])
    expect(asked).toEqual(['demo:other', 'judge:own'])
    const providers: Config = { models: { providers: { judge: say('judge') } } }
    expect((await lab.run({ config: providers }))[0]).toMatchObject({ status: 'passed', warnings: [] })
    expect(asked).toHaveLength(2)
  })

  test('the last answer that fits answers further requests, and an answer that is refused says why', async () => {
    const lab = await labOf({
      agents: {
        a: 'workflow: [{ id: answer, type: llm, config: { model: "demo:m", stream: true, tools: [{ name: pay, approval: true }] } }]\n',
      },
      cases: '',
      config: { tools: { pay: { parameters: z.object({ amount: z.number() }), execute: () => 'paid' } } },
    })
    const config = demo([
      [toolCall('pay', { amount: 1 })],
      [toolCall('pay', { amount: 2 })],
      [toolCall('pay', { amount: 3 })],
      [text('Done')],
    ])
    const file = (answers: string) => `agent: a\ncases: [{ name: x, message: Hi, answers: [${answers}] }]`
    const denied = '{ approve: true }, { approve: false, reason: enough }'
    expect((await lab.run({ cases: file(denied), record: true, config }))[0]!.failures).toEqual([])
    const kept = readFileSync(lab.recording('x'), 'utf8')
    expect(kept.match(/"approved":true/gu)).toHaveLength(1)
    expect(kept.match(/"approved":false,"reason":"enough"/gu)).toHaveLength(2)
    const [refused] = await lab.run({ cases: file('{ approve: true, input: { amount: many } }') })
    expect(refused!.failures[0]).toMatchObject({
      what: 'answer',
      message: expect.stringContaining('an answer was refused: '),
    })
  })

  test('the seconds of a recorded case are those of its recording', async () => {
    const lab = await labOf({
      agents: { a: 'workflow: [{ id: answer, type: llm, config: { model: "demo:m", stream: true } }]\n' },
      cases: 'agent: a\ncases: [{ name: x, message: Hi, expect: { budget: { seconds: 60 } } }]',
    })
    await lab.run({ record: true, config: demo([[text('Hi')]]) })
    expect((await lab.run())[0]!.status).toBe('passed')
    const lines = readFileSync(lab.recording('x'), 'utf8').trim().split('\n')
    const end = JSON.parse(lines.pop()!) as { timestamp: number }
    const start = JSON.parse(lines[0]!) as { timestamp: number }
    lines.push(JSON.stringify({ ...end, timestamp: start.timestamp + 61_000 }))
    writeFileSync(lab.recording('x'), lines.join('\n'))
    expect((await lab.run())[0]!.failures.map(({ message }) => message)).toEqual([
      'the run took 61 seconds, more than 60',
    ])
  })

  test('a CLI agent cannot be answered from a recording, and says so', async () => {
    const lab = await labOf({
      agents: { a: 'workflow: [{ id: code, type: cli-agent, config: { cli: claude, prompt: "Hi" } }]\n' },
      cases: 'agent: a\ncases: [{ name: x, message: Hi }]',
    })
    const other = await labOf({
      agents: { a: 'workflow: [{ id: answer, type: llm, config: { model: "demo:m", stream: true } }]\n' },
      cases: 'agent: a\ncases: [{ name: x, message: Hi }]',
    })
    await other.run({ record: true, config: demo([[text('Hi')]]) })
    mkdirSync(`${lab.dir}/tests/recordings/t`, { recursive: true })
    copyFileSync(other.recording('x'), lab.recording('x'))
    const [result] = await lab.run()
    expect(result!.failures[0]!.message).toContain('A CLI agent cannot be answered from a recording. Set "tools: live"')
  })
})
