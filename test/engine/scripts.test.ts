/** Scripts as steps and as tools of a model: what they are given, what the log has, what comes back. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { ToolImplementation } from '../../src/tools/tool.ts'
import { entriesOf, only, openEngine, type EngineOptions } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'

const orders = [
  { id: 'a', state: 'open', total: 5 },
  { id: 'b', state: 'paid', total: 7 },
  { id: 'c', state: 'open', total: 9 },
]
const order: ToolImplementation = {
  description: 'One order.',
  parameters: z.object({ id: z.string() }),
  execute: ({ id }: { id: string }) => {
    const found = orders.find((each) => each.id === id)
    if (found === undefined) throw new Error(`There is no order ${id}.`)
    return found
  },
}

const step = (code: string, more = '') => `
workflow:
  - id: totals
    type: script
    result: totals
    config:
      code: ${JSON.stringify(code)}
${more}`

async function ran(agent: string, options: Partial<EngineOptions> = {}, input: Record<string, unknown> = {}) {
  const engine = openEngine({ agents: { agent }, tools: { order }, ...options })
  const run = await engine.runtime.start('agent', input)
  const result = await run.result
  return { engine, run, result, entries: await entriesOf(engine.store, run.id) }
}

describe('a script step', () => {
  test('gets its input, calls tools, writes to its console, and returns its value', async () => {
    const code = `
const all: { state: string; total: number }[] = await Promise.all(input.ids.map((id: string) => tools.order({ id })))
const open = all.filter((each) => each.state === 'open')
console.log(open.length, 'open')
return { count: open.length, sum: open.reduce((sum, { total }) => sum + total, 0) }`
    const { result, entries } = await ran(
      step(code, '      input: { ids: $input.ids }\n      tools: [order]'),
      {},
      { ids: ['a', 'b', 'c'] },
    )
    expect(result).toMatchObject({ outcome: 'completed', output: { totals: { count: 2, sum: 14 } } })
    expect(only(entries, 'tool-call')).toMatchObject(
      ['a', 'b', 'c'].map((id, i) => ({
        step: 'main/totals/1',
        toolCallId: `script.main/totals.${i + 1}`,
        toolName: 'order',
        input: JSON.stringify({ id }),
        via: 'script',
      })),
    )
    expect(only(entries, 'tool-result').map(({ step: at }) => at)).toEqual([
      'main/totals/2',
      'main/totals/3',
      'main/totals/4',
    ])
    expect(only(entries, 'data')).toMatchObject([{ name: 'console', data: { level: 'log', text: '2 open' } }])
  })
})
