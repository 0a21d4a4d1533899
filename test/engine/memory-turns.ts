/** Turns of a thread whose agent recalls and stores. */
import { expect } from 'vitest'
import type { Recalled, StoredFacts } from '../../src/engine/steps/memory.ts'
import { entriesOf, only, type Engine } from '../support/engine.ts'

export const user = (content: string) => ({ role: 'user', content })
export function agent(recall = '', store = ''): string {
  return `
workflow:
  - { id: recall, type: memory, result: recalled, config: { action: recall${recall} } }
  - { id: answer, type: llm, config: { model: "script:m", stream: true, system: "$recalled.text" } }
after:
  - { id: keep, type: memory, result: kept, config: { action: store${store} } }
return: "$recalled"
`
}

export interface Said {
  id: string
  recalled: Recalled
  stored: string[]
}

export async function start(engine: Engine, input: Record<string, unknown>, threadId?: string): Promise<Said> {
  const run = await engine.runtime.start('a', input, threadId === undefined ? {} : { threadId })
  expect(await run.result).toMatchObject({ outcome: 'completed' })
  return readSaid(engine, run.id)
}

export async function readSaid(engine: Engine, id: string): Promise<Said> {
  const entries = await entriesOf(engine.store, id)
  const [kept] = only(entries, 'step-finish').filter(({ step }) => step === 'after/keep')
  const { output } = only(entries, 'run-end')[0]!
  return { id, recalled: output as Recalled, stored: (kept?.result as StoredFacts | undefined)?.stored ?? [] }
}

/** Runs that follow each other in a thread; gives what each recalled and stored. */
export async function said(
  engine: Engine,
  thread: string | undefined,
  ...turns: (string | ReturnType<typeof user>[])[]
) {
  const outputs: Said[] = []
  for (const turn of turns) {
    outputs.push(await start(engine, { messages: typeof turn === 'string' ? [user(turn)] : turn }, thread))
  }
  return outputs
}
