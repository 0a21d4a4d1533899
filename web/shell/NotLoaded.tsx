/** A part of the page's own code has not come: the server was away, or has another version by now. Only a page that is loaded anew can ask for it again. */
import { useEffect, useRef } from 'react'
import { useConnection } from '../data/hooks.ts'
import { Button } from '../kit/Button.tsx'
import { Empty } from '../kit/Empty.tsx'

export function NotLoaded() {
  const { state } = useConnection()
  const wasAway = useRef(false)
  useEffect(() => {
    if (state === 'offline') wasAway.current = true
    // What is in this room is in the address, and what is not sent in the tab.
    else if (state === 'open' && wasAway.current) location.reload()
  }, [state])
  return (
    <Empty title="This part of the page could not be loaded.">
      {state === 'offline' ? (
        <p>It comes when the server can be reached again.</p>
      ) : (
        <Button look="primary" onClick={() => location.reload()}>
          Reload the page
        </Button>
      )}
    </Empty>
  )
}
