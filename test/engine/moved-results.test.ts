/** What the process that handed its runs over can still say of them: it follows them until its store closes, and then says that it cannot. */
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { Entry } from '../../src/part/entry.ts'
import type { Store } from '../../src/part/log.ts'
import { finish, latch, text, toolCall, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { redisStore } from '../../src/store/redis/redis-store.ts'
import { agent, createEngine, entriesOf, only, until } from '../support/engine.ts'
import { createTold, eventually, resultsIn } from '../support/going-on.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'

const said = (what: string) => ({ messages: [{ role: 'user' as const, content: what }] })

async function all<T>(parts: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const part of parts) found.push(part)
  return found
}

describeRedis('of a run that was handed over', (redis) => {
  test('result and parts follow it, stop and answer reach it; when the store closes before its end, all say so', async () => {
    const url = `${redis().url}?prefix=${freshPrefix()}`
    const [held, endless] = [latch(), latch()]
    const slow = {
      parameters: z.looseObject({}),
      async execute() {
        held.arrive()
        await held.opened
        return 'slowly'
      },
    }
    const model = createTold((prompt): ScriptStep[] => {
      const asked = JSON.stringify(prompt[0])
      const done = resultsIn(prompt).size > 0
      if (asked.includes('choose'))
        return done ? [text('Chosen'), finish()] : [toolCall('c1', 'choose'), finish('tool-calls')]
      if (!done) return [text('Wait. '), toolCall('c1', 'slow'), finish('tool-calls')]
      return asked.includes('follow') ? [text('Done.'), finish()] : [text('On '), endless, finish()]
    })
    const open = async () => {
      const store = await redisStore(url)
      const wrapStore = (own: Store) => {
        void own.close()
        return store
      }
      const yaml = agent('tools: [slow, { name: choose, client: true }]', 'recover: false\nonDisconnect: detach')
      const engine = createEngine({ agents: { a: yaml }, tools: { slow }, scripts: { m: model }, wrapStore })
      onTestFinished(() => engine.close())
      return engine
    }
    const [first, second] = [await open(), await open()]
    await second.runtime.recover()
    const start = (what: string) => first.runtime.start('a', said(what))
    const chosen = await start('choose')
    expect(await chosen.result).toMatchObject({ outcome: 'suspended' })
    const runs = [await start('follow'), await start('stop'), await start('leave')] as const
    const [followed, stopped, left] = runs
    await eventually(() => model.calls.length === 4)
    await held.reached
    const results = runs.map(({ result }) => result)
    const parts = all(followed.parts)

    // The store stays open for readers, as while a server drains.
    const drain = Promise.withResolvers<void>()
    const closed = first.runtime.close(10_000, () => drain.promise)
    held.open()
    expect(await results[0]).toMatchObject({ outcome: 'completed', text: 'Wait. Done.' })
    expect((await parts).at(-1)).toMatchObject({ type: 'run-end', outcome: 'completed' })
    const goesOn = ({ type, ...part }: Entry) => type === 'text-delta' && 'delta' in part && part.delta === 'On '
    for (const { id } of [stopped, left]) await until(second.store, id, goesOn)
    await stopped.stop('Enough.')
    expect(await results[1]).toMatchObject({ outcome: 'aborted', text: 'Wait. On ' })
    const [request] = only(await entriesOf(first.store, chosen.id), 'request')
    expect(await chosen.answer(request!.requestId, { kind: 'tool', output: 'one' })).toMatchObject({ duplicate: false })
    await until(second.store, chosen.id, ({ type }) => type === 'run-end')
    expect(await first.runtime.handle(chosen.id, 't').result).toMatchObject({ outcome: 'completed', text: 'Chosen' })
    await expect(start('late')).rejects.toMatchObject({ code: 'closing', status: 503, retryAfter: 1 })

    drain.resolve()
    const moved = { code: 'run-moved', message: expect.stringContaining('goes on in another one') }
    expect(await results[2]).toMatchObject({ outcome: 'moved', text: 'Wait. On ', output: undefined, error: moved })
    await closed
    const unknown = { outcome: 'failed', error: { code: 'store-closed' } }
    expect(await first.runtime.handle(left.id, 't').result).toMatchObject(unknown)
    const refused = { code: 'store-closed', status: 503 }
    await expect(left.stop()).rejects.toMatchObject(refused)
    await expect(left.answer('r', { kind: 'tool', output: 1 })).rejects.toMatchObject(refused)
    await expect(start('late')).rejects.toMatchObject({ code: 'closing' })
    endless.open()
    const again = (await second.runtime.open(left.id))!
    expect(await again.result).toMatchObject({ outcome: 'completed', text: 'Wait. On ' })
  })
})
