/** Chooses runs by id, agent and thread, as their changes come. Runs need not exist yet. */
import type { Entry } from '../../part/entry.ts'
import type { Store } from '../../part/log.ts'

export interface RunChoice {
  runs: readonly string[] | undefined
  agents: readonly string[] | undefined
  threads: readonly string[] | undefined
}

/** Most answers that are kept. Others are looked up again. */
const most = 10_000

export function createRunFilter({ runs }: Pick<Store, 'runs'>, choice: RunChoice) {
  const [wanted, agents, threads] = [choice.runs, choice.agents, choice.threads].map((list) => list && new Set(list))
  const known = new Map<string, boolean>()

  function fits({ agent, threadId }: { agent: string; threadId: string }): boolean {
    return agents?.has(agent) !== false && threads?.has(threadId) !== false
  }

  /** `entries`: those that came together, of which the first may be the run's first. */
  return async (run: string, entries: readonly Entry[]): Promise<boolean> => {
    if (wanted?.has(run) === false) return false
    if (agents === undefined && threads === undefined) return true
    let answer = known.get(run)
    if (answer === undefined) {
      const [first] = entries
      const row = first?.type === 'run-start' ? first : await runs.get(run)
      answer = row !== undefined && fits(row)
      if (known.size >= most) known.delete(known.keys().next().value!)
      known.set(run, answer)
    }
    return answer
  }
}
