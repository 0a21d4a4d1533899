/** Documents that are written out of the code say what the code says today. */
import { describe, expect, test } from 'vitest'
import { generatedDocs } from '../../scripts/docs/all.ts'
import { partTypes } from '../../scripts/docs/parts.ts'
import { describeKeys } from '../../src/pipeline/agent-schema.ts'
import { ran } from '../support/cli.ts'
import { readDocument } from './documents.ts'

describe('generated docs', () => {
  test.each([...generatedDocs()])('%s is up to date', (file, text) => {
    expect(readDocument(file) === text, `${file} is stale: run npm run docs`).toBe(true)
  })

  test('every key, every part and every command is in them', async () => {
    const [yaml, cli, parts] = ['yaml', 'cli', 'streaming-protocol'].map((name) => readDocument(`docs/${name}.md`))
    const keys = describeKeys()
    expect(keys.length).toBeGreaterThan(100)
    for (const { key, description } of keys) expect(yaml).toMatch(rowOf(key, description))
    expect(partTypes().length).toBeGreaterThan(35)
    for (const type of partTypes()) expect(parts!.split(`\`${type}\``).length, type).toBeGreaterThan(1)
    const { out } = await ran(['--help'])
    for (const [, name] of out.matchAll(/^ {2}([a-z]+) .*/gmu)) {
      if (name !== 'help') expect(cli).toContain(`## millrace ${name}\n`)
    }
  })
})

function rowOf(key: string, description: string): RegExp {
  const escaped = [`\`${key}\``, description.replaceAll('|', '\\|')].map((text) =>
    text.replaceAll(/[\\^$.*+?()[\]{}|]/gu, '\\$&'),
  )
  return new RegExp(`^\\| ${escaped[0]} \\|.*\\| ${escaped[1]} \\|$`, 'mu')
}
