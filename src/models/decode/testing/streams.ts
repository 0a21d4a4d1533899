/** The streams that the decoders are tested with: fixtures, recordings, and streams with everything that a package reads. */
import { composedFixtures, protocolOf, recordedFixtures } from '../../testing/provider-fixtures.ts'
import type { Protocol } from '../../testing/recorded-provider.ts'
import { anthropicStreams } from './anthropic-streams.ts'
import { answerOf } from './answers.ts'
import { chatStreams } from './chat-streams.ts'
import { seeded } from './random.ts'

export interface Stream {
  name: string
  lines: string[]
  /** Names of the tools that it calls. */
  tools: string[]
}

export const protocols: readonly Protocol[] = ['openai-chat', 'anthropic', 'openai-responses', 'google']

const fixtures = [...composedFixtures, ...recordedFixtures()]
const written: Partial<Record<Protocol, Record<string, string[]>>> = {
  'openai-chat': chatStreams,
  anthropic: anthropicStreams,
}

export function streamsOf(protocol: Protocol): Stream[] {
  return [
    ...fixtures.filter((fixture) => protocolOf(fixture) === protocol),
    ...Object.entries(written[protocol] ?? {}).map(([name, lines]) => ({ name, lines, tools: [] })),
  ]
}

/** Made of the schemas: every kind of event comes up. */
export function sampledStreams(protocol: Protocol, count: number): Stream[] {
  return Array.from({ length: count }, (_, seed) => ({
    name: `sample ${seed}`,
    lines: answerOf(protocol, seeded(seed), 8),
    tools: ['lookup', 'add'],
  }))
}
