/** Reads runs in a store that servers share. What they do with a stop, they see in it. */
import type { CommandContext } from './context.ts'
import type { Access } from './access.ts'
import { isServed, openShared } from './shared-store.ts'
import { fateOf, rowOf, storeAccess } from './store-access.ts'

export async function sharedAccess(context: CommandContext, url: string): Promise<Access> {
  const store = await openShared(context, url, { joins: false })
  let served: Promise<boolean> | undefined
  const hasServer = () => (served ??= isServed(store))
  return {
    ...storeAccess(store),
    async *read(run, after, follow) {
      await rowOf(store, run)
      const leave = new AbortController()
      const live = follow && (await hasServer()) ? { signal: leave.signal } : undefined
      try {
        for await (const batch of store.log.read(run, { after, ...live })) yield* batch
      } finally {
        leave.abort()
      }
    },
    fate: async ({ id, status }) => (status !== 'running' || (await hasServer()) ? undefined : fateOf(store, id)),
    async stop(run) {
      await (await import('./elsewhere.ts')).stopElsewhere(context, store, run)
      if (!(await hasServer())) context.stderr.write('no server shares the store now: the next one ends the run\n')
    },
  }
}
