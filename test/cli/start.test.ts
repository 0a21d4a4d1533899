/** The built command as a process: it starts, answers and ends. What else only a process shows is in `process.all.test.ts`. */
import { describe, expect, test } from 'vitest'
import { folder } from '../support/cli.ts'
import { ran, serving } from '../support/cli-process.ts'

const demo =
  'workflow: [{ id: answer, type: llm, config: { model: "demo:assistant", stream: true, tools: [calculator] } }]\n'

describe('millrace start', () => {
  test('run answers on stdout and exits', async () => {
    const cwd = folder({ 'agents/a.yaml': demo })
    const { code, out, err } = await ran(['run', 'a'], { cwd, input: 'What is 12*7?\n' })
    expect([code, out]).toEqual([0, expect.stringContaining('84')])
    expect(err).toMatch(/^run run_\w+\ncompleted; .*\n$/)
  })

  test('serve says when it is ready, answers, and exits 0 on SIGTERM', async () => {
    const server = await serving([], { cwd: folder({ 'agents/a.yaml': demo }) })
    const body = JSON.stringify({ agentId: 'a', messages: [{ role: 'user', content: 'What is 12*7?' }] })
    const headers = { 'content-type': 'application/json' }
    expect(await (await fetch(`${server.url}/api/beddel/chat`, { method: 'POST', headers, body })).text()).toContain(
      '84',
    )
    server.kill('SIGTERM')
    expect([await server.exit, server.err]).toEqual([
      0,
      expect.stringMatching(/\nstopping \(SIGTERM\): no active runs\.\n$/),
    ])
  })

  test('an old Node is told in one line, exit 2', async () => {
    const cwd = folder({
      'old.cjs': `
      Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.11.1' } })
      Object.defineProperty(process, 'version', { value: 'v20.11.1' })`,
    })
    const { code, out, err } = await ran(['ps'], { cwd, node: ['--require', `${cwd}/old.cjs`] })
    expect([code, out]).toEqual([2, ''])
    expect(err).toMatch(/^millrace needs Node 24 or newer; this is v20\.11\.1\. .*\n$/)
  })
})
