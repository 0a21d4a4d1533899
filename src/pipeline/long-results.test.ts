/** `inline` and the name of the built-in tool `readResult`: what `check` says. */
import { describe, expect, test } from 'vitest'
import { parsePipeline, PipelineError } from './parse.ts'

function faultsOf(tools: string, more = '', type = 'llm'): string[] {
  const text = `workflow:
  - id: a
    type: ${type}
    config:
      ${type === 'script' ? 'code: return 1' : 'model: "m:a"'}
      ${more}
      tools:
${tools
  .split('\n')
  .map((line) => `        ${line}`)
  .join('\n')}
`
  try {
    parsePipeline(text)
  } catch (error) {
    if (error instanceof PipelineError)
      return error.faults.map(({ line, column, message }) => `${line}:${column} ${message}`)
    throw error
  }
  return []
}

const words = 'must be a number of characters such as 30k, from 4k, or none'

describe('inline', () => {
  test.each(['30k', '4000', '4k', '30.5K', 'none', '"100k"'])('%s', (value) => {
    expect(
      faultsOf(
        `- { name: t, inline: ${value} }\n- { mcp: s, inline: ${value} }\n- { agent: b, inline: ${value} }`,
        `inline: ${value}`,
      ),
    ).toEqual([])
  })

  test.each(['3k', '0', '-5', 'all', '30kb', 'true', '[1]', '1e9'])('%s is none', (value) => {
    const found = faultsOf(`- { name: t, inline: ${value} }`, `inline: ${value}`)
    expect(found).toHaveLength(2)
    for (const fault of found) expect(fault).toContain(words)
  })

  test('is for models: a script gets every result whole', () => {
    const fault = '"inline" is for models: a script gets every result whole; remove it here'
    expect(faultsOf('- { name: t, inline: 5k }', '', 'script')).toEqual([`8:30 ${fault}`])
    expect(faultsOf('- code: [{ name: t, inline: 5k }]\n  inline: 5k')).toEqual([`8:37 ${fault}`])
  })
})

describe('a tool readResult of one’s own: both places', () => {
  test.each([
    ['a registered tool', '- other\n- readResult', '9:11', 8],
    ['a client tool', '- other\n- { name: readResult, client: true }', '9:19', 8],
    ['an agent', '- other\n- { agent: b, as: readResult }', '9:27', 8],
    ['an agent of that name', '- { agent: readResult }\n- other', '8:20', 9],
    ['a code tool', '- { code: [other], name: readResult }', '8:34', 8],
  ])('%s', (_, tools, place, line) => {
    for (const type of ['llm', 'router']) {
      const message = `"readResult" is the built-in tool that reads long results of the tools of line ${line}; rename yours`
      expect(faultsOf(tools, '', type)).toEqual([`${place} ${message}`])
    }
  })

  test('a script may have one', () => expect(faultsOf('- readResult', '', 'script')).toEqual([]))
})
