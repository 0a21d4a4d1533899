/** docs/streaming-protocol.md: its examples are legal or not as it says, its commands answer, its client reads a run. */
import { execFile, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createGrammar } from '../../src/fold/grammar.ts'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import type { Entry } from '../../src/part/entry.ts'
import { partTypes } from '../../src/part/part.ts'
import { readNdjson, verify } from '../../src/store/ndjson.ts'
import { folder } from '../support/cli.ts'
import { agent } from '../support/engine.ts'
import { startServer } from '../support/server.ts'
import { readDocument } from './documents.ts'

const exec = promisify(execFile)
const page = readDocument('docs/streaming-protocol.md')
const examples = [...page.matchAll(/(?:^Not legal: `(.*)`\n\n)?^```ndjson\n([^]*?)^```$/gmu)].map(([, fault, body]) => {
  const { entries, faults } = readNdjson(body!)
  expect(faults).toEqual([])
  return { fault, text: body!, entries }
})
/** The entries that the examples of the grammar go on after. */
const beginning = examples[1]!.entries

describe('docs: streaming protocol', () => {
  test('every rule has a legal example and one with just the fault that the page names', () => {
    expect(beginning.at(-1)!.seq).toBe(3)
    const legal = examples.filter(({ fault }) => fault === undefined)
    const illegal = examples.filter(({ fault }) => fault !== undefined)
    expect(illegal).toHaveLength(5)
    expect(legal).toHaveLength(5 + 3)
    const whole = (entries: Entry[]) => (entries[0]!.seq === 1 ? entries : [...beginning, ...entries])
    for (const { entries } of legal) expect(verify(whole(entries), { open: true })).toEqual([])
    for (const { fault, entries } of illegal) {
      const grammar = createGrammar()
      expect(whole(entries).flatMap((entry) => grammar.check(entry) ?? [])).toEqual([fault])
    }
    expect(verify(examples[0]!.entries)).toEqual([])
    expect(verify(examples.at(-1)!.entries)).toEqual([])
  })

  test('every part occurs in an example', () => {
    const shown = new Set(examples.flatMap(({ entries }) => entries.map(({ type }) => type)))
    expect(partTypes.filter((type) => !shown.has(type as Entry['type']))).toEqual([])
  })

  const has = (program: string, ...args: string[]) => spawnSync(program, args).status === 0
  const hasJq = has('jq', '--version')

  test.runIf(hasJq)('every jq line gives the answer beside it', async () => {
    const cwd = folder({ 'run.ndjson': examples[0]!.text })
    const rows = [...page.matchAll(/^\| .* \| `(jq .*)` \| `(.*)` \|$/gmu)]
    expect(rows.length).toBeGreaterThan(5)
    for (const [, line, answer] of rows) {
      const { stdout } = await exec('bash', ['-c', line!.replaceAll('\\|', '|')], { cwd })
      expect([line, stdout.trim()]).toEqual([line, answer])
    }
  })

  async function server() {
    const started = await startServer({
      agents: { assistant: agent('') },
      scripts: { m: createScriptedModel([[text('Good ', 'morning.'), finish()]]) },
    })
    onTestFinished(() => started.close())
    return started
  }

  test.runIf(hasJq && has('curl', '--version'))('the curl lines follow a run, resume it and filter it', async () => {
    const [, lines] = /^```sh\n(run=\$[^]*?)^```$/mu.exec(page)!
    const { url } = await server()
    const script = lines!.trim().replaceAll('http://localhost:3000', url).replaceAll('\n', '\necho; echo ==; ')
    const { stdout } = await exec('bash', ['-euc', script])
    const [, ndjson, sse, resumed, filtered] = stdout.split('==\n').map((each) => each.trim())
    const { entries } = readNdjson(ndjson!)
    expect(verify(entries)).toEqual([])
    const framed = entries.map((entry) => `id: ${entry.seq}\ndata: ${JSON.stringify(entry)}`)
    expect(sse!.split('\n\n')).toEqual(framed)
    expect(resumed!.split('\n\n')).toEqual(framed.slice(3))
    const wanted = entries.filter(({ type }) => type === 'text-delta' || type === 'run-end')
    expect(readNdjson(filtered!).entries).toEqual(wanted)
  })

  const python = ['python3', 'python'].find((name) => has(name, '--version'))
  const [, program] = /^```python\n([^]*?)^```$/mu.exec(page)!

  /** The client of the page, as a process. */
  async function client(...args: string[]): Promise<string> {
    const file = join(folder(), 'client.py')
    writeFileSync(file, program!)
    return (await exec(python!, [file, ...args])).stdout
  }

  test.runIf(python !== undefined)('the Python client shows the answer of a run', async () => {
    const { url, post } = await server()
    const response = await post('/api/runs', {
      agentId: 'assistant',
      input: { messages: [{ role: 'user', content: 'Hi' }] },
    })
    const { id } = (await response.json()) as { id: string }
    expect(await client(url, id)).toBe('Good morning.\ncompleted\n')
  })

  test.runIf(python !== undefined)('the Python client goes on where its connection broke, within a line', async () => {
    const lines = examples[0]!.text.split(/(?<=\n)/u)
    const asked: string[] = []
    const breaking = createServer((request, response) => {
      asked.push(request.url!)
      const after = Number(new URL(request.url!, 'http://localhost').searchParams.get('after'))
      response.writeHead(200, { 'content-type': 'application/x-ndjson' })
      if (after > 0) return response.end(lines.slice(after).join(''))
      response.write(lines.slice(0, 7).join('') + lines[7]!.slice(0, 20), () => response.destroy())
    })
    await new Promise<void>((resolve) => breaking.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void breaking.close())
    const url = `http://127.0.0.1:${(breaking.address() as AddressInfo).port}`
    expect(await client(url, 'run_01')).toBe('Good morning.\ncompleted\n')
    expect(asked).toEqual([0, 7].map((after) => `/api/runs/run_01/events?follow=1&after=${after}`))
  })
})
