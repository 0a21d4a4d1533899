/**
 * How many agent tools of a run work at the same time (`limits.parallelAgents`). An agent that waits, for a person or for agents that it has called
 * itself, gives its place to others meanwhile: otherwise agents that wait for a place could wait for each other.
 */
export interface AgentSlots {
  /** Resolves when there is a place. Rejects with the signal's reason. */
  take(signal: AbortSignal): Promise<AgentSlot>
}

/** The place of one agent call. */
export interface AgentSlot {
  /** The agent begins to wait. Its place is free until it has been resumed as often as it was paused. */
  pause(): void
  /** Resolves when it has a place again. */
  resume(): Promise<void>
  release(): void
}

export function createAgentSlots(size: number): AgentSlots {
  let free = size
  const waiting: (() => void)[] = []

  function give(): void {
    const next = waiting.shift()
    if (next === undefined) free++
    else next()
  }

  async function occupy(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (free > 0) {
      free--
      return
    }
    const turn = Promise.withResolvers<void>()
    const leave = () => {
      const at = waiting.indexOf(turn.resolve)
      if (at >= 0) waiting.splice(at, 1)
      turn.reject(signal.reason)
    }
    waiting.push(turn.resolve)
    signal.addEventListener('abort', leave, { once: true })
    try {
      await turn.promise
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  return {
    async take(signal) {
      await occupy(signal)
      let pauses = 0
      let isHeld = true
      let isOver = false
      let returning: Promise<void> | undefined
      return {
        pause() {
          pauses++
          if (!isHeld) return
          isHeld = false
          give()
        },
        async resume() {
          pauses--
          if (pauses > 0 || isHeld) return
          // Two that go on at once need the place once.
          returning ??= occupy(signal).then(() => {
            if (pauses > 0 || isOver) give()
            else isHeld = true
          })
          try {
            await returning
          } finally {
            returning = undefined
          }
        },
        release() {
          if (isHeld) give()
          isHeld = false
          isOver = true
        },
      }
    },
  }
}
