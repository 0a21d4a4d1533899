/** What an editor says of an agent: the real server behind its YAML support, with the schema that the first line names. */
import { readFileSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { folder, ran } from '../support/cli.ts'
import { openEditor } from './language-server.ts'

describe('schema in the YAML language server', () => {
  test('a misspelt key, a wrong value and an unknown tool are marked on their lines; keys are explained and offered', async () => {
    const cwd = folder()
    await ran(['init'], { cwd })
    const dir = join(cwd, 'agents')
    const good = readFileSync(join(dir, 'assistant.yaml'), 'utf8')
    const lines = good.split('\n')
    const lineOf = (text: string) => lines.findIndex((line) => line.includes(text))
    const editor = await openEditor(dir)
    expect(await editor.open('assistant.yaml')).toEqual([])

    const broken = good.replace('stream: true\n', 'strem: true\n').replace('maxSteps: 5', 'maxSteps: many')
    const found = await editor.open('broken.yaml', broken.replace('- name: calculator', '- name: calculatr'))
    expect(found.map(({ range }) => range.start.line).toSorted((a, b) => a - b)).toEqual([
      lineOf('      stream: true'),
      lineOf('- name: calculator'),
      lineOf('maxSteps: 5'),
    ])
    expect(found.map(({ message }) => message).join('\n')).toContain('Property strem is not allowed')

    expect(await editor.hover('assistant.yaml', lineOf('maxSteps: 5'), 8)).toContain(
      'Maximum number of model calls for one answer',
    )
    const more = [...lines.slice(0, lineOf('maxSteps: 5')), '      ', '']
    await editor.open('more.yaml', more.join('\n'))
    expect(await editor.complete('more.yaml', lineOf('maxSteps: 5'), 6)).toEqual(
      expect.arrayContaining(['maxSteps', 'temperature', 'onFinish', 'toolChoice']),
    )
    const type = [...lines.slice(0, lineOf('type: llm')), '    type: ', '']
    await editor.open('type.yaml', type.join('\n'))
    expect(await editor.complete('type.yaml', lineOf('type: llm'), 10)).toEqual(
      expect.arrayContaining(['llm', 'call-agent', 'parallel', 'loop']),
    )
  })

  test('the shipped agents have nothing to complain about', async () => {
    const dir = resolve('agents')
    const editor = await openEditor(dir)
    for (const name of readdirSync(dir).filter((each) => each.endsWith('.yaml'))) {
      expect([name, await editor.open(name)]).toEqual([name, []])
    }
  })
})
