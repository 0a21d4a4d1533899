/** What came of a case, as the store keeps it, and the id under which it is kept. */
import { relative, sep } from 'node:path'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { NewTestResult } from '../part/test-result.ts'
import type { CaseResult } from './run-case.ts'
import type { TestCase } from './test-case.ts'

/** Its file without the extension, and its name in file names: `shop/orders-two-lunches`. Undefined outside of the folder of cases. */
export function caseId(dir: string, path: string, { slug }: Pick<TestCase, 'slug'>): string | undefined {
  const inside = relative(dir, path).split(sep)
  if (inside[0] === '..' || inside[0] === '') return undefined
  return [...inside, slug].join('/').replace(/\.ya?ml(?=\/[^/]*$)/u, '')
}

type About = Pick<NewTestResult, 'test' | 'agent' | 'time' | 'user' | 'source'> & { run: string | undefined }

export function resultRow(about: About, result: CaseResult): NewTestResult {
  const { usage, failures, warnings, model, status, isLive, cost, duration } = result
  const tokens = usage.totalTokens ?? 0
  return omitUndefined({ ...about, tokens, failures, warnings, model, status, isLive, cost, duration })
}
