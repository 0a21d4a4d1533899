/** Runs whose archive is away for a moment: who asks for them is told so, and gets no body that breaks off. */
import { mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createHandler } from '../../src/server/handler.ts'
import { openArchive } from '../../src/store/archive/archive.ts'
import { exampleRun } from '../../src/store/example-run.contract.ts'
import { redisStore } from '../../src/store/redis/redis-store.ts'
import { createEngine } from '../support/engine.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'

describeRedis('an archive that is away', (redis) => {
  test.each([
    ['/events', 'application/x-ndjson'],
    ['/events', 'text/event-stream'],
    ['/events?follow=1', 'application/x-ndjson'],
    ['/events?limit=3', 'application/x-ndjson'],
    ['/export', '*/*'],
  ])('%s as %s is a 503 with Retry-After, and is there again with the archive', async (path, accept) => {
    const root = mkdtempSync(join(tmpdir(), 'millrace-away-'))
    onTestFinished(() => rmSync(root, { recursive: true }))
    const folder = join(root, 'archive')
    const url = `${redis().url}?prefix=${freshPrefix()}`
    const store = await redisStore(url, { archive: openArchive(folder) })
    // Another instance has nothing of it in memory.
    const writer = await redisStore(url, { archive: openArchive(folder) })
    onTestFinished(() => writer.close())
    const engine = createEngine({
      agents: {},
      wrapStore: (inner) => {
        void inner.close()
        return store
      },
    })
    onTestFinished(() => engine.close())
    await writer.log.append('r', 1, exampleRun('r', 500))
    expect(await writer.upkeep!.archive!('r')).toBe(true)
    const handler = createHandler({ runtime: engine.runtime, authorize: () => true })
    const get = () => handler(new Request(`http://localhost/api/runs/r${path}`, { headers: { accept } }))
    renameSync(folder, `${folder}-away`)
    const away = await get()
    expect([away.status, away.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await away.json()).toMatchObject({ error: { code: 'store-failed' } })
    renameSync(`${folder}-away`, folder)
    const back = await get()
    expect(back.status).toBe(200)
    expect(await back.text()).toContain('"seq":1,')
  })
})
