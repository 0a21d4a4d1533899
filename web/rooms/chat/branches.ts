/** Which runs of a thread are shown: one path through the tree that `previousRunId` makes of them. */

export interface Node {
  runId: string
  previousRunId?: string | undefined
}

export interface BranchPoint {
  runId: string
  /** The runs that answer the same place of the conversation, itself among them, oldest first. */
  siblings: readonly string[]
}

/**
 * From the first run that is known to the newest one, or to the newest below `tip`. `runs`: oldest first. `isLinear`: the client keeps
 * the history, so that runs do not tell what they continue.
 */
export function pathOf(
  runs: readonly Node[],
  { tip, isLinear }: { tip?: string | undefined; isLinear: boolean },
): BranchPoint[] {
  if (isLinear) return runs.map(({ runId }) => ({ runId, siblings: [runId] }))
  const nodes = new Map(runs.map((run) => [run.runId, run]))
  const children = Map.groupBy(runs, ({ previousRunId = '' }) => previousRunId)
  const chosen = tip === undefined ? undefined : nodes.get(tip)
  let at = chosen === undefined ? runs.at(-1) : newestBelow(chosen, children)
  const path: BranchPoint[] = []
  const seen = new Set<string>()
  while (at !== undefined && !seen.has(at.runId)) {
    seen.add(at.runId)
    const siblings = children.get(at.previousRunId ?? '')!.map(({ runId }) => runId)
    path.unshift({ runId: at.runId, siblings })
    at = nodes.get(at.previousRunId ?? '')
  }
  return path
}

function newestBelow(from: Node, children: ReadonlyMap<string, Node[]>): Node {
  const seen = new Set<string>()
  for (let at = from; ;) {
    seen.add(at.runId)
    const next = children.get(at.runId)?.at(-1)
    if (next === undefined || seen.has(next.runId)) return at
    at = next
  }
}
