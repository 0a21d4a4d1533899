/** Lists the programs that a run recorded elsewhere would start here if it continued, so that a person can decide about it. */
import type { Entry } from '../part/entry.ts'
import type { Log } from '../part/log.ts'
import { visible } from '../part/visible.ts'
import { readStored } from '../engine/stored-pipeline.ts'
import { programsOf } from '../pipeline/calls.ts'

/** The entry types that name programs. */
export const sayingTypes = ['run-start', 'resume', 'step-start', 'tool-call', 'tool-result'] as const

export interface ProgramsOptions {
  /** Only entries before this `seq`. */
  before?: number
  /** Also programs of the run's own text, not only of the agents that it called. */
  ownText: boolean
}

/** One line per program. `entries`: the run's first entries, up to the place at which it continues. */
export function programsIn(entries: readonly Entry[], { ownText }: Pick<ProgramsOptions, 'ownText'>): string[] {
  let own: string | undefined
  const called = new Map<string, string>()
  const calls = new Map<string, string>()
  for (const entry of entries) {
    if (entry.type === 'tool-call') calls.set(entry.toolCallId, `${entry.toolName} with ${shortened(entry.input)}`)
    else if (entry.type === 'tool-result' && entry.preliminary !== true) calls.delete(entry.toolCallId)
    if (entry.type === 'run-start' || entry.type === 'resume') own = entry.pipeline ?? own
    else if (entry.type === 'step-start' && entry.pipeline !== undefined) called.set(entry.step, entry.pipeline)
  }
  const texts: [where: string, text: string][] = ownText && own !== undefined ? [['', own]] : []
  for (const [step, text] of called) texts.push([`agent called by ${step}, `, text])
  const programs = texts.flatMap(([where, text]) => {
    const pipeline = readStored(text)
    if (pipeline === undefined) return [`${where}a text that this version cannot read`]
    return programsOf(pipeline).map((line) => where + line)
  })
  const open = [...calls.values()].map((call) => `a call of the recording that has no result yet: ${call}`)
  return [...programs, ...open].map(visible)
}

/** The same for a run in a log. */
export async function readPrograms(
  log: Pick<Log, 'read'>,
  run: string,
  { before = Infinity, ownText }: ProgramsOptions,
): Promise<string[]> {
  const entries: Entry[] = []
  for await (const batch of log.read(run, { types: sayingTypes, before })) entries.push(...batch)
  return programsIn(entries, { ownText })
}

function shortened(text: string): string {
  return text.length > 2000 ? `${text.slice(0, 2000)}…` : text
}
