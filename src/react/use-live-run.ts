/** One run in components: those that show the same run share one connection. */
import { useSyncExternalStore } from 'react'
import type { MillraceClient } from '../client/client.ts'
import { createLiveRun, type LiveRun, type LiveRunState } from '../client/live-run.ts'
import { useClient } from './client-context.ts'

const runs = new WeakMap<MillraceClient, Map<string, LiveRun>>()

/** The run as far as it has come. The component is drawn again when that changes, at most once per frame. */
export function useLiveRun(runId: string, given?: MillraceClient): LiveRunState {
  const run = sharedRun(useClient(given), runId)
  return useSyncExternalStore(run.subscribe, run.getState, run.getState)
}

function sharedRun(client: MillraceClient, runId: string): LiveRun {
  // A server draws a run once and is never told to forget it.
  if (globalThis.document === undefined) return createLiveRun({ client, runId })
  const ofClient = runs.get(client) ?? new Map<string, LiveRun>()
  runs.set(client, ofClient)
  const known = ofClient.get(runId)
  if (known !== undefined) return known
  const made = createLiveRun({ client, runId })
  let readers = 0
  let hold: (() => void) | undefined
  const shared: LiveRun = {
    ...made,
    subscribe(changed) {
      readers++
      const leave = made.subscribe(changed)
      hold ??= made.subscribe(() => undefined)
      return () => {
        leave()
        readers--
        // React's strict mode leaves and comes back at once: that is no reason to connect again.
        setTimeout(() => {
          if (readers > 0) return
          hold?.()
          hold = undefined
          if (ofClient.get(runId) === shared) ofClient.delete(runId)
        })
      }
    },
  }
  ofClient.set(runId, shared)
  return shared
}
