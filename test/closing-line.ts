/** The last lines of a test run: what this machine could not run and what failed at first, by name, then the counts in one fixed form. */
import type { Reporter, SerializedError, TestCase, TestModule } from 'vitest/node'

export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const counts = { passed: 0, failed: errors.length, skipped: [] as TestCase[], again: [] as TestCase[] }
    for (const test of tests) {
      const result = test.result()
      const { state } = result
      // What is about SQLite has run on SQLite: no machine lacks anything.
      if (state === 'skipped' && result.note?.startsWith('on Redis: ') === true) continue
      if (test.diagnostic()?.flaky === true) counts.again.push(test)
      if (state === 'skipped') counts.skipped.push(test)
      else counts[state === 'passed' ? 'passed' : 'failed']++
    }
    // A file that could not be loaded has no tests to count, and those of a suite that could not be set up are skipped.
    const groups = modules.flatMap((module) => [module, ...module.children.allSuites()])
    counts.failed += groups.filter((group) => group.errors().length > 0).length
    const nameOf = ({ module, fullName }: TestCase) => `${module.relativeModuleId} › ${fullName}`
    const lines = [
      ...counts.skipped.map((test) => `skipped: ${nameOf(test)}`),
      ...counts.again.map(
        (test) => `failed at first: ${nameOf(test)}: ${test.result().errors?.[0]?.message.split('\n')[0]}`,
      ),
    ]
    process.stdout.write(`${[...lines, `${counts.passed} passed, ${counts.failed} failed`].join('\n')}\n`)
  }
}
