/** Answers and stops runs in a store that servers share: one of them sees it, and goes on with the run. */
import type { CommandContext } from './context.ts'
import { MillraceClient } from '../client/client.ts'
import type { Store } from '../part/log.ts'
import { withoutCredentials, wordsOf } from '../part/error.ts'
import { createRegistry } from '../project/registry.ts'
import { secretValues } from '../project/secrets.ts'
import { createRuntime } from '../runtime/create-runtime.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { createHandler } from '../server/handler.ts'
import type { Backend } from './backend.ts'
import { printable } from './printable.ts'
import { openShared } from './shared-store.ts'

/** A runtime that executes nothing. */
function createPoster(context: CommandContext, store: Store): Runtime {
  const { env } = context
  const registry = createRegistry({}, env, { log: store.log })
  const agents = { get: () => undefined, list: () => [] }
  return createRuntime({ agents, registry, store, secrets: secretValues({}, env), postsOnly: true })
}

export async function stopElsewhere(context: CommandContext, store: Store, run: string): Promise<void> {
  await createPoster(context, store).stop(run, 'Stopped by request.')
}

export async function answerElsewhere(context: CommandContext, store: string, where: string): Promise<Backend> {
  const runtime = createPoster(context, await openShared(context, store))
  const handler = createHandler({
    runtime,
    authorize: () => true,
    // Who can write to the store can do so anyway.
    edit: true,
    protocol: 'cli',
    onError: (error) =>
      void context.stderr.write(`${printable(`error: ${runtime.redact(withoutCredentials(wordsOf(error)))}`)}\n`),
  })
  return {
    client: new MillraceClient({ url: 'http://localhost', fetch: (input, init) => handler(new Request(input, init)) }),
    isDurable: true,
    isElsewhere: true,
    where,
    agents: async () => ({ agents: [], errors: [] }),
    thread: async () => undefined,
    close: () => runtime.close(0),
  }
}
