/** What of an entry counts when two runs are compared. Ids count by their order: the third block of one is the third of the other. */
import type { Entry } from '../../part/entry.ts'
import type { Delta } from './texts.ts'

/** Fields that are others in every run: where it runs, when, how long, under which names, and how its texts are cut. */
const ignored: ReadonlySet<string> = new Set([
  'seq',
  'firstSeq',
  'timestamp',
  'runId',
  'threadId',
  'parentRunId',
  'previousRunId',
  'forkedFrom',
  'foreign',
  'labels',
  'wireOptions',
  'traceparent',
  'protocol',
  'duration',
  'deadline',
  'responseTimestamp',
  'delay',
  'providerMetadata',
])

/** Fields that name something within the run. */
const names: ReadonlySet<string> = new Set(['id', 'toolCallId', 'providerCallId', 'requestId'])

/** The fields of an entry that count, as JSON. */
export type Comparable = ReadonlyMap<string, string>

export interface Comparer {
  fields(entry: Entry): Comparable
  /** The block of a delta. */
  blockOf(entry: Delta): string
}

export function createComparer(): Comparer {
  const numbers = new Map<string, number>()
  const numberOf = (id: string) => {
    let number = numbers.get(id)
    if (number === undefined) numbers.set(id, (number = numbers.size + 1))
    return number
  }
  return {
    fields(entry) {
      const found = new Map<string, string>()
      for (const [key, value] of Object.entries(entry)) {
        if (ignored.has(key)) continue
        found.set(key, textOf(key, value, numberOf))
      }
      return found
    },
    blockOf: ({ type, step, id }) => `${type}\n${step}\n${numberOf(id)}`,
  }
}

/** Ids are those of the entry, those that a `suspend` lists, and those of the calls in the messages of a prompt. */
function textOf(key: string, value: unknown, numberOf: (id: string) => number): string {
  if (typeof value === 'string' && names.has(key)) return String(numberOf(value))
  if (key === 'requests' && Array.isArray(value)) return JSON.stringify(value.map((id) => numberOf(String(id))))
  if (key !== 'messages') return JSON.stringify(value) ?? ''
  return JSON.stringify(value, (name, inner: unknown) =>
    name === 'toolCallId' && typeof inner === 'string' ? numberOf(inner) : inner,
  )
}
