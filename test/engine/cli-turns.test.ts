/** A CLI agent that goes on after its result: another turn, with another result. */
import { expect, test, vi } from 'vitest'
import { parsePipeline } from '../../src/pipeline/parse.ts'
import type { ProcessExit, Processes, ProcessOptions } from '../../src/processes/processes.ts'
import { agentSource } from '../../src/project/create-runtime.ts'
import { createRegistry } from '../../src/project/registry.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { assistant, init, result } from '../../src/ingest/testing/claude-lines.ts'
import { lines } from '../../src/ingest/testing/play.ts'

test('a result is the end only if no other turn begins', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const started = Promise.withResolvers<ProcessOptions['onOutput']>()
  const exit = Promise.withResolvers<ProcessExit>()
  const processes: Processes = {
    async start({ onOutput }) {
      started.resolve(onOutput)
      return { exit: exit.promise, stop: () => exit.resolve({ code: null, signal: 'SIGTERM' }) }
    },
    close: async () => undefined,
  }
  const pipeline = parsePipeline('workflow: [{ id: a, type: cli-agent, config: { cli: claude, prompt: Hi } }]')
  const runtime = createRuntime({
    agents: agentSource([{ id: 'a', pipeline }]),
    registry: { ...createRegistry({}, {}), processes },
    store: memoryStore(),
  })
  try {
    const run = await runtime.start('a', {})
    const write = (await started.promise).bind(undefined, 'stdout')
    const utf8 = new TextEncoder()
    await write(utf8.encode(lines(init, assistant('m1', [{ type: 'text', text: 'One.' }]), result)))
    await write(utf8.encode(lines(init)))
    vi.advanceTimersByTime(60_000)
    await new Promise(setImmediate)
    await write(utf8.encode(lines(assistant('m2', [{ type: 'text', text: 'Two.' }]), { ...result, result: 'Two.' })))
    exit.resolve({ code: 0, signal: null })
    const { outcome } = await run.result
    let text = ''
    for await (const entry of run.parts) if (entry.type === 'text-delta') text += entry.delta
    expect([outcome, text]).toEqual(['completed', 'One.Two.'])
  } finally {
    vi.useRealTimers()
    await runtime.close(0)
  }
})
