/** `parseYaml`, `loadYaml` and `WorkflowExecutor`: the library as the Beddel document writes it. */
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { createRuntime } from '../../src/project/create-runtime.ts'
import { callbackRegistry, handlerRegistry, toolRegistry } from '../../src/project/packs.ts'
import { loadYaml, parseYaml, type ParsedYaml } from '../../src/project/yaml.ts'
import type { ExecutionContext, PrimitiveHandler } from '../../src/engine/registry.ts'
import type { ToolImplementation } from '../../src/tools/tool.ts'
import { WorkflowExecutor } from '../../src/project/workflow-executor.ts'
import { folder } from '../support/cli.ts'

const environment = { MILLRACE_DEMO_DELAY_MS: '0' }
const messages = [{ role: 'user', content: 'What is 12*7?' }]
const run = (yaml: ParsedYaml, input: Record<string, unknown> = { messages }) =>
  new WorkflowExecutor(yaml, { environment }).execute(input)

const document = (stream: boolean) => `
workflow:
  - id: "chat-interaction"
    type: "llm"
    config:
      model: "demo:assistant"
      stream: ${stream}
      messages: "$input.messages"
      tools:
        - name: "calculator"
          description: "Execute math"
      onFinish: "persistConversation"
    result: "llmOutput"
  - id: "format-log"
    type: "output-generator"
    config:
      template:
        status: "completed"
        tokens: "$llmOutput.usage"
`

describe('step executor', () => {
  afterEach(() => {
    for (const registry of [handlerRegistry, callbackRegistry])
      for (const name of Object.keys(registry)) delete registry[name]
    delete toolRegistry['shout']
  })

  test('a step that streams: a Response with the text, and the callback is called once', async () => {
    const told: string[] = []
    callbackRegistry['persistConversation'] = ({ text }: { text: string }) => void told.push(text)
    const result = (await run(parseYaml(document(true)))) as Response
    expect(result).toBeInstanceOf(Response)
    expect(result.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    expect(await result.text()).toContain('84')
    expect(told).toEqual([expect.stringContaining('84')])
  })

  test('no step that streams: all variables; or what `return` says', async () => {
    callbackRegistry['persistConversation'] = () => undefined
    const result = (await run(parseYaml(document(false)))) as Record<string, { text: string }>
    expect(Object.keys(result)).toEqual(['llmOutput'])
    expect(result['llmOutput']).toMatchObject({
      text: expect.stringContaining('84'),
      toolCalls: [{ toolName: 'calculator' }],
    })
    const shaped = parseYaml(`${document(false)}\nreturn: { answer: "$llmOutput.text" }`)
    expect(await run(shaped)).toEqual({ answer: result['llmOutput']!.text })
    const none = parseYaml('workflow: [{ id: a, type: output-generator, config: { template: 1 } }]')
    expect(await run(none)).toEqual({})
  })

  test('step types, tools and callbacks by assignment, with the types of the document', async () => {
    const double: PrimitiveHandler = async (config: { of: number }, context: ExecutionContext) => ({
      value: config.of * 2,
      seen: context.variables.get('before'),
      input: context.input,
    })
    handlerRegistry['double'] = double
    const shout: ToolImplementation = {
      description: 'Shouts',
      parameters: z.object({ text: z.string() }),
      execute: async ({ text }) => ({ result: (text as string).toUpperCase() }),
    }
    toolRegistry['shout'] = shout
    expectTypeOf<ExecutionContext['variables']>().toEqualTypeOf<Map<string, unknown>>()
    const yaml = parseYaml(`
workflow:
  - { id: one, type: output-generator, config: { template: 1 }, result: before }
  - { id: two, type: double, config: { of: 21 }, result: doubled }
  - { id: three, type: llm, config: { model: "demo:assistant", tools: [shout] }, result: said }
`)
    const result = (await run(yaml, {
      messages: [{ role: 'user', content: 'Use the tool shout with text="hey"' }],
    })) as {
      doubled: unknown
      said: { text: string }
    }
    expect(result.doubled).toMatchObject({ value: 42, seen: 1 })
    expect(result.said.text).toContain('HEY')
  })

  test('the registries are records without a prototype, with the tools that ship', () => {
    for (const registry of [handlerRegistry, toolRegistry, callbackRegistry]) {
      expect(Object.getPrototypeOf(registry)).toBe(null)
      expect('constructor' in registry).toBe(false)
    }
    expect(Object.keys(toolRegistry)).toEqual(['calculator', 'getCurrentTime', 'searchConversations'])
  })

  test('a runtime without registries of its own uses them; one that has its own does not', async () => {
    handlerRegistry['hello'] = async () => 'hello'
    const agents = { a: 'workflow: [{ id: a, type: hello, config: {} }]' }
    const runtime = createRuntime({ agents, environment })
    expect((await (await runtime.start('a', {})).result).output).toBe('hello')
    await runtime.close(0)
    expect(() => createRuntime({ agents, steps: {} })).toThrow(/unknown step type "hello"/)
  })

  test('a step that returns a Response or a stream is the answer', async () => {
    handlerRegistry['stream'] = async () => new Response('from a step')
    const result = (await run(parseYaml('workflow: [{ id: a, type: stream, config: {} }]'))) as Response
    expect(await result.text()).toBe('from a step')
  })

  test('names that no registry has are refused with their place when the executor is made', () => {
    expect(() => new WorkflowExecutor(parseYaml(document(true)))).toThrow(
      /12:17 unknown callback "persistConversation"/,
    )
    expect(() => new WorkflowExecutor({ workflow: [] } as never)).toThrow(/the result of loadYaml or parseYaml/)
  })

  test('a refusal is a Response with its status where a Response was due, and thrown where a value was', async () => {
    const agent = (stream: boolean) => `workflow: [{ id: a, type: llm, config: { model: "gpt-5", stream: ${stream} } }]`
    const response = (await run(parseYaml(agent(true)))) as Response
    expect([response.status, await response.json()]).toEqual([
      500,
      { error: { code: 'missing-key', message: expect.stringContaining('OPENAI_API_KEY'), type: 'server_error' } },
    ])
    await expect(run(parseYaml(agent(false)))).rejects.toMatchObject({ code: 'missing-key' })
  })

  test('stopping: whoever leaves the Response stops the run, and so does the signal', async () => {
    const aborted: string[] = []
    handlerRegistry['slow'] = (_, { signal }) =>
      new ReadableStream<string>({
        start(controller) {
          controller.enqueue('one ')
          signal.addEventListener('abort', () => aborted.push((signal.reason as Error).message))
        },
      })
    const yaml = parseYaml('workflow: [{ id: a, type: slow, config: {} }]')
    const reader = ((await run(yaml)) as Response).body!.getReader()
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('one ')
    await reader.cancel()
    await expect.poll(() => aborted).toHaveLength(1)
    const controller = new AbortController()
    const response = (await new WorkflowExecutor(yaml).execute({}, { signal: controller.signal })) as Response
    controller.abort()
    await expect(response.text()).rejects.toThrow()
    expect(aborted).toHaveLength(2)
  })

  const calls = (agent: string) => `workflow: [{ id: c, type: call-agent, config: { agent: ${agent} }, result: got }]`
  const gives = (value: string) => `workflow: [{ id: v, type: output-generator, config: { template: "${value}" } }]`

  test('loadYaml reads a file and the files beside it that it calls', async () => {
    const dir = folder({
      'a.yaml': calls('b'),
      'b.yml': calls('c'),
      'c.yaml': gives('deep'),
      'other.yaml': 'broken: [',
    })
    const yaml = await loadYaml(join(dir, 'a.yaml'))
    expect(Object.keys(yaml.agents!)).toEqual(['a', 'b', 'c'])
    expect(await run(yaml)).toEqual({ got: { got: 'deep' } })
    expect((await loadYaml(new URL(`file://${dir}/c.yaml`))).workflow).toHaveLength(1)
  })

  test('loadYaml reads no called agent through a link out of the folder', async () => {
    const outside = folder({ 'secret.yaml': gives('outside') })
    const dir = folder({ 'a.yaml': calls('b'), 'c.yaml': calls('d'), 'e.yaml': gives('inside') })
    symlinkSync(join(outside, 'secret.yaml'), join(dir, 'b.yaml'))
    symlinkSync('e.yaml', join(dir, 'd.yaml'))
    await expect(loadYaml(join(dir, 'a.yaml'))).rejects.toMatchObject({
      code: 'bad-path',
      message: expect.stringContaining('b.yaml resolves to a path outside the folder'),
    })
    expect(await run(await loadYaml(join(dir, 'c.yaml')))).toEqual({ got: 'inside' })
  })

  test('loadYaml: faults carry file:line:col, of the file that has them', async () => {
    const dir = folder({
      'bad.yaml': 'workflow:\n  - { id: a, typ: llm }\n',
      'caller.yaml': calls('bad'),
      'round.yaml': calls('trip'),
      'trip.yaml': calls('round'),
      'nowhere.yaml': calls('missing'),
    })
    const place = (file: string) => join(dir, file).replaceAll('.', '\\.')
    const load = (file: string) => loadYaml(join(dir, file))
    await expect(load('bad.yaml')).rejects.toThrow(new RegExp(`^${place('bad.yaml')}:2:14 unknown key "typ"`))
    await expect(load('caller.yaml')).rejects.toThrow(new RegExp(`^${place('bad.yaml')}:2:14 `))
    await expect(load('round.yaml')).rejects.toThrow(new RegExp(`^${place('round.yaml')}:1:56 circular call`))
    await expect(load('nowhere.yaml')).rejects.toThrow(
      new RegExp(`^${place('nowhere.yaml')}:1:56 unknown agent "missing"`),
    )
  })

  test.each([
    ['src/agents/../../secret.yaml', /has "\.\." after a folder/],
    ['src/agents/..\\..\\secret.yaml', /has "\.\." after a folder/],
    ['../src/../x.yaml', /has "\.\." after a folder/],
    ['src/agents/assistant', /must end in \.yaml/],
    ['src/agents/x\0.yaml', /must end in \.yaml/],
    ['.yaml', /must end in \.yaml/],
    ['no/such/file.yaml', /There is no file/],
    ['../no-such-file.yaml', /There is no file/],
  ])('loadYaml refuses %j', async (path, message) => {
    await expect(loadYaml(path)).rejects.toMatchObject({ code: 'bad-path', message: expect.stringMatching(message) })
  })
})
