/** Results of test cases in Redis. */
import { parseJson } from '../../part/json.ts'
import {
  keepsTestResults,
  keptTestResults,
  readTestResult,
  toTestResult,
  type TestResultRow,
  type TestResults,
} from '../../part/test-result.ts'
import type { RedisConnection } from './connection.ts'
import { partitionOf } from './keys.ts'
import { createOperate } from './orphans.ts'

export function createRedisTestResults(connection: RedisConnection): TestResults {
  const operate = createOperate(connection)
  return {
    async add(given) {
      const row = toTestResult(given)
      const kept = [keptTestResults, keepsTestResults]
      await operate(partitionOf(row.test), 'tested', row.test, JSON.stringify(row), ...kept)
    },
    async of(test, limit = keptTestResults) {
      const rows = (await operate(partitionOf(test), 'results', test, limit)) as string[]
      return rows.flatMap((text) => toRow(text) ?? [])
    },
    // They may be in two partitions. A process that ends in between leaves them in both; repeated, it does the rest.
    async rename(test, to) {
      const rows = (await operate(partitionOf(test), 'results', test, keptTestResults)) as string[]
      const moved = rows.flatMap((text) => {
        const row = toRow(text)
        if (row === undefined) return []
        const { n, ...rest } = row
        return [`${n} ${JSON.stringify({ ...rest, test: to })}`]
      })
      await operate(partitionOf(to), 'retested', to, keepsTestResults, moved.length, ...moved)
      await operate(partitionOf(test), 'untested', test)
    },
    async forget(test) {
      await operate(partitionOf(test), 'untested', test)
    },
  }
}

/** Undefined for what is no row: whoever can write to Redis may have changed it. */
function toRow(text: string): TestResultRow | undefined {
  const [, n, json] = /^(\d+) (.*)$/su.exec(text) ?? []
  if (json === undefined) return undefined
  try {
    const row = readTestResult(parseJson(json))
    return row && { n: Number(n), ...row }
  } catch {
    return undefined
  }
}
