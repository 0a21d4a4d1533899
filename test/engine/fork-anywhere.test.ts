/** A fork at every entry of every kind of run: it runs to its end, waits as its source did, or is refused with a reason. */
import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
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

/** Forks a run at every entry. The grammar is checked by `entriesOf`. */
async function forkEverywhere(recorded: readonly Entry[]) {
  const entries = recorded.map(withPipeline)
  const any = createScriptedModel(Array.from({ length: 3 * entries.length + 20 }, () => [text('forked'), finish()]))
  const { store, runtime, close } = createEngine({
    agents: { a: agent() },
    models: {
      providers: Object.fromEntries(providersIn(entries).map((name) => [name, () => any])),
    },
  })
  const found = { forked: 0, refused: 0, completed: 0, suspended: 0 }
  try {
    const { id } = await importNdjson(store, entries.map((entry) => JSON.stringify(entry)).join('\n'))
    const before = await entriesOf(store, id)
    for (const at of placesOf(entries.length)) {
      const forked = await runtime.fork(id, { at }).catch((error: unknown) => {
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
        found.refused++
        continue
      }
      found.forked++
      await forked.result
      const { status } = (await store.runs.get(forked.id))!
      await entriesOf(store, forked.id)
      expect(status, `at ${at}`).not.toBe('running')
      if (status === 'completed' || status === 'suspended') found[status]++
    }
    expect(await entriesOf(store, id)).toEqual(before)
  } finally {
    await close()
  }
  expect(found.forked + found.refused).toBeGreaterThanOrEqual(entries.length / 3)
  return found
}

test.each(goldens)('%s: the fork is legal and runs to an end, or waits as its source did', async (name) => {
  const { forked } = await forkEverywhere(read(name))
  expect(forked).toBeGreaterThan(0)
})

test('runs of any form', async () => {
  const total = { runs: 0, forked: 0, refused: 0, completed: 0, suspended: 0 }
  for (const entries of fc.sample(arbitraryRun, { numRuns: often(8), seed: 7 })) {
    const found = await forkEverywhere(entries)
    total.runs++
    total.forked += found.forked
    total.refused += found.refused
    total.completed += found.completed
    total.suspended += found.suspended
  }
  expect(total.forked).toBeGreaterThan(total.refused)
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
