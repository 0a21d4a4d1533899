/**
 * Finds connections that have gone without a word, because a machine or a network has: everything that is sent disappears, and the system
 * says so after many minutes only. Each is asked every second, and one that owes its answers is ended.
 */

export interface Link {
  readonly isReady: boolean
  sendCommand(args: string[]): Promise<unknown>
  destroy(): void
  connect(): Promise<unknown>
}

const askEvery = 1000
/** After so many questions a link that has not answered the first is ended. Counted, so that a process that was busy itself does not end all. */
const patience = 5

/**
 * Returns a function that ends it. `ended` is called after a link was ended; it connects again. `doubted`, every second, as long as a link
 * is broken or owes an answer that was asked for a second ago.
 */
export function watchLinks<L extends Link>(
  links: () => readonly L[],
  ended: () => void,
  doubted: (link: L) => void = () => undefined,
): () => void {
  const owing = new Map<Link, number>()

  async function ask(link: Link): Promise<void> {
    owing.set(link, 0)
    try {
      await link.sendCommand(['PING'])
    } catch {
      // An error is an answer; or the link has broken, and everybody knows.
    }
    owing.delete(link)
  }

  const timer = setInterval(() => {
    for (const link of links()) {
      const count = owing.get(link)
      if (!link.isReady || count !== undefined) doubted(link)
      if (!link.isReady) continue
      if (count === undefined) void ask(link)
      else if (count + 1 < patience) owing.set(link, count + 1)
      else {
        reconnect(link)
        ended()
      }
    }
  }, askEvery)
  timer.unref()
  return () => clearInterval(timer)
}

/** What was sent rejects. Only for a link that is ready: one that connects does so already. */
export function reconnect(link: Link): void {
  if (!link.isReady) return
  link.destroy()
  link.connect().catch(() => undefined)
}
