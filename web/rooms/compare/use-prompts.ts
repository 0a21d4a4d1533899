/** The prompts of pairs of model calls, read in order up to the first pair that differs; the others when they are asked for. */
import { useEffect, useState } from 'react'
import type { OutlineStep } from '../../../src/fold/outline-item.ts'
import type { WholePrompt } from '../../../src/fold/whole-prompt.ts'
import { api } from '../../data/client.ts'
import type { Pair } from '../../kit/diff/align.ts'
import { isSame, promptParts, type PromptPart } from './prompt-parts.ts'

/** Prompts grow with their conversation: the rest of a long run is not read unasked. */
const mostUnasked = 20

export interface ReadPrompts {
  /** By the place of the pair. Absent: not read yet. */
  parts: ReadonlyMap<number, readonly PromptPart[]>
  /** The first pair that differs, as far as they were read. */
  first: number | undefined
  error: unknown
}

export function usePrompts(
  a: string,
  b: string,
  pairs: readonly Pair<OutlineStep>[],
  asked: ReadonlySet<number>,
): ReadPrompts {
  const [parts, setParts] = useState<ReadonlyMap<number, readonly PromptPart[]>>(new Map())
  const [error, setError] = useState<unknown>()
  const first = pairs.findIndex((_, i) => parts.get(i)?.some((part) => !isSame(part)) === true)
  const isUnasked = (i: number) => first < 0 && i < mostUnasked
  const next = error === undefined ? pairs.findIndex((_, i) => !parts.has(i) && (asked.has(i) || isUnasked(i))) : -1
  const [x, y] = pairs[next] ?? []
  const [ofA, ofB] = [x?.path, y?.path]
  useEffect(() => {
    if (next < 0) return
    const leave = new AbortController()
    const { signal } = leave
    Promise.all([readPrompt(a, ofA, signal), readPrompt(b, ofB, signal)]).then(
      ([left, right]) => setParts((before) => new Map(before).set(next, promptParts(left, right))),
      (fault: unknown) => !signal.aborted && setError(fault),
    )
    return () => leave.abort()
  }, [a, b, next, ofA, ofB])
  return { parts, first: first < 0 ? undefined : first, error }
}

async function readPrompt(
  run: string,
  path: string | undefined,
  signal: AbortSignal,
): Promise<WholePrompt | undefined> {
  if (path === undefined) return undefined
  return api<WholePrompt>(`/api/runs/${encodeURIComponent(run)}/prompt?step=${encodeURIComponent(path)}`, { signal })
}
