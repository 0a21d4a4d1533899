import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { version } from '../../src/server/version.ts'

describe('docs: version', () => {
  test('the version that the server tells is the one of the package', () => {
    const file = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
    expect(version).toBe((JSON.parse(file) as { version: string }).version)
  })
})
