/** Server-sent events out of text that is cut anywhere. https://html.spec.whatwg.org/multipage/server-sent-events.html */

/** Feeds pieces of a body; gives the data of every event that they complete. Comments and other fields are passed over. */
export function createSseReader(): (chunk: string) => string[] {
  let rest = ''
  let data: string[] = []
  return (chunk) => {
    // A piece may end inside of \r\n: the \r waits for what comes behind it.
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
