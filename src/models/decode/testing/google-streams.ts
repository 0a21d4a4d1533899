/** Google streams that the recordings lack. */

const chunk = (parts: object[], rest: object = {}) => ({
  candidates: [{ content: { parts, role: 'model' }, index: 0, ...rest }],
})
const text = (said: string, rest: object = {}) => ({ text: said, ...rest })
const counts = {
  promptTokenCount: 9,
  candidatesTokenCount: 4,
  thoughtsTokenCount: 2,
  cachedContentTokenCount: 1,
  totalTokenCount: 16,
}
const stop = { ...chunk([], { finishReason: 'STOP' }), usageMetadata: counts, responseId: 'r', modelVersion: 'm' }
const signed = { thoughtSignature: 'c2ln' }
const found = (chunks: object[]) => ({ groundingMetadata: { groundingChunks: chunks, webSearchQueries: ['q'] } })

const streams: Record<string, object[]> = {
  'thoughts, texts, signatures': [
    chunk([text('Nach', { thought: true })]),
    chunk([text('denken', { thought: true }), text('Hier')]),
    chunk([text(' ü')]),
    chunk([text('', signed)]),
    chunk([text('so', { thought: true, ...signed })]),
    chunk([text('', signed)]),
    stop,
  ],
  'calls with signatures': [
    chunk([
      { functionCall: { name: 'get', args: { q: 'ü' } }, ...signed },
      { functionCall: { id: 'g2', name: 'add', args: {} } },
      { functionCall: { id: 'g3', name: 'none' } },
    ]),
    stop,
  ],
  files: [
    chunk([{ inlineData: { mimeType: 'image/png', data: 'AA==' } }]),
    chunk([{ inlineData: { mimeType: 'image/png', data: 'AB==' }, thought: true, ...signed }]),
    stop,
  ],
  sources: [
    chunk(
      [text('See')],
      found([
        { web: { uri: 'https://example.com/', title: 'Ex' } },
        { web: { uri: 'https://example.com/', title: 'Ex' } },
        { image: { sourceUri: 'https://example.com/i', imageUri: 'https://example.com/i.png' } },
        { retrievedContext: { uri: 'gs://b/a.pdf', title: 'A' } },
        { retrievedContext: { uri: 'https://example.com/c', title: 'C' } },
        { retrievedContext: { fileSearchStore: 'stores/one', title: 'F' } },
        { maps: { uri: 'https://example.com/m', title: 'M' } },
      ]),
    ),
    chunk([], {
      finishReason: 'MAX_TOKENS',
      safetyRatings: [{ category: 'c', probability: 'LOW' }],
      finishMessage: 'long',
    }),
    { usageMetadata: counts },
  ],
  'code that Google runs': [
    chunk([text('So')]),
    chunk([{ codeExecutionResult: { outcome: 'OUTCOME_OK', output: 'without its code' } }]),
    chunk([{ executableCode: { language: 'PYTHON', code: 'print(1)' }, ...signed }]),
    chunk([{ codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1' } }]),
    chunk([
      { executableCode: { language: 'PYTHON', code: 'x' } },
      { codeExecutionResult: { outcome: 'OUTCOME_FAILED' } },
    ]),
    chunk([text('it is')]),
    stop,
  ],
  'tools that Google runs': [
    chunk([{ toolCall: { toolType: 'GOOGLE_SEARCH_WEB', args: { q: 'ü' }, id: 'st1' }, ...signed }]),
    chunk([{ toolResponse: { toolType: 'GOOGLE_SEARCH_WEB', response: { found: [1] }, id: 'st1' }, ...signed }]),
    chunk([
      { toolCall: { toolType: 'URL_CONTEXT', id: '' } },
      { toolResponse: { toolType: 'URL_CONTEXT', id: 'other' } },
      { toolResponse: { toolType: 'URL_CONTEXT', response: {}, id: 'alone' } },
    ]),
    stop,
  ],
  'a blocked prompt': [{ promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: counts }],
  'a blocked answer': [chunk([text('so')]), chunk([], { finishReason: 'RECITATION' })],
}

export const googleStreams: Record<string, string[]> = Object.fromEntries(
  Object.entries(streams).map(([name, chunks]) => [name, chunks.map((each) => JSON.stringify(each))]),
)
