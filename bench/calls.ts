/** Calls from the benchmark to its processes, over Node's IPC channel. */
interface Call {
  id: number
  command: string
  args: unknown
}

export type Reply = { id: number; result?: unknown; error?: string }

/** Answers calls from the parent process. Exits when the parent does. */
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
  // Ignore send errors: if the parent is gone, `disconnect` ends this process.
  process.send?.(reply, undefined, undefined, () => undefined)
}

/** CPU time used by this process, in seconds. */
export function ownCpu(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}
