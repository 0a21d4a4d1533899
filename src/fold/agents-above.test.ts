import { describe, expect, test } from 'vitest'
import { readFileSync } from 'node:fs'
import { buildRun, startPart, type Item } from '../../test/build-run.ts'
import type { Entry } from '../part/entry.ts'
import { createAgentsAbove } from './agents-above.ts'
import { createRunFold } from './run-fold.ts'

const golden = (name: string) =>
  readFileSync(new URL(`../wire/golden/${name}.ndjson`, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry)

describe('agents above a path', () => {
  const start = (step: string, agent?: string, toolCallId?: string): Item => ({
    step,
    part: { type: 'step-start', stepType: 'x', attempt: 1, ...(agent && { agent }), ...(toolCallId && { toolCallId }) },
  })

  test('are the agents of the open steps around it, outermost first', () => {
    const above = createAgentsAbove()
    const items: Item[] = [
      { step: '', part: startPart },
      start('main/team', 'team'),
      start('main/team/desk', undefined),
      start('main/team/desk/2', 'writer', 'c1'),
      start('main/team/desk/3', 'critic', 'c2'),
      start('main/team/desk/2/w'),
    ]
    for (const entry of buildRun(items)) above.apply(entry)
    expect(above.at('main/team/desk/2/w/1')).toEqual(['assistant', 'team', 'writer'])
    expect(above.at('main/team/desk/3')).toEqual(['assistant', 'team', 'critic'])
    expect(above.at('main/teams')).toEqual(['assistant'])
    expect(above.field('main/other')).toEqual({})
    above.apply(buildRun([{ step: 'main/team/desk/2', part: { type: 'step-finish', duration: 1 } }], 7)[0]!)
    expect(above.at('main/team/desk/2/w')).toEqual(['assistant', 'team'])
    above.apply(buildRun([{ step: 'main/team', part: { type: 'step-reset', attempt: 1 } }], 8)[0]!)
    expect(above.at('main/team/desk/3')).toEqual(['assistant'])
  })

  test('are in the open requests of a run, where its own agent does not ask', () => {
    const until = (entries: Entry[]) => {
      const fold = createRunFold()
      for (const entry of entries) {
        fold.apply(entry)
        if (entry.type === 'suspend') break
      }
      return fold.view().requests
    }
    expect(until(golden('agent-approval'))).toMatchObject([
      { toolName: 'upload', agents: ['desk', 'writer', 'publish'] },
    ])
    expect(until(golden('agent-client-tool'))).toMatchObject([{ toolName: 'getPlace', agents: ['desk', 'guide'] }])
    for (const request of until(golden('approval'))) expect(request).not.toHaveProperty('agents')
  })

  test('lead to a handoff, too', () => {
    const above = createAgentsAbove()
    const entries = golden('agent-handoff')
    const inside = entries.findIndex(({ step }) => step === 'main/desk/2/refund/2/find/1')
    for (const entry of entries.slice(0, inside)) above.apply(entry)
    expect(above.at('main/desk/2/refund/2/find/1')).toEqual(['desk', 'refunds', 'researcher'])
  })
})
