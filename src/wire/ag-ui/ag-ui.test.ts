import fc from 'fast-check'
import { expect } from 'vitest'
import { agUiRuns } from '../../../test/ag-ui-judge.ts'
import { parseSse } from '../../../test/sse.ts'
import { wireContract } from '../wire.contract.ts'
import type { AgUiEvent } from './ag-ui-event.ts'
import { agUiObjectsWire, agUiWire } from './ag-ui.ts'

const options = fc.record({ old: fc.boolean(), traces: fc.boolean() })

wireContract(agUiWire, {
  options,
  judge({ body, state, context }) {
    expect(state).toBe('complete')
    expect(body).not.toContain('AFTER')
    const events = parseSse(new TextEncoder().encode(body)).map(({ data }) => JSON.parse(data) as AgUiEvent)
    const runs = agUiRuns(events)
    if (context.resumedAt === undefined) expect(runs).toHaveLength(1)
  },
})

wireContract(agUiObjectsWire, { options, numRuns: 60 })
