/** Words that the server did not take are words to send again, also after another room was looked at or the page was loaded anew. */
import { useEffect, useRef } from 'react'
import { toDraft } from './send.ts'
import type { SentMessage } from './use-chat.ts'
import { addToDraft } from './use-draft.ts'

/** `place`: of the draft, see `useDraft`. */
export function useUnsent(sent: readonly SentMessage[], place: string): void {
  const latest = useRef({ sent, place })
  useEffect(() => {
    latest.current = { sent, place }
  })
  useEffect(() => {
    const kept = new Set<string>()
    const keep = () => {
      const { sent, place } = latest.current
      for (const { key, error, asked } of sent) {
        if (error === undefined || kept.has(key)) continue
        kept.add(key)
        addToDraft(place, toDraft(asked).text)
      }
    }
    addEventListener('pagehide', keep)
    return () => {
      removeEventListener('pagehide', keep)
      keep()
    }
  }, [])
}
