/**
 * The last lines of a test run: what was skipped and why, what the other commands add, and the counts in one fixed form
 * (`N passed, N failed`), which `.ci/run` reads.
 */
import type { Reporter, SerializedError, TestCase, TestModule } from 'vitest/node'

const commands: Record<string, string> = {
  'npm test': 'parts, folds, wires, stores, engine, runtime, server over HTTP, command line, docs',
  'npm run test:all': 'real Redis, clusters and Postgres, load balancers, kills, chaos, browsers, examples',
  'npm run test:memory': 'what the garbage collector leaves, with figures',
  'npm run test:clis': 'coding agents from npm',
}

function commandOf(project: string): string {
  if (project.startsWith('fast')) return 'npm test'
  return `npm run test:${project.replace(/-.*/u, '')}`
}

/** Names say what is needed: `… (needs redis-server)`. */
function reasonOf(test: TestCase): string {
  const { note } = test.result() as { note?: string }
  return /\((needs [^)]+)\)/u.exec(test.fullName)?.[1] ?? note ?? test.module.relativeModuleId
}

export default class ClosingLine implements Reporter {
  #began = performance.now()

  onTestRunStart(): void {
    this.#began = performance.now()
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const counts = { passed: 0, failed: errors.length }
    const skipped = new Map<string, number>()
    for (const test of modules.flatMap((module) => [...module.children.allTests()])) {
      const { state, note } = test.result() as { state: string; note?: string }
      // Tests of SQLite have run on SQLite: this machine lacks nothing.
      if (state === 'skipped' && note?.startsWith('on Redis: ') === true) continue
      if (state === 'skipped') skipped.set(reasonOf(test), (skipped.get(reasonOf(test)) ?? 0) + 1)
      else counts[state === 'passed' ? 'passed' : 'failed']++
    }
    // A file that could not be loaded has no tests to count, and those of a suite that could not be set up are skipped.
    const groups = modules.flatMap((module) => [module, ...module.children.allSuites()])
    counts.failed += groups.filter((group) => group.errors().length > 0).length
    const ran = new Set(modules.map(({ project }) => commandOf(project.name)))
    const seconds = Math.round((performance.now() - this.#began) / 1000)
    const lines = [
      `Ran ${counts.passed + counts.failed} tests in ${modules.length} files and ${seconds} s: ${[...ran].map((name) => commands[name] ?? name).join('; ')}.`,
      ...[...skipped].map(([reason, count]) => `Skipped ${count} (${reason}).`),
      ...Object.entries(commands)
        .filter(([name]) => !ran.has(name) && name !== 'npm test')
        .map(([name, adds]) => `${name} adds ${adds}.`),
      `${counts.passed} passed, ${counts.failed} failed`,
    ]
    process.stdout.write(`${lines.join('\n')}\n`)
  }
}
