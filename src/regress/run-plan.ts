/**
 * What a run of tests is to do, in a file of the data folder for as long as it goes on. A server that was killed leaves it, and the next one knows what
 * was not done: the rest of what happened is in the results.
 */
import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseJson } from '../part/json.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { NewTestResult } from '../part/test-result.ts'
import type { TestsRun } from './test-desk.ts'

/** A case, and the model it is run with instead of those of its agent. */
export interface PlannedRun {
  test: string
  model?: string
}

export interface RunPlan {
  id: string
  /** The id of who started it. */
  user: string
  /** Epoch ms. */
  startedAt: number
  record: boolean
  models?: readonly string[]
  runs: PlannedRun[]
  /** The process that does it. */
  pid: number
}

const largest = 16_000_000

function fileOf(data: string, agents: string): string {
  const project = createHash('sha256').update(realpathSync(agents)).digest('hex').slice(0, 16)
  return join(resolve(data), 'tests', `${project}-running.json`)
}

export function writePlan(data: string, agents: string, plan: RunPlan): void {
  const path = fileOf(data, agents)
  mkdirSync(join(resolve(data), 'tests'), { recursive: true, mode: 0o700 })
  writeFileSync(`${path}.tmp`, JSON.stringify(plan), { mode: 0o600 })
  renameSync(`${path}.tmp`, path)
}

export function removePlan(data: string, agents: string): void {
  rmSync(fileOf(data, agents), { force: true })
}

/** What a process has left that is gone; undefined if there is nothing. */
export function readPlan(data: string, agents: string): RunPlan | undefined {
  try {
    const path = fileOf(data, agents)
    const found = lstatSync(path)
    if (!found.isFile() || found.size > largest) return undefined
    const plan = toPlan(parseJson(readFileSync(path, 'utf8')))
    // In containers each process may have the same id: this one has started none yet.
    return plan === undefined || (plan.pid !== process.pid && isAlive(plan.pid)) ? undefined : plan
  } catch {
    return undefined
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

const isText = (value: unknown) => typeof value === 'string' && value.length <= 512
const isWhole = (value: unknown) => Number.isSafeInteger(value) && (value as number) > 0

function toPlan(value: unknown): RunPlan | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { id, user, startedAt, record, models, runs, pid } = value as Record<keyof RunPlan, unknown>
  const isPlan =
    [id, user].every(isText) &&
    [startedAt, pid].every(isWhole) &&
    typeof record === 'boolean' &&
    (models === undefined || (Array.isArray(models) && models.every(isText))) &&
    Array.isArray(runs) &&
    runs.every(
      (each: Partial<PlannedRun> | null) => isText(each?.test) && (each!.model === undefined || isText(each!.model)),
    )
  return isPlan ? omitUndefined({ id, user, startedAt, record, models, runs, pid } as RunPlan) : undefined
}

/** What became of it: its results say what was done. */
export async function outcomeOf(
  { id, user, startedAt, record, models, runs }: RunPlan,
  resultsOf: (test: string) => Promise<NewTestResult[]>,
): Promise<{ run: TestsRun; left: PlannedRun[] }> {
  const counts = { passed: 0, failed: 0 }
  const left: PlannedRun[] = []
  let endedAt = startedAt
  for (const each of runs) {
    const isIts = ({ time, model, source, status }: NewTestResult) =>
      time >= startedAt && model === each.model && source === undefined && status !== 'stopped'
    const done = (await resultsOf(each.test)).find(isIts)
    if (done === undefined) left.push(each)
    else counts[done.status === 'passed' ? 'passed' : 'failed']++
    endedAt = Math.max(endedAt, done?.time ?? 0)
  }
  const about = { id, user, startedAt, endedAt, record, models, isInterrupted: true as const }
  return { run: omitUndefined({ ...about, total: runs.length, ...counts, stopped: left.length, running: [] }), left }
}
