/** A fork at every entry of every kind of run: it completes, ends as its source did, or is refused with a reason. */
import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import type { Entry } from '../../src/part/entry.ts'
import { readStored } from '../../src/engine/stored-pipeline.ts'
import { importNdjson } from '../../src/record/transfer/import.ts'
import { arbitraryRun } from '../arbitrary-run.ts'
import { agent, createEngine, entriesOf, only } from '../support/engine.ts'
import { often, placesOf } from '../support/thorough.ts'

const folder = new URL('../../src/wire/golden/', import.meta.url)
// Without the one whose steps only a program has.
const goldens = readdirSync(folder).flatMap((file) => /^(?!cli-agent)(.+)\.ndjson$/u.exec(file)?.[1] ?? [])
const read = (name: string) =>
  readFileSync(new URL(`${name}.ndjson`, folder), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry)

const tool = { parameters: { type: 'object' }, execute: () => 'done' }

/** Where a fork of a golden run does not complete: what it comes to, from this place to that one. */
const others: Record<string, [status: string, from: number, to: number]> = {
  // The step that was stopped is complete.
  'abort-midway': ['failed', 19, 20],
  'agent-stopped': ['aborted', 25, 26],
  // Nobody can answer any more.
  approval: ['refused', 18, 22],
  'role-approval': ['refused', 18, 22],
  'client-tool': ['refused', 14, 15],
  'agent-approval': ['refused', 41, 42],
  'agent-client-tool': ['refused', 31, 45],
  'error-midway': ['failed', 10, 12],
  // It has used it up in its first call.
  'budget-exceeded': ['budget-exceeded', 4, 13],
}

/** Forks a run at every entry. The grammar is checked by `entriesOf`. */
async function forkEverywhere(recorded: readonly Entry[]) {
  const entries = recorded.map(withPipeline)
  const any = createScriptedModel(Array.from({ length: 3 * entries.length + 20 }, () => [text('forked'), finish()]))
  const { store, runtime, close } = createEngine({
    agents: { a: agent() },
    tools: { read: tool, search: tool, clock: tool, log: tool },
    scripts: { m: any, a: any, b: any },
    models: {
      providers: Object.fromEntries(providersIn(entries).map((name) => [name, () => any])),
    },
  })
  const found: { at: number; status: string }[] = []
  try {
    const { id } = await importNdjson(store, entries.map((entry) => JSON.stringify(entry)).join('\n'))
    const before = await entriesOf(store, id)
    for (const at of placesOf(entries.length)) {
      const forked = await runtime.fork(id, { at, trust: true }).catch((error: unknown) => {
        const { code, message, status } = error as {
          code: string
          message: string
          status: number
        }
        expect([code, status], `at ${at}: ${message}`).toEqual(['bad-fork', 400])
        // The cure: a place at which it is accepted.
        expect(message).toMatch(/Fork at \d+, before|Name the agent/u)
        return undefined
      })
      if (forked === undefined) {
        found.push({ at, status: 'refused' })
        continue
      }
      await forked.result
      const { status } = (await store.runs.get(forked.id))!
      await entriesOf(store, forked.id)
      expect(status, `at ${at}`).not.toBe('running')
      found.push({ at, status })
    }
    expect(await entriesOf(store, id)).toEqual(before)
  } finally {
    await close()
  }
  expect(found).toHaveLength(placesOf(entries.length).length)
  return found
}

describe('forks at any entry', () => {
  test.each(goldens)(
    '%s: the fork is legal and completes; where it cannot, it fails or is refused with a reason',
    async (name) => {
      const [other, from, to] = others[name] ?? ['', Infinity, 0]
      const found = await forkEverywhere(read(name))
      expect(found).toEqual(found.map(({ at }) => ({ at, status: at >= from && at <= to ? other : 'completed' })))
    },
  )

  test('runs of any form', async () => {
    const samples = fc.sample(arbitraryRun, { numRuns: often(8), seed: 7 })
    const found: string[] = []
    for (const entries of samples) found.push(...(await forkEverywhere(entries)).map(({ status }) => status))
    const share = (status: string) => found.filter((each) => each === status).length / found.length
    expect(share('completed')).toBeGreaterThan(0.9)
    expect(share('refused')).toBeLessThan(0.1)
  })
})

/** Some of these runs were made without an agent: they get one with their steps. */
function withPipeline(entry: Entry, _: number, entries: readonly Entry[]): Entry {
  if (entry.type !== 'run-start' || readStored(entry.pipeline) !== undefined) return entry
  const steps = only(entries, 'step-start').flatMap(({ step, answer = false }) => {
    const id = /^main\/(\w+)$/u.exec(step)?.[1]
    return id === undefined ? [] : `  - { id: ${id}, type: llm, config: { model: "made:up", stream: ${answer} } }`
  })
  return { ...entry, pipeline: `workflow:\n${steps.join('\n')}\n` }
}

function providersIn(entries: readonly Entry[]): string[] {
  const models = only(entries, 'prompt').map(({ model }) => model)
  return [...new Set(['made:up', ...models].map((model) => model.split(':')[0]!))].filter(
    (name) => !/^(?:openai|google|anthropic|demo)$/u.test(name),
  )
}
