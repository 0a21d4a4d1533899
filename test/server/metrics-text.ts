/** A server, and what its /metrics says. */
import { expect } from 'vitest'

/** The samples by name and labels. Throws at what is no line of the text format. */
export function parse(body: string): Map<string, number> {
  const samples = new Map<string, number>()
  const types = new Map<string, string>()
  expect(body.endsWith('\n')).toBe(true)
  for (const line of body.trimEnd().split('\n')) {
    const [, keyword, name, rest] = /^# (HELP|TYPE) ([a-zA-Z_:][\w:]*) (.+)$/u.exec(line) ?? []
    if (keyword === 'HELP') continue
    if (keyword === 'TYPE') {
      expect(types.has(name!)).toBe(false)
      types.set(name!, rest!)
      continue
    }
    const form = /^([a-zA-Z_:][\w:]*)(\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*",?)+\})? (-?[\d.e+-]+)$/u
    const [, metric, labels = '', value] = form.exec(line) ?? []
    if (metric === undefined) throw new Error(`no sample: ${line}`)
    expect(types.has(metric) || types.get(metric.replace(/_(bucket|sum|count)$/u, '')) === 'histogram').toBe(true)
    expect(samples.has(metric + labels)).toBe(false)
    samples.set(metric + labels, Number(value))
  }
  return samples
}
