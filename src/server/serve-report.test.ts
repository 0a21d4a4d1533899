import { expect, test } from 'vitest'
import { memoryStore } from '../store/memory-store.ts'
import { createSealedTokens } from './mcp/sealed-token.ts'
import type { Report } from './error-guard.ts'
import { createReporter } from './serve-report.ts'

test('no report has the id of a task', async () => {
  const { sealTask } = createSealedTokens(memoryStore().log, { now: () => 0 })
  const id = await sealTask({ run: 'run_1' }, { id: 'ann' })
  const reports: Report[] = []
  const report = createReporter({ report: (each) => void reports.push(each) }, () => undefined)
  report({ level: 'error', event: 'note', message: `error: tasks/get of ${id} failed` })
  expect(reports).toEqual([{ level: 'error', event: 'note', message: 'error: tasks/get of mrtask_*** failed' }])
})
