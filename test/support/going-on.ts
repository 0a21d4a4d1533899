/** Crashes without processes: models that answer by what they are told, runs cut after an entry, conversations checked. */
import { join } from 'node:path'
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4Prompt } from '@ai-sdk/provider'
import type { Entry } from '../../src/part/entry.ts'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import { createScriptedModel, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { createEngine, newFolder, type Engine, type EngineOptions } from './engine.ts'

export interface Told extends LanguageModelV4 {
  /** What each call was told; every one of them is a conversation that a strict provider takes. */
  readonly prompts: LanguageModelV4Prompt[]
  readonly calls: LanguageModelV4CallOptions[]
}

/** A model that answers by the conversation, not by how often it was asked: it may be asked by several processes. */
export function createTold(answer: (prompt: LanguageModelV4Prompt) => ScriptStep[]): Told {
  const calls: LanguageModelV4CallOptions[] = []
  const model = createScriptedModel([])
  return {
    ...model,
    get prompts() {
      return calls.map(({ prompt }) => prompt)
    },
    calls,
    async doStream(options) {
      calls.push(options)
      const fault = pairingFault(options.prompt)
      if (fault !== undefined) throw new Error(`a strict provider refuses this: ${fault}`)
      return createScriptedModel([answer(options.prompt)]).doStream(options)
    },
  }
}

/** Each call is answered in the very next message, once, and nothing else is answered there. */
export function pairingFault(prompt: LanguageModelV4Prompt): string | undefined {
  let due = new Set<string>()
  const seen = new Set<string>()
  for (const [i, message] of prompt.entries()) {
    if (message.role === 'tool') {
      for (const part of message.content) {
        if (part.type !== 'tool-result') continue
        if (!due.delete(part.toolCallId)) return `message ${i} answers ${part.toolCallId}, which is not asked`
      }
      if (due.size > 0) return `message ${i} leaves ${[...due].join(', ')} without result`
      continue
    }
    if (due.size > 0) return `message ${i} comes before the results of ${[...due].join(', ')}`
    if (message.role !== 'assistant') continue
    if (message.content.length === 0) return `message ${i} is empty`
    due = new Set()
    for (const part of message.content) {
      if (part.type !== 'tool-call' || part.providerExecuted === true) continue
      if (seen.has(part.toolCallId)) return `message ${i} calls ${part.toolCallId} a second time`
      seen.add(part.toolCallId)
      due.add(part.toolCallId)
    }
  }
  return due.size > 0 ? `the last message leaves ${[...due].join(', ')} without result` : undefined
}

/** The tool results in a conversation: call id → output. */
export function resultsIn(prompt: LanguageModelV4Prompt): Map<string, unknown> {
  const results = new Map<string, unknown>()
  for (const message of prompt) {
    if (message.role !== 'tool') continue
    for (const part of message.content) if (part.type === 'tool-result') results.set(part.toolCallId, part.output)
  }
  return results
}

export async function readAll({ store }: Engine, run: string): Promise<Entry[]> {
  const entries: Entry[] = []
  for await (const batch of store.log.read(run)) entries.push(...batch)
  return entries
}

/** An engine whose log holds the first `k` entries of a recording, as a crash behind them would leave it. */
export async function cutAfter(entries: readonly Entry[], k: number, options: EngineOptions): Promise<Engine> {
  const dir = newFolder()
  await plant(dir, entries.slice(0, k))
  return createEngine({ ...options, dir })
}

/** Stores a run in a folder, as an earlier process would. */
export async function plant(dir: string, entries: readonly Entry[]): Promise<void> {
  const { runId } = entries[0] as Extract<Entry, { type: 'run-start' }>
  const store = sqliteStore(join(dir, 'millrace.db'))
  let epoch = 1
  let from = 0
  // Each owner had an epoch of its own, and block ids begin with it.
  for (const [i, { type }] of entries.entries()) {
    if (type !== 'resume') continue
    await store.log.append(runId, epoch, entries.slice(from, i))
    await store.log.claim(runId, epoch++)
    from = i
  }
  await store.log.append(runId, epoch, entries.slice(from))
  await store.close()
}

/** Waits until a condition holds that is changed by promises only; fails after a bounded number of turns. */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 2000; turn++) {
    if (await holds()) return
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  throw new Error('it never came to hold')
}
