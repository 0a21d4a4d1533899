/** The code that the playground offers for a request does that request. */
import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { codes, type CodeRequest } from '../../web/rooms/chat/copy-as.ts'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { startServer } from '../support/server.ts'

const run = promisify(execFile)
const make = (id: string, request: CodeRequest) => codes.find((code) => code.id === id)!.make(request)
/** All that a shell, a string of JavaScript or JSON could take for its own. */
const words = `It's "12*7"? $HOME \`date\` \\ \\' \${x} </script>\nNew line %s !`

async function serve(apiKey?: string) {
  const said: unknown[] = []
  const m = createScriptedModel(Array.from({ length: 4 }, () => [text('eighty', '-four'), finish()]))
  const server = await startServer(
    { agents: { 'my agent': agent('', 'input:\n  topic: { type: string, default: none }\n') }, scripts: { m } },
    { ...(apiKey !== undefined && { apiKey }) },
  )
  const request = {
    origin: server.url,
    agentId: 'my agent',
    text: words,
    values: { topic: `it's` },
    hasKey: apiKey !== undefined,
  }
  const asked = async () => {
    for (const { id } of await server.store.runs.list({})) {
      const view = (await (
        await fetch(`${server.url}/api/runs/${id}`, { headers: { authorization: `Bearer ${apiKey ?? ''}` } })
      ).json()) as {
        input: { messages: { content: unknown }[] }
      }
      const { content } = view.input.messages.at(-1)!
      said.push(typeof content === 'string' ? content : (content as { text: string }[])[0]!.text)
    }
    return said
  }
  return { server, request, asked }
}

const hasCurl = spawnSync('curl', ['--version']).status === 0

describe.skipIf(!hasCurl)('curl', () => {
  test('the command sends the message as it is, with the key from the environment', async () => {
    const { server, request, asked } = await serve('s3cret-key')
    const command = make('curl', request)
    expect(command).not.toContain('s3cret-key')
    const { stdout } = await run('sh', ['-c', command], { env: { ...process.env, MILLRACE_API_KEY: 's3cret-key' } })
    expect(stdout).toContain('"delta":"eighty"')
    expect(stdout).toContain('[DONE]')
    expect(await asked()).toEqual([words])
    await server.close()
  })
})

test('the programs for openai, AG-UI and millrace/client print the answer', async () => {
  const { server, request, asked } = await serve()
  const program = ['openai', 'ag-ui', 'client'].map((id) => make(id, request)).join('\n')
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program])
  expect(stdout).toBe('eighty-four'.repeat(3))
  expect(await asked()).toEqual([words, words, words])
  await server.close()
})

test('a page gets no key, and sends the values of the form', () => {
  const code = make('useChat', {
    origin: 'http://a.example',
    agentId: 'a',
    text: 'x',
    values: { topic: 'mills' },
    hasKey: true,
  })
  expect(code).not.toContain('MILLRACE_API_KEY')
  expect(code).toContain('"topic": "mills"')
})
