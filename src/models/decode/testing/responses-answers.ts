/** Random events of OpenAI's responses: items that begin, say something, and end. */
import { known } from '../responses/chunk-schema.ts'
import { addedItem, doneItem } from '../responses/item-schema.ts'
import { below, pick, type Random } from './random.ts'
import { sampleOf, type Fields } from './samples.ts'

export function responsesEvents(random: Random): Fields[] {
  return random() < 0.6 ? itemOf(random) : [eventOf(random)]
}

export function responsesBurst(random: Random): (delta: string) => Fields {
  const itemId = pick(['a', 'b'], random)
  let number = 0
  return (delta) => ({
    type: 'response.output_text.delta',
    sequence_number: number++,
    item_id: itemId,
    output_index: 0,
    content_index: 0,
    delta,
    logprobs: [],
    obfuscation: 'x'.repeat(number),
  })
}

/** Errors end everything, so they are rare here: mutations bring more of them. */
function eventOf(random: Random): Fields {
  const made = sampleOf(pick(known, random), random)
  const isRare = made['type'] === 'error' || made['type'] === 'response.failed'
  return isRare && random() < 0.8 ? sampleOf(known[5], random) : made
}

/** What they say depends on each other. */
const searches = addedItem.options.filter(({ shape }) => shape.type.value.startsWith('tool_search'))

/** The item begins, says something, and ends; now and then something else comes between. */
function itemOf(random: Random): Fields[] {
  const kinds = random() < 0.1 ? searches : addedItem.options
  const added = sampleOf(pick(kinds, random), random)
  const { type, id } = added
  const schema = doneItem.options.find(({ shape }) => shape.type.value === type)!
  const sameId = random() < 0.9 ? { id } : {}
  const done = {
    ...sampleOf(schema, random),
    ...sameId,
    ...('call_id' in added && { call_id: added['call_id'] }),
  }
  const place = { output_index: pick([0, 1, 2, 3], random) }
  const about = known.filter(({ shape }) => 'item_id' in shape && isAbout(type as string, String(shape.type.value)))
  const deltas = Array.from({ length: below(4, random) }, () => {
    if (about.length === 0 || random() < 0.1) return eventOf(random)
    const delta = sampleOf(pick(about, random), random)
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
