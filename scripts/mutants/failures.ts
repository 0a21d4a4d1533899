/** The Vitest reporter of `run-tests.ts`: writes each failure to a file at once, so that a run can be ended before its end. */
import { appendFileSync } from 'node:fs'
import type { Reporter, SerializedError, TestCase, TestModule, Vitest } from 'vitest/node'
import type { SeenBy } from './mutant.ts'

const { list, files } = JSON.parse(process.env['MILLRACE_MUTANTS']!) as { list: string; files: number }

export default class Failures implements Reporter {
  #vitest: Vitest | undefined
  readonly #files = new Set<string>()

  onInit(vitest: Vitest): void {
    this.#vitest = vitest
  }

  onTestCaseResult(test: TestCase): void {
    if (test.result().state === 'failed') this.#failed(test.module.relativeModuleId, test.fullName)
  }

  onTestModuleEnd(module: TestModule): void {
    const groups = [module, ...module.children.allSuites()]
    const broken = groups.find((group) => group.errors().length > 0)
    if (broken !== undefined)
      this.#failed(module.relativeModuleId, broken.type === 'suite' ? broken.fullName : 'it loads')
  }

  onTestRunEnd(_modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    for (const error of errors) this.#failed('', `an error outside of tests: ${error.message.split('\n')[0]}`)
  }

  #failed(file: string, test: string): void {
    const failure: SeenBy = { file, test }
    appendFileSync(list, `${JSON.stringify(failure)}\n`)
    this.#files.add(file)
    if (this.#files.size >= files) void this.#vitest?.cancelCurrentRun('test-failure')
  }
}
