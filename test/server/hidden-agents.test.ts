/** `metadata.hidden`: an agent that no list shows, and that answers by its name and to other agents all the same. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { serve } from '../../src/server/serve.ts'
import { folder, ran, serving } from '../support/cli.ts'

const say = (metadata: string, words: string) =>
  `metadata: ${metadata}\nworkflow: [{ id: say, type: output-generator, config: { template: ${words} } }]\n`
const files = {
  'open.yaml': 'workflow: [{ id: call, type: call-agent, config: { agent: inner } }]\n',
  'inner.yaml': say('{ hidden: true, aliases: [core], description: secret recipe }', 'from inside'),
  'plain.yaml': say('{ hidden: false }', 'plain'),
}

describe('hidden agents', () => {
  test('no list shows it; every route that names it answers', async () => {
    const told: string[] = []
    const server = await serve({
      dir: folder(files),
      data: 'none',
      env: {},
      port: 0,
      host: '127.0.0.1',
      log: (line) => void told.push(line),
    })
    onTestFinished(() => server.close())
    const get = async (path: string) => fetch(server.url + path)
    const lists = ['/v1/models', '/api/v1/models', '/api/agents', '/']
    for (const path of lists) {
      const text = await (await get(path)).text()
      expect([path, text.includes('plain')]).toEqual([path, true])
      expect([path, /inner|core|secret recipe/u.test(text)]).toEqual([path, false])
    }
    for (const path of ['/v1/models/inner', '/v1/models/core', '/api/agents/inner']) {
      expect([path, (await get(path)).status]).toEqual([path, 200])
    }
    const ask = (agentId?: string) =>
      fetch(`${server.url}/api/chat`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ agentId, messages: [] }),
      })
    for (const name of ['inner', 'core', 'open']) expect(await (await ask(name)).json()).toBe('from inside')
    // Nor do errors name it.
    for (const wrong of ['innr', undefined]) expect(await (await ask(wrong)).text()).not.toMatch(/inner|core/u)
  })

  test('serve does not print it; run takes it by its name, check checks it', async () => {
    const cwd = folder(Object.fromEntries(Object.entries(files).map(([name, text]) => [`agents/${name}`, text])))
    const server = await serving(['agents', '--data', 'none'], { cwd })
    expect(server.out).toContain('plain')
    expect(server.out).not.toMatch(/inner|secret recipe/u)
    expect(await ran(['run', 'inner', '-m', 'hi', '--data', 'none'], { cwd })).toMatchObject({
      code: 0,
      out: 'from inside\n',
    })
    expect(await ran(['check'], { cwd })).toMatchObject({ code: 0, err: '3 files checked, no errors\n' })
  })
})
