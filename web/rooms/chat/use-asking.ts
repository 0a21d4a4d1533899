/** Asking in a chat: behind what is shown of it, or anew at an earlier place. */
import { useEffect, useMemo, useRef } from 'react'
import type { Message } from '../../../src/part/message.ts'
import { isActive } from './turn.ts'
import type { Chat } from './use-chat.ts'

/** The same object as long as the chat is one of the same kind. */
export interface Asking {
  say(messages: readonly Message[], values: Record<string, unknown>): void
  /** What a run was asked once more, or something else in its place: another branch. Nothing where the client keeps the history. */
  again(runId: string, asked?: readonly Message[]): void
}

/** `onAsked`: something was sent. */
export function useAsking(chat: Chat, isLinear: boolean, onAsked: () => void): Asking {
  const latest = useRef({ chat, onAsked })
  useEffect(() => {
    latest.current = { chat, onAsked }
  })
  return useMemo(() => {
    const shownTurns = () => latest.current.chat.turns.map(({ turn }) => turn)
    const send = (...args: Parameters<Chat['say']>) => {
      latest.current.chat.say(...args)
      latest.current.onAsked()
    }
    return {
      say(messages, values) {
        const before = shownTurns()
        const shown = before.at(-1)?.runId
        // On an older branch the conversation goes on from what is shown.
        const isOld = !isLinear && shown !== undefined && shown !== latest.current.chat.thread.runs.at(-1)?.runId
        send(messages, values, isOld ? { previousRunId: shown, before } : undefined)
      },
      again(runId, asked) {
        const turns = shownTurns()
        const at = turns.findIndex((turn) => turn.runId === runId)
        const turn = turns[at]
        if (turn === undefined || isLinear || isActive(turn)) return
        const from = { previousRunId: turn.previousRunId ?? null, before: turns.slice(0, at) }
        send(asked ?? turn.asked, { ...turn.input }, from)
      },
    }
  }, [isLinear])
}
