/** A run on the terminal: its answer on stdout as it comes, what it does on stderr, its questions to whoever is there. */
import type { EntryOf } from '../part/entry.ts'
import type { Answer } from '../part/part.ts'
import type { Run } from '../run/runtime.ts'
import type { Wire } from '../wire/wire.ts'
import { forStream } from './printable.ts'
import { createProgress } from './progress.ts'
import { writeOut } from './write-out.ts'

/** Resolves with the question's answer; called for one question at a time. */
export type Ask = (request: EntryOf<'request'>, signal: AbortSignal) => Promise<Answer>

/**
 * Prints the run to its end; gives whether the last line that it printed is still open. Without `ask` the run must have
 * been started so that it asks nobody.
 */
export async function followRun(run: Run, wire: Wire, ask?: Ask): Promise<boolean> {
  const { stdout, stderr } = process
  // The run is followed through its suspends.
  const encoder = wire.createEncoder({ resumedAt: Infinity })
  let isLineOpen = false
  let isAsking = false
  const progress = createProgress(stderr, () => !(isLineOpen && stdout.isTTY) && !isAsking)
  const open = new Map<string, AbortController>()
  let asked: Promise<void> = Promise.resolve()

  async function question(request: EntryOf<'request'>, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    progress.clear()
    if (isLineOpen && stdout.isTTY) {
      stdout.write('\n')
      isLineOpen = false
    }
    isAsking = true
    try {
      await run.answer(request.requestId, await ask!(request, signal))
    } catch {
      // The run has ended without an answer, or whoever was at the terminal has closed it.
      if (!signal.aborted) await run.stop('No answer was given on the terminal.')
    } finally {
      isAsking = false
    }
  }

  for await (const entry of run.parts) {
    progress.apply(entry)
    if (entry.type === 'request' && ask !== undefined) {
      const closed = new AbortController()
      open.set(entry.requestId, closed)
      asked = asked.then(() => question(entry, closed.signal))
    } else if (entry.type === 'response') open.get(entry.requestId)?.abort()
    const out = encoder.encode(entry)
    if (out === '') continue
    progress.clear()
    isLineOpen = !out.endsWith('\n')
    await writeOut(forStream(out, stdout))
  }
  progress.clear()
  await asked
  return isLineOpen
}
