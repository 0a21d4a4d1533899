/** What `check` knows of the results of steps is what the engine gives: neither more nor less. */
import { describe, expect, expectTypeOf, onTestFinished, test } from 'vitest'
import { llmFields, recalledFields, routerFields, storedFields, toolLoopFields } from '../../src/pipeline/step-shape.ts'
import { deadEnd, mapOf } from '../../src/pipeline/shape.ts'
import type { LlmResult } from '../../src/engine/steps/llm.ts'
import type { Recalled, StoredFacts } from '../../src/engine/steps/memory.ts'
import type { RouterResult } from '../../src/engine/steps/router.ts'
import type { ToolLoopResult } from '../../src/engine/tool-loop.ts'
import { createEngine } from '../support/engine.ts'

describe('shapes of runtime objects', () => {
  test('the fields of each result, by its type', () => {
    expectTypeOf<keyof typeof toolLoopFields>().toEqualTypeOf<keyof ToolLoopResult>()
    expectTypeOf<keyof typeof llmFields | 'object'>().toEqualTypeOf<keyof LlmResult>()
    expectTypeOf<keyof typeof routerFields>().toEqualTypeOf<keyof RouterResult>()
    expectTypeOf<keyof typeof recalledFields>().toEqualTypeOf<keyof Recalled>()
    expectTypeOf<keyof typeof storedFields>().toEqualTypeOf<keyof StoredFacts>()
  })

  /** Every path into a value. */
  function pathsOf(value: unknown, depth = 6): string[][] {
    if (depth === 0 || typeof value !== 'object' || value === null) return [[]]
    return [
      [],
      ...Object.entries(value).flatMap(([key, each]) => pathsOf(each, depth - 1).map((rest) => [key, ...rest])),
    ]
  }

  test('every path into what a run gave is one that check allows', async () => {
    const workflow = `workflow:
  - { id: s, type: memory, config: { action: store, facts: [a fact] }, result: kept }
  - { id: m, type: memory, config: { action: recall }, result: recalled }
  - { id: r, type: router, config: { model: "demo:assistant", tools: [calculator] }, result: route }
  - { id: a, type: llm, config: { model: "demo:assistant", stream: true, tools: [calculator] }, result: answer }
return: { kept: $kept, recalled: $recalled, route: $route, answer: $answer }
`
    const { runtime, close } = createEngine({ agents: { all: workflow }, environment: { MILLRACE_DEMO_DELAY_MS: '0' } })
    onTestFinished(close)
    const start = () =>
      runtime.start('all', { messages: [{ role: 'user', content: 'What is 12*7?' }] }, { threadId: 't' })
    await (
      await start()
    ).result
    const { output, outcome } = await (await start()).result
    expect(outcome).toBe('completed')
    const fields = {
      kept: mapOf(storedFields),
      recalled: mapOf(recalledFields),
      route: mapOf(routerFields),
      answer: mapOf(llmFields),
    }
    const paths = pathsOf(output)
    expect(paths.length).toBeGreaterThan(60)
    expect(paths.filter((path) => deadEnd(mapOf(fields), path) !== undefined)).toEqual([])
    expect(paths.map((path) => path.join('.'))).toEqual(
      expect.arrayContaining(['recalled.turns.0.user', 'answer.steps.0.toolCalls.0.toolName', 'answer.usage.source']),
    )
  })
})
