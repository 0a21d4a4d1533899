/** A router whose process dies behind any entry: it goes on where it stood, does nothing twice, and comes to the same. */
import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Entry } from '../../src/part/entry.ts'
import { withoutSuperseded } from '../../src/fold/superseded.ts'
import type { ToolImplementation } from '../../src/tools/tool.ts'
import { finish, text, toolCall, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { createEngine, entriesOf, only, type Engine, type EngineOptions } from '../support/engine.ts'
import { createTold, cutAfter, resultsIn } from '../support/going-on.ts'
import { placesOf } from '../support/thorough.ts'

const any = z.looseObject({})
const yaml = `
recover: true
workflow:
  - id: turn
    type: parallel
    result: turn
    config:
      branches:
        route:
          - { id: route, type: router, config: { model: "script:route", tools: [work, { name: ask, client: true }] } }
        beside:
          - { id: beside, type: llm, config: { model: "script:beside" } }
  - id: answer
    type: llm
    config: { model: "script:answer", stream: true, messages: "$turn.route.messages" }
return: { context: "$turn.route.context", respond: "$turn.route.respond", reason: "$turn.route.finishReason" }
`

/** Two calls, one of them the client's; one of them again; then it hands over, with one more call beside. */
function route(prompt: LanguageModelV4Prompt): ScriptStep[] {
  const done = resultsIn(prompt)
  if (done.size === 0)
    return [text('First.'), toolCall('c1', 'work', { n: 1 }), toolCall('c2', 'ask'), finish('tool-calls')]
  if (done.size === 2) return [toolCall('c3', 'work', { n: 1 }), finish('tool-calls')]
  return [toolCall('r', 'respond', { reason: 'done' }), toolCall('c4', 'work', { n: 4 }), finish('tool-calls')]
}

function live() {
  const ran: string[] = []
  const models = {
    route: createTold(route),
    beside: createTold(() => [text('Beside.'), finish()]),
    answer: createTold((prompt) => [text(JSON.stringify([...resultsIn(prompt)])), finish()]),
  }
  const work: ToolImplementation = {
    parameters: any,
    execute: ({ n }: { n: number }, { toolCallId }) => (ran.push(toolCallId), n),
  }
  const options: EngineOptions = { agents: { a: yaml }, tools: { work }, scripts: models }
  return { options, models, ran }
}

/** Gives the client's answer whenever it is asked for. */
async function attend(engine: Engine, run: string): Promise<Entry[]> {
  for (;;) {
    const { outcome } = await (await engine.runtime.open(run))!.result
    const entries = await entriesOf(engine.store, run)
    if (outcome !== 'suspended') return entries
    const [request] = only(entries, 'request')
    await engine.runtime.answer(run, request!.requestId, { kind: 'tool', output: 'here' })
  }
}

let whole: Entry[]
describe('recovery of routers', () => {
  beforeAll(async () => {
    const engine = createEngine(live().options)
    try {
      const { id } = await engine.runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] })
      whole = await attend(engine, id)
    } finally {
      await engine.close()
    }
  })

  test('whole: a call again is not run, a sibling of `respond` is', () => {
    const [end] = only(whole, 'run-end')
    expect(end).toMatchObject({ outcome: 'completed', output: { respond: { reason: 'done' }, reason: 'respond' } })
    const { context } = end!.output as { context: string }
    expect(context.split('\n')).toEqual([
      'work {"n":1} gave: 1',
      'ask {} gave: here',
      expect.stringMatching(/^work \{"n":1\} gave: work was already called with these arguments/u),
      'work {"n":4} gave: 4',
    ])
    expect(only(whole, 'tool-result').map(({ toolCallId }) => toolCallId)).toEqual(['c1', 'c2', 'c3', 'r', 'c4'])
  })

  test('a crash behind any entry: every call has one outcome, nothing runs twice, the end is the same', async () => {
    const runId = only(whole, 'run-start')[0]!.runId
    for (const k of placesOf(whole.length - 1)) {
      const { options, models, ran } = live()
      const engine = await cutAfter(whole, k, options)
      try {
        const prefix = whole.slice(0, k)
        const where = `cut after ${k}, ${prefix.at(-1)!.type} ${prefix.at(-1)!.step}`
        await engine.runtime.recover()
        const entries = await attend(engine, runId)
        expect(entries.slice(0, k), where).toEqual(prefix)
        const kept = withoutSuperseded(entries)
        const results = only(kept, 'tool-result')
        expect(results.map(({ toolCallId }) => toolCallId).toSorted(), where).toEqual(['c1', 'c2', 'c3', 'c4', 'r'])
        const begun = only(prefix, 'step-start').filter(({ stepType }) => stepType === 'tool-call')
        for (const { toolCallId } of begun) expect(ran, where).not.toContain(toolCallId)
        expect(new Set(ran).size, where).toBe(ran.length)
        const said = only(withoutSuperseded(prefix), 'finish').length
        const asked = Object.values(models).reduce((sum, { calls }) => sum + calls.length, 0)
        const [end] = only(entries, 'run-end')
        expect(end, where).toMatchObject({ outcome: 'completed' })
        // What a tool had begun is told as unavailable, and then it is no repeat either.
        if (results.some(({ outcome }) => outcome !== undefined)) continue
        expect(asked, where).toBe(only(whole, 'finish').length - said)
        expect(end!.output, where).toEqual(only(whole, 'run-end')[0]!.output)
      } finally {
        await engine.close()
      }
    }
  })
})
