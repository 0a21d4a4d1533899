/** One session of chaos: a fleet under load, faults by a seed, and the judgement. */
import { setTimeout as sleep } from 'node:timers/promises'
import { randomOf } from '../support/random.ts'
import { play, type Seen, type Turn } from './client.ts'
import { faultKinds, wreak, type FaultKind } from './faults.ts'
import { startFleet } from './fleet.ts'
import { judge } from './judge.ts'
import { startModel } from './model.ts'

export interface ChaosOptions {
  seed: number
  seconds: number
  /** Default: all. */
  kinds?: readonly FaultKind[]
  /** Conversations that go on at the same time. */
  clients?: number
  /** The session goes on, for half a minute at most, until there were so many refusals. Default 0. */
  leastRefusals?: number
  say?: (line: string) => void
}

export interface ChaosReport {
  /** Empty if every promise was kept. */
  faults: string[]
  runs: number
  /** How often a client went on at another instance. */
  moves: number
  /** 503s that clients got. */
  refusals: number
  /** How many steps were begun again by another owner. */
  resets: number
  outcomes: Record<string, number>
  /** What happened, in order. */
  log: string[]
}

const size = 3
/** ms that a run may take when everything works again. */
const patience = 40_000

export async function chaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, seconds, kinds = faultKinds, clients = 6, leastRefusals = 0, say } = options
  const began = performance.now()
  const log: string[] = []
  const faults: string[] = []
  const note = (line: string) => {
    // Who tries again is refused again.
    if (line.startsWith('FAULT: ') && faults.includes(line.slice(7))) return
    const noted = `${((performance.now() - began) / 1000).toFixed(2).padStart(8)} ${line}`
    log.push(noted)
    if (line.startsWith('FAULT: ')) faults.push(line.slice(7))
    say?.(noted)
  }
  const model = await startModel()
  const fleet = await startFleet(model.baseURL, size)
  const next = randomOf(seed + 17)
  const pick = () => {
    const running = [...fleet.instances, ...fleet.leaving].filter((server) => server !== undefined)
    return running[Math.floor(next() * running.length)]!.url
  }
  const onFault = (fault: string) => note(`FAULT: ${fault}`)
  let refusals = 0
  const onRefusal = () => void refusals++
  const seen: Seen[] = []
  let until = performance.now() + seconds * 1000

  /** A conversation: a few turns, of which the next is sent before the last has ended. */
  async function talk(nth: number): Promise<void> {
    for (let round = 0; performance.now() < until; round++) {
      const threadId = `thread-${nth}-${round}`
      const turns = Array.from({ length: 1 + Math.floor(next() * 3) }, (_, i): Turn => ({
        name: `c${nth}r${round}t${i}`,
        agent: next() < 0.6 ? 'keep' : 'plain',
        tools: Math.floor(next() * 3),
        threadId,
      }))
      const left = until - performance.now() + patience
      await Promise.all(
        turns.map(async (turn, i) => {
          await sleep(i * 150)
          try {
            seen.push(await play(turn, { pick, onFault, onRefusal, patience: left }))
          } catch (error) {
            onFault((error as Error).message)
          }
        }),
      )
    }
  }

  const wrecking = wreak(fleet, seed, kinds, note)
  try {
    const load = Promise.all(Array.from({ length: clients }, (_, nth) => talk(nth)))
    // Before the clients would begin no other conversation.
    await sleep(seconds * 1000 - 200)
    for (const last = until + 30_000; refusals < leastRefusals && until < last; until += 100) await sleep(100)
    await wrecking.end()
    note('no more faults')
    await load
    const judged = await judge({ url: pick(), seen, effects: fleet.effects(), kinds: new Set(kinds) })
    faults.push(...judged.faults, ...model.misfits.map((misfit) => `the model was asked: ${misfit}`))
    if (faults.length > 0)
      log.push(...faults, ...fleet.said, ...fleet.instances.map((server) => server?.stderr() ?? ''))
    const moves = seen.reduce((sum, each) => sum + each.moves, 0)
    return {
      faults,
      runs: seen.length,
      moves,
      refusals,
      resets: judged.resets,
      outcomes: Object.fromEntries(judged.outcomes),
      log,
    }
  } finally {
    await fleet.close()
    await model.close()
  }
}
