/** The runtime of a principal, as code of the server holds it: no object of it shows more than the principal sees. */
import { expect, test } from 'vitest'
import { scopeRuntime } from '../../src/access/scope-runtime.ts'
import { createScriptedModel, finish, text } from '../../src/models/scripted.ts'
import { agent, openEngine } from '../support/engine.ts'
import { callers } from '../support/callers.ts'

test('runs have only what their principal sees, and none is got without asking whose it is', async () => {
  const m = createScriptedModel(() => [text('Hello.'), finish()])
  const { runtime } = openEngine({ agents: { a: agent('system: secret') }, scripts: { m } })
  const [alice, bob, operator] = [callers.alice, callers.bob, callers.operator].map((each) =>
    scopeRuntime(runtime, each),
  )
  const started = await alice!.start('a', { messages: [{ role: 'user', content: 'Hi' }] })
  await started.result
  const logOf = async ({ parts }: typeof started) => {
    let log = ''
    for await (const entry of parts) log += JSON.stringify(entry)
    return log
  }
  for (const run of [started, (await alice!.open(started.id))!]) {
    expect(await logOf(run)).toContain('Hello.')
    expect(await logOf(run)).not.toContain('secret')
  }
  expect(await logOf((await operator!.open(started.id))!)).toContain('secret')
  expect(await bob!.open(started.id)).toBeUndefined()
  expect(() => bob!.handle(started.id, started.threadId)).toThrow('You may not do this here')
})
