/** Draws a conversation that was created elsewhere, such as one that several components show. */
import { useSyncExternalStore } from 'react'
import type { AgentSession, SessionState } from '../client/session-state.ts'

/** What the conversation holds. The component is drawn again when that changes, at most once per frame. */
export function useAgentSession(session: AgentSession): SessionState {
  return useSyncExternalStore(session.subscribe, session.getState, session.getState)
}
