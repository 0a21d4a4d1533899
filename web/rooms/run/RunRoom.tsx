/** One run: what it did and when, at any point of its log, live while it goes on. */
import { useState } from 'react'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { Panes } from '../../kit/Panes.tsx'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { Banners } from './Banners.tsx'
import { ForkDialog } from './ForkDialog.tsx'
import { Inspector } from './inspector/Inspector.tsx'
import { Log } from './log/Log.tsx'
import { Minimap } from './Minimap.tsx'
import { Outline } from './Outline.tsx'
import { Rewound } from './Rewound.tsx'
import { RunHeader } from './RunHeader.tsx'
import { Transport } from './Transport.tsx'
import { FeedbackOf } from '../../data/feedback.tsx'
import { useLow, useNarrow } from '../../data/media.ts'
import { useRoom } from './use-room.ts'
import { useRunKeys } from './use-run-keys.ts'
import css from './RunRoom.module.css'

export default function RunRoom({ id }: { id: string }) {
  const room = useRoom(id)
  const isPhone = useNarrow()
  const isLow = useLow()
  const [pane, setPane] = useState<'outline' | 'log'>('outline')
  const [isForking, setForking] = useState(false)
  useRunKeys(room)
  const { snapshot, selection } = room
  if (snapshot.error !== undefined) return <ErrorNote error={snapshot.error} onRetry={room.reload} />
  const isEmpty = snapshot.items.length === 0
  const side = isPhone && selection.kind === 'none' ? undefined : <Inspector room={room} />
  return (
    <div className={css.room} data-testid="run-room" data-live={snapshot.isLive} data-seq={room.seq}>
      <FeedbackOf of={`/api/runs/${encodeURIComponent(id)}/feedback`}>
        <RunHeader room={room} onFork={() => setForking(true)} />
      </FeedbackOf>
      <Banners room={room} />
      {isEmpty ? (
        <Skeleton rows={8} />
      ) : (
        <>
          <Minimap room={room} />
          <Transport room={room} />
          <Rewound room={room} />
          <div className={css.work}>
            <Panes
              name="run"
              label="Details"
              side={side}
              size={440}
              min={280}
              {...(isPhone && { onClose: () => room.select(undefined) })}
            >
              {isPhone || isLow ? (
                <>
                  <div className={css.switch} role="group" aria-label="What is shown">
                    <button type="button" aria-pressed={pane === 'outline'} onClick={() => setPane('outline')}>
                      Steps
                    </button>
                    <button type="button" aria-pressed={pane === 'log'} onClick={() => setPane('log')}>
                      Log
                    </button>
                  </div>
                  {pane === 'outline' ? <Outline room={room} /> : <Log room={room} />}
                </>
              ) : (
                <Panes name="run-log" label="Log" at="bottom" size={240} min={96} side={<Log room={room} />}>
                  <Outline room={room} />
                </Panes>
              )}
            </Panes>
          </div>
        </>
      )}
      {isForking && <ForkDialog room={room} onClose={() => setForking(false)} />}
    </div>
  )
}
