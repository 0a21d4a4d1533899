/** The tour of the README, line by line as it is pasted. */
import { symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { folder, ran } from '../support/cli.ts'
import { readDocument } from './documents.ts'

const [, tour = ''] = /^## A tour in ten minutes\n[^]*?```sh\n([^]*?)```/mu.exec(readDocument('README.md')) ?? []

/** The words of a line of a shell, without its comment. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|'([^']*)'|(#.*)|(\S+)/gu)].flatMap(([, quoted, single, comment, word]) =>
    comment === undefined ? [quoted ?? single ?? word!] : [],
  )
}

describe('docs: tour', () => {
  test('every line of the tour does what it says', async () => {
    const lines = tour.trim().split('\n')
    expect(lines.length).toBeGreaterThan(7)
    const cwd = folder()
    symlinkSync(resolve('agents'), join(cwd, 'agents'))
    const said = new Map<string, string>()
    let run = ''
    for (const line of lines) {
      const [npx, name, ...words] = wordsOf(line)
      expect([npx, name]).toEqual(['npx', 'millrace'])
      const { code, out, err } = await ran(
        words.map((word) => (word === '<run>' ? run : word)),
        { cwd },
      )
      expect([line, code]).toEqual([line, 0])
      run = /^run (run_\w+)$/mu.exec(err)?.[1] ?? run
      said.set(words.slice(0, 2).join(' '), out + err)
    }
    expect(said.get('check agents')).toMatch(/^\d+ files checked, no errors\n$/)
    expect(said.get('run assistant')).toContain('12*7 = 84.')
    expect(said.get('run summarize-json')).toContain('"title":"Every run is a log"')
    expect(said.get('run scripter')).toContain('{"value":42}')
    expect(said.get('run approve-first')).toContain('12*7 = 84.')
    // The head and a line for each run.
    expect(said.get('ps')!.trim().split('\n')).toHaveLength(1 + lines.filter((line) => line.includes(' run ')).length)
    expect(said.get('show <run>')).toMatch(/approve-first {2}completed\n[^]*approval calculator/)
  })
})
