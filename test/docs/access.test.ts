/** The recipes of docs/access.md, as a reader pastes them. Sign-in with a real provider: test/server/openid.all.test.ts. */
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Handler } from '../../src/server/handler-context.ts'
import { loadConfig } from '../../src/project/load-config.ts'
import { serving } from '../support/cli.ts'
import { snippetsIn } from './documents.ts'
import { createProject, root } from './readme-project.ts'

const recipes = snippetsIn('ts').filter(({ place }) => place.startsWith('docs/access.md:'))
const recipe = (words: string) => recipes.find(({ text }) => text.includes(words))!.text

function project(): string {
  const dir = createProject()
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  cpSync(join(root, 'agents/assistant.yaml'), join(dir, 'agents/assistant.yaml'))
  return dir
}

describe('docs: access', () => {
  test('one team with keys: an operator that uses one agent, and a user with its own runs', async () => {
    const dir = project()
    cpSync(join(root, 'agents/assistant.yaml'), join(dir, 'agents/code-review.yaml'))
    writeFileSync(join(dir, 'agents/millrace.config.ts'), recipe('CI_KEY'))
    const [ci, shop] = ['c'.repeat(32), 's'.repeat(32)]
    const { url } = await serving(['agents', '--data', 'none'], {
      cwd: dir,
      env: { CI_KEY: ci, SHOP_KEY: shop, MILLRACE_DEMO_DELAY_MS: '0' },
    })
    const ask = async (key: string, path: string, body?: object) => {
      const response = await fetch(url + path, {
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...(body && { method: 'POST', body: JSON.stringify(body) }),
      })
      return { status: response.status, body: await response.text() }
    }
    const start = (agentId: string) => ({ agentId, input: { messages: [{ role: 'user', content: 'Hi' }] } })
    expect((await ask('wrong', '/api/agents')).status).toBe(401)
    expect((await ask(ci, '/api/runs', start('assistant'))).status).toBe(404)
    expect((await ask(ci, '/api/runs', start('code-review'))).status).toBe(202)
    const started = await ask(shop, '/api/runs', start('assistant'))
    expect(started.status).toBe(202)
    expect((JSON.parse((await ask(shop, '/api/runs')).body) as { runs: object[] }).runs).toMatchObject([
      { owner: 'key:shop' },
    ])
    expect((JSON.parse((await ask(ci, '/api/runs')).body) as { runs: object[] }).runs).toHaveLength(2)
  })

  test('an app with its own sessions: two users have their own runs', async () => {
    const dir = project()
    const file = join(dir, 'app.ts')
    writeFileSync(
      file,
      recipe('createHandler').replace("'agents/assistant.yaml'", JSON.stringify(join(dir, 'agents/assistant.yaml'))),
    )
    const { millrace } = (await import(pathToFileURL(file).href)) as { millrace: Handler }
    const as = (user: string) => ({ 'x-user': user, 'x-organization': 'acme', 'content-type': 'application/json' })
    const body = JSON.stringify({ agentId: 'assistant', messages: [{ role: 'user', content: 'Hi' }] })
    const url = 'http://app/api/beddel/chat'
    expect((await millrace(new Request(url, { method: 'POST', body }))).status).toBe(401)
    const answer = await millrace(new Request(url, { method: 'POST', body, headers: as('ann') }))
    expect(await answer.text()).toContain('demo model')
    const runsOf = async (user: string) => {
      const response = await millrace(new Request('http://app/api/runs', { headers: as(user) }))
      return ((await response.json()) as { runs: object[] }).runs
    }
    expect(await runsOf('ann')).toMatchObject([{ owner: 'ann', tenant: 'acme' }])
    expect(await runsOf('ben')).toEqual([])
  })

  test('the settings of an OpenID provider are those that a config may have', async () => {
    const dir = project()
    writeFileSync(join(dir, 'agents/millrace.config.ts'), recipe('https://id.example'))
    expect((await loadConfig(join(dir, 'agents'))).server?.access?.claims).toEqual(['plan'])
  })
})
