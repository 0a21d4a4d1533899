/** A log of Millrace as a run: its entries as they are. One whose process crashed gets its end. */
import type { Entry } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import type { Part } from '../../part/part.ts'
import { noUsage } from '../../part/usage.ts'
import { createGrammar } from '../../fold/grammar.ts'
import { foldRun } from '../../fold/run-fold.ts'
import { viewOf } from '../../fold/read-view.ts'
import { readNdjson } from '../../store/ndjson.ts'
import type { ImportedRun } from './import-cli.ts'

/** Throws `bad-recording`, with the first fault. */
export function importNdjson(bytes: Buffer, name: string): ImportedRun {
  const { entries, faults } = readNdjson(chunksOf(bytes))
  const fold = foldRun()
  const grammar = createGrammar()
  const check = (entry: Entry) => {
    const fault = grammar.check(entry)
    if (fault !== undefined) throw bad(name, fault)
    fold.apply(entry)
  }
  // A crash may have cut the last line.
  const fault = faults.find(({ torn }) => !torn)
  if (fault !== undefined) throw bad(name, `line ${fault.line}: ${fault.message}`)
  entries.forEach(check)
  const { start } = fold
  if (start === undefined) throw bad(name, 'no entries')
  if (fold.end === undefined && !fold.open.suspended) {
    const { timestamp } = entries.at(-1)!
    const error = { code: 'interrupted', message: 'The recording ended before the run.' }
    const add = (step: string, part: Part) => {
      const entry = { seq: entries.length + 1, timestamp, step, ...part } as Entry
      entries.push(entry)
      check(entry)
    }
    for (const { step, part } of fold.open.closing({ now: timestamp, outcome: 'unavailable', error })) add(step, part)
    add('', { type: 'run-end', outcome: 'interrupted', usage: fold.usage ?? noUsage, error })
  }
  return { id: start.runId, entries, view: viewOf(fold) }
}

function bad(name: string, fault: string): MillraceError {
  return new MillraceError(
    'invalid-recording',
    `${name} is not a whole recording of a run: ${fault}. See: millrace verify`,
  )
}

function* chunksOf(bytes: Buffer): Generator<string> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const size = 1024 * 1024
  for (let at = 0; at < bytes.length; at += size) yield decoder.decode(bytes.subarray(at, at + size), { stream: true })
  yield decoder.decode()
}
