/** An engine for tests: agents as YAML, models as scripts, runs checked against the grammar as they are read. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createRuntime } from '../../src/project/create-runtime.ts'
import type { Config } from '../../src/project/config.ts'
import type { Entry, EntryOf } from '../../src/part/entry.ts'
import { foldRun } from '../../src/fold/run-fold.ts'
import { createGrammar } from '../../src/fold/grammar.ts'
import type { Batch, Store } from '../../src/part/log.ts'
import type { OpenAccount } from '../../src/engine/run-account.ts'
import { spansOf } from '../../src/record/otlp/span-fold.ts'
import { openDatabase } from '../../src/store/sqlite/schema.ts'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import type { LanguageModel } from '../../src/models/language-model.ts'
import type { Runtime } from '../../src/runtime/runtime.ts'

export interface Engine {
  runtime: Runtime
  store: Store
  dir: string
  close(): Promise<void>
}

export interface EngineOptions extends Config {
  agents: Record<string, string>
  /** `script:<name>` in YAML. */
  scripts?: Record<string, LanguageModel>
  /** A folder of an earlier engine: its database is opened again. */
  dir?: string
  environment?: Record<string, string>
  /** Leaves the folder when closed. */
  keep?: boolean
  /** Puts something between the engine and its store. */
  wrapStore?: (store: Store) => Store
  traces?: boolean
  openAccount?: OpenAccount
}

export function createEngine({
  scripts = {},
  dir,
  keep = false,
  environment = {},
  wrapStore = (store) => store,
  ...options
}: EngineOptions): Engine {
  const folder = dir ?? newFolder()
  const stored = sqliteStore(join(folder, 'millrace.db'))
  const store = wrapStore(stored)
  const runtime = createRuntime({
    ...options,
    store,
    environment,
    data: folder,
    models: {
      ...options.models,
      providers: {
        ...options.models?.providers,
        script: (name) => {
          const model = scripts[name]
          if (model === undefined) throw new Error(`no script ${name}`)
          return model
        },
      },
    },
  })
  return {
    runtime,
    store,
    dir: folder,
    async close() {
      await runtime.close(0)
      if (!keep) rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** An engine that is closed when its test ends; of several, the last one first. */
export function openEngine(options: EngineOptions): Engine {
  const engine = createEngine(options)
  onTestFinished(() => engine.close())
  return engine
}

let empty: Uint8Array | undefined

/** A folder with an empty database, as one that has just been created: to create it anew takes longer than many runs. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-'))
  empty ??= emptyDatabase()
  writeFileSync(join(folder, 'millrace.db'), empty)
  return folder
}

function emptyDatabase(): Uint8Array {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-'))
  const path = join(folder, 'millrace.db')
  openDatabase(path, { busyTimeout: 5000 }).close()
  const bytes = readFileSync(path)
  rmSync(folder, { recursive: true })
  return bytes
}

/** What a store that is wrapped was given to append. */
export function taken(given: Batch): readonly Entry[] {
  return typeof given === 'function' ? given() : given
}

/** All entries of a run that has ended or is suspended, each checked by the grammar. */
export async function entriesOf(store: Store, run: string): Promise<Entry[]> {
  // First: a run that ends meanwhile may still be read without its end.
  const { status } = (await store.runs.get(run))!
  const entries: Entry[] = []
  for await (const batch of store.log.read(run)) entries.push(...batch)
  const faults = [...grammarFaults(entries, status === 'suspended' || status === 'running'), ...endFaults(entries)]
  if (faults.length > 0) throw new Error(`${faults.join('\n')}\n${entries.map((e) => JSON.stringify(e)).join('\n')}`)
  await checkKept(store, run, entries)
  return entries
}

/** A run that has ended says where its usage is from, and each of its spans has ended. */
export function endFaults(entries: readonly Entry[]): string[] {
  const end = entries.at(-1)
  if (end?.type !== 'run-end') return []
  const open = spansOf(entries).filter(({ attributes }) => attributes['millrace.incomplete'] === true)
  const faults = open.map(({ name }) => `the span ${name} has not ended`)
  const isKnown = ['reported', 'estimated'].includes(end.usage?.source)
  return isKnown ? faults : [...faults, `run-end has no source of its usage: ${JSON.stringify(end.usage)}`]
}

/** What is kept of a run is what its log says. */
async function checkKept(store: Store, run: string, entries: readonly Entry[]): Promise<void> {
  const kept = await store.runs.view(run)
  if (kept === undefined || kept.seq !== entries.at(-1)?.seq) return
  const fold = foldRun()
  for (const entry of entries) fold.apply(entry)
  const [found, expected] = [kept.view, fold.kept()].map((each) => JSON.stringify(each))
  if (found !== expected) throw new Error(`kept of ${run}:\n${found}\nin its log:\n${expected}`)
}

export function grammarFaults(entries: readonly Entry[], open = false): string[] {
  const grammar = createGrammar()
  return [...entries.map((entry) => grammar.check(entry)), grammar.end({ open })].filter((fault) => fault !== undefined)
}

export function only<T extends Entry['type']>(entries: readonly Entry[], type: T): EntryOf<T>[] {
  return entries.filter((entry): entry is EntryOf<T> => entry.type === type)
}

/** Waits until the log of a run holds an entry that satisfies the condition. */
export async function until(store: Store, run: string, matches: (entry: Entry) => boolean): Promise<Entry> {
  const leave = new AbortController()
  for await (const batch of store.log.read(run, { signal: leave.signal })) {
    const found = batch.find(matches)
    if (found !== undefined) return found
  }
  throw new Error(`run ${run} ended without the entry that was waited for`)
}

/** A one-step agent: `llm`, streaming, on `script:m`, with further config lines. */
export function agent(config = '', top = ''): string {
  return `${top}
workflow:
  - id: answer
    type: llm
    config:
      model: "script:m"
      stream: true
${config.replaceAll(/^/gmu, '      ')}
`
}
