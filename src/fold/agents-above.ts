/**
 * Which agents lead to a path: the run's own, then those whose calls are open above it, outermost first. People who approve a call see this chain
 * (`desk > writer > publish`), so that they know who asks.
 */
import type { Entry } from '../part/entry.ts'
import { isUnder } from '../part/path.ts'
import { LazyMap } from './lazy-map.ts'

export interface AgentsAbove {
  /** Costs one comparison for entries other than starts and ends of steps. */
  apply(entry: Entry): void
  /** The chain at a path. The run's agent is always in it. */
  at(path: string): string[]
  /** The same as a field of a public object: absent where the run's own agent asks. */
  field(path: string): { agents?: string[] }
}

/** `agent`: the run's own, if its start is not applied. */
export function createAgentsAbove(agent = ''): AgentsAbove {
  return new Chain(agent)
}

/** A class, not closures: one for each open stream (decisions/0028). */
class Chain implements AgentsAbove {
  /** The agents of open calls, by path, in the order in which they started: outer ones first. */
  readonly #called = new LazyMap<string, string>()
  #agent: string

  constructor(agent: string) {
    this.#agent = agent
  }

  apply(entry: Entry): void {
    switch (entry.type) {
      case 'step-start':
        if (entry.agent !== undefined) this.#called.set(entry.step, entry.agent)
        break
      case 'step-finish':
        if (this.#called.size > 0) this.#called.delete(entry.step)
        break
      case 'step-reset':
        for (const path of this.#called.keys()) if (isUnder(path, entry.step)) this.#called.delete(path)
        break
      case 'run-start':
        this.#agent = entry.agent
        break
      case 'resume':
        // A fork may go on as another agent.
        this.#agent = entry.agent ?? this.#agent
        break
      default:
    }
  }

  at(path: string): string[] {
    const agents = [this.#agent]
    if (this.#called.size > 0) for (const [at, agent] of this.#called) if (isUnder(path, at)) agents.push(agent)
    return agents
  }

  field(path: string): { agents?: string[] } {
    const agents = this.at(path)
    return agents.length > 1 ? { agents } : {}
  }
}

/** The chain in words. */
export function chainWords(agents: readonly string[]): string {
  return agents.join(' > ')
}
