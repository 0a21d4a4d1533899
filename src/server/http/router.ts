/**
 * Hono, with its router for any set of routes. That one walks a tree for each request. Most requests go to a few paths without parameters, so
 * what was found for those is kept.
 */
import type { Hono } from 'hono'
import { HonoBase } from 'hono/hono-base'
import type { Result, Router } from 'hono/router'
import { TrieRouter } from 'hono/router/trie-router'
import type { BlankEnv, BlankSchema } from 'hono/types'

export function createApp(): Hono {
  return new HonoBase<BlankEnv, BlankSchema, '/'>({ router: new KeepingRouter() })
}

class KeepingRouter<T> implements Router<T> {
  readonly name = 'KeepingRouter'
  readonly #tree = new TrieRouter<T>()
  /** Paths of routes; those with parameters match no request. */
  readonly #paths = new Set<string>()
  /** By method and path: as many as there are routes. */
  readonly #found = new Map<string, Result<T>>()

  add(method: string, path: string, handler: T): void {
    this.#tree.add(method, path, handler)
    this.#paths.add(path)
    this.#found.clear()
  }

  match(method: string, path: string): Result<T> {
    const asked = `${method} ${path}`
    const known = this.#found.get(asked)
    if (known !== undefined) return known
    const found = this.#tree.match(method, path)
    if (found[0].length > 0 && this.#paths.has(path)) this.#found.set(asked, found)
    return found
  }
}
