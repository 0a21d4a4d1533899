/** An answer that has to be JSON: judged, given back with its faults, and gone on with behind a crash; as the log tells it. */
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { createRunFold } from '../../src/fold/run-fold.ts'
import {
  createScriptedModel,
  finish,
  text,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { openaiWire } from '../../src/wire/openai/openai.ts'
import { textWire } from '../../src/wire/text/text.ts'
import { uiWire } from '../../src/wire/ui/ui.ts'
import { agent, createEngine, entriesOf, only, type EngineOptions } from '../support/engine.ts'
import { cutAfter } from '../support/going-on.ts'
import { placesOf } from '../support/thorough.ts'

const messages = [{ role: 'user' as const, content: 'Where?' }]
const output = 'output: { schema: { city: string } }'
const bad = '{"city": 4}'
const good = '{"city": "Paris"}'
const tools: EngineOptions['tools'] = { look: { parameters: {}, execute: () => 'seen' } }
const fold = (entries: readonly Entry[]) => {
  const run = createRunFold()
  for (const entry of entries) run.apply(entry)
  return run.view()
}

function play(calls: ScriptStep[][], config: string, options: Partial<EngineOptions> = {}) {
  const model = createScriptedModel(calls)
  const given = { agents: { a: agent(config) }, scripts: { m: model }, tools, ...options }
  const engine = createEngine(given)
  onTestFinished(() => engine.close())
  return { ...engine, model, given }
}

async function ran(calls: ScriptStep[][], config: string, options: Partial<EngineOptions> = {}) {
  const engine = play(calls, config, options)
  const run = await engine.runtime.start('a', { messages })
  const result = await run.result
  return { ...engine, run, result, entries: await entriesOf(engine.store, run.id) }
}

describe('object answers', () => {
  test('a model whose object does not fit is told what is wrong with it, once', async () => {
    const { result, entries, model } = await ran(
      [
        [text(bad), finish()],
        [text(good), finish()],
      ],
      output,
    )
    expect(result).toMatchObject({ outcome: 'completed', text: good })
    const told = model.calls[1]!.options.prompt
    expect(told.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
    expect(told[1]).toMatchObject({ content: [{ text: bad }] })
    expect(JSON.stringify(told[2])).toContain('output.city must be a string, not 4')
    // Told inside of the call, before it is closed; nothing failed.
    expect(only(entries, 'retry')).toMatchObject([
      { step: 'main/answer/1', attempt: 2, delay: 0, error: { code: 'bad-output' } },
    ])
    expect(only(entries, 'error')).toEqual([])
    // Both have cost something, and both are calls.
    const [end] = only(entries, 'run-end')
    const spent = only(entries, 'usage').map(({ usage }) => usage.totalTokens!)
    expect(spent).toHaveLength(2)
    expect(end!.usage.totalTokens).toBe(spent[0]! + spent[1]!)
    expect(only(entries, 'data').at(-1)!.data).toEqual({ city: 'Paris' })
  })

  test.each([
    [0, 1],
    [1, 2],
    [3, 4],
  ])('retries: %d is %d calls, then the run fails with what was wrong', async (retries, calls) => {
    const { result, entries, model } = await ran(
      Array.from({ length: 6 }, () => [text(bad), finish()]),
      `output: { schema: { city: string }, retries: ${retries} }`,
    )
    expect(model.calls).toHaveLength(calls)
    expect(result).toMatchObject({ outcome: 'failed', error: { code: 'bad-output' } })
    expect(only(entries, 'error')).toHaveLength(1)
    expect(only(entries, 'retry').map(({ attempt }) => attempt)).toEqual(
      Array.from({ length: retries }, (_, i) => i + 2),
    )
  })

  test('tries count: for maxSteps and for the budget', async () => {
    const calls = Array.from({ length: 6 }, () => [text(bad), finish()])
    const many = 'output: { schema: { city: string }, retries: 9 }'
    const most = await ran(calls, `${many}\nmaxSteps: 3`)
    expect(most.model.calls).toHaveLength(3)
    expect(most.result).toMatchObject({ outcome: 'failed', error: { code: 'bad-output' } })
    const spent = await ran(calls, `${many}\nbudget: { steps: 2 }`)
    expect(spent.model.calls).toHaveLength(2)
    expect(spent.result.error).toMatchObject({ code: 'budget-exceeded' })
  })

  test('an answer that was cut off is not asked for again', async () => {
    const { result, model } = await ran([[text('{"city": "Pa'), finish('length')]], output)
    expect(model.calls).toHaveLength(1)
    expect(result).toMatchObject({ outcome: 'failed', error: { code: 'bad-output' } })
  })

  test('words before a tool call are not the answer, nor is a rejected try; the log has all of them', async () => {
    const { result, entries, run, store, runtime } = await ran(
      [
        [text('Let me look [it up].'), toolCall('c', 'look'), finish('tool-calls')],
        [text('It is Paris.'), finish()],
        [text(`Here:\n\`\`\`json\n${good}\n\`\`\``), finish()],
      ],
      `${output}\ntools: [look]`,
    )
    expect(result).toMatchObject({ outcome: 'completed', text: good })
    expect(
      only(entries, 'text-delta')
        .map(({ delta }) => delta)
        .join('|'),
    ).toContain('Let me look [it up].|It is Paris.|Here')
    const view = fold(entries)
    expect(view.messages.map(({ role, content }) => [role, JSON.stringify(content)])).toEqual([
      ['assistant', expect.not.stringContaining('Let me')],
      ['tool', expect.stringContaining('seen')],
      ['assistant', JSON.stringify([{ type: 'text', text: good }])],
    ])
    expect((await (await runtime.open(run.id))!.result).text).toBe(good)
    expect(store).toBeDefined()
  })

  test('what was shown of an object that is not the answer is taken back', async () => {
    const { entries } = await ran(
      [
        [text('[1, 2, 3, 4, 5, 6, 7, 8]', ' is a list.'), toolCall('c', 'look'), finish('tool-calls')],
        [text('{"town": "Paris", ', '"country": "France"}'), finish()],
        [text(good), finish()],
      ],
      `${output}\ntools: [look]`,
    )
    const shown = only(entries, 'data').map(({ data }) => data)
    expect(shown).toContainEqual([])
    expect(shown).toContainEqual({})
    expect(shown.at(-1)).toEqual({ city: 'Paris' })
  })

  test('what was shown of an object is also taken back when no try fits', async () => {
    const wrong = [text('{"town": "Paris", ', '"country": "France"}'), finish()]
    const { entries, result } = await ran([wrong, wrong], output)
    expect(result.outcome).toBe('failed')
    expect(
      only(entries, 'data')
        .map(({ data }) => data)
        .at(-1),
    ).toEqual({})
  })

  test('a model that only calls tools until maxSteps has given no object', async () => {
    const call = (id: string) => [text('{}'), toolCall(id, 'look'), finish('tool-calls')]
    const { result } = await ran([call('a'), call('b')], `${output}\ntools: [look]\nmaxSteps: 2`)
    expect(result).toMatchObject({
      outcome: 'failed',
      error: { code: 'bad-output', message: expect.stringContaining('"maxSteps" (2)') },
    })
  })

  test('a step that is no answer is told its faults, too', async () => {
    const yaml = `workflow:
  - { id: one, type: llm, result: one, config: { model: "script:m", ${output} } }
  - { id: two, type: output-generator, config: { template: $one.object } }`
    const { result } = await ran(
      [
        [text(bad), finish()],
        [text(good), finish()],
      ],
      '',
      { agents: { a: yaml } },
    )
    expect(result).toMatchObject({ outcome: 'completed', output: { city: 'Paris' } })
  })

  test('the next turn of a conversation knows nothing of the rejected try', async () => {
    const engine = play(
      [
        [text(bad), finish()],
        [text(good), finish()],
        [text(good), finish()],
      ],
      output,
      {
        agents: { a: agent(output, 'history: server') },
      },
    )
    for (const _ of [1, 2]) await (await engine.runtime.start('a', { messages }, { threadId: 't' })).result
    const prompt = engine.model.calls[2]!.options.prompt
    expect(prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
    expect(prompt[1]).toMatchObject({ content: [{ type: 'text', text: good }] })
  })

  test('a run that is cut off anywhere goes on to the same object, with no more retries than before', async () => {
    const calls = [
      [text('Let me look.'), toolCall('c', 'look'), finish('tool-calls')],
      [text(bad), finish()],
      [text(good), finish()],
    ]
    const idempotent: EngineOptions['tools'] = { look: { parameters: {}, idempotent: true, execute: () => 'seen' } }
    const options = { agents: { a: agent(`${output}\ntools: [look]`, 'recover: true') }, tools: idempotent }
    const whole = await ran(calls, '', options)
    expect(whole.result).toMatchObject({ outcome: 'completed', text: good })
    const starts = whole.entries.flatMap((entry, i) => (entry.type === 'prompt' ? [i] : []))
    for (const k of placesOf(whole.entries.length - 1)) {
      if (k < 2) continue
      // As many calls have had their end by then.
      const said = whole.entries.slice(0, k).filter(({ type }) => type === 'finish').length
      expect(starts.length).toBe(3)
      const model = createScriptedModel(calls.slice(said))
      const engine = await cutAfter(whole.entries, k, { ...options, scripts: { m: model } })
      await engine.runtime.recover()
      const run = (await engine.runtime.open(whole.run.id))!
      expect(await run.result, `cut behind ${k}`).toMatchObject({ outcome: 'completed', text: good })
      const entries = await entriesOf(engine.store, whole.run.id)
      expect(only(entries, 'retry'), `cut behind ${k}`).toHaveLength(1)
      await engine.close()
    }
  })

  test('a reader that comes back anywhere gets exactly the rest', async () => {
    const { entries } = await ran(
      [
        [text('Let me look.'), toolCall('c', 'look'), finish('tool-calls')],
        [text(bad), finish()],
        [text(...good), finish()],
      ],
      `${output}\ntools: [look]`,
    )
    for (const wire of [textWire, uiWire, openaiWire]) {
      const whole = wire.createEncoder()
      const pieces = entries.map((entry) => whole.encode(entry))
      expect(pieces.join('')).toContain('Paris')
      expect(pieces.join('')).not.toContain('Let me')
      for (let k = 0; k <= entries.length; k++) {
        const resumed = wire.createEncoder()
        for (const entry of entries.slice(0, k)) resumed.skip(entry)
        const rest = entries.slice(k).map((entry) => resumed.encode(entry))
        expect(rest, `${wire.name} behind ${k}`).toEqual(pieces.slice(k))
      }
    }
  })
})
