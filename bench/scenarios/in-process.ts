/**
 * CPU per text delta without sockets, for each stage: the model's stream, the model loop, runs with either store, and each wire
 * behind the handler, compared with the AI SDK's `streamText` → UI message stream. Run with `npm run bench -- in-process`.
 */
import { join } from 'node:path'
import { core, startChild, type Child } from '../child.ts'
import type { Pattern } from '../in-process-model.ts'
import type { Measured } from '../in-process.ts'
import type { Bench, Result, ResultRow, Sample } from '../scenario.ts'
import { medianOf } from '../table.ts'

const protocols = {
  run: 'run, no reader',
  text: '… as text',
  ui: '… as UI',
  openai: '… as OpenAI',
  parts: '… as parts',
}
type Protocol = keyof typeof protocols
type Where = 'memory' | 'SQLite'
export type SubjectName =
  | 'ai-sdk-ui'
  | 'ai-sdk-ui-bytes'
  | 'model'
  | 'loop'
  | `${Protocol}-${Where}`
  | 'ui-SQLite-bytes'
  | 'ui-SQLite-package'

interface Subject {
  name: SubjectName
  title: string
  /** Most streams that it is measured with. Default: any number. */
  most?: number
}

const subjects: readonly Subject[] = [
  { name: 'ai-sdk-ui', title: 'AI SDK streamText → UI' },
  { name: 'model', title: 'reading the model’s stream' },
  { name: 'loop', title: 'Millrace’s model loop' },
  ...(['memory', 'SQLite'] as const).flatMap((where) =>
    (Object.keys(protocols) as Protocol[]).map((what): Subject => {
      const most = what === 'run' || what === 'ui' ? undefined : 50
      return { name: `${what}-${where}`, title: `${protocols[what]}, ${where}`, ...(most !== undefined && { most }) }
    }),
  ),
  { name: 'ui-SQLite-bytes', title: 'bytes of a model server → UI, SQLite' },
  { name: 'ui-SQLite-package', title: '… read by the AI SDK’s package' },
  { name: 'ai-sdk-ui-bytes', title: 'bytes of a model server → AI SDK → UI' },
]

const counts = [1, 50, 200]

interface Running extends ResultRow {
  subject: Subject
  child: Child
}

export async function inProcess(bench: Bench): Promise<Result[]> {
  return [await measurePattern(bench, 'burst'), await measurePattern(bench, 'turn')]
}

async function measurePattern(bench: Bench, pattern: Pattern): Promise<Result> {
  const { rounds = 3, seconds, deltas, warm } = bench.options
  const found = { slices: 0, fast: 0 }
  const rows: Running[] = []
  try {
    for (const subject of chosen(bench.options.subjects)) {
      const { name, title } = subject
      bench.say(`${pattern}: warming up ${name}`)
      const child = await startSubject()
      rows.push({ name, title, samples: Array.from({ length: rounds }, () => ({})), subject, child })
      await child.call('begin', { name, pattern, deltas })
      for (const count of counts) {
        const ms = 1000 * (count === 1 ? warm : warm / 3)
        if (count <= (subject.most ?? Infinity)) await child.call('warm', { count, ms }, 120_000 + ms)
      }
    }
    for (let round = 0; round < rounds; round++) {
      bench.say(`${pattern}: round ${round + 1} of ${rounds}`)
      for (let i = 0; i < rows.length; i++) {
        const { subject, child, samples } = rows[(i + round) % rows.length]!
        for (const count of counts) {
          if (count > (subject.most ?? Infinity)) continue
          const given = { count, ms: seconds * 150 }
          const { cpu, slices, fast } = await child.call<Measured>('measure', given, 120_000)
          samples[round]![`cpu${count}`] = cpu
          found.slices += slices
          found.fast += fast
        }
      }
    }
  } finally {
    await Promise.all(rows.map(({ child }) => child.stop()))
  }
  // Each sample is compared with the median of the reference: the processes have no rounds in common with it.
  const base: Sample = {}
  for (const count of counts) base[`cpu${count}`] = medianOf(rows[0]!, `cpu${count}`) ?? Number.NaN
  const arriving = pattern === 'burst' ? 'all deltas available at once' : 'one delta per stream in each event loop turn'
  return {
    scenario: `in-process ${pattern}`,
    title: `CPU µs per delta without sockets, ${arriving}; each row in a process of its own; medians of ${rounds} rounds`,
    reference: 'ai-sdk-ui',
    columns: counts.map((count) => {
      return { key: `cpu${count}`, title: `${count} stream${count === 1 ? '' : 's'}`, digits: 2, ratio: true }
    }),
    rows: rows.map(({ name, title, samples }) => ({ name, title, samples, beside: samples.map(() => base) })),
    notes: [
      `${found.fast} of ${found.slices} slices ran at full core speed, according to a short test before and after each. If a measurement has such slices, only they count.`,
      'With 200 streams, of the wires only UI is measured.',
    ],
  }
}

/** The first one is the reference. */
function chosen(names: readonly string[] | undefined): readonly Subject[] {
  const unknown = names?.find((name) => !subjects.some((each) => each.name === name))
  if (unknown === undefined) return subjects.filter(({ name }, i) => i === 0 || (names?.includes(name) ?? true))
  throw new Error(`There is no subject "${unknown}". Subjects: ${subjects.map(({ name }) => name).join(', ')}.`)
}

function startSubject(): Promise<Child> {
  const args = [join(import.meta.dirname, '../in-process.ts')]
  return startChild({ args, core: core.server, awaitReady: false, channel: true })
}
