/**
 * A hand-written MCP server, run directly by Node: its tool list has two pages and changes, it prints lines that are not
 * messages, and it writes the requests that it receives to its journal.
 */
import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const note = (line: string) => appendFileSync(process.env.JOURNAL!, `${line}\n`)
const say = (message: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const tool = (name: string) => ({ name, inputSchema: { type: 'object' } })

note(`pid ${process.pid}`)
console.log('This line is no message.')
console.error('This one is for nobody.')
let extra: string[] = []

interface Request {
  id?: number
  method: string
  params?: { cursor?: string; name?: string; reason?: string }
}

function answer({ method, params }: Request): object | undefined {
  if (method === 'initialize') {
    const capabilities = { tools: { listChanged: true } }
    return { protocolVersion: '2025-06-18', capabilities, serverInfo: { name: 'lines', version: '1' } }
  }
  if (method === 'tools/list') {
    note(`list ${params?.cursor ?? ''}`.trim())
    if (params?.cursor === undefined) return { tools: ['hold', 'grow'].map(tool), nextCursor: 'second' }
    return { tools: ['empty', 'big', ...extra].map(tool) }
  }
  if (params?.name === 'hold') note('hold')
  if (params?.name === 'hold') return undefined
  if (params?.name === 'grow') {
    extra = ['grown']
    say({ method: 'notifications/tools/list_changed' })
    return { content: [{ type: 'text', text: 'grown' }] }
  }
  if (params?.name === 'big') return { content: [{ type: 'text', text: 'x'.repeat(11 * 2 ** 20) }] }
  return { content: [] }
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const request = JSON.parse(line) as Request
  if (request.id === undefined) note(request.method)
  const result = request.id === undefined ? undefined : answer(request)
  if (result !== undefined) say({ id: request.id, result })
})
