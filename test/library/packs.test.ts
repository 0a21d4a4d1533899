/** Packs: what others publish, in a config and in a program. */
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createRuntime } from '../../src/project/create-runtime.ts'
import { unpack } from '../../src/project/packs.ts'
import type { PrimitiveHandler } from '../../src/engine/registry.ts'
import { folder, ran } from '../support/cli.ts'

const dir = resolve('examples/pack/agents')
const says =
  (value: unknown): PrimitiveHandler =>
  async () => ({ value })
const using = (type: string) => `workflow: [{ id: a, type: ${type}, config: {} }]`

async function outputOf(config: Parameters<typeof createRuntime>[0]): Promise<unknown> {
  const runtime = createRuntime({ environment: { MILLRACE_DEMO_DELAY_MS: '0' }, ...config })
  const { output, error } = await (await runtime.start('a', {})).result
  await runtime.close(0)
  return error ?? output
}

describe('packs', () => {
  test('the example: its tool, its step type, its callback and its agent are there, beside the folder’s own', async () => {
    // A callback that is not there would be an error.
    expect(await ran(['check', dir])).toMatchObject({ code: 0, err: '1 file checked, no errors\n' })
    const common = ['--dir', dir, '--data', 'none']
    const forecast = await ran(['run', 'forecast', '-m', 'Use the tool weather for Paris', ...common])
    expect([forecast.code, forecast.out]).toEqual([0, expect.stringContaining('5')])
    const input = `${folder({ 'input.json': '{"celsius": 100}' })}/input.json`
    const warm = await ran(['run', 'warm', '--input', input, ...common])
    expect([warm.code, warm.out]).toEqual([0, expect.stringContaining('212')])
  })

  test('what the config names itself wins over a pack, and over its agents what the program gives', async () => {
    const pack = { steps: { say: says('pack'), other: says('other') }, agents: { a: using('other') } }
    expect(await outputOf({ packs: [pack], agents: {} })).toEqual({ value: 'other' })
    expect(await outputOf({ packs: [pack], agents: { a: using('say') } })).toEqual({ value: 'pack' })
    expect(await outputOf({ packs: [pack], steps: { say: says('own') }, agents: { a: using('say') } })).toEqual({
      value: 'own',
    })
  })

  test('a default export is a pack as well', async () => {
    const module = { default: { steps: { say: says('default') } } }
    expect(await outputOf({ packs: [module as object], agents: { a: using('say') } })).toEqual({ value: 'default' })
  })

  test('two packs with one name are refused, until the config says which', () => {
    const packs = [{ steps: { say: says(1) } }, { steps: { say: says(2) } }]
    expect(() => unpack({ packs })).toThrow(/Two packs define the step "say"/)
    expect(unpack({ packs, steps: { say: says(3) } }).steps['say']).toBeDefined()
  })

  test('createRuntime refuses a promise, what is no pack, and a name of prototypes reaches none', async () => {
    const make =
      (...packs: unknown[]) =>
      () =>
        createRuntime({ packs: packs as [], agents: {} })
    expect(make(import('../../examples/pack/millrace-pack-weather/index.ts'))).toThrow(
      /packs\[0\] is a promise: await it/,
    )
    expect(make({ steps: {} }, Promise.reject(new Error('gone')))).toThrow(/packs\[1\] is a promise/)
    expect(make({})).toThrow(/packs\[0\] is not a pack/)
    expect(make({ steps: 7 })).toThrow(/packs\[0\]\.steps must be an object/)
    const evil = JSON.parse('{"steps": {"__proto__": {"polluted": 1}}}') as object
    expect(make(evil)).not.toThrow()
    expect(({} as { polluted?: number }).polluted).toBeUndefined()
  })

  test('a pack that cannot be loaded, and one with faults in its agent, are told with their place', async () => {
    const gone = folder({
      'a.yaml': using('llm'),
      'millrace.config.mjs': `export default { packs: [import('./missing.mjs')] }`,
    })
    const first = await ran(['check', gone])
    expect([first.code, first.err]).toEqual([
      2,
      expect.stringMatching(/millrace\.config\.mjs:\d+ packs\[0\] cannot be loaded/),
    ])
    const faulty = folder({
      'a.yaml': `workflow: [{ id: a, type: output-generator, config: { template: 1 } }]`,
      'millrace.config.mjs': `export default { packs: [{ agents: { bad: 'workflow: [{ id: a, type: lm }]' } }] }`,
    })
    const second = await ran(['check', faulty])
    expect([second.code, second.out]).toEqual([1, expect.stringMatching(/^pack:bad:1:27 unknown step type "lm"/)])
  })

  test('all faults of all agents at once, each under its agent; calls that lead nowhere or back are among them', () => {
    const call = (agent: string) => `workflow:\n  - { id: c, type: call-agent, config: { agent: ${agent} } }\n`
    const make = (agents: Record<string, string>) => () => createRuntime({ agents })
    expect(make({ a: using('lm'), b: using('nothing') })).toThrow(/^a:1:27 unknown step type "lm"[^]*\nb:1:27 /)
    expect(make({ a: call('b'), b: call('a'), c: call('bb') })).toThrow(
      /^a:2:49 circular call: a → b → a[^]*\nb:2:49 [^]*\nc:2:49 unknown agent "bb" \(did you mean "b"\?\)/,
    )
    expect(
      make({
        a: call('other'),
        b: `metadata: { aliases: [other] }\n${using('output-generator').replace('{}', '{template: 1}')}`,
      }),
    ).not.toThrow()
  })
})
