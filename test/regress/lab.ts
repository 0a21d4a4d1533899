/** A folder of agents and cases, and the runner of cases in this process with models that are scripts. */
import { join } from 'node:path'
import type { Config } from '../../src/project/config.ts'
import { openTestRuntime } from '../../src/regress/test-runtime.ts'
import { readCases } from '../../src/regress/read-cases.ts'
import { runCases, type RunCasesOptions } from '../../src/regress/run-cases.ts'
import { folder } from '../support/cli.ts'

export interface LabFiles {
  agents: Record<string, string>
  cases: string
  config?: Config
  env?: Record<string, string>
}

/** `run` runs the cases once; `dir` has the files. */
export async function labOf({ agents, cases, config = {}, env = {} }: LabFiles) {
  const dir = folder({
    'tests/t.yaml': cases,
    ...Object.fromEntries(Object.entries(agents).map(([id, text]) => [`agents/${id}.yaml`, text])),
  })
  const open = (more: Config = {}) => openTestRuntime({ dir: join(dir, 'agents'), env, config: { ...config, ...more } })
  const path = join(dir, 'tests/t.yaml')
  const run = async (options: Partial<RunCasesOptions> & { config?: Config; cases?: string } = {}) => {
    const { config: more, cases: text = cases, ...rest } = options
    const lab = await open(more)
    const file = readCases(text, path)
    const { signal } = new AbortController()
    const { results } = await runCases({ testRuntime: lab, files: [file], concurrency: 4, signal, ...rest })
    lab.agents.close()
    return results
  }
  return { dir, run, recording: (name: string) => join(dir, 'tests/recordings/t', `${name}.ndjson`) }
}
