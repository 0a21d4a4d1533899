/** A built-in step type that a program wraps, as `handlerRegistry` of the Beddel document invites to. */
import { afterEach, describe, expect, test } from 'vitest'
import { handlerRegistry } from '../../src/project/packs.ts'
import { parseYaml } from '../../src/project/yaml.ts'
import type { Config } from '../../src/project/config.ts'
import type { ExecutionContext, PrimitiveHandler } from '../../src/engine/registry.ts'
import { createScriptedModel, finish, text, throws, toolCall } from '../../src/models/testing/scripted-model.ts'
import { WorkflowExecutor } from '../../src/project/workflow-executor.ts'
import { agent, createEngine, entriesOf, only, type Engine, type EngineOptions } from '../support/engine.ts'

const builtins = { ...handlerRegistry }
let engine: Engine | undefined
afterEach(async () => {
  for (const name of Object.keys(handlerRegistry)) delete handlerRegistry[name]
  Object.assign(handlerRegistry, builtins)
  await engine?.close()
  engine = undefined
})

const messages = [{ role: 'user' as const, content: 'Hi' }]
const hello = () => createScriptedModel([[text('Hello ', 'there'), finish()]])

async function run(options: EngineOptions, input: Record<string, unknown> = { messages }) {
  engine = createEngine(options)
  const started = await engine.runtime.start('a', input)
  const result = await started.result
  return { ...result, id: started.id, entries: await entriesOf(engine.store, started.id) }
}

test('the built-in types are there', () => {
  expect(Object.keys(builtins)).toEqual(expect.arrayContaining(['llm', 'output-generator', 'call-agent', 'loop']))
})

test('a streamed answer streams through the wrapper, which sees what it came to', async () => {
  const seen: unknown[] = []
  const original = handlerRegistry['llm']
  handlerRegistry['llm'] = async (config: { system: string }, context) => {
    seen.push(config.system)
    const result = (await original({ ...config, system: 'Be brief.' }, { ...context })) as { text: string }
    seen.push(result.text)
    return { ...result, wrapped: true }
  }
  const model = hello()
  const a =
    agent('system: You help $input.who.', '') +
    'after: [{ id: note, type: output-generator, config: { template: "$said.wrapped" } }]'
  const {
    outcome,
    text: said,
    entries,
  } = await run(
    { agents: { a: a.replace('    type: llm', '    type: llm\n    result: said') }, scripts: { m: model } },
    { messages, who: 'with $env.HOME' },
  )
  expect([outcome, said, seen]).toEqual(['completed', 'Hello there', ['You help with $env.HOME.', 'Hello there']])
  expect(JSON.stringify(model.calls[0]!.options.prompt)).toContain('Be brief.')
  expect(only(entries, 'text-delta').map(({ delta }) => delta)).toEqual(['Hello ', 'there'])
  expect(only(entries, 'step-finish').find(({ step }) => step === 'after/note')!.result).toBe(true)
})

test('from the executor: with a stream a Response, without one the value', async () => {
  const original = handlerRegistry['llm']
  let calls = 0
  handlerRegistry['llm'] = (config, context) => {
    calls++
    return original(config, context)
  }
  const yaml = (stream: boolean) =>
    parseYaml(`workflow: [{ id: x, type: llm, config: { model: "demo:assistant", stream: ${stream} }, result: said }]`)
  const environment = { MILLRACE_DEMO_DELAY_MS: '0' }
  const input = { messages: [{ role: 'user', content: 'What is 1+1?' }] }
  const streamed = (await new WorkflowExecutor(yaml(true), { environment }).execute(input)) as Response
  const value = (await new WorkflowExecutor(yaml(false), { environment }).execute(input)) as { said: { text: string } }
  expect([await streamed.text(), calls]).toEqual([value.said.text, 2])
})

test('other types: a value, a tool, a container with its steps', async () => {
  const wrap =
    (type: string): PrimitiveHandler =>
    async (config, context) => ({ [type]: await builtins[type]!(config, context) })
  const steps = Object.fromEntries(
    ['output-generator', 'loop', 'condition', 'parallel', 'call-agent'].map((type) => [type, wrap(type)]),
  )
  const workflow = `workflow:
  - id: all
    type: parallel
    config:
      branches:
        l: [{ id: l, type: loop, config: { over: [1, 2], steps: [{ id: o, type: output-generator, config: { template: "$item" } }] } }]
        c: [{ id: c, type: condition, config: { if: "1 == 1", then: [{ id: b, type: call-agent, config: { agent: b, stream: false } }] } }]
`
  const { output } = await run(
    { agents: { a: workflow, b: 'workflow: [{ id: o, type: output-generator, config: { template: b } }]' }, steps },
    {},
  )
  const one = (value: unknown) => ({ 'output-generator': value })
  expect(output).toEqual({
    parallel: { l: { loop: [one(1), one(2)] }, c: { condition: { 'call-agent': one('b') } } },
  })
})

test('a wrapper may answer instead of the built-in, try again, and stand in for its failure', async () => {
  const cached: PrimitiveHandler = () => new Response('from the cache')
  expect(await run({ agents: { a: agent() }, steps: { llm: cached } })).toMatchObject({
    outcome: 'completed',
    text: 'from the cache',
  })
  await engine!.close()
  const again: PrimitiveHandler = (config, context) =>
    Promise.resolve(builtins['llm']!(config, context)).catch(() => builtins['llm']!(config, context))
  const model = createScriptedModel([[throws(new Error('no'))], [text('Second.'), finish()]])
  const second = await run({ agents: { a: agent('retries: 0') }, scripts: { m: model }, steps: { llm: again } })
  expect(second).toMatchObject({ outcome: 'completed', text: 'Second.' })
})

test('a run that waits for its client goes on inside of the wrapper, whose catch does not keep it', async () => {
  const model = createScriptedModel([
    [toolCall('c', 'ask', {}), finish('tool-calls')],
    [text('Done.'), finish()],
  ])
  const steps = {
    llm: async (config: unknown, context: ExecutionContext) => {
      try {
        return await builtins['llm']!(config, context)
      } catch {
        return 'caught'
      }
    },
  }
  const ask = { parameters: { type: 'object', properties: {} } }
  const { id, outcome, entries } = await run({
    agents: { a: agent('tools: [ask]') },
    scripts: { m: model },
    tools: { ask },
    steps,
  })
  expect(outcome).toBe('suspended')
  const { requestId } = only(entries, 'request')[0]!
  const open = (await engine!.runtime.open(id))!
  await open.answer(requestId, { kind: 'tool', output: 1 })
  expect(await (await engine!.runtime.open(id))!.result).toMatchObject({ outcome: 'completed', text: 'Done.' })
  expect(model.calls).toHaveLength(2)
})

test('onAbort and a failure are told once, with the name of the step', async () => {
  const model = createScriptedModel([[throws(new Error('no'))]])
  const steps: Config['steps'] = { llm: (config, context) => builtins['llm']!(config, context) }
  const { error, entries } = await run({ agents: { a: agent('retries: 0') }, scripts: { m: model }, steps })
  expect(error!.message.match(/Step "answer" \(llm\)/gu)).toHaveLength(1)
  expect(only(entries, 'error')).toHaveLength(1)
})

describe('mistakes say what to do', () => {
  const failing = async (llm: PrimitiveHandler) =>
    (await run({ agents: { a: agent() }, scripts: { m: hello() }, steps: { llm } })).error!.message

  test('a call outside of a step, of another type, or after the answer', async () => {
    expect(() => builtins['llm']!({}, {} as ExecutionContext)).toThrow(/only runs in a step of that type.*context/u)
    expect(await failing((config, context) => builtins['router']!(config, context))).toMatch(
      /called the built-in "router".*handlerRegistry\["llm"\]/u,
    )
    await engine!.close()
    expect(
      await failing(async (config, context) => {
        await builtins['llm']!(config, context)
        return builtins['llm']!(config, context)
      }),
    ).toContain('again after the built-in had streamed')
    await engine!.close()
    expect(
      await failing(async (config, context) => {
        await builtins['llm']!(config, context)
        return new Response('more')
      }),
    ).toContain('Return the value of the built-in')
  })

  test('a built-in under another name, and what is no function', () => {
    const make = (steps: object) => () => createEngine({ agents: {}, steps: steps as Config['steps'] })
    expect(make({ mine: builtins['llm'] })).toThrow(/"mine" is the built-in "llm" under another name. Use type: llm/u)
    expect(make({ llm: 7 })).toThrow(/steps\.llm must be a function \(config, context\) => …, not 7/u)
  })
})
