/** Random answers: lines that a server might send, in an order that makes sense more often than not. */
import { chunk as googleChunk } from '../google/chunk-schema.ts'
import { known } from '../responses/chunk-schema.ts'
import { addedItem, doneItem } from '../responses/item-schema.ts'
import { pick, sampleOf, type Random } from './samples.ts'

type Fields = Record<string, unknown>

/** Of `events` events or a few more. */
export function answerOf(provider: string, random: Random, events: number): string[] {
  const made: Fields[] = []
  while (made.length < events) {
    if (random() < 0.1) made.push(...burstOf(provider, random))
    else if (provider === 'google') made.push(googleSample(random))
    else made.push(...(random() < 0.6 ? itemOf(random) : [eventOf(random)]))
  }
  return made.map((value) => JSON.stringify(value))
}

/** As a real server sends its text. */
function burstOf(provider: string, random: Random): Fields[] {
  const thought = random() < 0.3 ? { thought: true } : {}
  const itemId = pick(['a', 'b'], random)
  return Array.from({ length: 2 + Math.floor(random() * 8) }, (_, i) => {
    const delta = pick([' the', 'ü', '', '"', '\n', ' a longer piece of text', '🌍'], random)
    const count = Math.floor(random() * 300)
    if (provider === 'google') {
      return {
        candidates: [{ content: { parts: [{ text: delta, ...thought }], role: 'model' }, index: 0 }],
        usageMetadata: {
          promptTokenCount: 9,
          candidatesTokenCount: count,
          totalTokenCount: count + 9,
          promptTokensDetails: [{ modality: 'TEXT', tokenCount: 9 }],
        },
        responseId: 'r',
      }
    }
    return {
      type: 'response.output_text.delta',
      sequence_number: i,
      item_id: itemId,
      output_index: 0,
      content_index: 0,
      delta,
      logprobs: [],
      obfuscation: 'x'.repeat(i),
    }
  })
}

/** Errors end everything, so they are rare here: mutations bring more of them. */
function googleSample(random: Random): Fields {
  const made = sampleOf(googleChunk, random) as Fields
  if (random() < 0.95) delete made['error']
  if (random() < 0.9) delete made['promptFeedback']
  return made
}

function eventOf(random: Random): Fields {
  const made = sampleOf(pick(known, random), random) as Fields
  const isRare = made['type'] === 'error' || made['type'] === 'response.failed'
  return isRare && random() < 0.8 ? (sampleOf(known[5], random) as Fields) : made
}

/** What they say depends on each other. */
const searches = addedItem.options.filter(({ shape }) => shape.type.value.startsWith('tool_search'))

/** The item begins, says something, and ends; now and then something else comes between. */
function itemOf(random: Random): Fields[] {
  const kinds = random() < 0.1 ? searches : addedItem.options
  const added = sampleOf(pick(kinds, random), random) as Fields
  const { type, id } = added
  const schema = doneItem.options.find(({ shape }) => shape.type.value === type)!
  const sameId = random() < 0.9 ? { id } : {}
  const done = {
    ...(sampleOf(schema, random) as Fields),
    ...sameId,
    ...('call_id' in added && { call_id: added['call_id'] }),
  }
  const place = { output_index: pick([0, 1, 2, 3], random) }
  const about = known.filter(({ shape }) => 'item_id' in shape && isAbout(type as string, String(shape.type.value)))
  const deltas = Array.from({ length: Math.floor(random() * 4) }, () => {
    if (about.length === 0 || random() < 0.1) return eventOf(random)
    const delta = sampleOf(pick(about, random), random) as Fields
    return { ...delta, item_id: random() < 0.8 ? id : delta['item_id'], ...(random() < 0.9 && place) }
  })
  return [
    { type: 'response.output_item.added', ...place, item: added },
    ...deltas,
    { type: 'response.output_item.done', ...place, item: done },
  ].filter(() => random() < 0.95)
}

function isAbout(item: string, event: string): boolean {
  switch (item) {
    case 'message':
      return /output_text|refusal/.test(event)
    case 'reasoning':
      return event.includes('reasoning')
    case 'function_call':
      return event.includes('function_call')
    default:
      return event.includes(item.replace(/_call$/, ''))
  }
}
