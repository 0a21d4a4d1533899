/** Sets a flag of V8 while the process runs, by what its collections show. V8 reads some of its flags each time it uses them. */
import { totalmem } from 'node:os'
import { PerformanceObserver, type PerformanceEntry } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'

export type Given = Pick<NodeJS.Process, 'execArgv' | 'env' | 'constrainedMemory'>

/** `detail`: one kind and several flags of `NODE_PERFORMANCE_GC_…`. */
export type Collection = PerformanceEntry & { detail?: { kind?: number; flags?: number } }

export interface SteeredFlag {
  /** Of what the user gave the process, what takes precedence. */
  precedence: RegExp
  flag(on: boolean): string
  /** Called at once, and after the turn of the event loop in which there were collections. */
  isOn(collections: readonly Collection[]): boolean
}

/** Only for a process of our own. */
export function steerFlag({ execArgv, env }: Given, { precedence, flag, isOn }: SteeredFlag): void {
  if ([...execArgv, env['NODE_OPTIONS'] ?? ''].some((given) => precedence.test(given))) return
  let was: boolean | undefined
  const look = (collections: readonly Collection[]) => {
    const on = isOn(collections)
    if (on !== was) setFlagsFromString(flag(on))
    was = on
  }
  new PerformanceObserver((list) => look(list.getEntries())).observe({ entryTypes: ['gc'] })
  look([])
}

/** Bytes that the process may use. */
export function memoryOf({ constrainedMemory }: Given): number {
  return Math.min(totalmem(), constrainedMemory() || Infinity)
}
