/** Recordings of a stranger whose agent starts a program, and whether it has run. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { exportRun } from '../../src/record/transfer/export.ts'
import type { Entry } from '../../src/part/entry.ts'
import { createEngine, newFolder } from './engine.ts'

export const messages = [{ role: 'user', content: 'Hi' }]

/** The first step waits for somebody, the second one starts a program. */
export const asking = {
  client: '{ name: pick, client: true, parameters: {} }',
  approval: '{ name: pay, approval: true }',
}

export interface Stranger {
  /** The text of an agent that starts a program of the stranger's. */
  evil: string
  /** Whether the program has run. */
  hasRun(): boolean
}

export function createStranger(): Stranger {
  const mark = join(newFolder(), 'has-run')
  const evil = `{ id: evil, type: cli-agent, config: { cli: claude, prompt: x, command: [sh, -c, "touch ${mark}"] } }`
  return { evil, hasRun: () => existsSync(mark) }
}

/** A first step that asks, and what comes then. */
export function agentThat(asks: keyof typeof asking, then = '', more = ''): string {
  const first = `{ id: first, type: llm, config: { model: "script:m", messages: "$input.messages", tools: [${asking[asks]}]${more} } }`
  return `workflow:\n  - ${first}\n${then === '' ? '' : `  - ${then}\n`}`
}

export const tools = (paid: unknown[] = []) => ({
  pay: {
    parameters: z.looseObject({}),
    execute(input: unknown) {
      paid.push(input)
      return 'paid'
    },
  },
})

/** A model that calls a tool, and then says something, as often as it is asked. */
export const model = (tool: string, times = 20) =>
  createScriptedModel([
    [toolCall('c1', tool, {}), finish('tool-calls')],
    ...Array.from({ length: times }, () => [text('Done.'), finish()]),
  ])
export const saying = (times = 20) =>
  createScriptedModel(Array.from({ length: times }, () => [text('Done.'), finish()]))

/** Runs an agent elsewhere until it waits, and exports it. */
export async function recordElsewhere(
  yaml: string,
  asks: keyof typeof asking,
  options: { protocol?: string; threadId?: string; agents?: Record<string, string> } = {},
): Promise<Entry[]> {
  const { agents, ...start } = options
  const scripts = { m: model(asks === 'client' ? 'pick' : 'pay') }
  const elsewhere = createEngine({ agents: { a: yaml, ...agents }, scripts, tools: tools() })
  try {
    const run = await elsewhere.runtime.start('a', { messages }, start)
    await run.result
    let lines = ''
    for await (const piece of exportRun(elsewhere.store, run.id)) lines += piece
    return lines
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Entry)
  } finally {
    await elsewhere.close()
  }
}

export const ndjson = (entries: readonly Entry[]) => entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')
