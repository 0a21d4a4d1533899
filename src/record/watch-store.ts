/** A store that says when it begins to fail, and when it works again. */
import { toMillraceError, type MillraceError } from '../part/error.ts'
import type { Store } from '../part/log.ts'

export interface WatchedStore {
  store: Store
  /** Why writes fail, while they do. */
  readonly failure: MillraceError | undefined
}

export interface WatchOptions {
  /** Called with each change: with the failure, then with nothing once writes succeed again. */
  onChange(failure: MillraceError | undefined): void
  /** ms from one test write to the next while the store fails. */
  pause?: number
}

/** As long as the first entries of a run: a disk that has room for one byte more is still full. */
const testMessage = ' '.repeat(16 * 1024)

/**
 * Watches the writes. Once one has failed, a test write is tried every second, and only its success counts: small writes may
 * succeed on a full disk, and a load balancer that avoids a failing server sends nothing that could show its recovery.
 */
export function watchStore(inner: Store, { onChange, pause = 1000 }: WatchOptions): WatchedStore {
  let failure: MillraceError | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let closed = false

  function failed(thrown: unknown): void {
    const error = toMillraceError(thrown)
    // What a store refuses for good reason says nothing about the store.
    if (failure !== undefined || closed || error.code !== 'store-failed') return
    failure = error
    onChange(error)
    schedule()
  }

  function schedule(): void {
    timer = setTimeout(() => void test(), pause)
    timer.unref?.()
  }

  async function test(): Promise<void> {
    try {
      await inner.log.post('store-test', crypto.randomUUID(), testMessage)
    } catch {
      if (!closed) schedule()
      return
    }
    if (closed) return
    failure = undefined
    onChange(undefined)
  }

  function watched<T>(write: Promise<T>): Promise<T> {
    write.catch(failed)
    return write
  }

  return {
    store: {
      ...inner,
      log: {
        ...inner.log,
        append: (run, epoch, entries) => watched(inner.log.append(run, epoch, entries)),
        post: (run, key, message) => watched(inner.log.post(run, key, message)),
      },
      close() {
        closed = true
        clearTimeout(timer)
        return inner.close()
      },
    },
    get failure() {
      return failure
    },
  }
}
