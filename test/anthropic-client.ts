/** The official client of the Messages protocol, answered with our bytes. */
import Anthropic from '@anthropic-ai/sdk'

/** A client of `@anthropic-ai/sdk` whose every request is answered with this body. */
export function anthropicClient(body: string, contentType = 'text/event-stream'): Anthropic {
  const fetch = async () => new Response(body, { headers: { 'content-type': contentType } })
  return new Anthropic({ apiKey: 'k', baseURL: 'http://test', maxRetries: 0, fetch })
}
