/** Finds the patterns of a schema that are not enforced, for warnings. */
import { compilePattern, fullBudget, PatternError, PatternTooCostly, type PatternBudget } from '../pattern/pattern.ts'
import { isObject } from './keywords.ts'

/** Each with the reason: `"^(?=a)" uses a lookahead, which is not supported`. At most 10, from the first 10,000 values of the schema. */
export function unsupportedPatterns(schema: unknown): string[] {
  const found = new Set<string>()
  const open = [schema]
  const budget = { left: fullBudget }
  for (let i = 0; i < 10_000 && open.length > 0 && found.size < 10; i++) {
    const at = open.pop()
    if (typeof at !== 'object' || at === null) continue
    if (isObject(at)) {
      const { pattern, patternProperties } = at
      const patterns = [pattern, ...Object.keys(isObject(patternProperties) ? patternProperties : {})]
      for (const each of patterns) {
        const reason = typeof each === 'string' ? reasonAgainst(each, budget) : undefined
        if (reason !== undefined) found.add(`${JSON.stringify(String(each).slice(0, 100))} ${reason}`)
      }
    }
    open.push(...Object.values(at))
  }
  return [...found]
}

function reasonAgainst(pattern: string, budget: PatternBudget): string | undefined {
  try {
    compilePattern(pattern, { isLenient: true, budget })
    return undefined
  } catch (error) {
    if (error instanceof PatternError) return error.message
    // The budget is spent: the remaining patterns are not examined.
    if (error instanceof PatternTooCostly) return undefined
    throw error
  }
}
