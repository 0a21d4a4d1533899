/** OpenAI's chat completions: Ollama, vLLM, llama.cpp, DeepSeek, Gemini's and Mistral's form, gateways. */
import type { JSONObject, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import { metadataKeyOf } from '../metadata-key.ts'
import { AnswerReader, reasonOf, type Reason } from './answer-reader.ts'
import { argumentsOf, fieldsOf, isFields, listOf, numberOf, parsed, picked, textOf, type Fields } from './fields.ts'
import type { Repeat } from './sse.ts'
import { openAIUsage } from './usage.ts'

interface ChatToolCall {
  id: string | undefined
  index: number | undefined
  /** Undefined if some arguments came first: they wait for the name. */
  name: string | undefined
  input: string
  metadata: SharedV4ProviderMetadata | undefined
}

type BlockType = 'text' | 'reasoning'
const ids: Record<BlockType, string> = { text: 'txt-0', reasoning: 'reasoning-0' }

export class ChatReader extends AnswerReader {
  private readonly key = metadataKeyOf(this.options.provider, this.options.call.providerOptions)
  private readonly calls: ChatToolCall[] = []
  private readonly usedIds = new Set<string>()
  /** The index of the choice that is read. */
  private choice: number | undefined = undefined
  private active: BlockType | undefined = undefined
  /** Length of the text from deltas: a whole message may repeat it. */
  private chars = 0
  /** Signed or encrypted reasoning, to be returned unchanged. */
  private details: Fields[] = []
  private predictions: Fields = {}

  protected override read(value: Fields): Repeat | undefined {
    const { id, model, created, usage = fieldsOf(value['x_groq'])?.['usage'] } = value
    if (id || model || created) this.respond(id, model, created)
    if (isFields(usage)) this.count(usage)
    const choice = this.choiceOf(value)
    if (choice === undefined) {
      const says = 'choices' in value || isFields(usage) || Boolean(value['error'])
      if (!says) this.keep(`frame ${String(value['type'])}`, value)
      return undefined
    }
    const delta = fieldsOf(choice['delta'])
    const repeat = delta === undefined ? undefined : this.readDelta(delta)
    const message = fieldsOf(choice['message'])
    if (message !== undefined) this.readMessage(message)
    else if (delta === undefined && typeof choice['text'] === 'string') this.say('text', choice['text'])
    if (isFields(choice['usage'])) this.count(choice['usage'])
    const reason = choice['finish_reason']
    if (typeof reason !== 'string' || reason === '') return repeat
    const why =
      textOf(choice['error']) ?? textOf(fieldsOf(choice['error'])?.['message']) ?? textOf(choice['stop_reason'])
    // An error beside it is more specific.
    if (!value['error']) this.ends(reason === 'stop' ? this.impliedReason() : reasonOf(reason), reason, why)
    return undefined
  }

  private choiceOf({ choices }: Fields): Fields | undefined {
    const list = listOf(choices)
    const [first] = list
    if (first === undefined) return undefined
    const index = numberOf(first['index'])
    this.choice ??= index
    if (index === this.choice || index === undefined) return first
    return list.find((each) => each['index'] === this.choice)
  }

  private readDelta(delta: Fields): Repeat | undefined {
    const { content, refusal, tool_calls: calls, function_call: call, reasoning_details: details } = delta
    const field = typeof delta['reasoning_content'] === 'string' ? 'reasoning_content' : 'reasoning'
    const given = delta[field]
    const thoughts = typeof given === 'string' ? given : textsOf(details)
    if (details) this.keepDetails(listOf(details))
    this.say('reasoning', thoughts)
    if (typeof content === 'string') this.say('text', content)
    else if (content) for (const block of listOf(content)) this.readBlock(block)
    if (typeof refusal === 'string' && refusal !== '') {
      this.hasRefusal = true
      this.say('text', refusal)
    }
    const list = listOf(calls || (call && { function: call }))
    if (list.length === 0) {
      // The fast path applies only to an event with a single text.
      if (refusal || details) return undefined
      if (thoughts !== '') return content ? undefined : { key: field, apply: this.think }
      return typeof content === 'string' && content !== '' ? { key: 'content', apply: this.speak } : undefined
    }
    if (this.active === 'reasoning') this.endBlock()
    let last: ChatToolCall | undefined
    for (const each of list) last = this.readCall(each)
    const isAlone = list.length === 1 && thoughts === '' && !content && !refusal
    const named = fieldsOf(list[0]?.['function'])
    if (!isAlone || last?.name === undefined || named?.['name'] || !named?.['arguments']) return undefined
    const open = last
    return { key: 'arguments', apply: (text) => this.addInput(open, text) }
  }

  private readonly speak = (text: string): void => this.say('text', text)
  private readonly think = (text: string): void => this.say('reasoning', text)

  private say(block: BlockType, delta: string): void {
    if (delta === '') return
    const id = ids[block]
    if (this.active !== block) {
      this.endBlock()
      this.active = block
      this.emit({ type: `${block}-start`, id })
    }
    if (block === 'text') this.chars += delta.length
    this.emit({ type: `${block}-delta`, id, delta })
  }

  private endBlock(): void {
    const block = this.active
    this.active = undefined
    if (block === undefined) return
    const signed = block === 'reasoning' ? this.takeDetails() : undefined
    this.emit({ type: `${block}-end`, id: ids[block], ...(signed && { providerMetadata: signed }) })
  }

  /** Mistral sends typed blocks. */
  private readBlock(block: Fields): void {
    const { type, text, thinking } = block
    if (type === 'thinking') this.say('reasoning', textOf(thinking) ?? textsOf(thinking))
    else if (typeof text === 'string') this.say('text', text)
    else this.keep(`block ${String(type)}`, block)
  }

  /** A whole message instead of a delta. Some servers send it at the end, repeating the deltas. */
  private readMessage(message: Fields): void {
    const { content } = message
    const isRest = typeof content === 'string' && this.chars > 0 && content.length >= this.chars
    const rest = isRest && { content: content.slice(this.chars), reasoning_content: '', reasoning: '' }
    const calls = listOf(message['tool_calls']).filter(({ id }) => !this.usedIds.has(String(id)))
    this.readDelta({ ...message, tool_calls: calls, ...rest })
  }

  private readCall(given: Fields): ChatToolCall | undefined {
    const named = fieldsOf(given['function']) ?? given
    const index = numberOf(given['index'])
    const id = textOf(given['id'])?.trim() || undefined
    const name = textOf(named['name'])?.trim() || undefined
    const text = argumentsOf(named['arguments'])
    let call = this.callOf(index, id, name, text)
    if (call === undefined) {
      if (named['name'] === '' && text === '') return undefined
      call = { id, index, name: undefined, input: '', metadata: undefined }
      this.calls.push(call)
      this.hasCalls = true
    }
    const signature = textOf(fieldsOf(fieldsOf(given['extra_content'])?.['google'])?.['thought_signature'])
    if (signature) call.metadata ??= { [this.key]: { thoughtSignature: signature } }
    const { input } = call
    if (call.name === undefined && name !== undefined) {
      call.name = name
      call.id = this.idOf(call.id ?? id)
      call.input = ''
      this.emit({ type: 'tool-input-start', id: call.id, toolName: name })
      this.addInput(call, input + text)
    } else this.addInput(call, text)
    return call
  }

  private addInput(call: ChatToolCall, delta: string): void {
    if (delta === '') return
    call.input += delta
    if (call.name !== undefined) this.emit({ type: 'tool-input-delta', id: call.id!, delta })
  }

  /** The call that a piece belongs to; undefined for a new one. Some servers send no index, others the same index for all calls. */
  private callOf(
    index: number | undefined,
    id: string | undefined,
    name: string | undefined,
    text: string,
  ): ChatToolCall | undefined {
    const isWithout = index === undefined && id === undefined
    if (isWithout && name !== undefined) return undefined
    const open = this.calls.findLast((call) => {
      if (isWithout) return true
      return index === undefined ? call.id === id : call.index === index || (call.index === undefined && call.id === id)
    })
    if (open?.name === undefined || name === undefined) return open
    if (open.name !== name) return undefined
    // The same name again: a new call if the last one is complete and this one starts anew.
    const isOther = id !== undefined && id !== open.id
    return (isOther || open.input !== '') && /^\s*[{[]/u.test(text) && (isOther || parsed(open.input) !== undefined)
      ? undefined
      : open
  }

  private idOf(given: string | undefined): string {
    let id = given
    while (id === undefined || this.usedIds.has(id)) id = this.generateId()
    this.usedIds.add(id)
    return id
  }

  /** OpenRouter's: pieces of one detail are consecutive. */
  private keepDetails(details: readonly Fields[]): void {
    for (const detail of details) {
      const last = this.details.at(-1)
      const isSame = last?.['type'] === detail['type'] && last?.['index'] === detail['index']
      if (last === undefined || !isSame || last['type'] === 'reasoning.encrypted') this.details.push({ ...detail })
      else {
        for (const [key, value] of Object.entries(detail)) {
          if (value === null || key === '__proto__') continue
          const isPiece = (key === 'text' || key === 'summary') && typeof value === 'string'
          last[key] = isPiece ? (textOf(last[key]) ?? '') + value : value
        }
      }
    }
  }

  private takeDetails(): SharedV4ProviderMetadata | undefined {
    if (this.details.length === 0) return undefined
    const reasoningDetails = this.details as never
    this.details = []
    return { [this.key]: { reasoningDetails } }
  }

  private count(raw: Fields): void {
    this.usage = openAIUsage(raw)
    this.predictions = picked(
      raw['completion_tokens_details'],
      'accepted_prediction_tokens',
      'rejected_prediction_tokens',
    )
  }

  protected override ends(unified: Reason, raw: string | undefined, why?: string): void {
    const isNameless = this.calls.some(({ name, input }) => name === undefined && input !== '')
    if (isNameless) super.ends('error', raw, 'a call without the name of its tool')
    else super.ends(unified, raw, why)
  }

  protected override close(isWhole: boolean): void {
    this.endBlock()
    const signed = this.takeDetails()
    if (signed !== undefined) {
      this.emit({ type: 'reasoning-start', id: 'reasoning-details' })
      this.emit({ type: 'reasoning-end', id: 'reasoning-details', providerMetadata: signed })
    }
    const named = this.calls.filter(({ name }) => isWhole && name !== undefined)
    if (named.every(({ index }) => index !== undefined)) named.sort((a, b) => a.index! - b.index!)
    for (const { id = '', name, input, metadata } of named) {
      this.call(id, name!, input, { ...(metadata && { providerMetadata: metadata }) })
    }
    this.metadata = { [this.key]: this.predictions as JSONObject }
  }
}

function textsOf(details: unknown): string {
  return listOf(details)
    .map((each) => textOf(each['text']) ?? textOf(each['summary']) ?? '')
    .join('')
}
