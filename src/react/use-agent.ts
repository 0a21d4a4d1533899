/** A conversation with an agent in a component. */
import { useEffect, useState, useSyncExternalStore } from 'react'
import { createAgentSession } from '../client/agent-session.ts'
import type { MillraceClient } from '../client/client.ts'
import type { AgentSession, SessionOptions, SessionState } from '../client/session-state.ts'
import { useClient } from './client-context.ts'

/** Options of `useAgent`. Tools, `onConfirm` and `input` may change with each render; another agent or thread is another conversation. */
export type UseAgentOptions = Omit<SessionOptions, 'client'> & {
  /** Default: that of `MillraceProvider`, else the server that the page comes from. */
  client?: MillraceClient
}

/** The conversation as it is now, and its actions. The functions stay the same. */
export type UsedAgent = SessionState &
  Pick<AgentSession, 'send' | 'stop' | 'answer' | 'regenerate' | 'edit' | 'reload'> & {
    /** For other components, by `useAgentSession`. */
    session: AgentSession
  }

/**
 * The messages of a conversation as they come, its open requests, and its actions. With a `threadId` it is there again
 * after a reload, with the answer that is still being written.
 */
export function useAgent({ client: given, agent, threadId, tools, onConfirm, input }: UseAgentOptions): UsedAgent {
  const client = useClient(given)
  const make = () => ({
    client,
    agent,
    threadId,
    session: createAgentSession({ client, agent, threadId, tools, onConfirm, input }),
  })
  const [current, keep] = useState(make)
  let held = current
  const isSameThread = threadId === held.threadId || threadId === held.session.getState().threadId
  if (held.client !== client || held.agent !== agent || !isSameThread) keep((held = make()))
  const { session } = held
  useEffect(() => session.set({ tools, onConfirm, input }))
  const state = useAgentSession(session)
  const { send, stop, answer, regenerate, edit, reload } = session
  return { ...state, send, stop, answer, regenerate, edit, reload, session }
}

/* Draws a conversation that was created elsewhere, such as one that several components show. */

/** The content of the conversation. The component is drawn again when it changes, at most once per frame. */
export function useAgentSession(session: AgentSession): SessionState {
  return useSyncExternalStore(session.subscribe, session.getState, session.getState)
}
