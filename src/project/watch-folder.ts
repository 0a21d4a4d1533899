/**
 * Watches a folder by its path. `fs.watch` watches the folder that it first found. It would miss a folder that is removed and
 * created again, a symlink that is changed or a parent that is renamed, so the target of the path is polled as well.
 */
import { statSync, watch, type FSWatcher } from 'node:fs'
import { basename, resolve } from 'node:path'

/** ms between two checks of the path, one `stat` each. */
const every = 500

/**
 * Calls `onChange` with the name of a file in the folder, or with null when anything may have changed, including the folder
 * itself. Throws the system's error if the folder cannot be watched. Returns a function that stops watching.
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
      // An event with the folder's own name: it was removed or moved.
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
        // The folder is gone again, or the system's watch limit is reached: the next check tries again.
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

/** A new folder may reuse the inode number of the old one, so the time of creation is included. */
function identityOf(dir: string): string | undefined {
  try {
    const { dev, ino, birthtimeNs } = statSync(dir, { bigint: true })
    return `${dev}:${ino}:${birthtimeNs}`
  } catch {
    return undefined
  }
}
