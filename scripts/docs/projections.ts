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
  return wires.map(([title, file]) => `### ${title}\n\n${tableOf(file!)}`).join('\n\n')
}

function tableOf(file: string): string {
  const source = readFileSync(new URL(`../../src/wire/${file}.ts`, import.meta.url), 'utf8')
  const header = source.slice(0, source.indexOf('*/'))
  return header
    .split('\n')
    .filter((line) => line.startsWith(' * |'))
    .map((line) => line.slice(3))
    .join('\n')
}
