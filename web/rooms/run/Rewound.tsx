/** Says that the page shows an earlier point of the run, and leads back. It stands below the scrubber, which so stays where it is. */
import { Button } from '../../kit/Button.tsx'
import { duration } from '../../kit/format.ts'
import type { Room } from './use-room.ts'
import css from './Banners.module.css'

export function Rewound({ room }: { room: Room }) {
  const { at, snapshot, model } = room
  if (at === undefined) return null
  const fork = model.whole.marks[0]?.fork
  const passed = duration(Math.max(0, model.now - model.facts.startedAt))
  const when =
    fork === undefined
      ? `${passed} after the start`
      : at <= fork.seq
        ? 'in the part that it took over from the run it was forked from'
        : `${passed} after the fork`
  const back = () => {
    room.play.stop()
    if (snapshot.isLive) room.follow(true)
    else room.goTo(undefined)
  }
  const [entry, last] = [at, snapshot.lastSeq].map((n) => n.toLocaleString('en-US'))
  return (
    <section className={`${css.banner} ${css.rewound}`} aria-label="Rewound">
      <p>
        You are looking at entry {entry} of {last}, {when}.
      </p>
      <Button onClick={back}>{snapshot.isLive ? 'Back to live' : 'Back to the end'}</Button>
    </section>
  )
}
