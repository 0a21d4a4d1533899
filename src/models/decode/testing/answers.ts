/** Random answers: lines that a server might send, in an order that makes sense more often than not. */
import type { Protocol } from '../../testing/recorded-provider.ts'
import { chunk as googleChunk } from '../google/chunk-schema.ts'
import { anthropicBurst, anthropicEvents } from './anthropic-answers.ts'
import { chatBurst, chatEvents } from './chat-answers.ts'
import { below, pick, type Random } from './random.ts'
import { responsesBurst, responsesEvents } from './responses-answers.ts'
import { sampleOf, type Fields } from './samples.ts'

interface Maker {
  /** Events that belong together. */
  events(random: Random): Fields[]
  /** As a real server sends its text: events that differ only in it. */
  burst(random: Random): (delta: string) => Fields
}

const makers: Record<Protocol, Maker> = {
  'openai-chat': { events: chatEvents, burst: chatBurst },
  anthropic: { events: anthropicEvents, burst: anthropicBurst },
  'openai-responses': { events: responsesEvents, burst: responsesBurst },
  google: { events: googleEvents, burst: googleBurst },
}

/** Of `events` events or a few more. */
export function answerOf(protocol: Protocol, random: Random, events: number): string[] {
  const maker = makers[protocol]
  const made: Fields[] = []
  while (made.length < events) {
    if (random() < 0.1) {
      const event = maker.burst(random)
      for (let i = 2 + below(8, random); i > 0; i--) made.push(event(pick(deltas, random)))
    } else made.push(...maker.events(random))
  }
  return made.map((value) => JSON.stringify(value))
}

const deltas = [' the', 'ü', '', '"', '\n', ' a longer piece of text', '🌍']

/** Errors end everything, so they are rare here: mutations bring more of them. */
function googleEvents(random: Random): Fields[] {
  const made = sampleOf(googleChunk, random)
  if (random() < 0.95) delete made['error']
  if (random() < 0.9) delete made['promptFeedback']
  return [made]
}

function googleBurst(random: Random): (delta: string) => Fields {
  const thought = random() < 0.3 ? { thought: true } : {}
  return (text) => {
    const count = below(300, random)
    return {
      candidates: [{ content: { parts: [{ text, ...thought }], role: 'model' }, index: 0 }],
      usageMetadata: {
        promptTokenCount: 9,
        candidatesTokenCount: count,
        totalTokenCount: count + 9,
        promptTokensDetails: [{ modality: 'TEXT', tokenCount: 9 }],
      },
      responseId: 'r',
    }
  }
}
