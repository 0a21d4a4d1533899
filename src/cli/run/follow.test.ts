import { readFileSync } from 'node:fs'
import { Writable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { createContext } from '../../../test/support/command-context.ts'
import type { MillraceClient } from '../../client/client.ts'
import type { RequestView } from '../../fold/run-view.ts'
import type { Entry } from '../../part/entry.ts'
import { textWire } from '../../wire/text/text.ts'
import { followRun } from './follow.ts'
import { formatRequests } from './requests.ts'

const golden = (name: string) =>
  readFileSync(new URL(`../../wire/golden/${name}.ndjson`, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry)

/** What following prints. Nobody answers here. */
async function printed(name: string, showsTools = false) {
  let [out, err] = ['', '']
  const stdout = new Writable({ write: (chunk, _, done) => ((out += String(chunk)), done()) })
  const stderr = new Writable({ write: (chunk, _, done) => ((err += String(chunk)), done()) })
  const asked: RequestView[] = []
  const client = {
    async *follow() {
      yield* golden(name)
    },
  } as unknown as MillraceClient
  const ask = { canAnswer: (request: RequestView) => asked.push(request) < 0, answer: async () => ({ value: 1 }) }
  const followed = await followRun(createContext({ stdout, stderr }), client, 'run_01', {
    wire: textWire,
    ask,
    showsTools,
  })
  return { out, err: err.trimEnd().split('\n'), waiting: followed.waiting }
}

describe('following a run whose model calls agents', () => {
  test('prints one line for each agent that starts and one for its end, and nothing that it says', async () => {
    const { out, err } = await printed('agent-tools')
    expect(out).toBe('Done.')
    expect(err).toEqual([
      'agent researcher started',
      'agent writer started',
      'agent checker started',
      'agent writer > publish started',
      'agent checker failed in 0.39s: The agent checker failed: The model broke. It had said: I could not ',
      'agent writer > publish completed in 0.14s',
      'agent researcher completed in 0.41s',
      'agent writer completed in 0.42s',
    ])
  })

  test('in a chat shows the calls of the run itself, but not those of the agents', async () => {
    const { err } = await printed('agent-tool', true)
    expect(err).toEqual([
      '→ researcher {"message":"the age of the mill"}',
      'agent researcher started',
      'agent researcher completed in 0.83s',
    ])
  })

  test('says who takes over', async () => {
    const { out, err } = await printed('agent-handoff')
    expect(out).toBe('I hand you over.\n\nYou get 20 euros.')
    expect(err).toContain('agent refunds takes over')
  })

  test('an open approval has the chain of agents', async () => {
    const { waiting } = await printed('agent-approval')
    expect(waiting).toMatchObject([{ toolName: 'upload', agents: ['desk', 'writer', 'publish'] }])
    expect(formatRequests('run_01', waiting).split('\n')).toEqual([
      expect.stringMatching(/^REQUEST +WANTS +FROM +TOOL/u),
      expect.stringMatching(/^req_1 +approval +desk > writer > publish +upload .*\{"path":"it\.md"\}$/u),
    ])
  })
})
