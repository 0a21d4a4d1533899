/** Readers of inboxes. A message notifies a waiting reader of new entries; their content is read from the list. */
import type { InboxMessage } from '../../part/log.ts'
import type { Notifier } from '../notifier.ts'
import { decodeMessage } from '../encode.ts'
import type { Puller } from '../follow.ts'
import { storeDamaged } from '../store-error.ts'
import type { Channels } from './channels.ts'
import type { RedisConnection } from './connection.ts'
import { messageKey } from './keys.ts'

interface Box {
  /** The known number of messages. */
  count: number
  isLive: boolean
  ready: Promise<void>
  readers: number
  heard: number
}

/** Polling interval of an inbox without notifications, in ms. */
const silence = 2000
const pageLength = 100

export function createInboxes({
  channels,
  connection,
  bell,
}: {
  channels: Channels
  connection: RedisConnection
  bell: Notifier
}) {
  const { keys, ask } = connection
  const boxes = new Map<string, Box>()
  const timer = setInterval(lookAtSilent, silence / 2)
  timer.unref()

  function hear(inbox: string, box: Box, count: number): void {
    box.heard = Date.now()
    if (count <= box.count) return
    box.count = count
    bell.notify(inbox)
  }

  async function look(inbox: string, box: Box): Promise<void> {
    box.heard = Date.now()
    const key = keys.messages(inbox)
    hear(inbox, box, Number(await ask(`read the inbox of run ${inbox}`, key, ['LLEN', key])))
  }

  function lookAtAll(since = Infinity): void {
    for (const [inbox, box] of boxes) if (box.isLive && box.heard < since) look(inbox, box).catch(() => undefined)
  }

  function lookAtSilent(): void {
    lookAtAll(Date.now() - silence)
  }

  /** The channel may belong to a newer box by now. */
  function drop(inbox: string, box: Box): void {
    if (boxes.get(inbox) !== box) return
    boxes.delete(inbox)
    void channels.close(keys.bell(inbox))
  }

  async function open(inbox: string, box: Box): Promise<void> {
    try {
      await channels.open(keys.bell(inbox), (count) => hear(inbox, box, Number(count)))
      await look(inbox, box)
      box.isLive = true
    } catch (error) {
      drop(inbox, box)
      throw error
    }
  }

  function join(inbox: string): Box {
    let box = boxes.get(inbox)
    if (box === undefined) {
      box = { count: 0, isLive: false, ready: Promise.resolve(), readers: 0, heard: Date.now() }
      boxes.set(inbox, box)
      box.ready = open(inbox, box)
      box.ready.catch(() => undefined)
    }
    box.readers++
    return box
  }

  async function read(inbox: string, after: number): Promise<InboxMessage[]> {
    const key = keys.messages(inbox)
    const range = ['LRANGE', key, String(after), String(after + pageLength - 1)]
    const texts = (await ask(`read the inbox of run ${inbox}`, key, range)) as string[]
    return texts.map((text, i) => {
      const end = text.indexOf('\n')
      try {
        const message = decodeMessage(text.slice(text.indexOf('\n', end + 1) + 1))
        return { n: after + i + 1, key: messageKey(text.slice(0, end)), message }
      } catch {
        throw storeDamaged(`cannot read the inbox of run ${inbox}`, `message ${after + i + 1} is no JSON`)
      }
    })
  }

  return {
    reader(inbox: string, after = 0, signal?: AbortSignal): Puller<InboxMessage> {
      let n = after
      let page: InboxMessage[] = []
      let box: Box | undefined

      function next() {
        const value = page.shift()!
        n = value.n
        return { value }
      }

      return {
        pull() {
          if (page.length > 0) return next()
          if (signal !== undefined) {
            box ??= join(inbox)
            if (!box.isLive) return box.ready.then(() => 'again' as const)
            if (n >= box.count) return 'wait'
          }
          return read(inbox, n).then((found) => {
            page = found
            if (found.length > 0) return next()
            // Redis has lost announced messages: their sender posts them again.
            if (box) box.count = Math.min(box.count, n)
            return box === undefined ? 'end' : 'again'
          })
        },
        leave() {
          if (box !== undefined && --box.readers === 0) drop(inbox, box)
        },
      }
    },
    lookAtAll: () => lookAtAll(),
    end: () => clearInterval(timer),
  }
}
