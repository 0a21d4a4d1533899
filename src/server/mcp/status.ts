/**
 * What a run does, in a few words for a person: `researcher: search`. A fold of the entries that begin and end steps, so it can go on from the last
 * entry that it has seen.
 */
import type { Entry } from '../../part/entry.ts'
import type { PartType } from '../../part/part.ts'

/** Types of entries that change it. */
export const statusTypes = [
  'run-start',
  'step-start',
  'step-finish',
  'step-reset',
  'request',
  'response',
] as const satisfies readonly PartType[]

export interface RunWords {
  apply(entry: Entry): void
  /** At most 120 characters. Empty until something has begun. */
  readonly words: string
  /** The agents that lead to a step, the run's own first. */
  agentsAt(path: string): string[]
}

interface Doing {
  agent?: string
  does?: string
}

const longest = 120

export function createRunWords(): RunWords {
  /** The open steps that say something, in the order in which they began. */
  const open = new Map<string, Doing>()
  const waits = new Map<string, string>()
  let root = ''

  /** An outer call has begun before those in it. */
  function agentsAt(path: string): string[] {
    const above = [...open].filter(([at]) => path === at || path.startsWith(`${at}/`))
    return [root, ...above.flatMap(([, { agent }]) => agent ?? [])]
  }

  return {
    apply(entry) {
      switch (entry.type) {
        case 'run-start':
          root = entry.agent
          return
        case 'step-start': {
          const { step, agent, toolName, kind } = entry
          if (agent !== undefined) open.set(step, { agent })
          else if (toolName !== undefined && kind !== 'approval') open.set(step, { does: toolName })
          else if (kind === 'model-call' || kind === 'task' || kind === 'custom')
            open.set(step, { does: nameOf(step, kind) })
          return
        }
        case 'step-finish':
          open.delete(entry.step)
          return
        case 'step-reset':
          for (const path of open.keys()) if (path.startsWith(`${entry.step}/`)) open.delete(path)
          return
        case 'request':
          waits.set(entry.requestId, waitingFor(entry))
          return
        case 'response':
          waits.delete(entry.requestId)
          return
        default:
      }
    },
    get words() {
      const [waiting] = [...waits.values()].slice(-1)
      const last = [...open].findLast(([, { does }]) => does !== undefined)
      const words = last === undefined ? waiting : `${agentsAt(last[0]).at(-1)}: ${last[1].does}`
      return (words ?? [...open.values()].findLast(({ agent }) => agent !== undefined)?.agent ?? root).slice(0, longest)
    },
    agentsAt,
  }
}

/** A model call is a step below that of the file, which has the name. */
function nameOf(path: string, kind: string): string {
  const names = path.split('/')
  return (kind === 'model-call' ? names.at(-2) : names.at(-1)) ?? path
}

/** `waits for an approval of deploy`. */
export function waitingFor(request: {
  kind: string
  toolName?: string | undefined
  message?: string | undefined
}): string {
  const words =
    request.kind === 'approval'
      ? `waits for an approval of ${request.toolName}`
      : request.kind === 'tool'
        ? `waits for the result of ${request.toolName}`
        : 'waits for an answer'
  return words.slice(0, longest)
}
