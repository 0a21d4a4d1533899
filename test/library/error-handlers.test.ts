/** A host handles uncaught errors as it likes: only the commands listen for them. */
import { describe, expect, test } from 'vitest'
import { createRuntime } from '../../src/project/create-runtime.ts'

describe('error handlers', () => {
  test('a library changes nothing of how its process deals with errors', async () => {
    const counts = () => ['uncaughtException', 'unhandledRejection'].map((name) => process.listenerCount(name))
    const before = counts()
    const runtime = createRuntime({
      agents: { a: 'workflow: [{ id: it, type: it }]' },
      steps: { it: () => counts() },
      environment: {},
    })
    expect(await (await runtime.start('a', { messages: [] })).result).toMatchObject({ output: before })
    await runtime.close()
    expect(counts()).toEqual(before)
  })
})
