/**
 * Keeps the prompts of a tool loop within the window of its model. Before each call the prompt is estimated; if it is too long, old results of tools
 * become handles, then the older messages are summarized: by a step below the loop, and one `summarized` entry. After a provider's refusal the same is
 * done, and the call is made once more. decisions/0042 has the reasons.
 */
import { oldResultsAsHandles, withShortened } from '../fold/long-results.ts'
import { conversationIn, headOf, withSummary } from '../fold/whole-prompt.ts'
import type { ToolLoop } from '../fold/tool-loop.ts'
import { windowFilled, type Overflow } from '../models/context-overflow.ts'
import { estimateMessage, estimateMessages, estimateText, estimateTools } from '../models/estimate-tokens.ts'
import { textOf } from '../fold/run-view.ts'
import { MillraceError } from '../part/error.ts'
import type { Message, ToolSpec } from '../part/message.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { Summarized } from '../part/part.ts'
import { joinPath } from '../part/path.ts'
import type { ContextConfig } from '../pipeline/context-config.ts'
import { earlierSummary } from './earlier-summary.ts'
import { inStep, Suspended, type Scope } from './scope.ts'
import { historyCut } from './state.ts'
import { hashOf } from './summary-hash.ts'
import type { ToolLoopOptions } from './tool-loop.ts'
import { summaryInstructions, transcriptOf } from './transcript.ts'
import { learnWindow, sizesFor, windowOf, type Sizes } from './window.ts'

export interface FullWindow {
  /** Makes room before a call of this model. Returns the handles of results that the call is told shortened. */
  before(model: string): Promise<string[]>
  /** Makes room after the provider has refused a call. Throws `context-too-long` if there is nothing more to leave out. */
  refused(call: string, model: string, overflow: Overflow): Promise<Message[]>
  /** After a call: whether its server has left out a part of the prompt, which is a warning. */
  after(): void
  /** The error of a call that was refused a second time. */
  tooLong(cause: unknown): MillraceError
}

export interface FullWindowOptions {
  scope: Scope
  /** That of the loop. */
  path: string
  config: ToolLoopOptions['config'] & { context: ContextConfig }
  /** Those that the model must find first are not in its prompt. */
  tools: ReadonlyMap<string, { spec: ToolSpec; deferred?: boolean }>
  /** The handles of all results that the next call is told shortened. */
  handles(): ReadonlySet<string>
  /** Runs the loop that makes a summary. */
  run(loop: ToolLoopOptions): Promise<void>
}

/** A server counts less than this share of the estimate: it has not read all of the prompt. */
const truncated = 0.5
/** Tokens, for that: estimates of short prompts say little. */
const leastTruncated = 3000
/** Handles alone are enough if they leave so much of what a prompt may have: less often is better than a little. */
const enough = 0.8

export function createFullWindow({ scope, path, config, tools: offered, handles, run }: FullWindowOptions): FullWindow {
  const { registry, state } = scope
  const { context } = config
  const { models } = registry
  const loop = state.loopAt(path)
  const system = estimateText(config.system ?? '')
  const tools = estimateTools([...offered.values()].flatMap(({ spec, deferred }) => (deferred === true ? [] : [spec])))
  const fixed = system + tools
  const all = () => conversationIn(loop, config.messages, 'named')
  const told = () => withShortened(withSummary(all(), loop.summary?.entry), handles())

  /** The only estimate: by it a summary is made, and a prompt is called too long. */
  function estimate(told: readonly Message[], model: string): number {
    const last = loop.list.at(-1)
    const usage = last?.usage
    const counted = fixed + estimateMessages(told)
    const isOfThis = usage?.source === 'reported' && last?.model === model && last.finish !== undefined
    if (!isOfThis || loop.list.length <= (loop.summary?.replies ?? 0)) return counted
    const behind = told.slice(told.findLastIndex(({ role }) => role === 'assistant') + 1)
    const before = counted - estimateMessages(behind)
    const reported = (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)
    // A server that has not read the whole prompt has not counted it either.
    return reported < before * truncated ? counted : reported + estimateMessages(behind)
  }

  function checkSizes(window: number): void {
    const keep = context.keep ?? 0
    if (fixed + keep < window) return
    const sizes = `system (about ${system}), tools (about ${tools}) and "keep" (${keep})`
    const cure = 'Make them smaller, or choose a model with a larger window.'
    throw new MillraceError(
      'context-too-long',
      `The window of ${window} tokens cannot hold what every prompt has: ${sizes}. ${cure}`,
      { status: 400 },
    )
  }

  async function summarize(at: string, reason: Summarized['reason'], sizes: Sizes, size: number): Promise<boolean> {
    const whole = all()
    const olds = oldResultsAsHandles(withShortened(whole, handles()), { keep: sizes.keep, size: estimateMessage })
    const covered = loop.summary?.entry.upTo ?? 0
    const upTo = cutOf(olds.messages, Math.max(covered, headOf(whole, whole.length).length), sizes.keep)
    if (upTo === undefined) return false
    await make(at, upTo, { reason, size, window: sizes.most, shortened: olds.handles })
    return true
  }

  interface Making {
    reason: Summarized['reason']
    size: number
    /** Tokens that a prompt may have. */
    window: number
    shortened: readonly string[]
  }

  async function make(at: string, upTo: number, { reason, size, window, shortened }: Making): Promise<void> {
    const whole = all()
    // Before: its entry follows the end of the step at once.
    const hash = await hashOf(whole, upTo)
    const text = await written(at, upTo, window)
    const more = shortened.filter((handle) => !loop.shortened.has(handle))
    const next = withShortened(withSummary(whole, omitUndefined({ upTo, text })), new Set([...handles(), ...more]))
    if (text === undefined && !state.warnings.has(historyCut.code)) scope.emit('', historyCut)
    scope.emit(path, {
      type: 'summarized',
      upTo,
      ...omitUndefined({ text }),
      before: Math.round(size),
      after: Math.round(fixed + estimateMessages(next)),
      reason,
      hash,
      ...(more.length > 0 && { shortened: more }),
    })
    // It has cost a call: a process that dies from here on does not make it again.
    await scope.stored()
  }

  /** The text of the summary, by a step that an earlier process may have begun. Undefined if it has failed. */
  async function written(at: string, upTo: number, window: number): Promise<string | undefined> {
    const whole = all()
    const { upTo: from = 0, text: before } = loop.summary?.entry ?? {}
    const head = headOf(whole, upTo)
    const covered = whole.slice(from, upTo).filter((message) => !head.includes(message))
    const rest = withShortened(covered, handles())
    const finished = state.finished.get(at)
    if (finished?.error !== undefined) return undefined
    if (finished === undefined) {
      const first = head.find(({ role }) => role === 'user')
      try {
        await inStep(scope, at, { stepType: 'summary', kind: 'summary', covers: upTo }, async () => {
          const most = Math.min(window * 0.9, ownWindow() * 0.75)
          await run(summaryLoop(at, transcriptOf({ first, before, messages: rest, most })))
          const text = textAt(at)
          if (text === '') throw new MillraceError('empty-summary', 'The model wrote no summary.')
          if (estimateText(text) >= estimateMessages(rest))
            throw new MillraceError('bad-summary', 'The summary is not shorter than what it covers.')
          const usage = state.usageBelow(at)
          return { value: undefined, ...(usage && { usage }) }
        })
      } catch (error) {
        if (error instanceof Suspended || scope.signal.aborted) throw error
        return undefined
      }
    }
    return textAt(at)
  }

  function textAt(at: string): string {
    const reply = state.loopAt(at).list.at(-1)
    return reply === undefined ? '' : textOf({ role: 'assistant', content: reply.content }).trim()
  }

  /** Tokens that the model of the summary can take, if it is another one. */
  function ownWindow(): number {
    const own = context.summary?.model
    return (own === undefined ? undefined : windowOf(models, own, { summarizeAt: 'none' })) ?? Infinity
  }

  function summaryLoop(at: string, transcript: string): ToolLoopOptions {
    const { model, fallbacks, retries, headers, providerOptions } = config
    const own = context.summary?.model
    const same = omitUndefined({ model, fallbacks, headers, providerOptions })
    return {
      scope,
      path: at,
      stage: 'summary',
      config: {
        ...(own === undefined ? same : { model: own }),
        system: context.summary?.system ?? summaryInstructions,
        messages: [{ role: 'user', content: transcript }],
        maxSteps: 1,
        retries,
        cache: 'none',
      },
      tools: new Map(),
      isOver: () => true,
      answers: false,
    }
  }

  /** What the thread has summarized before this run. */
  async function startFromEarlier(model: string): Promise<void> {
    const found = await earlierSummary(scope, path, config.messages)
    if (found === undefined) return
    const { upTo, text, hash } = found
    const size = estimate(told(), model)
    const next = withShortened(withSummary(all(), omitUndefined({ upTo, text })), handles())
    const after = fixed + estimateMessages(next)
    const sizes = { before: Math.round(size), after: Math.round(after) }
    scope.emit(path, { type: 'summarized', upTo, ...omitUndefined({ text }), ...sizes, reason: 'earlier', hash })
  }

  return {
    async before(model) {
      if (loop.list.length === 0 && loop.summary === undefined && loop.summing === undefined)
        await startFromEarlier(model)
      const window = windowOf(models, model, context)
      if (window !== undefined) checkSizes(window)
      const now = told()
      const size = estimate(now, model)
      const isFilled = hasFilled(loop)
      const sizes = sizesFor(window ?? size, fixed, context)
      if (loop.summing !== undefined) {
        const { path: at, covers } = loop.summing
        await make(at, covers, { reason: 'full', size, window: sizes.most, shortened: [] })
        return []
      }
      const isLong = window !== undefined && context.summarizeAt !== 'none' && size > sizes.most
      if (!isLong && !isFilled) return []
      const olds = oldResultsAsHandles(now, { keep: sizes.keep, size: estimateMessage })
      const saved = estimateMessages(now) - estimateMessages(olds.messages)
      if (!isFilled && size - saved <= sizes.most * enough) return olds.handles
      const at = joinPath(path, loop.children + 1)
      return (await summarize(at, isFilled ? 'overflow' : 'full', sizes, size)) ? [] : olds.handles
    },
    async refused(call, model, overflow) {
      const size = estimate(told(), model)
      const window = learnWindow(models, model, overflow, size)
      const sizes = sizesFor(Math.min(window, size), fixed, context)
      // Below the call: a process that makes the call again makes the summary again, unless it is recorded.
      if (!(await summarize(joinPath(call, 1), 'overflow', sizes, size))) throw this.tooLong(undefined)
      return told()
    },
    after() {
      const reply = loop.list.at(-1)
      const { inputTokens = 0, source } = reply?.usage ?? {}
      if (reply?.finish === undefined || source !== 'reported' || inputTokens === 0) return
      if (state.warnings.has('context-truncated')) return
      // Without the answer and its results.
      const asked = told().slice(
        0,
        told().findLastIndex(({ role }) => role === 'assistant'),
      )
      const size = fixed + estimateMessages(asked)
      if (size < leastTruncated || inputTokens >= size * truncated) return
      const message = `The server of ${reply.model} reports ${inputTokens} tokens for a prompt of about ${Math.round(size)}: it has left out a part of it without an error. Set the server's window (num_ctx of Ollama) to what the model can take, and "window" in "context" to the same.`
      scope.emit('', { type: 'warning', code: 'context-truncated', message })
    },
    tooLong(cause) {
      const largest = told()
        .map((message, i) => ({ name: nameOf(message, i), size: Math.round(estimateMessage(message)) }))
        .toSorted((a, b) => b.size - a.size)
        .slice(0, 3)
        .map(({ name, size }) => `${name} (about ${size} tokens)`)
      const sizes = `system (about ${system}), tools (about ${tools})`
      return new MillraceError(
        'context-too-long',
        `The prompt does not fit the model's window, and there is nothing more to leave out. The largest messages: ${largest.join(', ')}; beside them ${sizes}.`,
        { status: 400, cause },
      )
    },
  }
}

/** The last answer has filled the window. */
function hasFilled({ list, summary }: ToolLoop): boolean {
  return list.at(-1)?.finish?.reason.raw === windowFilled && list.length > (summary?.replies ?? 0)
}

function nameOf({ role, content }: Message, i: number): string {
  const tool = role === 'tool' ? ` of ${[...new Set(content.map(({ toolName }) => toolName))].join(', ')}` : ''
  return `message ${i + 1}, ${role}${tool}`
}

/**
 * How many messages a summary covers: so many that the rest has at most `keep` tokens. The cut is before a message of the user or of the assistant, and
 * never within the last round of tools. Undefined if there are no messages behind the first `from` to cover.
 */
export function cutOf(messages: readonly Message[], from: number, keep: number): number | undefined {
  const last = lastRound(messages)
  let cut = last
  let kept = estimateMessages(messages.slice(last))
  for (let i = last - 1; i > from; i--) {
    kept += estimateMessage(messages[i]!)
    if (kept > keep) break
    const { role } = messages[i]!
    if (role === 'user' || role === 'assistant') cut = i
  }
  return cut > from ? cut : undefined
}

/** Where the messages begin that the model has not answered yet: those of the user, or the round of tools before them. */
function lastRound(messages: readonly Message[]): number {
  let i = messages.length
  while (i > 0 && (messages[i - 1]!.role === 'user' || messages[i - 1]!.role === 'system')) i--
  if (messages[i - 1]?.role !== 'tool') return Math.min(i, Math.max(0, messages.length - 1))
  while (i > 0 && messages[i - 1]!.role === 'tool') i--
  return Math.max(0, i - 1)
}
