import { describe, expect, test } from 'vitest'
import { createAgentSlots, type AgentSlots } from './agent-slots.ts'
import { inSlot } from './agent-tools.ts'
import type { Scope } from './scope.ts'

const { signal } = new AbortController()

describe('createAgentSlots', () => {
  test('one that pauses gives its place to the next, and waits for it when it goes on', async () => {
    const slots = createAgentSlots(1)
    const order: string[] = []
    const first = await slots.take(signal)
    const second = slots.take(signal).then((slot) => {
      order.push('second')
      return slot
    })
    first.pause()
    const taken = await second
    const back = first.resume().then(() => order.push('first again'))
    taken.release()
    await back
    expect(order).toEqual(['second', 'first again'])
    // Released once, whatever else is said of it.
    first.release()
    first.release()
    await slots.take(signal)
    const third = slots.take(AbortSignal.abort('over'))
    await expect(third).rejects.toBe('over')
  })

  test('a wait ends with its signal, and takes no place', async () => {
    const slots = createAgentSlots(1)
    const first = await slots.take(signal)
    const stop = new AbortController()
    const waiting = slots.take(stop.signal)
    stop.abort('stopped')
    await expect(waiting).rejects.toBe('stopped')
    first.release()
    await slots.take(signal)
  })

  test('one that was paused twice goes on when both are over', async () => {
    const slots = createAgentSlots(1)
    const slot = await slots.take(signal)
    slot.pause()
    slot.pause()
    const other = await slots.take(signal)
    // Nothing to wait for yet.
    await slot.resume()
    other.release()
    await slot.resume()
    slot.release()
    await slots.take(signal)
  })
})

describe('inSlot', () => {
  const scopeWith = (agentSlots: AgentSlots, pass: Scope['pass']) => ({ agentSlots, signal, pass }) as Scope

  test('an agent that is held because its run leaves the process lets others come to that place, too', async () => {
    const slots = createAgentSlots(1)
    const gate = Promise.withResolvers<never>()
    const first = inSlot(
      scopeWith(slots, () => gate.promise),
      async (inner) => void (await inner.pass()),
    )
    const second = inSlot(
      scopeWith(slots, () => undefined),
      async () => 'worked',
    )
    expect(await second).toBe('worked')
    gate.reject(new Error('left'))
    await expect(first).rejects.toThrow('left')
  })
})
