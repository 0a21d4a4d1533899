/** Random events of Anthropic's messages: blocks that begin, say something, and end. */
import { contentBlock } from '../anthropic/block-schema.ts'
import { anthropicSchema } from '../anthropic/event-schema.ts'
import { below, pick, type Random } from './random.ts'
import { sampleOf, type Fields } from './samples.ts'

const block = contentBlock()

export function anthropicEvents(random: Random): Fields[] {
  if (random() < 0.6) return blockOf(random)
  const made = sampleOf(anthropicSchema(), random)
  const { type } = made
  // An error or a second message ends everything, so they are rare here: mutations bring more of them.
  if (type === 'error' && random() < 0.9) return anthropicEvents(random)
  if (type === 'message_start' && random() < 0.7) (made['message'] as Fields)['id'] = 'msg_1'
  return [made]
}

export function anthropicBurst(random: Random): (delta: string) => Fields {
  const index = below(3, random)
  const field = pick(['text', 'thinking', 'partial_json'], random)
  const type = field === 'partial_json' ? 'input_json_delta' : `${field}_delta`
  return (delta) => ({ type: 'content_block_delta', index, delta: { type, [field]: delta } })
}

/** Now and then something is missing. */
function blockOf(random: Random): Fields[] {
  const index = below(4, random)
  const begun = sampleOf(block, random)
  const deltas = Array.from({ length: below(4, random) }, () => ({
    type: 'content_block_delta',
    index,
    delta: deltaOf(begun['type'] as string, random),
  }))
  return [
    { type: 'content_block_start', index, content_block: begun },
    ...deltas,
    { type: 'content_block_stop', index },
  ].filter(() => random() < 0.95)
}

function deltaOf(block: string, random: Random): Fields {
  const text = pick(['so', ' 世', '"', '\n', '{"a"', ':1}', ''], random)
  if (random() < 0.1) return { type: 'signature_delta', signature: text }
  if (block.endsWith('_use')) return { type: 'input_json_delta', partial_json: text }
  if (block === 'thinking') return { type: 'thinking_delta', thinking: text }
  if (block === 'compaction') return { type: 'compaction_delta', content: text }
  return { type: 'text_delta', text }
}
