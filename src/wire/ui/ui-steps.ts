/**
 * The blocks and steps of a UI message. Model calls that overlap (parallel answers) share one step, because clients search open parts in the
 * current step only.
 */
import type { EntryOf } from '../../part/entry.ts'
import { isUnder } from '../../part/path.ts'
import type { Sink } from '../wire.ts'
import type { UiChunk } from './ui-chunk.ts'
import type { ShownParts } from './ui-shown.ts'
import type { UiTools } from './ui-tools.ts'

type Kind = 'text' | 'reasoning'

export interface UiSteps {
  startBlock(kind: Kind, entry: EntryOf<'text-start'> | EntryOf<'reasoning-start'>): void
  delta(entry: EntryOf<'text-delta'> | EntryOf<'reasoning-delta'>): void
  endBlock(entry: EntryOf<'text-end'> | EntryOf<'reasoning-end'>): void
  /** Sends the starts of all open blocks, for a client that joins here. */
  reopen(): void
  /** A model call of the answer starts. */
  startCall(path: string): void
  finishCall(path: string): void
  /** Begins a step for what called agents ask, or stays in it. Returns false if anything is open that a step would cut. */
  beginInner(): boolean
  /** Ends the step if nothing is open in it. */
  settle(): void
  /** Retracts a superseded attempt and drops its blocks and calls. Returns false if that is impossible. */
  retract(path: string): boolean
  /** Sends the ends of all open blocks. */
  closeBlocks(): void
  /** Sends the end of the step, if one is open. */
  close(): void
}

interface UiStepsOptions {
  sink: Sink<UiChunk>
  tools: UiTools
  shown: ShownParts
  ui7: boolean
}

interface UiBlock {
  kind: Kind
  path: string
  sendDelta(text: string): void
}

export function createUiSteps(options: UiStepsOptions): UiSteps {
  return new Steps(options)
}

/** A class, not closures: one for each open stream (decisions/0028). */
class Steps implements UiSteps {
  readonly #sink: Sink<UiChunk>
  readonly #tools: UiTools
  readonly #shown: ShownParts
  readonly #ui7: boolean
  /** Open blocks that were sent to the client. */
  readonly #blocks = new Map<string, UiBlock>()
  /** Model calls that run in the client's current step. */
  readonly #calls = new Set<string>()
  #isOpen = false
  /** The last step was begun for what called agents ask. */
  #isInner = false

  constructor({ sink, tools, shown, ui7 }: UiStepsOptions) {
    this.#sink = sink
    this.#tools = tools
    this.#shown = shown
    this.#ui7 = ui7
  }

  close(): void {
    if (this.#isOpen) this.#sink.send({ type: 'finish-step' })
    this.#isOpen = false
  }

  // Version 6 drops open text blocks at `finish-step`, so it waits until all blocks are closed.
  settle(): void {
    if (this.#calls.size === 0 && this.#blocks.size === 0 && this.#tools.pending() === 0) this.close()
  }

  startBlock(
    kind: Kind,
    { type, id, step, providerMetadata }: EntryOf<'text-start'> | EntryOf<'reasoning-start'>,
  ): void {
    const sendDelta = this.#sink.prepare((delta) => ({ type: `${kind}-delta`, id, delta }))
    this.#blocks.set(id, { kind, path: step, sendDelta })
    this.#shown.add(step)
    this.#sink.send({ type, id, providerMetadata })
  }

  delta({ type, id, delta, providerMetadata }: EntryOf<'text-delta'> | EntryOf<'reasoning-delta'>): void {
    const block = this.#blocks.get(id)
    if (block === undefined) return
    if (providerMetadata === undefined) block.sendDelta(delta)
    else this.#sink.send({ type, id, delta, providerMetadata })
  }

  endBlock(entry: EntryOf<'text-end'> | EntryOf<'reasoning-end'>): void {
    const { type, id, providerMetadata } = entry
    if (!this.#blocks.delete(id)) return
    const citations = this.#ui7 && entry.type === 'text-end' ? entry.citations : undefined
    this.#sink.send({ type, id, citations, providerMetadata })
    this.settle()
  }

  reopen(): void {
    for (const [id, { kind }] of this.#blocks) this.#sink.send({ type: `${kind}-start`, id })
  }

  startCall(path: string): void {
    this.#calls.add(path)
    this.#tools.flush()
    // After a step boundary the client would add the rest of an open input as a second part.
    if (this.#isOpen || this.#tools.pending() > 0) return
    this.#begin()
    this.#isInner = false
  }

  #begin(): void {
    this.#isOpen = true
    this.#shown.step()
    this.#tools.newStep()
    this.#sink.send({ type: 'start-step' })
  }

  beginInner(): boolean {
    if (this.#isInner) return true
    if (this.#calls.size > 0 || this.#blocks.size > 0 || this.#tools.pending() > 0) return false
    this.close()
    this.#begin()
    this.#isInner = true
    return true
  }

  finishCall(path: string): void {
    this.#calls.delete(path)
    this.settle()
  }

  retract(path: string): boolean {
    const blocks = this.#blocks
    const isMixed = this.#tools.pendingOutside(path) || [...blocks.values()].some((block) => !isUnder(block.path, path))
    const retraction = this.#shown.retract(path)
    if (retraction !== 'nothing' && (retraction === 'impossible' || isMixed || !this.#ui7)) return false
    for (const [id, block] of blocks) if (isUnder(block.path, path)) blocks.delete(id)
    for (const call of this.#calls) if (isUnder(call, path)) this.#calls.delete(call)
    this.#tools.forget(path)
    // The step stays open: `reset-step` keeps its boundary for the next attempt.
    if (retraction === 'step') this.#sink.send({ type: 'reset-step' })
    return true
  }

  closeBlocks(): void {
    for (const [id, { kind }] of this.#blocks) this.#sink.send({ type: `${kind}-end`, id })
    this.#blocks.clear()
  }
}
