/** What the last run did: its steps, its answer and its log, live. Nothing is read before somebody opens it. */
import { useState } from 'react'
import { RunAnswer, RunLog, RunOutline } from 'millrace/react'

export function LastRun({ runId }) {
  const [isOpen, setOpen] = useState(false)
  if (runId === undefined) return null
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>The last run</summary>
      {isOpen && (
        <>
          <RunOutline runId={runId} />
          <RunAnswer runId={runId} />
          <RunLog runId={runId} />
        </>
      )}
    </details>
  )
}
