import { describe, expect, test } from 'vitest'
import { checkCalls } from './calls.ts'
import { faultsOf } from './fault.ts'
import { parsePipeline } from './parse.ts'

const plain = 'workflow: [{ id: a, type: output-generator, config: { template: x } }]\n'

function faultsIn(agents: Record<string, string>): string[] {
  const parsed = Object.entries(agents).map(([id, text]) => [id, parsePipeline(text)] as const)
  return checkCalls(new Map(parsed)).map(
    ({ agent, fault }) => `${agent}:${fault.line}:${fault.column} ${fault.message}`,
  )
}

describe('sideCalls', () => {
  test('it names another agent', () => {
    expect(parsePipeline(`sideCalls: titles\n${plain}`).sideCalls).toBe('titles')
    expect(faultsIn({ coder: `sideCalls: titles\n${plain}`, titles: plain })).toEqual([])
    // Nothing follows it further.
    expect(faultsIn({ a: `sideCalls: b\n${plain}`, b: `sideCalls: a\n${plain}` })).toEqual([])
  })

  test('an unknown agent, and the agent itself, are faults with their places', () => {
    expect(faultsIn({ coder: `recover: true\nsideCalls: titels\n${plain}`, titles: plain })).toEqual([
      'coder:2:12 unknown agent "titels" (did you mean "titles"?); known agents: coder, titles',
    ])
    expect(faultsIn({ coder: `sideCalls: coder\n${plain}` })).toEqual([
      'coder:1:12 "sideCalls" names this agent itself; name another one, or leave it out',
    ])
  })

  test.each(['[titles]', '{ a: 1 }', '""'])('it is one name, not %s', (value) => {
    expect(() => parsePipeline(`sideCalls: ${value}\n${plain}`)).toThrow()
    try {
      parsePipeline(`sideCalls: ${value}\n${plain}`)
    } catch (error) {
      expect(faultsOf(error)[0]!.message).toContain('sideCalls')
    }
  })
})
