/** The usage of a run so far: by model, by step of the pipeline and by agent. A fold over `usage` entries; others cost one comparison. */
import type { Entry, EntryOf } from '../part/entry.ts'
import { LazyMap, LazySet } from './lazy-map.ts'
import { parentPath } from '../part/path.ts'
import { addUsage, type Usage } from '../part/usage.ts'

/** The usage of some model calls. An unknown price is not 0: then there is no `cost`. */
export interface Used {
  /** Model calls, and runs of CLI agents. */
  calls: number
  usage: Usage
  /** In USD; absent if the price of any call is unknown. */
  cost?: number
  /** In USD: the cost of the calls with a known price. */
  knownCost: number
  /** How many usage reports have no known price. */
  unpriced: number
}

/** The usage of one model. */
export interface UsedByModel extends Used {
  model: string
}
/** The usage of one step of the pipeline, with everything inside it. */
export interface UsedByStep extends Used {
  step: string
}
/** The usage of one agent, without the agents that it called. */
export interface UsedByAgent extends Used {
  agent: string
}

/** The usage of a run. */
export interface UsedByAll {
  usageByModel: UsedByModel[]
  usageByStep: UsedByStep[]
  usageByAgent: UsedByAgent[]
}

export interface UsageFold {
  apply(entry: Entry): void
  read(): UsedByAll
}

export function createUsageFold(): UsageFold {
  return new Sums()
}

/** A class, not closures: one for each open stream (decisions/0028). */
class Sums implements UsageFold {
  readonly #models = new LazyMap<string, Used>()
  readonly #steps = new LazyMap<string, Used>()
  readonly #agents = new LazyMap<string, Used>()
  /** The agents that were called, by the path of the call. */
  readonly #called = new LazyMap<string, string>()
  readonly #counted = new LazySet<string>()
  #runAgent = ''

  apply(entry: Entry): void {
    if (entry.type === 'usage') this.#count(entry)
    else if (entry.type === 'step-start') {
      if (entry.agent !== undefined) this.#called.set(entry.step, entry.agent)
    } else if (entry.type === 'run-start') this.#runAgent = entry.agent
  }

  read(): UsedByAll {
    return {
      usageByModel: [...this.#models].map(([model, used]) => ({ model, ...shown(used) })),
      usageByStep: [...this.#steps].map(([step, used]) => ({ step, ...shown(used) })),
      usageByAgent: [...this.#agents].map(([agent, used]) => ({ agent, ...shown(used) })),
    }
  }

  #agentAt(path: string): string {
    for (let at = path; this.#called.size > 0 && at !== ''; at = parentPath(at)) {
      const agent = this.#called.get(at)
      if (agent !== undefined) return agent
    }
    return this.#runAgent
  }

  #count(entry: EntryOf<'usage'>): void {
    const { step, model } = entry
    add(this.#models, model, entry, this.#isNew(`${model}\n${step}`))
    const isCall = this.#isNew(step)
    add(this.#steps, step.split('/', 2).join('/'), entry, isCall)
    add(this.#agents, this.#agentAt(step), entry, isCall)
  }

  /** Whether this call is new: a CLI agent reports its usage in pieces, and an attempt after a crash is the same step. */
  #isNew(key: string): boolean {
    const isNew = !this.#counted.has(key)
    this.#counted.add(key)
    return isNew
  }
}

function add(
  all: LazyMap<string, Used>,
  key: string,
  entry: Pick<EntryOf<'usage'>, 'usage' | 'cost'>,
  isCall: boolean,
): void {
  const before = all.get(key)
  const { cost } = entry
  all.set(key, {
    calls: (before?.calls ?? 0) + (isCall ? 1 : 0),
    usage: addUsage(before?.usage, entry.usage),
    knownCost: (before?.knownCost ?? 0) + (cost ?? 0),
    unpriced: (before?.unpriced ?? 0) + (cost === undefined ? 1 : 0),
  })
}

export function sumUsed(all: readonly Used[]): Used {
  const sum = { calls: 0, usage: undefined as Usage | undefined, knownCost: 0, unpriced: 0 }
  for (const { calls, usage, knownCost, unpriced } of all) {
    sum.calls += calls
    sum.usage = addUsage(sum.usage, usage)
    sum.knownCost += knownCost
    sum.unpriced += unpriced
  }
  return shown({ ...sum, usage: sum.usage ?? { source: 'reported' } })
}

function shown({ calls, usage, knownCost, unpriced }: Used): Used {
  return { calls, usage, ...(unpriced === 0 ? { cost: knownCost } : undefined), knownCost, unpriced }
}
