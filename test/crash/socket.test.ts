/** Socket.IO and a server that is killed: a pending tool is answered on a new connection to the next one. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { spawnServer } from '../support/server-process.ts'
import { connectSocket, judged, pick, textOf, transports } from '../support/socket.ts'

const config = `
import { createScriptedModel, text, toolCall } from ${JSON.stringify(resolve('dist/testing.js'))}
const model = createScriptedModel(({ options: { prompt } }) =>
  prompt.at(-1).role === 'tool' ? [text('You picked ', JSON.stringify(prompt.at(-1).content[0].output.value))] : [text('Which? '), toolCall('pick', {}, 'c1')])
export default { models: { providers: { script: () => model } } }
`
const yaml = 'workflow: [{ id: answer, type: llm, config: { model: "script:m", stream: true } }]\n'

describe('Socket.IO across a crash', () => {
  test.each(transports)('%s: killed with a tool pending, answered after the restart', async (transport) => {
    const dir = mkdtempSync(join(tmpdir(), 'millrace-'))
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
    writeFileSync(join(dir, 'a.yaml'), yaml)
    writeFileSync(join(dir, 'millrace.config.mjs'), config)
    const first = await spawnServer(dir, join(dir, 'data'))
    onTestFinished(first.kill)
    const client = await connectSocket(first.url, transport)
    const { millraceRunId: runId } = await client.run({ tools: [pick] })
    await client.until(({ event }) => event.type === 'TOOL_CALL_END')
    const status = async () =>
      ((await (await fetch(`${first.url}/api/runs/${String(runId)}`)).json()) as { status: string }).status
    await expect.poll(status).toBe('suspended')
    const { with: after } = client.sent.at(-1)!
    await first.kill()
    const second = await spawnServer(dir, join(dir, 'data'))
    onTestFinished(second.kill)
    const later = await connectSocket(second.url, transport)
    const watched = await later.send('watch_run', { runId, after, protocolVersion: '1.0' })
    expect(watched).toEqual({ ok: true, runId: 'r', threadId: 't', millraceRunId: runId })
    const result = { messageId: 'm', toolCallId: 'c1', content: '7', role: 'tool' }
    expect(await later.send('tool_result', result)).toMatchObject({ ok: true, duplicate: false })
    const events = [...client.of('r'), ...(await later.ended('r'))]
    expect(textOf(events)).toBe('Which? You picked 7')
    await judged(events)
  })
})
