/**
 * Watches a folder by its path. The system watches a folder that it has found once: one that is removed and created again, a
 * link that leads elsewhere or a parent that is renamed would be missed, so what the path leads to is checked as well.
 */
import { statSync, watch, type FSWatcher } from 'node:fs'
import { basename, resolve } from 'node:path'

/** ms between two checks of the path: a `stat` each. */
const every = 500

/**
 * `onChange` gets the name of a file in the folder; null when anything may have changed, the folder itself included. Throws
 * what the system throws when the folder cannot be watched. Gives back how to stop.
 */
export function watchFolder(dir: string, onChange: (file: string | null) => void): () => void {
  let watcher: FSWatcher | undefined
  let watched: string | undefined
  let seen = identityOf(dir)

  function start(): void {
    watcher?.close()
    watcher = undefined
    watched = identityOf(dir)
    const started = watch(dir, (_, file) => {
      // An event of the folder itself carries its own name: it is gone, or has moved.
      if (file === basename(resolve(dir))) watched = undefined
      onChange(file)
    })
    started.on('error', () => {
      started.close()
      watched = undefined
    })
    watcher = started
  }

  function check(): void {
    const identity = identityOf(dir)
    const isNew = identity !== seen
    seen = identity
    if (identity !== undefined && identity !== watched) {
      try {
        start()
      } catch {
        // It has gone again, or the system has no watch left: the next check tries again.
      }
      onChange(null)
    } else if (isNew) onChange(null)
  }

  start()
  const timer = setInterval(check, every)
  timer.unref()
  return () => {
    clearInterval(timer)
    watcher?.close()
  }
}

/** A new folder may get the number of the old one: its age tells them apart. */
function identityOf(dir: string): string | undefined {
  try {
    const { dev, ino, birthtimeNs } = statSync(dir, { bigint: true })
    return `${dev}:${ino}:${birthtimeNs}`
  } catch {
    return undefined
  }
}
