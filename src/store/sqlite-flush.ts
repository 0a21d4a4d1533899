/** Flushes the WAL in the background, so that what was committed survives a power cut as well. */
import { closeSync, fdatasync, openSync } from 'node:fs'

const flushMs = 1000

type FlushFile = (file: number, done: (error: Error | null) => void) => void

/** Flushes a file to disk within `ms` after a write (default one second), in Node's thread pool. */
export function createFlusher(path: string, ms = flushMs, flushFile: FlushFile = fdatasync) {
  let file: number | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let flushing = false
  /** Whether there was a write that no running flush is certain to include. */
  let dirty = false
  let closed = false

  function flush(): void {
    timer = undefined
    flushing = true
    dirty = false
    try {
      file ??= openSync(path, 'r+')
      flushFile(file, over)
    } catch {
      over()
    }
  }

  // A failed flush is retried; the next checkpoint reports the failure.
  function over(error?: Error | null): void {
    flushing = false
    if (error) dirty = true
    if (!closed) return dirty ? later() : undefined
    if (file !== undefined) closeSync(file)
  }

  function later(): void {
    timer = setTimeout(flush, ms)
    timer.unref()
  }

  return {
    wrote() {
      dirty = true
      if (!flushing && timer === undefined) later()
    },
    close() {
      closed = true
      clearTimeout(timer)
      if (!flushing) over()
    },
  }
}
