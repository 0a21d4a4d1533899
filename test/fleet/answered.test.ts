/** An answer that is given through an instance that cannot go on with the run, just when its owner lays the run to rest. */
import { afterEach, expect, test } from 'vitest'
import { createTold, resultsIn } from '../support/going-on.ts'
import { createEngine, only, until, type Engine } from '../support/engine.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { Store } from '../../src/part/log.ts'
import { redisStore } from '../../src/store/redis/redis-store.ts'
import { endedRun } from './fleet.ts'

const agents = {
  asks: 'workflow: [{ id: answer, type: llm, config: { model: "script:m", stream: true, tools: [{ name: pay, approval: true }] } }]',
}

describeRedis('an instance without the tool', (redis) => {
  const engines: Engine[] = []
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.close()
  })

  async function start(url: string, tools: string[], wrap: (store: Store) => Store = (store) => store) {
    const store = wrap(await redisStore(url))
    const paid: unknown[] = []
    const m = createTold((prompt) =>
      resultsIn(prompt).size > 0
        ? [text('paid'), finish()]
        : [...toolCall('call_1', 'pay', { what: 'tea' }), finish('tool-calls')],
    )
    const pay = { parameters: { type: 'object' }, execute: (input: unknown) => void paid.push(input) } as const
    const engine = createEngine({
      agents: tools.length > 0 ? agents : {},
      scripts: { m },
      tools: Object.fromEntries(tools.map((name) => [name, pay])),
      wrapStore: (inner) => {
        void inner.close()
        return store
      },
    })
    engines.push(engine)
    await engine.runtime.recover()
    return { ...engine, paid }
  }

  test.each(['after', 'before'])('takes an answer %s the deadline is announced: the run goes on', async (order) => {
    const url = `${redis().url}?prefix=${freshPrefix()}`
    const [looked, answered, announced] = [0, 1, 2].map(() => Promise.withResolvers<void>()) as [
      PromiseWithResolvers<void>,
      PromiseWithResolvers<void>,
      PromiseWithResolvers<void>,
    ]
    const owner = await start(url, ['pay'], (store) => ({
      ...store,
      fleet: {
        ...store.fleet,
        async want(run, at, seen) {
          if (at !== undefined) looked.resolve()
          if (at !== undefined && order === 'before') await answered.promise
          await store.fleet.want(run, at, seen)
          announced.resolve()
        },
      },
    }))
    const other = await start(url, [])
    const run = await owner.runtime.start('asks', { messages: [{ role: 'user', content: 'tea' }] })
    const { requestId } = (await until(other.store, run.id, ({ type }) => type === 'request')) as { requestId: string }
    await (order === 'before' ? looked : announced).promise
    await other.runtime.answer(run.id, requestId, { kind: 'approval', approved: true })
    answered.resolve()
    const entries = await endedRun(other.store, run.id)
    expect(entries.at(-1)).toMatchObject({ type: 'run-end', outcome: 'completed' })
    expect(only(entries, 'resume')).toHaveLength(1)
    expect(owner.paid).toEqual([{ what: 'tea' }])
  })
})
