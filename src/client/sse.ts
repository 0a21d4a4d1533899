/** Parses server-sent events from chunks of text. https://html.spec.whatwg.org/multipage/server-sent-events.html */

/** The returned function takes a chunk of the body and returns the data of each completed event. It ignores comments and other fields. */
export function createSseReader(): (chunk: string) => string[] {
  let rest = ''
  let data: string[] = []
  return (chunk) => {
    // A chunk may end between \r and \n: keep the \r until the next chunk.
    const lines = (rest + chunk).split(/\r\n|\n|\r(?!$)/u)
    rest = lines.pop()!
    const events: string[] = []
    for (const line of lines) {
      if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5))
      else if (line === '' && data.length > 0) {
        events.push(data.join('\n'))
        data = []
      }
    }
    return events
  }
}
