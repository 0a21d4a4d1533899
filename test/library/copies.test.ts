/**
 * Two copies of the library in one process, as a bundler makes them: Next.js compiles `instrumentation.ts` and each route into
 * bundles of their own.
 */
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import * as route from '../../src/index.ts'
import { createHandler } from '../../src/server.ts'

type Library = typeof route
let instrumentation: Library
beforeAll(async () => {
  vi.resetModules()
  instrumentation = await import('../../src/index.ts')
})

const environment = { MILLRACE_DEMO_DELAY_MS: '0' }

describe('copies of the package', () => {
  test('they are two copies', () => {
    expect(instrumentation.createRuntime).not.toBe(route.createRuntime)
    expect(instrumentation.MillraceError).not.toBe(route.MillraceError)
  })

  test('what one registers, the other one finds', async () => {
    const finished = Promise.withResolvers<string>()
    instrumentation.callbackRegistry['saved'] = ({ text }: { text: string }) => finished.resolve(text)
    instrumentation.handlerRegistry['shout'] = ({ text }: { text: string }) => text.toUpperCase()
    instrumentation.toolRegistry['ping'] = { parameters: { type: 'object' }, execute: () => 'pong' }
    onTestFinished(() => {
      delete instrumentation.callbackRegistry['saved']
      delete instrumentation.handlerRegistry['shout']
      delete instrumentation.toolRegistry['ping']
    })
    const yaml = `workflow:
    - { id: loud, type: shout, config: { text: "$input.text" }, result: loud }
    - id: answer
      type: llm
      config: { model: "demo:assistant", stream: true, tools: [ping], onFinish: saved, messages: "$input.messages" }`
    const executor = new route.WorkflowExecutor(route.parseYaml(yaml), { environment })
    const messages = [{ role: 'user', content: 'Use the tool ping' }]
    const response = (await executor.execute({ text: 'hey', messages })) as Response
    expect(await response.text()).toContain('ping gave pong.')
    expect(await finished.promise).toContain('ping gave pong.')
  })

  test('an error of one is an error of the other: its message reaches clients, its subclasses stay apart', async () => {
    const error = new instrumentation.MillraceError('out-of-stock', 'The shop is closed.')
    expect(error).toBeInstanceOf(route.MillraceError)
    expect(error).not.toBeInstanceOf(route.PipelineError)
    expect(new Error('out-of-stock')).not.toBeInstanceOf(route.MillraceError)
    expect(new route.PipelineError([])).toBeInstanceOf(route.PipelineError)
    expect(Object.keys(error)).not.toContain('brand')
    const runtime = route.createRuntime({
      agents: { shop: 'workflow: [{ id: buy, type: buy }]' },
      steps: {
        buy: () => {
          throw error
        },
      },
    })
    const body = JSON.stringify({ agentId: 'shop', messages: [] })
    const headers = { 'content-type': 'application/json' }
    const response = await createHandler({ runtime })(
      new Request('http://x/api/beddel/chat', { method: 'POST', body, headers }),
    )
    expect(await response.json()).toMatchObject({
      error: { code: 'out-of-stock', message: expect.stringContaining('The shop is closed.') },
    })
    await runtime.close()
  })
})
