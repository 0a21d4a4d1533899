/** What it means that a client leaves: `cancel`, `{cancelAfter}`, `detach`, and when it means nothing. */
import { describe, expect, test } from 'vitest'
import { framesOf } from '../support/server.ts'
import { begun, ended, resume } from './leaving-client.ts'

describe('chat: disconnect', () => {
  test('cancelAfter: who comes back in time finds the run alive, and the time begins anew when it leaves', async () => {
    const { server, id, client, gate } = await begun('{ cancelAfter: 400ms }')
    for (let i = 0; i < 3; i++) {
      const next = await resume(server)
      await next.until('half')
      await client.leave()
      await next.leave()
    }
    const last = await resume(server)
    await last.until('half')
    // Longer than the policy allows a run without a reader: this one has one.
    await new Promise((resolve) => setTimeout(resolve, 600))
    expect((await server.store.runs.get(id))?.status).toBe('running')
    gate.open()
    expect(framesOf(await last.rest()).at(-1)).toBe('done')
    expect(await ended(server, id)).toMatchObject({ outcome: 'completed' })
  })
})
