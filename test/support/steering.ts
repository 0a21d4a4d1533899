/** For tests of messages that are sent into a running turn. */
import type { InboxMessage, Store } from '../../src/part/log.ts'

/** Shows when the owner of a run has read a message of its inbox: only then can the next model call be told it. */
export function watchInbox() {
  const read = new Set<string>()
  let wake = () => undefined as void
  const wrapStore = (store: Store): Store => ({
    ...store,
    log: {
      ...store.log,
      inbox(run, options) {
        const messages = store.log.inbox(run, options)
        if (options?.signal === undefined) return messages
        return {
          [Symbol.asyncIterator]() {
            const inner = messages[Symbol.asyncIterator]()
            return {
              async next(): Promise<IteratorResult<InboxMessage, undefined>> {
                const next = await inner.next()
                if (next.done !== true) {
                  read.add(next.value.key)
                  wake()
                }
                return next as IteratorResult<InboxMessage, undefined>
              },
              return: () => inner.return?.() as Promise<IteratorResult<InboxMessage, undefined>>,
            }
          },
        } as ReturnType<Store['log']['inbox']>
      },
    },
  })
  return {
    wrapStore,
    async heard(...ids: string[]): Promise<void> {
      while (!ids.every((id) => read.has(`message:${id}`))) await new Promise<void>((resolve) => void (wake = resolve))
      // The owner handles it in the same tick.
      await Promise.resolve()
    },
  }
}

/** What the model was told, as `role: text`, without system messages. */
export function toldWords(prompt: readonly { role: string; content: unknown }[]): string[] {
  return prompt
    .filter(({ role }) => role !== 'system')
    .map(({ role, content }) => {
      const parts =
        typeof content === 'string' ? [{ type: 'text', text: content }] : (content as Record<string, unknown>[])
      return `${role}: ${parts.map((part) => part['text'] ?? part['toolName'] ?? part['type']).join('')}`
    })
}
