/** undici's dispatchers: selects the one for requests to models. */
import type { Dispatcher } from './dispatch.ts'

/** The key that undici uses, both inside Node and as a package. */
const globalDispatcher = Symbol.for('undici.globalDispatcher.1')

/** ms that an idle connection is kept if the server sends no timeout. By default undici closes it after 4 seconds. */
const keepAliveTimeout = 60_000

let known: { given: Dispatcher; used: Dispatcher } | undefined

/**
 * The dispatcher of the process. Node's own one is replaced by one of the same kind that keeps idle connections for a minute, so that a pause
 * between two messages needs no new connection. Undefined on other platforms.
 */
export function findDispatcher(): Dispatcher | undefined {
  // Node creates the dispatcher when an undici global is first accessed.
  void globalThis.Headers
  const found = (globalThis as { [globalDispatcher]?: Partial<Dispatcher> })[globalDispatcher]
  if (typeof found?.dispatch !== 'function') return undefined
  const given = found as Dispatcher
  if (known?.given !== given) known = { given, used: isPlainAgent(given) ? withKeepAlive(given) : given }
  return known.used
}

function withKeepAlive(given: Dispatcher): Dispatcher {
  const Agent = given.constructor as new (options: { keepAliveTimeout: number }) => Dispatcher
  return new Agent({ keepAliveTimeout })
}

/** Whether it is an `Agent` without options and with its own method. Anything else was set up by a program. */
function isPlainAgent(given: Dispatcher): boolean {
  if (given.constructor.name !== 'Agent' || Object.hasOwn(given, 'dispatch')) return false
  const key = Object.getOwnPropertySymbols(given).find(({ description }) => description === 'options')
  const options = key && (given as unknown as Record<symbol, object>)[key]
  return options !== undefined && Object.values(options).every((value) => value === undefined || value === Infinity)
}
