/** `memory`: what earlier runs of a thread hold, picked for this one; facts kept for the next ones; all of it in the log. */
import { afterEach, expect, test } from 'vitest'
import type { Recalled, StoredFacts } from '../../src/engine/steps/memory.ts'
import { finish, text } from '../../src/models/testing/scripted-model.ts'
import { createEngine, entriesOf, only, type Engine, type EngineOptions } from '../support/engine.ts'
import { createTold } from '../support/going-on.ts'

const engines: Engine[] = []
function open(options: EngineOptions): Engine {
  const engine = createEngine(options)
  engines.push(engine)
  return engine
}
afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close()
})

const user = (content: string) => ({ role: 'user', content })
createTold((prompt) => {
  const said = prompt.findLast(({ role }) => role === 'user')!.content as { text: string }[]
  return [text(`${said[0]!.text} indeed.`), finish()]
})

function agent(recall = '', store = ''): string {
  return `
workflow:
  - { id: recall, type: memory, result: recalled, config: { action: recall${recall} } }
  - { id: answer, type: llm, config: { model: "script:m", stream: true, system: "$recalled.text" } }
after:
  - { id: keep, type: memory, result: kept, config: { action: store${store} } }
return: "$recalled"
`
}

interface Said {
  id: string
  recalled: Recalled
  stored: string[]
}

async function start(engine: Engine, input: Record<string, unknown>, threadId?: string): Promise<Said> {
  const run = await engine.runtime.start('a', input, threadId === undefined ? {} : { threadId })
  expect(await run.result).toMatchObject({ outcome: 'completed' })
  return readSaid(engine, run.id)
}

async function readSaid(engine: Engine, id: string): Promise<Said> {
  const entries = await entriesOf(engine.store, id)
  const [kept] = only(entries, 'step-finish').filter(({ step }) => step === 'after/keep')
  const { output } = only(entries, 'run-end')[0]!
  return { id, recalled: output as Recalled, stored: (kept?.result as StoredFacts | undefined)?.stored ?? [] }
}

/** Runs that follow each other in a thread; gives what each recalled and stored. */
async function said(engine: Engine, thread: string | undefined, ...turns: (string | ReturnType<typeof user>[])[]) {
  const outputs: Said[] = []
  for (const turn of turns) {
    outputs.push(await start(engine, { messages: typeof turn === 'string' ? [user(turn)] : turn }, thread))
  }
  return outputs
}

test('long messages count for what they are, and hold nobody up', async () => {
  const engine = open({ agents: { a: agent() }, scripts: { m: createTold(() => [text('Yes.'), finish()]) } })
  const long = (name: string) => `${name} ${Array.from({ length: 250_000 }, (_, i) => `w${i}`).join(' ')}`
  const outputs = await said(engine, 't', long('one'), long('two'), long('three'), long('four'))
  const starts = outputs.map(({ recalled }) => recalled.turns.map(({ user: side }) => side.split(' ')[0]))
  expect(starts).toEqual([[], ['one'], ['two', 'one'], ['three', 'two']])
  const finished = only(await entriesOf(engine.store, outputs[3]!.id), 'step-finish')
  expect(finished.find(({ step }) => step === 'main/recall')!.duration).toBeLessThan(500)
})
