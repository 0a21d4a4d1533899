/**
 * New recordings of a case wait beside the old ones until somebody accepts them, in `recordings/<file>/new`. Those that an accepted one has
 * replaced are in `old`, so that it can be undone, once. A set has a file that says what belongs to it, which is written last.
 */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { equal } from '../part/equal.ts'
import type { Entry } from '../part/entry.ts'
import { parseJson } from '../part/json.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import { factsOf } from './facts.ts'
import { slugOf } from './read-cases.ts'
import { filesOfCase, loadRecording, recordingsOf, saveRecording, type RunOfCase } from './recording-files.ts'
import type { CaseRun, RecordedRun } from './run-case.ts'

/** The recordings of one case with one model. */
interface RecordingSet {
  /** Absent: those of the agent. */
  model?: string
  /** What their names have behind that of the case: `.2.judge`. */
  files: string[]
}

/** What an accepted change has replaced. */
export interface Replaced extends RecordingSet {
  /** What the last turn had to answer exactly, and what it has to since. */
  expected?: { before: string; after: string }
  /** The recorded run that took its place. */
  run?: string
}

/** What a recording says: of a turn, or of its judge. */
export interface Said {
  answer: string
  tools: { name: string; input: unknown }[]
}

export interface ChangedRun extends RunOfCase {
  before?: Said
  after: Said
}

const subfolders = ['new', 'old'] as const
const isPart = /^(?:\.\d{1,4})?(?:\.judge)?$/u
const mostParts = 2000

/** All folders that have recordings of a case. */
export function recordingFolders(folder: string): string[] {
  return [folder, ...subfolders.map((name) => join(folder, name))]
}

const stemOf = (slug: string, model: string | undefined) => (model === undefined ? slug : `${slug}.${slugOf(model)}`)
const partOf = ({ turn, judge }: RunOfCase) => `${turn > 0 ? `.${turn + 1}` : ''}${judge === true ? '.judge' : ''}`
const runOf = (part: string): RunOfCase => ({
  turn: Number(/^\.(\d+)/u.exec(part)?.[1] ?? 1) - 1,
  ...(part.endsWith('.judge') && { judge: true }),
})

/** Those that there are of this model. */
function partsIn(folder: string, slug: string, model: string | undefined): string[] {
  const stem = stemOf(slug, model)
  const parts = filesOfCase(folder, slug).flatMap((name) =>
    name.startsWith(stem) && name.endsWith('.ndjson') ? [name.slice(stem.length, -'.ndjson'.length)] : [],
  )
  return parts.filter((part) => isPart.test(part))
}

const fileIn = (folder: string, stem: string, part: string) => join(folder, `${stem}${part}.ndjson`)

/** Keeps what a run of a case has recorded: at once if it says what the recordings say or there are none, else for somebody to accept. */
export function keepRecordings(cwd: string, { file, test, model }: CaseRun, made: readonly RecordedRun[]): void {
  const folder = resolve(cwd, recordingsOf(file.path))
  const stem = stemOf(test.slug, model)
  const has = partsIn(folder, test.slug, model).length > 0
  const wanted = test.turns.reduce((sum, { expect }) => sum + (expect.judge === undefined ? 1 : 2), 0)
  // Turns of two recordings do not belong together.
  if (has && made.length < wanted) return
  const isSame = made.every(({ which, entries }) => {
    const before = load(fileIn(folder, stem, partOf(which)))
    return before !== undefined && equal(saidIn(before), saidIn(entries))
  })
  dropProposal(folder, test.slug, model)
  if (!has || isSame) {
    for (const { which, entries } of made) saveRecording(fileIn(folder, stem, partOf(which)), entries)
    return
  }
  const next = join(folder, 'new')
  for (const { which, entries } of made) saveRecording(fileIn(next, stem, partOf(which)), entries)
  writeSet(join(next, `${stem}.json`), {
    ...(model !== undefined && { model }),
    files: made.map((each) => partOf(each.which)),
  })
}

/** The sets that wait, and what they change. */
export function proposalsOf(folder: string, slug: string): (RecordingSet & { run?: string; changed: ChangedRun[] })[] {
  const next = join(folder, 'new')
  return setsIn(next, slug).flatMap(({ model, files }) => {
    const stem = stemOf(slug, model)
    const logs = files.map((part) => load(fileIn(next, stem, part)))
    if (logs.includes(undefined)) return []
    const changed = files.map((part, i) => {
      const before = load(fileIn(folder, stem, part))
      return omitUndefined({ ...runOf(part), before: before && saidIn(before), after: saidIn(logs[i]!) })
    })
    const last = files.findLastIndex((part) => !part.endsWith('.judge'))
    return [omitUndefined({ model, files, run: runIdOf(logs[last]), changed })]
  })
}

export function hasProposal(folder: string, slug: string): boolean {
  return filesOfCase(join(folder, 'new'), slug).some((name) => name.endsWith('.json'))
}

/** Deletes the set that waits. */
export function dropProposal(folder: string, slug: string, model: string | undefined): void {
  const next = join(folder, 'new')
  const stem = stemOf(slug, model)
  rmSync(join(next, `${stem}.json`), { force: true })
  for (const part of partsIn(next, slug, model)) rmSync(fileIn(next, stem, part))
}

/** Puts a set in the place of the recordings that there are, which stay in `old`. Without a set only what is expected changes. */
export function acceptSet(
  folder: string,
  slug: string,
  set: RecordingSet | undefined,
  about: Omit<Replaced, keyof RecordingSet>,
): void {
  const old = join(folder, 'old')
  for (const name of filesOfCase(old, slug).toSorted(setsFirst)) rmSync(join(old, name))
  const { model } = set ?? {}
  const stem = stemOf(slug, model)
  const before = set === undefined ? [] : partsIn(folder, slug, model)
  mkdirSync(old, { recursive: true })
  for (const part of before) copyFileSync(fileIn(folder, stem, part), fileIn(old, stem, part))
  writeSet(join(old, `${slug}.json`), { ...(model !== undefined && { model }), files: before, ...about })
  if (set === undefined) return
  for (const part of set.files) renameSync(fileIn(join(folder, 'new'), stem, part), fileIn(folder, stem, part))
  for (const part of before) if (!set.files.includes(part)) rmSync(fileIn(folder, stem, part))
  dropProposal(folder, slug, model)
}

/** What can be taken back. */
export function replacedBy(folder: string, slug: string): Replaced | undefined {
  return setsIn(join(folder, 'old'), slug)[0]
}

/** The recordings that were replaced are back; those that replaced them wait again. */
export function undoSet(folder: string, slug: string, { model, files }: Replaced): void {
  const [next, old] = [join(folder, 'new'), join(folder, 'old')]
  const stem = stemOf(slug, model)
  if (files.length > 0) {
    const accepted = partsIn(folder, slug, model)
    mkdirSync(next, { recursive: true })
    for (const part of accepted) copyFileSync(fileIn(folder, stem, part), fileIn(next, stem, part))
    writeSet(join(next, `${stem}.json`), { ...(model !== undefined && { model }), files: accepted })
    for (const part of files) renameSync(fileIn(old, stem, part), fileIn(folder, stem, part))
    for (const part of accepted) if (!files.includes(part)) rmSync(fileIn(folder, stem, part))
  }
  for (const name of filesOfCase(old, slug).toSorted(setsFirst)) rmSync(join(old, name))
}

const setsFirst = (a: string, b: string) => Number(b.endsWith('.json')) - Number(a.endsWith('.json'))

function saidIn(entries: readonly Entry[]): Said {
  const { text, output, tools } = factsOf(entries)
  return { answer: text !== '' || output === undefined ? text : JSON.stringify(output, null, 2), tools }
}

export function runIdOf(entries: readonly Entry[] | undefined): string | undefined {
  const [start] = entries ?? []
  return start?.type === 'run-start' ? start.runId : undefined
}

function load(path: string): Entry[] | undefined {
  try {
    return loadRecording(path)
  } catch {
    // It is the log of no whole run.
    return undefined
  }
}

function writeSet(path: string, set: Replaced): void {
  writeFileSync(`${path}.tmp`, `${JSON.stringify(set)}\n`)
  renameSync(`${path}.tmp`, path)
}

/** The sets of a case. A file that is none, such as one that somebody has changed, counts as none. */
function setsIn(folder: string, slug: string): Replaced[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json') && name.split('.')[0] === slug)
    .toSorted()
    .flatMap((name) => {
      const set = readSet(join(folder, name))
      const isOf = name === `${slug}.json` || name === `${stemOf(slug, set?.model)}.json`
      return set !== undefined && isOf ? [set] : []
    })
}

function readSet(path: string): Replaced | undefined {
  try {
    const { model, files, expected, run } = parseJson(readFileSync(path, 'utf8')) as Record<keyof Replaced, unknown>
    const texts = [model, run, (expected as Replaced['expected'])?.before, (expected as Replaced['expected'])?.after]
    const isSet =
      texts.every((each) => each === undefined || typeof each === 'string') &&
      Array.isArray(files) &&
      files.length <= mostParts &&
      files.every((part) => typeof part === 'string' && isPart.test(part))
    return isSet ? omitUndefined({ model, files, expected, run } as Replaced) : undefined
  } catch {
    return undefined
  }
}
