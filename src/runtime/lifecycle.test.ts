/** The machine against a model of a store and of processes that crash, shut down, come late and lose their store. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createSlot, isBusy, leaseOf, transition, type Effect, type Event, type Slot } from './lifecycle.ts'

type Work = Extract<Effect, { type: 'claim' | 'execute' | 'end' }> & { seen?: Seen; aborted?: boolean }
type Seen = { epoch: number; status: string; pending: boolean }

interface Process {
  slot: Slot
  /** What is under way; its outcome depends on the store when it is delivered. */
  work: Work[]
  retries: number
  announced: boolean
}

/** Thousands of random orders check this after every event, for which `expect` is too slow. */
function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(what)
}

/** One run, as a store keeps it, and the processes that share the store. */
function createWorld(processes: number) {
  const row = {
    epoch: 0,
    status: 'absent' as 'absent' | 'running' | 'suspended' | 'ended',
    answered: false,
    stop: false,
  }
  const world = { row, down: false, ends: 0, givenAway: 0, all: Array.from({ length: processes }, fresh) }

  function fresh(): Process {
    return { slot: createSlot(), work: [], retries: 0, announced: false }
  }

  function send(process: Process, event: Event): void {
    const before = process.slot
    const [after, effects] = transition(before, event)
    process.slot = after
    const where = `${before.state}, ${event.type}`
    must(before.state !== 'ended' || (after === before && effects.length === 0), `ended is final: ${where}`)
    const rests = effects.filter(({ type }) => type === 'rest').length
    must(rests === (isBusy(before) && !isBusy(after) ? 1 : 0), `comes to rest once: ${where}`)
    for (const effect of effects) {
      if (effect.type === 'claim' || effect.type === 'execute' || effect.type === 'end') {
        // One thing at a time: nothing begins before what was under way has reported.
        must(process.work.length === 0, `${effect.type} beside ${process.work[0]?.type}: ${where}`)
        process.work.push({ ...effect })
      } else if (effect.type === 'abort') {
        const [work] = process.work
        must(work?.type === 'execute' && work.aborted === undefined, `aborts what runs, once: ${where}`)
        work!.aborted = true
      } else if (effect.type === 'retry') process.retries++
      else if (effect.type === 'want' && effect.at === undefined) world.givenAway = row.epoch
    }
    check()
  }

  function check(): void {
    const owners = world.all.filter(({ slot }) => row.status !== 'ended' && leaseOf(slot) === row.epoch)
    must(owners.length <= 1, 'one owner')
    for (const { slot, work, retries } of world.all) {
      must(slot.state !== 'lost' || (retries === 1 && !slot.closing), 'a lost run is tried again')
      must(work.length === (slot.state === 'claiming' || leaseOf(slot) !== undefined ? 1 : 0), 'a busy slot works')
    }
  }

  /** An append or claim by an owner: it counts only for the owner that the store knows. */
  const write = (epoch: number, apply: () => void): 'done' | 'moved' | 'failed' => {
    if (world.down) return 'failed'
    if (row.epoch !== epoch || row.status === 'ended') return 'moved'
    apply()
    return 'done'
  }

  function begin(process: Process, isRefused: boolean): void {
    process.announced = false
    if (isRefused || row.status !== 'absent') return send(process, { type: 'refused' })
    row.epoch = 1
    row.status = 'running'
    send(process, { type: 'started', epoch: 1 })
  }

  function end(process: Process, epoch: number): void {
    const how = write(epoch, () => {
      row.status = 'ended'
      world.ends++
    })
    send(process, { type: ({ done: 'ended', moved: 'moved', failed: 'store-failed' } as const)[how] })
  }

  function claim(process: Process, work: Work & { type: 'claim' }, luck: number): void {
    const now = { epoch: row.epoch, status: row.status, pending: row.stop || row.answered }
    // What it saw may be old when it claims.
    if (work.seen === undefined && luck % 2 === 0) {
      if (!world.down) work.seen = now
      return
    }
    const { epoch: seen, status, pending } = work.seen ?? now
    process.work = []
    if (world.down) return send(process, { type: 'claim-failed' })
    if (work.epoch !== undefined && work.epoch !== seen) return send(process, { type: 'unclaimed' })
    if (status === 'suspended' && !pending && work.reason === 'hint') {
      return send(process, { type: 'unclaimed', dueAt: 5 })
    }
    const isWanted = status === 'suspended' || (status === 'running' && work.reason !== 'hint')
    if (!isWanted || seen !== row.epoch || now.status === 'ended') return send(process, { type: 'unclaimed' })
    row.epoch++
    row.status = 'running'
    const { epoch } = row
    // The store fails behind the claim.
    if (luck % 3 === 0) return send(process, { type: 'claim-failed', epoch })
    const next = work.reason === 'lost' || row.stop ? 'end' : 'execute'
    send(process, { type: 'claimed', epoch, next, queued: luck % 5 === 0 })
  }

  function execution(process: Process, { epoch, aborted = false }: Work & { type: 'execute' }, luck: number): void {
    if (luck % 4 === 0 && !aborted) return send(process, { type: 'turn' })
    process.work = []
    if (aborted && process.slot.closing && luck % 2 === 0) {
      const how = write(epoch, () => undefined)
      return send(process, { type: ({ done: 'handed-on', moved: 'moved', failed: 'store-failed' } as const)[how] })
    }
    if (luck % 3 > 0 || aborted || row.stop) return end(process, epoch)
    row.answered &&= luck % 2 === 0
    const how = write(epoch, () => (row.status = 'suspended'))
    if (how === 'done') send(process, { type: 'suspended', dueAt: luck })
    else send(process, { type: how === 'moved' ? 'moved' : 'store-failed' })
  }

  function deliver(process: Process, luck: number): void {
    const [work] = process.work
    if (process.announced) return begin(process, luck % 5 === 0 || process.slot.closing)
    if (work?.type === 'claim') return claim(process, work, luck)
    if (work?.type === 'execute') return execution(process, work, luck)
    if (work?.type === 'end') {
      process.work = []
      return end(process, work.epoch)
    }
    if (process.retries > 0) {
      process.retries--
      send(process, { type: 'retry' })
    }
  }

  function crash(at: number): void {
    world.all[at] = fresh()
  }

  return { world, send, deliver, crash }
}

const calm = ['announce', 'deliver', 'answer', 'stop', 'orphan', 'fail', 'down'] as const
const orderly = [...calm, 'shutdown', 'expire'] as const
const violent = [...orderly, 'crash'] as const
const often = ['deliver', 'deliver', 'deliver', 'deliver', 'answer'] as const

function anyScript(whats: readonly (typeof violent)[number][]) {
  const what = fc.constantFrom(...whats, ...often)
  return fc.array(fc.record({ what, who: fc.nat(1), luck: fc.nat(840) }), { maxLength: 50 })
}

type Script = { what: (typeof violent)[number]; who: number; luck: number }[]

function play(script: Script) {
  const { world, send, deliver, crash } = createWorld(2)
  const { row } = world
  send(world.all[0]!, { type: 'announced' })
  world.all[0]!.announced = true
  for (const { what, who, luck } of script) {
    const process = world.all[who]!
    switch (what) {
      case 'announce':
        if (process.slot.state !== 'idle' || row.status !== 'absent' || process.slot.closing) break
        if (world.all.some(({ announced }) => announced)) break
        send(process, { type: 'announced' })
        process.announced = true
        break
      case 'deliver':
        deliver(process, luck)
        break
      case 'answer':
        if (row.status !== 'absent') row.answered = true
        send(process, { type: 'hint' })
        break
      case 'stop':
        if (row.status !== 'absent') row.stop = true
        send(process, { type: 'hint' })
        break
      case 'orphan':
        // A hint may be wrong: then it takes the run from an owner that lives, which is fenced.
        send(process, { type: 'orphan' })
        break
      case 'fail':
        send(process, { type: 'failed' })
        break
      case 'down':
        world.down = !world.down
        break
      case 'shutdown':
        send(process, { type: 'shutdown' })
        break
      case 'expire':
        if (process.slot.closing) send(process, { type: 'expired' })
        break
      case 'crash':
        crash(who)
        break
    }
  }
  return { world, send, deliver, row }
}

/** Nothing more happens from outside: everything that is under way reaches its end. */
function settle({ world, deliver }: ReturnType<typeof play>): void {
  world.down = false
  for (let round = 0; round < 30; round++) for (const process of world.all) deliver(process, round * 2 + 1)
  for (const { slot, work, retries } of world.all) {
    const isQuiet = !isBusy(slot) && slot.state !== 'lost' && work.length === 0 && (slot.closing || retries === 0)
    must(isQuiet, `everything comes to rest: ${slot.state}`)
  }
}

describe('in any order of events', () => {
  const holdsFor = (whats: Parameters<typeof anyScript>[0], holds: (played: ReturnType<typeof play>) => void) =>
    fc.assert(
      fc.property(anyScript(whats), (script) => {
        const played = play(script)
        settle(played)
        must(played.world.ends === (played.row.status === 'ended' ? 1 : 0), 'one end')
        holds(played)
      }),
      { numRuns: 2500 },
    )

  test('a run ends, or waits for an answer that has not come', () => {
    holdsFor(calm, ({ row }) => {
      must(row.status !== 'running', 'no run without owner')
      must(row.status !== 'suspended' || !(row.answered || row.stop), 'no answer without effect')
    })
  })

  test('or it was given away by a process that shut down', () => {
    holdsFor(orderly, ({ row, world }) => {
      must(row.status !== 'running' || world.givenAway === row.epoch, 'no run without owner')
    })
  })

  test('or the next process finds it', () => {
    holdsFor(violent, (played) => {
      const { row, world, send } = played
      world.all[0] = { slot: createSlot(), work: [], retries: 0, announced: false }
      if (row.status === 'running') send(world.all[0], { type: 'orphan' })
      else if (row.status === 'suspended') send(world.all[0], { type: 'hint' })
      settle(played)
      must(row.status !== 'running', 'no run without owner')
      must(row.status !== 'suspended' || !(row.answered || row.stop), 'no answer without effect')
    })
  })
})

describe('one by one', () => {
  const from = (...events: Event[]) => {
    let slot = createSlot()
    let effects: readonly Effect[] = []
    for (const event of events) [slot, effects] = transition(slot, event)
    return [slot, effects.map(({ type }) => type)] as const
  }
  const started: Event[] = [{ type: 'announced' }, { type: 'started', epoch: 1 }]
  const suspended: Event[] = [...started, { type: 'turn' }, { type: 'suspended', dueAt: 9 }]

  test.each<[string, Event[], Slot['state'], Effect['type'][]]>([
    ['a start that is refused', [{ type: 'announced' }, { type: 'refused' }], 'idle', ['rest']],
    ['an answer before the first entry is read by the owner', [{ type: 'announced' }, { type: 'hint' }], 'queued', []],
    ['an error in the queue', [...started, { type: 'failed' }], 'ending', ['abort']],
    ['a suspension looks for answers once more', suspended, 'claiming', ['claim']],
    ['nothing was answered', [...suspended, { type: 'unclaimed', dueAt: 9 }], 'suspended', ['want', 'rest']],
    [
      'an answer while it looks is looked for again',
      [...suspended, { type: 'hint' }, { type: 'unclaimed', dueAt: 9 }],
      'claiming',
      ['want', 'claim'],
    ],
    ['a fenced owner says nothing', [...started, { type: 'moved' }], 'idle', ['rest']],
    [
      'a fenced owner looks for an answer that only it has heard of',
      [...started, { type: 'hint' }, { type: 'turn' }, { type: 'failed' }, { type: 'moved' }],
      'claiming',
      ['claim'],
    ],
    [
      'or tells the others, if it shuts down',
      [...started, { type: 'hint' }, { type: 'shutdown' }, { type: 'moved' }],
      'idle',
      ['want', 'rest'],
    ],
    ['a store that fails', [...started, { type: 'store-failed' }], 'lost', ['report-loss', 'retry', 'rest']],
    [
      'a store that fails at a shutdown',
      [...started, { type: 'shutdown' }, { type: 'store-failed' }],
      'idle',
      ['report-loss', 'want', 'rest'],
    ],
    [
      'a claim behind which the store fails is not forgotten',
      [{ type: 'hint' }, { type: 'claim-failed', epoch: 2 }, { type: 'retry' }],
      'claiming',
      ['claim'],
    ],
    ['an answer at a shutdown waits for the next owner', [{ type: 'shutdown' }, { type: 'hint' }], 'idle', []],
    [
      'a claim that comes too late for a shutdown is given back',
      [{ type: 'hint' }, { type: 'shutdown' }, { type: 'claimed', epoch: 2, next: 'execute' }],
      'idle',
      ['want', 'rest'],
    ],
  ])('%s', (_, events, state, effects) => {
    const [slot, done] = from(...events)
    expect([slot.state, done]).toEqual([state, effects])
  })
})
