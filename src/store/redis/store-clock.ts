/**
 * The clock of Redis, as this process knows it: what each beat hears of it, carried on by the steady clock. So setting the clock of this
 * machine changes nothing, and machines whose clocks differ write the same times.
 */

export interface StoreClock {
  /** Epoch ms by Redis. Until it is known, by this machine. */
  now(): number
  /** ms by which the clock of this machine is ahead of that of Redis; 0 as long as both may be the same. */
  ahead(): number
  /** Redis said `time` at some moment since `sent`, of the steady clock. */
  heard(sent: number, time: number): void
}

export interface Clocks {
  /** The clock of this machine: epoch ms. */
  wall?: () => number
  /** Never jumps. */
  steady?: () => number
}

/** A clock that differs from that of Redis by more is told of, in ms, and told of again once it was right. */
const mostAhead = 2000

export function createStoreClock(
  warn: ((message: string) => void) | undefined,
  { wall = () => Date.now(), steady = () => performance.now() }: Clocks = {},
): StoreClock {
  /** The time of Redis without that of the steady clock. */
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
      // What is known stays as long as it may be right, so that the time does not tremble with the network.
      offset = offset === undefined ? (least + most) / 2 : Math.min(Math.max(offset, least), most)
      const here = wall()
      const [from, to] = [time, time + received - sent]
      ahead = here > to ? here - to : Math.min(0, here - from)
      compare()
    },
  }
}
