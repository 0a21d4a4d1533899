/** A newer version migrates the database under a server that has nothing to do. */
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { folder, millrace } from '../support/cli.ts'

describe('data of a newer build', () => {
  test('/health and requests say so, with 503', async () => {
    const cwd = folder({
      'agents/a.yaml': 'workflow: [{ id: a, type: llm, config: { model: "demo:assistant", stream: true } }]',
    })
    const server = millrace(['serve', '--port', '0'], { cwd })
    await server.until('Millrace is ready')
    const [url] = /http:\/\/\S+/u.exec(server.out)!
    expect((await fetch(`${url}/health`)).status).toBe(200)
    const newer = new DatabaseSync(join(cwd, '.millrace', 'millrace.db'))
    newer.exec('PRAGMA user_version = 999')
    newer.close()
    await vi.waitFor(async () => expect((await fetch(`${url}/health`)).status).toBe(503), 30_000)
    expect(await (await fetch(`${url}/health`)).json()).toMatchObject({
      status: 'degraded',
      reasons: [
        'Runs cannot be read or stored: a newer Millrace has migrated the database. Restart this server with that version.',
      ],
    })
    const refused = await fetch(`${url}/api/runs`)
    expect([refused.status, await refused.json()]).toEqual([
      503,
      { error: expect.objectContaining({ code: 'store-version' }) },
    ])
    server.kill('SIGTERM')
    await server.exit
  })
})
