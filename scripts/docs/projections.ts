/** What each protocol makes of a part, in docs/streaming-protocol.md: the tables above the wires in src/wire. */
import { readFileSync } from 'node:fs'

const wires = [
  ['Plain text', 'text/text'],
  ["The AI SDK's UI messages (`useChat`)", 'ui/ui'],
  ['OpenAI', 'openai/openai'],
  ['AG-UI and Socket.IO', 'ag-ui/ag-ui'],
  ['The log itself', 'parts/parts'],
]

export function projectionsSection(): string {
  const tables = wires.map(([title, file]) => `### ${title}\n\n${tableOf(file!)}`)
  return [
    'A part that a table does not name, or that is outside the answer, is dropped unless a row says otherwise: the protocol has no place for it, or it is for monitoring. A failure that ends the run is in `run-end`, and an approval that somebody can give in `request`.',
    ...tables,
  ].join('\n\n')
}

/** A row that says only that its parts are not sent. */
const isDropped = /^\| [^|]* \| dropped(?:: [^|]*)? \|$/u

function tableOf(file: string): string {
  const source = readFileSync(new URL(`../../src/wire/${file}.ts`, import.meta.url), 'utf8')
  const header = source.slice(0, source.indexOf('*/'))
  return header
    .split('\n')
    .filter((line) => line.startsWith(' * |'))
    .map((line) => line.slice(3))
    .filter((line) => !isDropped.test(line))
    .join('\n')
}
