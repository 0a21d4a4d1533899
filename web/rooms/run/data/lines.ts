/** Reads JSON lines as they come. */
export async function* readLines<T>(body: ReadableStream<Uint8Array>): AsyncGenerator<T[]> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true })
      const end = rest.lastIndexOf('\n') + 1
      if (end > 0) {
        yield parse(rest.slice(0, end))
        rest = rest.slice(end)
      }
      if (done) break
    }
    if (rest !== '') yield parse(rest)
  } finally {
    await reader.cancel().catch(() => undefined)
  }

  function parse(text: string): T[] {
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as T)
  }
}
