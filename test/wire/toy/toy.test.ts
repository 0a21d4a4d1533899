/** A protocol from outside: the contract, golden files, and its way to users through a pack. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, text } from '../../../src/models/testing/scripted-model.ts'
import { wiresOf } from '../../../src/project/packs.ts'
import type { Entry } from '../../../src/part/entry.ts'
import { createWire, objects } from '../../../src/wire.ts'
import { wireContract } from '../../../src/wire/wire.contract.ts'
import { golden } from '../../golden.ts'
import { folder, ran } from '../../support/cli.ts'
import { agent } from '../../support/engine.ts'
import { startServer } from '../../support/server.ts'
import { toyWire } from './toy.ts'

wireContract(toyWire, {
  options: fc.record({ loud: fc.boolean() }),
  judge({ body }) {
    const events = body
      .trimEnd()
      .split('\n')
      .map((line) => Object.keys(JSON.parse(line) as object)[0])
    expect(events[0]).toBe('begin')
    expect(events.filter((name) => name === 'end' || name === 'fail')).toEqual([events.at(-1)])
  },
})

describe('toy wire', () => {
  test.each(['plain-text', 'parallel-answers', 'reset', 'approval', 'non-streaming', 'error-midway'])('%s', (name) => {
    const source = readFileSync(new URL(`../../../src/wire/golden/${name}.ndjson`, import.meta.url), 'utf8')
    const entries = source
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Entry)
    const encoder = toyWire.createEncoder()
    const body = entries.map((entry) => encoder.encode(entry)).join('')
    golden(new URL(`golden/${name}.txt`, import.meta.url), body)
  })

  const wires = wiresOf({ packs: [{ wires: { toy: toyWire } }] })

  test('over HTTP: the pack’s protocol answers a chat; the log is no format of a chat', async () => {
    const m = createScriptedModel([
      [text('Hel', 'lo'), finish()],
      [text('Again.'), finish()],
    ])
    const server = await startServer({ agents: { a: `history: server\n${agent()}` }, scripts: { m } }, { wires })
    onTestFinished(() => server.close())
    const chat = (format: string, content: string) =>
      server.post(`/api/chat?format=${format}`, { agentId: 'a', id: 't', messages: [{ role: 'user', content }] })
    const first = await chat('toy', 'Hi')
    expect(first.headers.get('content-type')).toBe('application/x-ndjson')
    const id = first.headers.get('x-millrace-run-id')
    expect(await first.text()).toBe(`{"begin":"${id}","before":0}\n{"say":"Hel"}\n{"say":"lo"}\n{"end":"stop"}\n`)
    const second = await (await chat('toy', 'And?')).text()
    expect(second).toContain('"before":2}\n{"say":"Again."}')
    for (const format of ['parts', 'tyo']) {
      const refused = await chat(format, 'x')
      expect([refused.status, await refused.text()]).toEqual([
        400,
        expect.stringContaining('one of text, ui, openai, responses, messages, ag-ui, toy'),
      ])
    }
  })

  test('on the command line: --format takes the name that a pack brings', async () => {
    const toy = resolve(import.meta.dirname, 'toy.ts')
    const cwd = folder({
      'agents/a.yaml': 'workflow: [{ id: answer, type: llm, config: { model: "demo:assistant", stream: true } }]\n',
      'agents/millrace.config.mjs': `import { toyWire } from ${JSON.stringify(toy)}
export default { packs: [{ wires: { toy: toyWire } }] }
`,
    })
    const { code, out, err } = await ran(['run', 'a', '-m', 'Hi', '--format', 'toy', '--data', join(cwd, 'data')], {
      cwd,
    })
    expect([code, err.includes('error')]).toEqual([0, false])
    expect(out).toMatch(/^\{"begin":"run_\w+","before":0\}\n(\{"say":".+"\}\n)+\{"end":"stop"\}\n$/u)
  })

  test('what a config calls a wire must be one, by its own name', () => {
    expect(() => wiresOf({ wires: { toy: {} as never } })).toThrow(/wires\.toy must be a wire of that name/u)
    const other = createWire({
      name: 'other',
      project: () => ({ state: 'open', apply() {}, fail() {} }),
      framing: objects(),
    })
    expect(() => wiresOf({ wires: { toy: other as never } })).toThrow(/wires\.toy must be a wire of that name/u)
  })
})
