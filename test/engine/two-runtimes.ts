/** Two runtimes on one database, as two processes are. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { Entry } from '../../src/part/entry.ts'
import type { Store } from '../../src/part/log.ts'
import { finish, latch, text, toolCall, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { agent, openEngine, entriesOf, only, taken, until, type Engine, type EngineOptions } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'

/** Engines on one file, each with its own connection to it. */
export function open(...options: EngineOptions[]): Engine[] {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-two-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return options.map((each) => openEngine({ ...each, dir, keep: true }))
}

export const said = (content: string) => ({ messages: [{ role: 'user', content }] })

export const echo = () => createTold((prompt) => [text(JSON.stringify(prompt.at(-1)!.content)), finish()])

/** The entries of a run that has ended: in order, without a gap or a double, legal, with one end. */
export async function ended({ store }: Engine, run: string): Promise<Entry[]> {
  await until(store, run, ({ type }) => type === 'run-end')
  const entries = await entriesOf(store, run)
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, i) => i + 1))
  expect(only(entries, 'run-end')).toHaveLength(1)
  return entries
}

/** Holds back what this engine appends from an entry on, or what it posts, as a process that is paused does. */
export function pausing(isLast: (entry: Entry) => boolean, isLastPost: (key: string) => boolean = () => false) {
  const gate = latch()
  const wrapStore = (store: Store): Store => ({
    ...store,
    log: {
      ...store.log,
      async append(run, epoch, given) {
        const entries = taken(given)
        if (entries.some(isLast)) {
          gate.arrive()
          await gate.opened
        }
        return store.log.append(run, epoch, entries)
      },
      async postAll(run, messages) {
        const posted = await store.log.postAll(run, messages)
        if (messages.some(({ key }) => isLastPost(key))) {
          gate.arrive()
          await gate.opened
        }
        return posted
      },
    },
  })
  return { gate, wrapStore }
}

export const asks = { agents: { a: agent('tools: [ask]') }, tools: { ask: { parameters: z.looseObject({}) } } }

export const asking = () =>
  createTold((prompt): ScriptStep[] => {
    const results = resultsIn(prompt)
    if (results.size === 0) return [toolCall('c', 'ask'), finish('tool-calls')]
    return [text(JSON.stringify(results.get('c'))), finish()]
  })
