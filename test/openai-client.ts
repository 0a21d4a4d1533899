/** The official clients of the OpenAI protocol, each answered with our bytes. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import OpenAI from 'openai'

const answer = (body: string, contentType = 'text/event-stream') => {
  return async () => new Response(body, { headers: { 'content-type': contentType } })
}
const request = { model: 'm', messages: [{ role: 'user' as const, content: 'Hi' }] }

/** A client of the `openai` package whose every request is answered with this body. */
export function openaiClient(body: string, contentType?: string): OpenAI {
  return new OpenAI({ apiKey: 'k', baseURL: 'http://test/v1', maxRetries: 0, fetch: answer(body, contentType) })
}

/** The raw stream: chunks until it ends or throws. It takes a truncated body for a whole one. */
export async function readChunks(body: string) {
  const chunks: OpenAI.ChatCompletionChunk[] = []
  try {
    const stream = await openaiClient(body).chat.completions.create({ ...request, stream: true })
    for await (const chunk of stream) chunks.push(chunk)
    return { chunks }
  } catch (error) {
    return { chunks, error: error as InstanceType<typeof OpenAI.APIError> }
  }
}

/** The `.stream()` helper: the completion that it puts together, or its error. */
export async function readStream(body: string) {
  try {
    return { completion: await openaiClient(body).chat.completions.stream(request).finalChatCompletion() }
  } catch (error) {
    return { error: error as Error }
  }
}

/** `@ai-sdk/openai-compatible`: the parts that its model gives. */
export async function readSdkParts(body: string): Promise<LanguageModelV4StreamPart[]> {
  const provider = createOpenAICompatible({
    name: 'test',
    baseURL: 'http://test/v1',
    includeUsage: true,
    fetch: answer(body),
  })
  const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hi' }] }]
  const { stream } = await provider('m').doStream({ prompt })
  const parts: LanguageModelV4StreamPart[] = []
  for await (const part of stream) parts.push(part)
  return parts
}
