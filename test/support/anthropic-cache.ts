/**
 * A server of Anthropic's Messages API that caches prompts as the service does: a mark keeps the prompt up to its block, and finds the longest kept
 * prompt that ends at one of the 20 blocks before it. Tools come first, then system, then messages. Four marks at most; the top-level one counts.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface CachedRequest {
  tools?: Block[]
  system?: string | Block[]
  messages: { role: string; content: string | Block[] }[]
  cache_control?: object
}

type Block = Record<string, unknown> & { cache_control?: object }

/** Tokens of the prompt: those read from the cache, those written to it, and all. */
export interface PromptTokens {
  read: number
  written: number
  all: number
}

export interface CachingServer {
  baseURL: string
  requests: CachedRequest[]
  usage: PromptTokens[]
  close(): Promise<void>
}

/** Blocks that a mark looks at, its own included. */
const lookedAt = 20

/** `answer`: the content blocks of the reply to a request, by its number from 0. */
export async function startCachingServer(answer: (n: number) => Block[]): Promise<CachingServer> {
  const requests: CachedRequest[] = []
  const usage: PromptTokens[] = []
  const kept = new Set<string>()
  const server = createServer((incoming, outgoing) => {
    void (async () => {
      const request = JSON.parse((await incoming.setEncoding('utf8').toArray()).join('')) as CachedRequest
      const counted = count(request, kept)
      requests.push(request)
      if (counted === undefined) {
        const error = {
          type: 'invalid_request_error',
          message: 'A maximum of 4 blocks with cache_control may be provided.',
        }
        return void outgoing
          .writeHead(400, { 'content-type': 'application/json' })
          .end(JSON.stringify({ type: 'error', error }))
      }
      usage.push(counted)
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' }).end(frames(answer(requests.length - 1), counted))
    })()
  }).listen(0, '127.0.0.1')
  await new Promise<void>((resolve) => server.once('listening', resolve))
  return {
    baseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    usage,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function count(request: CachedRequest, kept: Set<string>): PromptTokens | undefined {
  const blocks = blocksOf(request)
  const marks = blocks.flatMap(({ cache_control: mark }, i) => (mark === undefined ? [] : [i]))
  if (request.cache_control !== undefined) marks.push(blocks.length - 1)
  if (marks.length > 4) return undefined
  // The prompt up to each block, as one text: marks do not belong to it.
  const lengths: number[] = []
  const ends: string[] = []
  let text = ''
  for (const { cache_control: _, ...block } of blocks) {
    text += `${JSON.stringify(block)}\n`
    ends.push(text)
    lengths.push(Math.ceil(text.length / 4))
  }
  let found = -1
  for (const mark of marks) {
    for (let i = mark; i >= 0 && i > mark - lookedAt; i--) {
      if (!kept.has(ends[i]!)) continue
      found = Math.max(found, i)
      break
    }
  }
  const read = found < 0 ? 0 : lengths[found]!
  for (const mark of marks) kept.add(ends[mark]!)
  const written = marks.length === 0 ? 0 : lengths[Math.max(...marks)]! - read
  return { read, written, all: lengths.at(-1)! }
}

function blocksOf({ tools = [], system = [], messages }: CachedRequest): Block[] {
  const toBlocks = (content: string | Block[]): Block[] =>
    typeof content === 'string' ? [{ type: 'text', text: content }] : content
  return [
    ...tools,
    ...toBlocks(system),
    ...messages.flatMap(({ role, content }) => toBlocks(content).map((block) => ({ role, ...block }))),
  ]
}

function frames(content: Block[], { read, written, all }: PromptTokens): string {
  const usage = {
    input_tokens: all - read - written,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
    output_tokens: 5,
  }
  const calls = content.some(({ type }) => type === 'tool_use')
  const events = [
    { type: 'message_start', message: { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], usage } },
    ...content.flatMap((block, index) => [
      { type: 'content_block_start', index, content_block: block },
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: calls ? 'tool_use' : 'end_turn', stop_sequence: null }, usage },
    { type: 'message_stop' },
  ]
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
}
