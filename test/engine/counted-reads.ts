/** An engine whose reads of logs and views are counted. */
import { expect } from 'vitest'
import type { ReadOptions, Store } from '../../src/part/log.ts'
import type { Message } from '../../src/part/message.ts'
import { keptVersion } from '../../src/fold/kept-run.ts'
import { foldLog } from '../../src/fold/read-view.ts'
import { continueOrStart } from '../../src/runtime/continue.ts'
import { openEngine, type Engine, type EngineOptions } from '../support/engine.ts'

/** An engine whose reads of logs and views are counted. */
export function open(options: EngineOptions) {
  const seen = { logs: 0, entries: 0, whole: 0, views: 0 }
  const wrapStore = (inner: Store): Store => {
    const read = async function* (run: string, given: ReadOptions = {}) {
      seen.logs++
      for await (const batch of inner.log.read(run, given)) {
        seen.entries += batch.length
        if (given.limit === undefined && (given.after ?? 0) === 0 && given.signal === undefined) seen.whole++
        yield batch
      }
    }
    const view: Store['runs']['view'] = (run) => {
      seen.views++
      return inner.runs.view(run)
    }
    return { ...inner, log: { ...inner.log, read }, runs: { ...inner.runs, view } }
  }
  return { ...openEngine({ ...options, wrapStore }), seen }
}

export const ask = { parameters: { type: 'object', properties: {} } }

export const user = (content: string): Message => ({ role: 'user', content })

export async function say({ runtime }: Engine, messages: Message[], history: 'client' | 'server') {
  const common = { agentId: 'a', threadId: 't', input: {}, protocol: 'ui', onBusy: 'queue' } as const
  const { run } = await continueOrStart(runtime, { ...common, messages, answers: [], history })
  expect(await run.result).toMatchObject({ outcome: 'completed' })
  return run.id
}

/** What is kept of a run is what a fold of its log says. */
export async function expectKept({ store }: Engine, run: string): Promise<void> {
  const found = await store.runs.view(run)
  const fold = (await foldLog(store.log.read(run)))!
  expect(found).toEqual({ seq: fold.lastSeq, view: JSON.parse(JSON.stringify(fold.kept())) })
  expect(fold.kept().version).toBe(keptVersion)
}
