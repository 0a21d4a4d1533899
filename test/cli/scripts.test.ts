/** A run of a script on the command line: it is checked, shown and asked like any other, and a mistake in its text is found before. */
import { describe, expect, test } from 'vitest'
import { folder, ran } from '../support/cli.ts'

const agent = `
workflow:
  - { id: s, type: script, config: { code: { file: scripts/s.ts }, tools: [calculator] } }
`

describe('scripts on the command line', () => {
  test('verify, show and SQL know the script and its calls', async () => {
    const script =
      'const all = await Promise.all([1, 2].map((n: number) => tools.calculator({ expression: `${n} * 7` })))\nreturn all.length'
    const cwd = folder({ 'agents/a.yaml': agent, 'agents/scripts/s.ts': script })
    const { code, err } = await ran(['run', 'a', '-m', 'Go'], { cwd })
    expect([code, err]).toEqual([0, expect.stringContaining('completed')])
    const run = /run_\w+/u.exec(err)![0]
    expect(await ran(['verify', 'all'], { cwd })).toMatchObject({ code: 0 })
    const shown = await ran(['show', run], { cwd })
    expect(shown.out).toMatch(/script[^]*calculator[^]*calculator/u)
    const asked = await ran(['query', 'SELECT tool_name, count(*) AS n FROM tool_calls GROUP BY tool_name', '--json'], {
      cwd,
    })
    expect(asked.out).toMatch(/calculator[^]*2/u)
  })

  test('check finds a mistake in the file of a script, with its place there', async () => {
    const cwd = folder({ 'agents/a.yaml': agent, 'agents/scripts/s.ts': 'const a = 1\nreturn a +' })
    const { code, err, out } = await ran(['check', 'agents'], { cwd })
    expect(code).not.toBe(0)
    expect(out + err).toContain('scripts/s.ts:2:')
  })
})
