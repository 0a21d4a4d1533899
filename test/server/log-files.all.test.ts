/** `--log-files`: what stands in the files is what stands in the log, whatever happens in between. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { folder, ran } from '../support/cli.ts'
import { agent } from '../support/engine.ts'
import { spawnServer } from '../support/server-process.ts'

const say = (content = 'Hi') => ({ messages: [{ role: 'user', content }] })

describe('log files', () => {
  test('kill -9 in the middle: the next server completes the files, which verify', async () => {
    const dir = folder({ 'a.yaml': agent().replace('script:m', 'demo:assistant') })
    const data = join(folder(), 'data')
    const first = await spawnServer(dir, data, '--log-files')
    onTestFinished(() => first.kill())
    const response = await fetch(`${first.url}/api/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ agentId: 'a', ...say('Tell me a long story') }),
    })
    const id = response.headers.get('x-millrace-run-id')!
    const file = join(data, 'runs', `${id}.ndjson`)
    await expect.poll(() => existsSync(file) && readFileSync(file, 'utf8').includes('text-delta')).toBe(true)
    await first.kill()
    await response.body?.cancel().catch(() => undefined)
    expect(existsSync(file.replace('.ndjson', '.summary.json'))).toBe(false)
    const second = await spawnServer(dir, data, '--log-files')
    onTestFinished(() => second.kill())
    await expect.poll(() => existsSync(file.replace('.ndjson', '.summary.json'))).toBe(true)
    expect(readFileSync(file, 'utf8')).toBe(await (await fetch(`${second.url}/api/runs/${id}/events`)).text())
    expect(JSON.parse(readFileSync(file.replace('.ndjson', '.summary.json'), 'utf8'))).toMatchObject({
      status: 'interrupted',
    })
    expect(await ran(['verify', file])).toMatchObject({ code: 0 })
  })
})
