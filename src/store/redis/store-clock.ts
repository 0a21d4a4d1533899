/**
 * The clock of Redis, as this process knows it: updated with each heartbeat, and advanced by the steady clock. So setting this machine's clock
 * changes nothing, and machines with different clocks write the same times.
 */

export interface StoreClock {
  /** Epoch ms by Redis. Until it is known, by this machine. */
  now(): number
  /** ms by which this machine's clock is ahead of that of Redis; 0 as long as they may be equal. */
  ahead(): number
  /** Redis reported `time` at some moment since `sent`, of the steady clock. */
  heard(sent: number, time: number): void
}

export interface Clocks {
  /** The clock of this machine: epoch ms. */
  wall?: () => number
  /** Never jumps. */
  steady?: () => number
}

/** A larger difference from the clock of Redis is reported, in ms, and reported again after it was right. */
const mostAhead = 2000

export function createStoreClock(
  warn: ((message: string) => void) | undefined,
  { wall = () => Date.now(), steady = () => performance.now() }: Clocks = {},
): StoreClock {
  /** The time of Redis minus that of the steady clock. */
  let offset: number | undefined
  let ahead = 0
  let isTold = false

  function compare(): void {
    if (Math.abs(ahead) < mostAhead / 2) isTold = false
    if (Math.abs(ahead) <= mostAhead || isTold) return
    isTold = true
    const how = `${(Math.abs(ahead) / 1000).toFixed(1)} s ${ahead > 0 ? 'ahead of' : 'behind'} that of Redis`
    const harm = 'Runs go by the clock of Redis, but tools, certificates and other logs of this machine do not'
    warn?.(`the clock of this machine is ${how}. ${harm}: synchronise it (NTP).`)
  }

  return {
    now: () => (offset === undefined ? wall() : Math.floor(offset + steady())),
    ahead: () => ahead,
    heard(sent, time) {
      const received = steady()
      const [least, most] = [time - received, time - sent]
      // The known offset stays as long as it may be right, so that the time does not jitter with the network.
      offset = offset === undefined ? (least + most) / 2 : Math.min(Math.max(offset, least), most)
      const here = wall()
      const [from, to] = [time, time + received - sent]
      ahead = here > to ? here - to : Math.min(0, here - from)
      compare()
    },
  }
}
