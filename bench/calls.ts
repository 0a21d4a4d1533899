/** Calls from the benchmark to its processes, over Node's own channel. */
interface Call {
  id: number
  command: string
  args: unknown
}

export type Reply = { id: number; result?: unknown; error?: string }

/** Answers the calls of the process that started this one, and ends with it. */
export function answerCalls(commands: Record<string, (args: never) => unknown>): void {
  process.on('message', (message) => {
    const { id, command, args } = message as Call
    const handle = commands[command] as ((given: unknown) => unknown) | undefined
    void (async () => {
      try {
        if (handle === undefined) throw new Error(`there is no command "${command}"`)
        send({ id, result: await handle(args) })
      } catch (error) {
        send({ id, error: error instanceof Error ? error.message : String(error) })
      }
    })()
  })
  process.on('disconnect', () => process.exit())
}

function send(reply: Reply): void {
  // The other side may have gone meanwhile: then `disconnect` ends this process.
  process.send?.(reply, undefined, undefined, () => undefined)
}

/** Seconds of CPU that this process has used. */
export function ownCpu(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}
