/** `millrace serve` with `server.access` in the config. */
import { expect, test } from 'vitest'
import { folder, millrace, serving } from '../support/cli.ts'

const demo = `metadata: { description: "Says something" }
workflow:
  - { id: answer, type: llm, config: { model: "demo:assistant" } }
`
const project = (access: string) =>
  folder({
    'agents/helper.yaml': demo,
    'agents/millrace.config.mjs': `export default { server: { access: ${access} } }`,
  })
const secret = 'a-secret-of-the-environment-0123456789'

test('a server on this machine asks who calls, and a key of the config is an answer', async () => {
  const cwd = project(`{ keys: [{ name: 'ci', env: 'CI_KEY', role: 'operator' }] }`)
  const { url } = await serving([], { cwd, env: { CI_KEY: secret } })
  const refused = await fetch(`${url}/api/runs`)
  expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
  const authorization = `Bearer ${secret}`
  expect((await fetch(`${url}/api/runs`, { headers: { authorization } })).status).toBe(200)
  const both = await fetch(`${url}/api/runs`, { headers: { authorization, 'x-api-key': 'other' } })
  expect([both.status, ((await both.json()) as { error: { code: string } }).error.code]).toEqual([
    400,
    'two-credentials',
  ])
})

test.each([
  [
    `{ keys: [{ name: 'ci', env: 'CI_KEY', agents: ['helpr'] }] }`,
    [],
    /server\.access\.keys\[0\]\.agents: there is no agent "helpr" \(did you mean "helper"\?\), only helper/u,
  ],
  [
    `{ keys: [{ name: 'ci', env: 'CI_KYE' }] }`,
    [],
    /server\.access\.keys\[0\]\.env: the variable CI_KYE is not set \(did you mean "CI_KEY"\?\)/u,
  ],
  [`{ anonymous: 'user' }`, ['--host', '0.0.0.0'], /server\.access\.anonymous: on 0\.0\.0\.0/u],
])('a server with %s does not start', async (access, args, message) => {
  const command = millrace(['serve', '--port', '0', ...args], { cwd: project(access), env: { CI_KEY: secret } })
  expect(await command.exit).toBe(2)
  expect(command.err).toMatch(message)
  expect(command.err).not.toContain(secret)
})
