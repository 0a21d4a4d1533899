import { expect, test } from 'vitest'
import type { RunRow } from '../../../src/part/log.ts'
import { csvOf } from './csv.ts'

test('a row has its numbers, its texts in quotes where they need them, and no formula', () => {
  const run: RunRow = {
    id: 'run_1',
    agent: 'assistant',
    threadId: 't',
    protocol: 'ui',
    status: 'completed',
    startedAt: Date.UTC(2026, 0, 31),
    updatedAt: Date.UTC(2026, 0, 31) + 1500,
    lastSeq: 2,
    epoch: 1,
    title: '=1+1, "please"',
    cost: 0.25,
    models: ['m1', 'm2'],
  }
  const [head, row, end] = csvOf([run]).split('\r\n')
  expect(head).toBe(
    'run,status,agent,user,tenant,first words,started,ms,first token ms,input tokens,output tokens,usd,models,client,thread,errors,error',
  )
  expect(row).toBe(`run_1,completed,assistant,,,"'=1+1, ""please""",2026-01-31T00:00:00.000Z,1500,,,,0.25,m1 m2,ui,t,,`)
  expect(end).toBe('')
})
