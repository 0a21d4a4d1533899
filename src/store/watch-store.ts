/** Wraps a store to report when writes start to fail and when they work again. */
import { toMillraceError, type MillraceError } from '../part/error.ts'
import type { Store } from '../part/log.ts'

export interface WatchedStore {
  store: Store
  /** The current failure of writes, if any. */
  readonly failure: MillraceError | undefined
}

export interface WatchOptions {
  /** Called with the failure when writes start to fail, and with `undefined` when they succeed again. */
  onChange(failure: MillraceError | undefined): void
  /** Delay between test writes while the store fails, in ms. Default 1000. */
  pause?: number
}

/** As large as the first entries of a run: a disk with a few bytes left is still full. */
const testMessage = ' '.repeat(16 * 1024)

/**
 * Watches writes. After a failure, it attempts a test write every second, and only its success counts as recovery: small
 * writes may succeed on a full disk, and a load balancer that avoids a failing server sends no writes.
 */
export function watchStore(inner: Store, { onChange, pause = 1000 }: WatchOptions): WatchedStore {
  let failure: MillraceError | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let closed = false

  function failed(thrown: unknown): void {
    const error = toMillraceError(thrown)
    // A write that is rejected for another reason does not mean that the store fails.
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
        append: (run, epoch, entries, view) => watched(inner.log.append(run, epoch, entries, view)),
        claim: (run, epoch) => watched(inner.log.claim(run, epoch)),
        fork: (source, seq, run, at, user) => watched(inner.log.fork(source, seq, run, at, user)),
        post: (run, key, message) => watched(inner.log.post(run, key, message)),
        postAll: (run, messages) => watched(inner.log.postAll(run, messages)),
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
