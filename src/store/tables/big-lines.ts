/** Entries that are too long to be parsed in a slice of the indexer: a tool's result of several MB. */

/** Characters that are parsed in about a ms. */
const bigLine = 256 * 1024

const head =
  /^\{"seq":\d+,"timestamp":[\d.]+,"step":"(?:[^"\\]|\\.)*","type":"tool-result",(?:"(?!result")\w+":(?:"(?:[^"\\]|\\.)*"|\w+),)*/u
const tail = /(?:,"(?:isError|preliminary|dynamic|providerExecuted)":(?:true|false)|,"outcome":"[\w-]+")*\}$/u

/** The JSON of an entry without the text that makes it long, if it is one of those that may be very long. */
export function withoutResult(line: string): string {
  if (line.length < bigLine) return line
  const start = head.exec(line.slice(0, 4096))?.[0]
  if (start === undefined || !line.startsWith('"result":', start.length)) return line
  return `${start}"result":null${tail.exec(line.slice(-400))?.[0] ?? '}'}`
}
