/** Results of test cases in memory. */
import {
  keepsTestResults,
  keptTestResults,
  toTestResult,
  type TestResultRow,
  type TestResults,
} from '../part/test-result.ts'

/** Number of cases above which the one that was run longest ago is dropped. */
const mostTests = 10_000

export function createTestResults(): TestResults {
  /** By case, the newest first. The case that was run last is the last one. */
  const tests = new Map<string, TestResultRow[]>()
  let n = 0

  return {
    async add(given) {
      const row = { n: ++n, ...toTestResult(given) }
      const rows = [row, ...(tests.get(row.test) ?? [])]
      tests.delete(row.test)
      tests.set(
        row.test,
        rows.slice(0, keptTestResults).filter(({ time }) => time > row.time - keepsTestResults),
      )
      if (tests.size > mostTests) tests.delete(tests.keys().next().value!)
    },
    of: async (test, limit = keptTestResults) => (tests.get(test) ?? []).slice(0, limit),
    async rename(test, to) {
      const rows = tests.get(test) ?? []
      tests.delete(test)
      tests.set(
        to,
        rows.map((row) => ({ ...row, test: to })),
      )
    },
    forget: async (test) => void tests.delete(test),
  }
}
