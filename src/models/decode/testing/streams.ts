/** The streams for tests: real recordings if available, and written ones. */
import { composedFixtures, protocolOf, recordedFixtures } from '../../testing/provider-fixtures.ts'
import type { Protocol } from '../../testing/recorded-provider.ts'
import { anthropicStreams } from './anthropic-streams.ts'
import { chatStreams } from './chat-streams.ts'
import { googleStreams } from './google-streams.ts'
import { responsesStreams } from './responses-streams.ts'

export interface Stream {
  name: string
  lines: string[]
  /** Names of the called tools. */
  tools: string[]
}

const fixtures = [...composedFixtures, ...recordedFixtures()]
const written: Record<Protocol, Record<string, string[]>> = {
  'openai-chat': chatStreams,
  anthropic: anthropicStreams,
  'openai-responses': responsesStreams,
  google: googleStreams,
}

export function streamsOf(protocol: Protocol): Stream[] {
  return [
    ...fixtures.filter((fixture) => protocolOf(fixture) === protocol),
    ...Object.entries(written[protocol]).map(([name, lines]) => ({ name, lines, tools: ['lookup', 'add'] })),
  ]
}
