/** Where in the log the reader stands: the scrubber, and what plays it. */
import { Button } from '../../kit/Button.tsx'
import { Icon } from '../../kit/Icon.tsx'
import { speeds } from './data/use-play.ts'
import { wholeView } from './layout/scale.ts'
import type { Room } from './use-room.ts'
import css from './Transport.module.css'

export function Transport({ room }: { room: Room }) {
  const { seq, at, play, snapshot, view } = room
  const { lastSeq, isLive, isLoaded } = snapshot
  const last = Math.max(1, lastSeq)
  return (
    <div className={css.transport} role="group" aria-label="Replay">
      <Button
        look="quiet"
        className={css.wide!}
        aria-label="Previous block (Shift+,)"
        onClick={() => room.step(-1, true)}
      >
        <Icon name="first" />
      </Button>
      <Button look="quiet" icon="left" aria-label="Previous entry (,)" onClick={() => room.step(-1, false)} />
      <Button
        look="quiet"
        icon={play.isPlaying ? 'pause' : 'play'}
        aria-label={play.isPlaying ? 'Pause (Space)' : 'Play (Space)'}
        onClick={play.toggle}
        disabled={!isLoaded}
      />
      <Button look="quiet" icon="right" aria-label="Next entry (.)" onClick={() => room.step(1, false)} />
      <Button look="quiet" className={css.wide!} aria-label="Next block (Shift+.)" onClick={() => room.step(1, true)}>
        <Icon name="last" />
      </Button>
      <input
        type="range"
        data-testid="scrubber"
        className={css.scrubber}
        aria-label="Place in the log"
        aria-valuetext={`entry ${seq} of ${last}`}
        min={1}
        max={last}
        value={Math.max(1, Math.min(seq, last))}
        disabled={!isLoaded}
        onChange={(event) => {
          play.stop()
          room.goTo(Number(event.target.value))
        }}
      />
      <span className={css.seq}>
        <span className="visually-hidden">entry </span>
        <b className="num">{seq.toLocaleString('en-US')}</b>
        <span className="num">/{last.toLocaleString('en-US')}</span>
      </span>
      <div className={css.speeds} role="group" aria-label="Speed">
        {speeds.map((speed) => (
          <button key={speed} type="button" aria-pressed={play.speed === speed} onClick={() => play.setSpeed(speed)}>
            {speed}×
          </button>
        ))}
      </div>
      {view.to - view.from < 0.999 && (
        <Button look="quiet" onClick={() => room.setView(wholeView)}>
          Show all
        </Button>
      )}
      <Place room={room} isLive={isLive} isBack={at !== undefined} />
      {play.error !== undefined && <span className={css.error}>{String((play.error as Error).message)}</span>}
    </div>
  )
}

function Place({ room, isLive, isBack }: { room: Room; isLive: boolean; isBack: boolean }) {
  if (room.isFollowing) {
    return (
      <span className={css.live} title="Follows the run (f)">
        <i /> live
      </span>
    )
  }
  // The band below leads back.
  if (isBack) return <span className={css.end}>rewound</span>
  if (!isLive) return <span className={css.end}>at the end</span>
  return (
    <Button className={css.back!} onClick={() => room.follow(true)}>
      Back to live
    </Button>
  )
}
