/** `millrace compact`, `prune` and `rm` on a data folder. */
import { describe, expect, test } from 'vitest'
import { folder, ran } from '../support/cli.ts'

describe('upkeep commands', () => {
  test('compact merges, prune and rm delete; --dry-run changes nothing', async () => {
    const cwd = folder({
      'agents/a.yaml': 'workflow: [{ id: a, type: llm, config: { model: "demo:assistant", stream: true } }]',
    })
    const record = async () => {
      const { out } = await ran(['run', 'a', '-m', 'Hello', '--format', 'parts'], { cwd })
      return (JSON.parse(out.slice(0, out.indexOf('\n'))) as { runId: string }).runId
    }
    const [first, second] = [await record(), await record()]
    const json = async (...args: string[]) => JSON.parse((await ran([...args, '--json'], { cwd })).out) as object
    const log = async (run: string) => (await ran(['logs', run], { cwd })).out
    const before = await log(first)
    const planned = await json('compact', '--older-than', '0s', '--dry-run')
    expect(planned).toMatchObject({ runs: 2, dryRun: true })
    expect(await log(first)).toBe(before)
    expect(await json('compact', '--older-than', '0s')).toMatchObject({ runs: 2, dryRun: false })
    expect((await ran(['verify', 'all'], { cwd })).code).toBe(0)

    expect(await ran(['rm', first], { cwd })).toMatchObject({ code: 2, err: expect.stringContaining('Add --yes') })
    expect(await json('rm', first, '--yes')).toEqual({ deleted: [first] })
    expect(await ran(['rm', first, '--yes'], { cwd })).toMatchObject({
      code: 2,
      err: expect.stringContaining(`There is no run and no thread ${first}`),
    })
    expect(await json('prune', '--older-than', '0s', '--dry-run')).toMatchObject({ runs: 1, dryRun: true })
    expect((await ran(['show', second], { cwd })).code).toBe(0)
    expect(await json('prune', '--older-than', '0s')).toMatchObject({ runs: 1, dryRun: false })
    expect((await ran(['show', second], { cwd })).code).toBe(2)
  })
})
