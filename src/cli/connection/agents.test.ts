import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { hashText } from '../../server/http/key.ts'
import { createContext } from '../../../test/support/command-context.ts'
import { checkServed } from './agents.ts'

/** A server that has this text of an agent from the n-th look on, and another one before. */
async function serverThatHas(text: string, from: number) {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  const file = join(dir, 'a.yaml')
  writeFileSync(file, text)
  const hashes = [await hashText('an older text'), await hashText(text)]
  let looks = 0
  const request = async (path: string) => {
    if (path === '/api/agents') return Response.json({ agents: [], errors: [] })
    return Response.json({ hash: hashes[++looks >= from ? 1 : 0] })
  }
  return { id: 'a', file, request, url: 'http://here', looks: () => looks }
}

describe('checkServed', () => {
  test('a server that has not read the file yet is waited for', async () => {
    const server = await serverThatHas('a text', 3)
    await checkServed(createContext(), server)
    expect(server.looks()).toBe(3)
  })

  test('a server that keeps another version of the file is an error that says so', async () => {
    const server = await serverThatHas('a text', Infinity)
    await expect(checkServed(createContext(), { ...server, timeout: 100 })).rejects.toThrow(
      `The server at http://here has another version of ${server.file}. Restart the server`,
    )
    expect(server.looks()).toBe(3)
  })
})
