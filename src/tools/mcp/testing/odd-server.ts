/**
 * An MCP server over stdio, run directly by Node, whose tools are given: `ODD` is a JSON list of pages of tools. `LAST` is the cursor that the last page
 * names as the next one. With `LAST=again`, each page names the first.
 */
import { createInterface } from 'node:readline'

const pages = JSON.parse(process.env['ODD']!) as unknown[][]
const last = JSON.parse(process.env['LAST'] ?? 'null') as unknown

interface Request {
  id?: number
  method: string
  params?: { cursor?: string; protocolVersion?: string; name?: string; arguments?: object }
}

function answer({ method, params = {} }: Request): object {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'odd', version: '1' },
      }
    case 'tools/list': {
      const at = Number(params.cursor ?? 0)
      return { tools: pages[at], nextCursor: at + 1 < pages.length ? String(at + 1) : last }
    }
    default:
      return {
        content: [
          { type: 'text', text: `called ${params.name}` },
          ...(params.name === 'shot' ? [{ type: 'image', data: 'QUJD', mimeType: 'image/png' }] : []),
        ],
        structuredContent: {
          called: params.name,
          ...(params.name === 'shot' && { picture: { data: 'QUJD' } }),
          ...(Object.keys(params.arguments ?? {}).length > 0 && { given: params.arguments }),
        },
      }
  }
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const request = JSON.parse(line) as Request
  if (request.id === undefined) return
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id: request.id, result: answer(request) })}\n`)
})
