/** What must be true of every run, whatever happened to the fleet. */
import type { RunView } from '../../src/fold/run-view.ts'
import type { RunRow } from '../../src/part/log.ts'
import { grammarFaults, only } from '../support/engine.ts'
import { parse, type Seen } from './client.ts'
import type { FaultKind } from './faults.ts'
import { answerTo, says } from './model.ts'

export interface Evidence {
  url: string
  seen: readonly Seen[]
  effects: readonly string[]
  kinds: ReadonlySet<FaultKind>
}

/** The faults that are found, each as one line; how often runs were taken over; and how runs ended. */
export async function judge({ url, seen, effects, kinds }: Evidence) {
  const faults: string[] = []
  const outcomes = new Map<string, number>()
  let resets = 0
  const threads = new Map<string, { name: string; began: number; ended: number }[]>()

  for (const { turn, ids, text } of seen) {
    const { name, agent, threadId } = turn
    const fail = (fault: string) => faults.push(`${name} (${[...ids].join()}): ${fault}`)
    const [id] = ids
    if (ids.size !== 1) fail('one idempotency key, several runs')
    const log = await (await fetch(`${url}/api/runs/${id}/events`)).text()
    const entries = parse(log)
    if (text !== log) fail(`the client has other bytes than the log, from byte ${differsAt(text, log)}`)
    const gap = entries.findIndex(({ seq }, i) => seq !== i + 1)
    if (gap !== -1) fail(`a gap: ${entries[gap]!.seq} stands at ${gap + 1}`)
    for (const fault of grammarFaults(entries)) fail(fault)
    const ends = only(entries, 'run-end')
    if (ends.length !== 1) fail(`${ends.length} times run-end`)
    const outcome = ends[0]?.outcome ?? 'none'
    outcomes.set(`${agent} ${outcome}`, (outcomes.get(`${agent} ${outcome}`) ?? 0) + 1)
    const reset = only(entries, 'step-reset').length
    resets += reset
    // Redis away is no reason to take a run over, and a deploy is none to end one.
    const isOwnerLost = kinds.has('kill') || kinds.has('stop')
    if (reset > 0 && !isOwnerLost) fail('it was begun again, though no owner was lost')
    const isInterrupted = outcome === 'interrupted' && agent === 'plain' && isOwnerLost
    // An instance that was paused between a run's place in its thread and its first entry: whoever is behind waits three seconds.
    const isOvertaken =
      outcome === 'aborted' && kinds.has('stop') && ends[0]?.error?.message.includes('not start in time')
    if (outcome !== 'completed' && !isInterrupted && !isOvertaken) {
      fail(`its outcome is ${outcome}: ${JSON.stringify(ends[0])}`)
    }
    if (outcome === 'completed') {
      const view = (await (await fetch(`${url}/api/runs/${id}`)).json()) as { text: string }
      if (!view.text.endsWith(answerTo(name))) fail(`its answer is not that of the model: ${view.text}`)
    }
    const [first, last] = [entries.find(({ type }) => type === 'step-start'), entries.at(-1)]
    if (first === undefined || last === undefined) continue
    const turns = threads.get(threadId) ?? []
    threads.set(threadId, turns)
    turns.push({ name, began: first.timestamp, ended: last.timestamp })
  }

  for (const turns of threads.values()) {
    const inOrder = turns.toSorted((a, b) => a.began - b.began)
    for (const [i, { name, began }] of inOrder.entries()) {
      const before = inOrder[i - 1]
      if (before !== undefined && began < before.ended) {
        faults.push(`${name} began ${before.ended - began} ms before ${before.name} of its thread had ended`)
      }
    }
  }
  const twice = effects.filter((effect, i) => effects.indexOf(effect) !== i)
  if (twice.length > 0) faults.push(`tools that ran twice: ${twice.join('; ')}`)

  const runs: RunRow[] = []
  for (let before = ''; ;) {
    const page = await (await fetch(`${url}/api/runs?limit=1000${before}`)).json()
    const { runs: rows } = page as { runs: RunRow[] }
    runs.push(...rows)
    if (rows.length < 1000) break
    before = `&before=${rows.at(-1)!.id}`
  }
  const known = new Set(seen.flatMap(({ ids }) => [...ids]))
  const listed = new Set(runs.map(({ id }) => id))
  for (const { id, status } of runs) {
    if (!known.has(id)) {
      // Its owner stopped before the response. If it has no content, the client's repeated request starts anew: then its turn has another run.
      const { messages, input } = (await (await fetch(`${url}/api/runs/${id}`)).json()) as RunView
      const hasAnother = seen.some(({ turn }) => JSON.stringify(input).includes(says(turn.name, turn.tools)))
      const isNobodys = status === 'interrupted' && messages.length === 0 && hasAnother
      if (!isNobodys) faults.push(`${id} (${status}) is a run that nobody was told of`)
    }
    if (known.has(id) && (status === 'running' || status === 'suspended')) faults.push(`${id} is listed as ${status}`)
  }
  for (const id of known) if (!listed.has(id)) faults.push(`${id} is not listed`)
  return { faults, resets, outcomes }
}

function differsAt(one: string, other: string): string {
  let at = 0
  while (at < one.length && one[at] === other[at]) at++
  return `${at}: ${JSON.stringify(one.slice(at, at + 120))} instead of ${JSON.stringify(other.slice(at, at + 120))}`
}
